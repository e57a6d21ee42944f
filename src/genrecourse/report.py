"""The report: one HTML file that opens anywhere, with no network and no script.

For a fitted method and some people whom h turned down: a few of them in full, what everybody is
asked to change, how well the method does, how it was made and what it does not mean. Every text
that comes from outside is escaped; pictures are drawn by `plots` and stand in the file itself.
"""

from __future__ import annotations

import base64
import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from genrecourse import plots
from genrecourse.methods.base import Method
from genrecourse.plans import Plan, Plans, in_words
from genrecourse.schema import Schema
from genrecourse.wording import Wording, english

SCORES = ("score", "val", "lof", "cost", "h_valid", "changes")  # columns of the score table
SHARES = ("val", "lof", "h_valid")


def write_report(path: str | Path, method: Method, people: pd.DataFrame, **options: Any) -> Path:
    """Write `report_html(method, people, **options)` to a file, and give its path back."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report_html(method, people, **options), encoding="utf-8")
    return path


def report_html(
    method: Method,
    people: pd.DataFrame,
    *,
    title: str | None = None,
    shown: int = 3,
    n: int = 1,
    scores: pd.DataFrame | None = None,
    scores_note: str = "",
    facts: Mapping[str, str] | None = None,
    limits: Sequence[str] = (),
    language: str | Path | Wording = "en",
) -> str:
    """The whole page.

    people: rows whom h turned down; the first `shown` of them are told in full. n: plans a person.
    scores: one row a method, with the columns of `SCORES` and n, as `evaluation.summarise` gives;
        scores_note says what the other methods are.
    facts, limits: what else to say about how it was made, and about what it does not mean.
    """
    words = Wording.of(language)
    title = title or words("report.title")
    plans = method.plans(people, n, language=words)
    limits = (*words.under("report.limit").values(), *limits)
    parts = [
        _head(title, plans, words),
        _few(method, people.iloc[:shown], plans[:shown], len(people), words),
        _asked_most(method.schema_, plans, words),
        _all(plans, words),
        "" if scores is None else _scores(scores, scores_note, words),
        _learning(method, words),
        _made(method, facts or {}, words),
        _section(words("report.limits"), _list(limits)),
    ]
    return (
        f'<!doctype html>\n<html lang="{escape(words("code"))}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head>\n"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


# ---- the sections ---------------------------------------------------------------------------


def _head(title: str, plans: Plans, words: Wording) -> str:
    told = [plan for plan in plans if plan.status == "ok"]
    changes = sum(len(plan.changes) for plan in told)
    count = words(
        "report.told_count", told=_count(len(told), words), people=_count(len(plans), words)
    )
    mean = words.number(f"{changes / len(told):.1f}") if told else "–"
    tiles = [
        (_count(len(plans), words), words("report.people")),
        (count, words("report.told")),
        (mean, words("report.changes")),
    ]
    return (
        f'<header><p class="eyebrow">{escape(words("report.eyebrow"))}</p>'
        f"<h1>{escape(title)}</h1>"
        f'<p class="lead">{escape(words("report.lead"))}</p>'
        '<div class="tiles">'
        + "".join(
            f"<div><b>{escape(number)}</b><span>{escape(what)}</span></div>"
            for number, what in tiles
        )
        + "</div></header>"
    )


def _few(method: Method, people: pd.DataFrame, plans: Plans, total: int, words: Wording) -> str:
    draws = method.draws(people) if hasattr(method, "draws") else None
    cards = []
    for i, plan in enumerate(plans):
        some = None
        if draws is not None:
            n = len(draws) // len(people)  # by position: labels may stand more than once
            some = draws.iloc[i * n : (i + 1) * n]
        cards.append(_card(method, people.iloc[i], plan, some))
    which = words("report.few_which", shown=len(plans), people=_count(total, words))
    return _section(words("report.few"), *cards, lead=which)


def _card(method: Method, row: pd.Series, plan: Plan, draws: pd.DataFrame | None) -> str:
    person = plan.language("panel.person", person=plan.person)
    inside = [f"<h3>{escape(person)}</h3>", f'<p class="facts">{escape(plan.facts)}</p>']
    if plan.status == "ok":
        inside.append(_plan(method, plan, draws))
    else:
        said = (plan.reason, *(opening.to_text() for opening in plan.openings[:1]))
        inside += [f"<p>{escape(sentence)}</p>" for sentence in said]
    inside.append(_profile(method.schema_, row, plan))
    return f'<article class="card">{"".join(inside)}</article>'


def _plan(method: Method, plan: Plan, draws: pd.DataFrame | None) -> str:
    score_range, words = method.classifier_.score_range, plan.language
    pictures = [
        _picture(
            lambda ax: plots.before_after(ax, plan, score_range),
            words("report.before_after", person=plan.person),
            words("report.before_after_note"),
            (4.8, 0.55 * (len(plan.changes) + 1) + 0.1),
        )
    ]
    if draws is not None:
        pictures.append(
            _picture(
                lambda ax: plots.cost_against_likelihood(ax, draws, plan.cutoff, words),
                words("report.draws", person=plan.person),
                words("report.draws_note"),
                (4.2, 3.2),
            )
        )
    others = "".join(
        f"<h4>{escape(words('report.another'))}</h4>{other.changes_html()}"
        f'<p class="facts">{escape(other.facts)}</p>'
        for other in plan.alternatives
    )
    return (
        f"<h4>{escape(plan.purpose)}</h4>{plan.changes_html()}"
        f'<div class="pair">{"".join(pictures)}</div>{others}'
    )


def _profile(schema: Schema, row: pd.Series, plan: Plan) -> str:
    changed, words = {change.feature.name for change in plan.changes}, plan.language
    cells = []
    for feature in schema:
        mark = ' class="changed"' if feature.name in changed else ""
        fixed = f" <i>{escape(words('report.fixed'))}</i>" if feature.role != "mutable" else ""
        value = escape(in_words(feature, row[feature.name], None, words))
        cells.append(f"<div{mark}><dt>{escape(feature.label)}{fixed}</dt><dd>{value}</dd></div>")
    return f'<h4>{escape(words("report.today"))}</h4><dl class="profile">{"".join(cells)}</dl>'


def _asked_most(schema: Schema, plans: Plans, words: Wording) -> str:
    told = [plan for plan in plans if plan.status == "ok"]
    if not told:
        return ""
    asked = pd.Series(0.0, index=[feature.name for feature in schema if feature.role == "mutable"])
    for plan in told:
        asked[[change.feature.name for change in plan.changes]] += 1 / len(told)
    shares = asked.rename({feature.name: feature.label for feature in schema})
    rows = min(len(shares), plots.MOST_BARS)
    return _section(
        words("report.asked_most"),
        _picture(
            lambda ax: plots.asked_most(ax, shares),
            words("report.asked_most_picture"),
            words("report.asked_most_note", people=_count(len(told), words), features=rows),
            (5.0, 0.36 * rows + 0.3),
        ),
    )


def _all(plans: Plans, words: Wording) -> str:
    rows = []
    for plan in plans:
        for each in plan.every or (plan,):
            said = each.reason or "; ".join(change.to_text() for change in each.changes)
            cost = "–" if each.cost is None else words.number(f"{each.cost:.2f}")
            rows.append([str(plan.person), said, cost])
    heads = [words("report.person_head"), words("plan.purpose"), words("report.cost_head")]
    title = words("report.all", plans=_count(len(rows), words))
    return f"<details><summary>{escape(title)}</summary>{_table(heads, rows, 'all')}</details>"


def _scores(scores: pd.DataFrame, note: str, words: Wording) -> str:
    heads, about = words.under("report.scores.head"), words.under("report.scores.about")
    notes = "".join(
        f"<div><dt>{escape(heads[name].rstrip(' ↑↓'))}</dt><dd>{escape(about[name])}</dd></div>"
        for name in SCORES
    )
    return _section(
        words("report.scores.title"),
        _table(*score_table(scores, words), "scores"),
        f"<p>{escape(note)}</p>" if note else "",
        f'<dl class="notes">{notes}</dl>',
        lead=words("report.scores.lead"),
    )


def score_table(
    scores: pd.DataFrame, language: Wording | None = None
) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the score table in words; a share comes with its denominator."""
    words, rows = language or english(), []
    for name, row in scores.iterrows():
        n = int(row["n"])
        cells = [str(name), _count(n, words)]
        for column in SCORES:
            text = f"{row[column]:.1f}" if column == "changes" else f"{row[column]:.3f}"
            if column in SHARES:
                text = f"{row[column]:.2f} ({round(row[column] * n):,}/{n:,})"
            cells.append(words.number(text))
        rows.append(cells)
    heads = words.under("report.scores.head")
    return [words("report.scores.method"), "n", *(heads[name] for name in SCORES)], rows


