"""Prepares our docstrings for the API reference (an extension of griffe, named in mkdocs.yml).

Docstrings are plain text, so that they read well in a terminal. For Markdown:

- an example (`>>> ...`) becomes a block of code; Markdown would make a quotation of it;
- lines of the form `name: what it is` become a list, if `name` is a parameter or an attribute;
- an underlined word such as "Parameters" becomes bold instead of a heading;
- the comment at the end of an attribute's line becomes the attribute's docstring.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

NAMED = re.compile(r"(\w+(?:, \w+)*): (?=\S)")
COMMENT = re.compile(r"\s{2}# (?!type:|noqa|>>>|<<<)(.+)$")
UNDERLINED = re.compile(r"^(\w.*)\n-{3,}$", re.M)


class PlainDocstrings(griffe.Extension):
    """Rewrites the docstrings of a package after griffe has read it."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value, names_of(obj))
        elif obj.is_attribute and (comment := comment_of(obj)):
            obj.docstring = griffe.Docstring(comment, parent=obj)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Hides arguments that `__init__` only stores, and what it sets without a word about it."""
        init = cls.members.get("__init__")
        stored = (
            {each.name for each in init.parameters} if isinstance(init, griffe.Function) else ()
        )
        for name, member in list(cls.members.items()):
            if not isinstance(member, griffe.Attribute):
                continue
            unexplained = member.annotation is None and not (member.docstring or comment_of(member))
            if name in stored or name == "model_config" or (unexplained and is_set_in_init(member)):
                cls.del_member(name)


def is_set_in_init(attribute: griffe.Attribute) -> bool:
    return "instance-attribute" in attribute.labels and "class-attribute" not in attribute.labels


def names_of(obj: griffe.Object) -> set[str]:
    """Return the names that a docstring may explain: parameters, and members of a class."""
    names = set(obj.members) if obj.is_class else set()
    function = obj.members.get("__init__") if obj.is_class else obj
    if isinstance(function, griffe.Function):
        names |= {parameter.name.lstrip("*") for parameter in function.parameters}
    return names


def comment_of(obj: griffe.Object) -> str:
    """Return the comment at the end of an attribute's line, or an empty string.

    A value of several lines is left out: its comments are about its parts.
    """
    if len(obj.lines) != 1 or not (found := COMMENT.search(obj.lines[0])):
        return ""
    return found[1][0].upper() + found[1][1:]


def to_markdown(text: str, names: set[str]) -> str:
    """Return the docstring with examples as code blocks and named lines as a list."""
    lines: list[str] = []
    example_indent: str | None = None  # None: not inside an example
    for line in [*UNDERLINED.sub(r"**\1**", text).splitlines(), ""]:
        if example_indent is not None:
            if line.strip():
                lines.append(line.removeprefix(example_indent))
                continue
            lines.append("```")
            example_indent = None
        elif line.lstrip().startswith(">>> "):
            example_indent = line[: line.index(">>>")]
            start_block(lines)
            lines.append("```pycon")
            line = line.lstrip()
        elif (named := NAMED.match(line)) and set(named[1].split(", ")) <= names:
            if not (lines and lines[-1].startswith(("- `", "    "))):
                start_block(lines)
            line = f"- `{named[1]}`: {line[named.end() :]}"
        lines.append(line)
    return "\n".join(lines).rstrip()


def start_block(lines: list[str]) -> None:
    """Add the empty line that Markdown needs before a block."""
    if lines and lines[-1].strip():
        lines.append("")
