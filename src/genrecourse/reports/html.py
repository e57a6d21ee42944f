"""The parts of every page: one HTML file without network access and without scripts.

These functions escape all text that they get. `plots` draws the pictures, which are embedded in the
file.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from genrecourse.reports import plots


def document(title: str, parts: Sequence[str], language: str = "en") -> str:
    """Return the complete HTML file. parts: HTML, in order.

    >>> document("Plans", ["<p>Hello</p>"]).startswith("<!doctype html>")
    True
    """
    return (
        f'<!doctype html>\n<html lang="{escape(language)}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head>\n"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def header(eyebrow: str, title: str, lead: str, tiles: Sequence[tuple[str, str]]) -> str:
    """Return the top of a page. tiles: pairs of a number and what it counts.

    >>> "<b>12</b>" in header("report", "Plans", "Some plans.", [("12", "people")])
    True
    """
    return (
        f'<header><p class="eyebrow">{escape(eyebrow)}</p><h1>{escape(title)}</h1>'
        f'<p class="lead">{escape(lead)}</p><div class="tiles">'
        + "".join(
            f"<div><b>{escape(number)}</b><span>{escape(what)}</span></div>"
            for number, what in tiles
        )
        + "</div></header>"
    )


def notes(facts: Mapping[str, str]) -> str:
    """Return names with their descriptions; empty descriptions are left out.

    >>> notes({"seed": "0", "notes": ""})
    '<dl class="notes"><div><dt>seed</dt><dd>0</dd></div></dl>'
    """
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
        for name, text in facts.items()
        if text
    )
    return f'<dl class="notes">{rows}</dl>'


def section(title: str, *inside: str, lead: str = "") -> str:
    """Return a section with a title. inside: HTML. lead: a first sentence.

    >>> section("A & B", "<p>text</p>")
    '<section><h2>A &amp; B</h2><p>text</p></section>'
    """
    lead = f'<p class="muted">{escape(lead)}</p>' if lead else ""
    return f"<section><h2>{escape(title)}</h2>{lead}{''.join(inside)}</section>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], kind: str) -> str:
    """Return a table. kind: its CSS class.

    >>> "<td>0.41</td>" in table(["cost"], [["0.41"]], "scores")
    True
    """
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="wide"><table class="{kind}"><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def bullets(items: Sequence[str]) -> str:
    """Return a list of sentences.

    >>> bullets(["1 < 2"])
    '<ul><li>1 &lt; 2</li></ul>'
    """
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def picture(
    draw: Callable[[Any], None],
    alt: str,
    caption: str,
    size: tuple[float, float] = (4.4, 2.7),
    title: str = "",
) -> str:
    """Return a figure with an embedded SVG image, whose names and styles cannot clash with others.

    draw: draws on matplotlib axes. size: width and height in inches.

    >>> "data:image/svg+xml" in picture(lambda ax: None, "an empty picture", "Nothing.")
    True
    """
    data = base64.b64encode(plots.svg(draw, *size).encode()).decode()
    head = f"<h3>{escape(title)}</h3>" if title else ""
    return (
        f'<figure>{head}<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


CSS = """
:root { --ink: #1f2933; --muted: #6b7785; --line: #e3e8ee; --page: #f6f8fa;
  --yes: #4878cf; --no: #d65f5f; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 48px 24px 96px; }
h1 { font-size: 2.4rem; line-height: 1.15; letter-spacing: -.02em; margin: .1em 0 .4em; }
h2 { font-size: 1.45rem; letter-spacing: -.01em; margin: 64px 0 8px; }
h3 { font-size: 1.15rem; margin: 0; }
h4 { font-size: .8rem; text-transform: uppercase; letter-spacing: .06em; color: var(--muted);
  margin: 28px 0 8px; }
.eyebrow { color: var(--yes); font-weight: 600; font-size: .85rem; letter-spacing: .04em;
  margin: 0; }
.lead { font-size: 1.15rem; max-width: 46em; }
.muted, figcaption, small { color: var(--muted); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 16px;
  margin-top: 28px; }
.tiles div, .card, details, figure, .wide { background: #fff; border: 1px solid var(--line);
  border-radius: 12px; }
.tiles div { padding: 18px 20px; }
.tiles b { display: block; font-size: 1.7rem; letter-spacing: -.02em; }
.tiles span { color: var(--muted); font-size: .92rem; }
.card { padding: 28px; margin: 20px 0; }
.card figure { border: 0; padding: 0; margin: 0; }
.facts { margin: 4px 0 20px; color: var(--muted); }
.panels { display: grid; gap: 16px; margin-top: 16px; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); }
.panels figure { margin: 0; padding: 20px; }
.panels h3 { margin-bottom: 8px; }
.pair { display: grid; grid-template-columns: 1.3fr 1fr; gap: 32px; margin-top: 24px;
  align-items: start; }
figure { margin: 16px 0; padding: 24px; }
figure img { display: block; width: 100%; max-width: 560px; height: auto; margin: 0 auto; }
figcaption { font-size: .88rem; margin-top: 8px; text-align: center; }
.changes { width: 100%; border-collapse: collapse; border-bottom: 1px solid var(--line); }
.changes th { text-align: left; font-weight: 600; width: 40%; }
.changes th, .changes td { padding: 8px 12px 8px 0; border-top: 1px solid var(--line);
  vertical-align: top; }
.changes td { width: 30%; color: var(--muted); }
.changes td:last-child { font-weight: 600; color: var(--yes); }
.profile { display: grid; grid-template-columns: repeat(auto-fill, minmax(210px, 1fr));
  gap: 10px 24px; margin: 0; }
.profile dt { color: var(--muted); font-size: .84rem; line-height: 1.3; }
.profile dd { margin: 0; }
.profile i { font-size: .76rem; border: 1px solid var(--line); border-radius: 8px;
  padding: 0 6px; }
.profile .changed dd { font-weight: 600; }
details { padding: 16px 20px; margin: 24px 0; }
summary { cursor: pointer; font-weight: 600; }
details .wide { border: 0; }
.wide { overflow-x: auto; padding: 8px 20px; margin: 16px 0; }
.wide table { width: 100%; border-collapse: collapse; font-size: .93rem;
  font-variant-numeric: tabular-nums; }
.wide th { color: var(--muted); font-weight: 600; font-size: .84rem; }
.wide th, .wide td { text-align: right; padding: 10px 0 10px 18px;
  border-bottom: 1px solid var(--line); white-space: nowrap; }
.wide tr:last-child td { border-bottom: 0; }
.wide th:first-child, .wide td:first-child { text-align: left; padding-left: 0; }
.scores td:first-child { font-weight: 600; }
.all th, .all td { vertical-align: top; }
.all th:nth-child(2), .all td:nth-child(2) { text-align: left; white-space: normal; }
.notes { margin: 16px 0; }
.notes div { display: grid; grid-template-columns: 150px 1fr; gap: 16px; padding: 6px 0; }
.notes dt { font-weight: 600; }
.notes dd { margin: 0; }
li { margin: 8px 0; max-width: 52em; }
@media (max-width: 760px) {
  main { padding: 28px 14px 64px; }
  h1 { font-size: 1.8rem; }
  h2 { margin-top: 44px; }
  .card { padding: 18px; }
  .pair { grid-template-columns: 1fr; }
  .notes div { grid-template-columns: 1fr; gap: 0; }
  .profile { grid-template-columns: 1fr 1fr; }
  figure { padding: 16px 8px; }
  .card figure { margin: 0 -18px; } /* full width: small pictures have small text */
}
@media print { body { background: #fff; } .card, figure { break-inside: avoid; } }
"""
