"""What a notebook shows of a schema, of plans or of an audit: one box with its own style.

No script, nothing loaded, and colours that are readable on a light and on a dark page: text has the
colour of the page, and lines and backgrounds are half transparent. All text is escaped; only what
these functions made is HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

KINDS = ("good", "bad", "plain")  # of a label


class Html(str):
    """Text that is HTML already.

    >>> html("1 < 2"), html(Html("<b>2</b>"))
    ('1 &lt; 2', '<b>2</b>')
    """


def html(part: str) -> Html:
    """Return a part as HTML: text is escaped, and HTML stays as it is.

    >>> html("1 < 2"), html(Html("<br>"))
    ('1 &lt; 2', '<br>')
    """
    return part if isinstance(part, Html) else Html(escape(part))


def joined(parts: Iterable[str]) -> Html:
    """Return several parts as one.

    >>> joined(["a & b", Html("<br>")])
    'a &amp; b<br>'
    """
    return Html("".join(map(html, parts)))


def element(tag: str, kind: str, *parts: str) -> Html:
    """Return the parts in an HTML element. kind: its CSS class.

    >>> element("p", "gr-small", "1 < 2")
    '<p class="gr-small">1 &lt; 2</p>'
    """
    return Html(f'<{tag} class="{kind}">{joined(parts)}</{tag}>')


def label(text: str, kind: str = "plain") -> Html:
    """Return a word on a coloured ground. kind: one of KINDS.

    >>> label("ok", "good")
    '<span class="gr-label gr-good">ok</span>'
    """
    return element("span", f"gr-label gr-{kind}", text)


def lines(texts: Iterable[str]) -> Html:
    """Return small lines of text, one below the other; empty without a text.

    >>> lines([]), lines(["a", "b"])
    ('', '<div class="gr-small"><div>a</div><div>b</div></div>')
    """
    rows = [Html(f"<div>{html(text)}</div>") for text in texts]
    return element("div", "gr-small", *rows) if rows else Html("")


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """Return a table; the first cell of a row names it. heads: may be empty.

    >>> grid([], [["income", "20"]])
    '<div class="gr-wide"><table><tbody><tr><th>income</th><td>20</td></tr></tbody></table></div>'
    """
    top = "".join(f"<th>{html(head)}</th>" for head in heads)
    top = f"<thead><tr>{top}</tr></thead>" if heads else ""
    body = "".join(
        f"<tr><th>{html(first)}</th>{''.join(f'<td>{html(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    return Html(f'<div class="gr-wide"><table>{top}<tbody>{body}</tbody></table></div>')


def folded(summary: str, *parts: str) -> Html:
    """Return parts that open with a click, without a script.

    >>> folded("more", "text")
    '<details><summary>more</summary>text</details>'
    """
    return Html(f"<details><summary>{html(summary)}</summary>{joined(parts)}</details>")


def box(title: str, *parts: str) -> str:
    """Return the whole output of a cell. title: may be empty.

    >>> box("Plans", "text").endswith('<div class="gr-title">Plans</div>text</div>')
    True
    """
    head = element("div", "gr-title", title) if title else ""
    return f'<div class="genrecourse"><style>{CSS}</style>{head}{joined(parts)}</div>'


# The class is written twice so that these rules win over the notebook's own rules for tables.
CSS = """
.genrecourse { max-width: 62em; font: 14px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
.genrecourse .gr-title { font-size: 15px; font-weight: 600; margin: .2em 0 .5em; }
.genrecourse .gr-card { border: 1px solid rgba(128,128,128,.35); border-radius: 10px;
  padding: 10px 16px; margin: 0 0 10px; }
.genrecourse .gr-head { font-size: 15px; }
.genrecourse .gr-small { font-size: 12px; font-weight: 400; opacity: .75; margin: .4em 0; }
.genrecourse td .gr-small, .genrecourse th .gr-small { margin: 0; }
.genrecourse .gr-label { display: inline-block; font-size: 11px; line-height: 1.6; font-weight: 600;
  border-radius: 9px; padding: 0 8px; margin: 0 6px 0 0; background: rgba(128,128,128,.22); }
.genrecourse .gr-good { background: #2f6db5; color: #fff; }
.genrecourse .gr-bad { background: #b3443f; color: #fff; }
.genrecourse .gr-wide { overflow-x: auto; }
.genrecourse.genrecourse table { border-collapse: collapse; margin: .4em 0; border: 0;
  font-size: 13px; font-variant-numeric: tabular-nums; width: auto; display: table; }
.genrecourse.genrecourse tr, .genrecourse.genrecourse thead { background: none; border: 0; }
.genrecourse.genrecourse th, .genrecourse.genrecourse td { text-align: left;
  padding: 3px 18px 3px 0;
  border: 0; border-bottom: 1px solid rgba(128,128,128,.25); vertical-align: top; max-width: 26em;
  min-width: 5.5em; background: none; white-space: normal; color: inherit; }
.genrecourse.genrecourse th { font-weight: 600; min-width: 11em; }
.genrecourse.genrecourse thead th { font-size: 12px; font-weight: 400; opacity: .75;
  min-width: 5.5em; }
.genrecourse .gr-new { font-weight: 600; }
.genrecourse .gr-track { position: relative; height: 14px; max-width: 24em;
  margin: .5em 8px .3em 6px; }
.genrecourse .gr-track * { position: absolute; box-sizing: border-box; }
.genrecourse .gr-line { left: 0; right: 0; top: 5px; height: 4px; border-radius: 2px;
  background: rgba(128,128,128,.3); }
.genrecourse .gr-cut { top: 0; width: 2px; height: 14px; background: currentColor; opacity: .6; }
.genrecourse .gr-from { top: 1px; width: 12px; height: 12px; margin-left: -6px; border-radius: 50%;
  border: 2px solid #8a94a0; background: rgba(128,128,128,.15); }
.genrecourse .gr-to { top: 1px; width: 12px; height: 12px; margin-left: -6px; border-radius: 50%;
  background: #3f7fd0; }
.genrecourse .gr-share { display: block; height: 4px; border-radius: 2px; background: #3f7fd0; }
.genrecourse ul { margin: .4em 0; padding-left: 1.4em; }
.genrecourse details { margin: .4em 0; }
.genrecourse summary { cursor: pointer; font-size: 13px; }
"""
