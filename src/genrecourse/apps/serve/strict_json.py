"""check_json: whether a body is JSON that can be read, stored and shown again."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from genrecourse.apps.serve.errors import Refusal
from genrecourse.errors import text_problem

# A text without an end is one match, too, and no match is tried twice (++, *+): otherwise a body of
# many quotes would take time that grows with the square of its length.
MARKS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
ESCAPES = re.compile(r"\\u(0000|[dD][89a-fA-F])")  # NUL, or a half of a character


def check_json(body: bytes, nested: int) -> None:
    """Raise Refusal unless the body is JSON in UTF-8, without NaN, at most `nested` deep.

    >>> check_json(b'{"n": 1}', 20)
    >>> check_json(b'{"n": NaN}', 20)
    Traceback (most recent call last):
    genrecourse.apps.serve.errors.Refusal: the body holds NaN, which is no JSON; ...
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(422, f"byte {error.start} of the body is not UTF-8",
                      do="encode the body as UTF-8") from None  # fmt: skip
    if _depth_of(text, nested) > nested:
        raise Refusal(422, f"the body has more than {nested} nested lists and objects",
                      do="send a flatter body")  # fmt: skip
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise Refusal(422, f"the body is not JSON: {error.msg.lower()} at character {error.pos}",
                      do="correct the JSON") from None  # fmt: skip
    except ValueError:  # Python reads no more than 4,300 digits
        raise Refusal(422, "the body holds a number of thousands of digits",
                      do="send a number that a float can hold") from None  # fmt: skip
    if ESCAPES.search(text):
        _check_texts(data)


def _no_constant(name: str) -> NoReturn:
    raise Refusal(422, f"the body holds {name}, which is no JSON", seen=name,
                  do="send null for a missing value")  # fmt: skip


def _depth_of(text: str, most: int) -> int:
    """Return how deeply lists and objects are nested; at most one more than `most`."""
    depth = deepest = 0
    for found in MARKS.finditer(text):
        mark = found[0]
        depth += (mark in "[{") - (mark in "]}")
        deepest = max(deepest, depth)
        if deepest > most:
            break
    return deepest


def _check_texts(data: Any) -> None:
    left = [data]
    while left:
        each = left.pop()
        if isinstance(each, str) and text_problem(each):
            raise Refusal(422, f"a text of the body {text_problem(each)}",
                          do="write the text differently")  # fmt: skip
        if isinstance(each, dict):
            left += [item for pair in each.items() for item in pair]
        elif isinstance(each, list):
            left += each
