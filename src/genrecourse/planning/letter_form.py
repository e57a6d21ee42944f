"""Letter: a letter as text and as an HTML page, filled from a template.

A template is plain text: an empty line separates blocks, "# " begins the title and "## " a heading,
and names in braces are fields. It is read before it is filled, so that no value can become a
heading or a field, and the page escapes every value.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain

from genrecourse.errors import UserError
from genrecourse.planning.placeholders import NO_BREAK, fields

WIDTH = 76  # letters in a line of text

Items = tuple[tuple[str, str], ...]  # a list: the feature, and what is said about it


@dataclass(frozen=True)
class Block:
    """One block of a letter. kind: title, heading, text or list.

    >>> Block("list", items=(("income", "raise it"),)).items[0][0]
    'income'
    """

    kind: str
    text: str = ""
    items: Items = ()


@dataclass(frozen=True)
class Letter:
    """A letter to one person, as text and as a page that can be printed.

    >>> letter = Letter((Block("title", "A & B"), Block("list", items=(("Income", "raise it"),))))
    >>> print(letter.to_text())
    A & B
    =====
    <BLANKLINE>
    - Income: raise it
    >>> "<h1>A &amp; B</h1>" in letter.to_html()
    True
    """

    blocks: tuple[Block, ...]
    language: str = "en"  # the language code of the page
    item: str = "{feature}: {said}"  # a line of a list, in text

    def to_text(self) -> str:
        """Return the letter as plain text, in lines of at most 76 letters."""
        return "\n\n".join(map(self._text, self.blocks)).replace(NO_BREAK, " ")

    def _text(self, block: Block) -> str:
        if block.kind == "list":
            items = (self.item.format(feature=name, said=said) for name, said in block.items)
            return "\n".join(textwrap.fill(f"- {i}", WIDTH, subsequent_indent="  ") for i in items)
        lines = [textwrap.fill(line, WIDTH) for line in block.text.splitlines()]
        if block.kind != "text":
            lines.append({"title": "=", "heading": "-"}[block.kind] * min(len(block.text), WIDTH))
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return a page for A4 paper and for phones that loads nothing and runs no script."""
        title = next((block.text for block in self.blocks if block.kind == "title"), "")
        body = "\n".join(map(_html, self.blocks))
        return (
            f'<!doctype html>\n<html lang="{escape(self.language)}"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(title)}</title><style>{CSS}</style></head>\n"
            f"<body><main>\n{body}\n</main></body></html>\n"
        )

    def _repr_html_(self) -> str:
        return "".join(map(_html, self.blocks))

    def __str__(self) -> str:
        return self.to_text()


def _html(block: Block) -> str:
    if block.kind == "list":
        items = "".join(
            f"<li><b>{escape(name)}</b> <span>{escape(said[:1].upper() + said[1:])}</span></li>"
            for name, said in block.items
        )
        return f"<ul>{items}</ul>"
    tag = {"title": "h1", "heading": "h2", "text": "p"}[block.kind]
    return f"<{tag}>{'<br>'.join(map(escape, block.text.splitlines()))}</{tag}>"


# ---- templates ------------------------------------------------------------------------------


def filled(template: str, values: Mapping[str, str | Items], where: str) -> tuple[Block, ...]:
    """Return the blocks of a template with its fields filled.

    A block whose fields are all empty is left out, and so is a section whose fields are all empty.

    values: text, or a list, which must stand alone in its block. where: the template, for errors.

    >>> template = "# Plan\\n\\n## Do\\n\\n{changes}\\n\\n## Or\\n\\nDo this:\\n\\n{other}"
    >>> [block.kind for block in filled(template, {"changes": (("a", "b"),), "other": ()}, "x")]
    ['title', 'heading', 'list']
    """
    found: list[Block] = []
    for section in _sections(template):
        named = set(chain.from_iterable(map(fields, section)))
        if section[0].startswith("## ") and named and not any(values[name] for name in named):
            continue
        found += _filled(section, values, where)
    return tuple(found)


def _sections(template: str) -> Iterator[list[str]]:
    """Yield the blocks of a template, from one heading to the next."""
    section: list[str] = []
    for block in re.split(r"\n\s*\n", template.strip()):
        if block.startswith("## ") and section:
            yield section
            section = []
        section.append(block.strip())
    yield section


def _filled(
    section: Sequence[str], values: Mapping[str, str | Items], where: str
) -> Iterator[Block]:
    for block in section:
        named = fields(block)
        if named and not any(values[name] for name in named):
            continue
        lists = {name: values[name] for name in named if not isinstance(values[name], str)}
        if lists:
            name, items = next(iter(lists.items()))
            if block != f"{{{name}}}":
                raise UserError(
                    f"{where}: {{{name}}} is a list; put an empty line before and after"
                )
            assert isinstance(items, tuple)
            yield Block("list", items=items)
        else:
            kind, text = _kind(block)
            yield Block(kind, text.format(**values).strip())


def _kind(block: str) -> tuple[str, str]:
    """Return the kind of a block of a template, and its text."""
    for mark, kind in (("## ", "heading"), ("# ", "title")):
        if block.startswith(mark):
            return kind, block.removeprefix(mark)
    return "text", block


CSS = """
@page { size: A4; margin: 20mm 22mm; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: #1a1a1a;
  font: 16px/1.5 "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif; }
main { max-width: 44rem; margin: 0 auto; padding: 3rem 1.5rem; overflow-wrap: anywhere; }
h1 { font-size: 1.45rem; line-height: 1.25; margin: 2rem 0 1.2rem; }
h2 { font-size: 1.05rem; margin: 1.5rem 0 .3rem; break-after: avoid; }
p { margin: .5rem 0; }
ul { list-style: none; margin: .6rem 0; padding: 0; border-top: 1px solid #bbb; }
li { padding: .45rem 0; border-bottom: 1px solid #bbb; break-inside: avoid; }
li b, li span { display: block; }
@media (max-width: 30rem) { main { padding: 1.25rem 1rem; } }
@media print { body { font-size: 10.5pt; } main { max-width: none; padding: 0; } }
"""
