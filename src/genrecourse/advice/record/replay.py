"""Computes a recorded answer again, and says whether it is the same, byte for byte."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genrecourse.advice.record.answers import made_by, request_of, table_of
from genrecourse.advice.record.check import CHAIN, PERSONAL, DamageError
from genrecourse.advice.record.commitments import opens
from genrecourse.advice.record.lines import Line, canonical, read_lines
from genrecourse.errors import UserError, counted
from genrecourse.model.classifier import scores_by_row
from genrecourse.table.text_files import path_of

if TYPE_CHECKING:
    import pandas as pd

    from genrecourse.advice.request import PlanRequest
    from genrecourse.advice.service import Service

Computed = Callable[["Service", "pd.DataFrame", "PlanRequest"], Sequence[Any]]


def scores(service: Service, X: pd.DataFrame, _: PlanRequest | None = None) -> list[float]:
    """Return what a decision on each row is made of: its score.

    >>> import pandas as pd
    >>> from genrecourse import NearestNeighbour, Schema
    >>> from genrecourse.advice.service import Service
    >>> X = pd.DataFrame({"income": range(80)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> service = Service(NearestNeighbour(h, Schema.infer(X)).fit(X))
    >>> scores(service, X.tail(1))
    [0.9875]
    """
    found: list[float] = service.method.classifier_.score(X).tolist()
    return found


def _plans(service: Service, X: pd.DataFrame, request: PlanRequest) -> list[dict[str, Any]]:
    return [plan.to_dict() for plan in service.plans(X, request)]


ROUNDING = 1e-6  # of a score between 0 and 1 that a network computes with 32 bits

# What an answer of each verb is computed by: one output for each row.
VERBS: dict[str, Computed] = {
    "plans": _plans,
    **dict.fromkeys(("decision", "predict", "infer"), scores),  # three protocols, one answer
}


@dataclass(frozen=True)
class Replay:
    """What came of computing a recorded answer again.

    made_by: what it was made by and differs now: name, recorded, now.
    people: how many were computed again; erased: how many could not be.
    different: places of the people whose output is another one now.
    rounded: places of the people whose output has the same bytes but for the last digits of some
        numbers, because a model that scores few rows at once rounds otherwise than with many.
    gap: the largest difference between such numbers.

    >>> print(Replay(5, [("code", "1.0", "1.1")], people=3, erased=0, different=[1]))
    record 5, computed again for 3 people:
    another answer for 1 of them (counted from 0: 1)
    code was 1.0, and is 1.1
    """

    record: int
    made_by: Sequence[tuple[str, Any, Any]]
    people: int
    erased: int
    different: Sequence[int]
    rounded: Sequence[int] = ()
    gap: float = 0.0

    @property
    def is_same(self) -> bool:
        """Whether every byte is the same."""
        return not (self.different or self.rounded)

    def __str__(self) -> str:
        about = counted(self.people, "person").replace("persons", "people")
        said = [f"record {self.record:,}: the same answer, byte for byte, for {about}"]
        if not self.is_same:
            said = [f"record {self.record:,}, computed again for {about}:"]
        if self.different:
            said.append(f"another answer for {_places(self.different)}")
        if self.rounded:
            said.append(
                f"the same answer for {_places(self.rounded)} but for the rounding of numbers, "
                f"which differ by at most {self.gap:.1g}"
            )
        if self.erased:
            said.append(f"the values of {self.erased:,} more were erased, so nothing is known")
        said += [_in_words(each) for each in self.made_by]
        return "\n".join(said)


def replay(
    folder: str | os.PathLike[str],
    record: int,
    service: Service,
    model: str | os.PathLike[str],
) -> Replay:
    """Compute a recorded answer again from its input, rules and options.

    record: its number, counted from 0, as in its receipt. model: the folder of the service's model.
    Raises a UserError if the record is no answer, is damaged, or all its values were erased.

    >>> import pandas as pd
    >>> from genrecourse import NearestNeighbour, Schema
    >>> from genrecourse.advice.request import PlanRequest
    >>> from genrecourse.advice.service import Service
    >>> X = pd.DataFrame({"income": range(80)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> service = Service(NearestNeighbour(h, Schema.infer(X)).fit(X))
    >>> from genrecourse.advice.record import Record
    >>> from genrecourse.advice.record.answers import plans_answer
    >>> service.save("model")
    >>> plans = service.plans(X.head(2), PlanRequest())
    >>> with Record("answers", made_by(service, "model")) as record:
    ...     _ = record.append(plans_answer("a1", X.head(2), PlanRequest(), plans))
    >>> print(replay("answers", 0, service, "model"))
    record 0: the same answer, byte for byte, for 2 people
    """
    line, held = entry(folder, record)
    whole = [each for each in enumerate(held) if "erased" not in each[1]]
    if not whole:
        by = sorted({each["erased"] for each in held})
        raise UserError(
            f"the values of record {record:,} were erased (by record {by[0]:,}), so it cannot be "
            "computed again"
            if by
            else f"record {record:,} is about nobody, so there is nothing to compute again"
        )
    verb = line["verb"]
    if verb not in VERBS:
        raise UserError(
            f"record {record:,} answers {verb!r}; only {', '.join(VERBS)} can be computed again"
        )
    people = [person["values"] for _, person in whole]
    X = table_of(people)
    by_row = "scores" in line["made_by"]
    differs = _differences(line["made_by"], made_by(service, model, by_row=by_row))
    request = request_of(line["asked"], people)
    try:
        service.schema.check_columns(X, f"record {record:,}")
        with scores_by_row() if by_row else nullcontext():
            outputs = VERBS[verb](service, X[service.schema.columns], request)
    except UserError as error:
        raise UserError("; ".join([f"{error}"] + [_in_words(each) for each in differs])) from None
    gaps = {
        place: _gap(person["values"]["output"], json.loads(canonical(output)))
        for (place, person), output in zip(whole, outputs, strict=True)
    }
    rounded = [place for place, gap in gaps.items() if 0 < gap <= ROUNDING]
    return Replay(
        record,
        differs,
        len(whole),
        len(held) - len(whole),
        [place for place, gap in gaps.items() if gap > ROUNDING],
        rounded,
        max((gaps[place] for place in rounded), default=0.0),
    )


def _gap(was: Any, now: Any) -> float:
    """Return the largest difference between the numbers of two outputs; infinite if anything else
    differs, and 0 only if they are the same bytes."""
    if canonical(was) == canonical(now):
        return 0.0
    if isinstance(was, float) and isinstance(now, float):
        return abs(was - now) or math.inf  # 0.0 and -0.0
    pairs: list[tuple[Any, Any]] = []
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = list(zip(was, now, strict=True))
    elif isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
        pairs = [(was[name], now[name]) for name in was]
    return max((_gap(*pair) for pair in pairs), default=math.inf)


def _places(places: Sequence[int]) -> str:
    shown = ", ".join(map(str, places[:10])) + (", ..." if len(places) > 10 else "")
    return f"{len(places):,} of them (counted from 0: {shown})"


def _in_words(difference: tuple[str, Any, Any]) -> str:
    name, was, now = difference
    return f"{name} was {was}, and is {now}"


def _differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    names = [*was, *(name for name in now if name not in was)]
    every = [(name, was.get(name), now.get(name)) for name in names]
    return [each for each in every if each[1] != each[2]]


def entry(
    folder: str | os.PathLike[str], record: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a recorded answer: its line in the chain, and for each person the secret and values.

    The values are compared with what the line commits to; `check` compares everything.

    >>> from genrecourse.advice.record import Answer, Record
    >>> with Record("record", {}) as record:
    ...     _ = record.append(Answer("a1", "plans", [{"input.age": 41}]))
    >>> line, people = entry("record", 0)
    >>> line["request"], people[0]["values"]
    ('a1', {'input.age': 41})
    """
    folder = path_of(folder, "the record")
    try:
        line = _first(folder / CHAIN, lambda line: line.number - 1 == record)
        if line is None:
            raise UserError(
                f"{folder} has no record {record:,}; 'genrecourse record verify' counts them"
            )
        content = _content(line, folder / CHAIN, record)
        if content["kind"] != "answer":
            raise UserError(f"record {record:,} is no answer: its kind is {content['kind']!r}")
        start = b'{"n":%d,' % record
        own = _first(folder / PERSONAL, lambda line: line.raw.startswith(start))
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from None
    if own is None:
        raise DamageError("its personal values are missing", folder / PERSONAL, record)
    held = _content(own, folder / PERSONAL, record)["people"]
    for i, (person, promised) in enumerate(zip(held, content["people"], strict=True)):
        if "erased" not in person and not opens(person, promised):
            what = f"the values of person {i} are not those that it committed to"
            raise DamageError(what, folder / PERSONAL, record, own)
    return content, list(held)


def _first(path: Path, is_it: Callable[[Line], bool]) -> Line | None:
    with open(path, "rb") as file:
        return next((line for line in read_lines(file) if is_it(line)), None)


def _content(line: Line, path: Path, record: int) -> dict[str, Any]:
    if line.content is None:
        raise DamageError("its bytes do not fit its checksum", path, record, line)
    return line.content