def _learning(method: Method, words: Wording) -> str:
    training = getattr(method, "fit_report_", {}).get("training")
    if not training or not training["curve"]:
        return ""
    return _section(
        words("report.learning"),
        _picture(
            lambda ax: plots.loss_curve(ax, training["curve"], training["best_step"], words),
            words("report.learning_picture"),
            words("report.learning_note", steps=_count(training["steps"], words)),
        ),
    )


def _made(method: Method, facts: Mapping[str, str], words: Wording) -> str:
    packages = ("genrecourse", "torch", "scikit-learn", "numpy", "pandas")
    name = words.under("report.made_of")
    every = {
        name["method"]: type(method).__name__,
        name["settings"]: ", ".join(_settings(method, words)),
        name["cannot_change"]: ", ".join(f.label for f in method.schema_ if f.role != "mutable"),
        **facts,
        name["seed"]: str(method.seed),
        name["versions"]: ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
        ),
        name["written"]: datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    }
    rows = "".join(
        f"<div><dt>{escape(what)}</dt><dd>{escape(said)}</dd></div>"
        for what, said in every.items()
        if said
    )
    return _section(words("report.made"), f'<dl class="notes">{rows}</dl>')


def _settings(method: Method, words: Wording) -> list[str]:
    """What was chosen in training, and how many draws a person has."""
    names = ("gamma", "temperature", "margin")
    chosen = [f"{n} {getattr(method, n + '_'):g}" for n in names if hasattr(method, n + "_")]
    if hasattr(method, "n_draws"):
        chosen.append(words("report.made_of.draws", n=method.n_draws))
    return chosen


def _count(n: int, words: Wording) -> str:
    return words.number(f"{n:,}")


# ---- building blocks ------------------------------------------------------------------------


def _section(title: str, *inside: str, lead: str = "") -> str:
    lead = f'<p class="muted">{escape(lead)}</p>' if lead else ""
    return f"<section><h2>{escape(title)}</h2>{lead}{''.join(inside)}</section>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], kind: str) -> str:
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="wide"><table class="{kind}"><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _list(items: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _picture(
    draw: Callable[[Any], None], alt: str, caption: str, size: tuple[float, float] = (5.0, 3.0)
) -> str:
    """An image whose data is in the page, so that its names and styles cannot meet another's."""
    data = base64.b64encode(plots.svg(draw, *size).encode()).decode()
    return (
        f'<figure><img alt="{escape(alt)}" src="data:image/svg+xml;base64,{data}">'
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
.pair { display: grid; grid-template-columns: 1.3fr 1fr; gap: 32px; margin-top: 24px;
  align-items: start; }
figure { margin: 16px 0; padding: 24px; }
figure img { display: block; width: 100%; max-width: 620px; height: auto; margin: 0 auto; }
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
.profile .changed dd { color: var(--no); font-weight: 600; }
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
  figure { padding: 16px; }
}
@media print { body { background: #fff; } .card, figure { break-inside: avoid; } }
"""
