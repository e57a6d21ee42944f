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
from genrecourse.plans import PURPOSE, Plan, Plans, in_words
from genrecourse.schema import Schema

SCORES = {  # column of the score table: its head, and what it means
    "score": ("score ↑", "valid + plausible − cost / number of features; at most 2."),
    "val": (
        "valid ↑",
        "share of people for whom the judge, a forest that no method has seen, finds the "
        "favourable outcome likelier than not after the change.",
    ),
    "lof": ("plausible ↑", "share who then look like accepted people (local outlier factor)."),
    "cost": (
        "cost ↓",
        "mean size of the change: 1 for a changed category, and for a number the share of its "
        "range that it moves.",
    ),
    "h_valid": ("accepted ↑", "share whom the model itself then accepts."),
    "changes": ("changes ↓", "mean number of features that change."),
}
SHARES = ("val", "lof", "h_valid")
LIMITS = (
    "A plan tells what would change the decision of this model as it is today. It is no promise: "
    "a person may decide differently, and a model that is trained again may too.",
    "It is about the model, not about the world. That people of another kind are accepted does not "
    "say that becoming like them changes what happens afterwards.",
    "Only the rules in the schema are kept. What it does not mark as fixed may be asked of "
    "anybody, whether they can do it or not.",
    "Cost is a distance on the scale of the data. It is neither money nor effort.",
    "Likelihood compares the draws for one person with each other. It is no probability that the "
    "person will carry out the plan.",
)


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
    title: str = "What would change the decision?",
    shown: int = 3,
    scores: pd.DataFrame | None = None,
    scores_note: str = "",
    facts: Mapping[str, str] | None = None,
    limits: Sequence[str] = (),
) -> str:
    """The whole page.

    people: rows whom h turned down; the first `shown` of them are told in full.
    scores: one row a method, with the columns of `SCORES` and n, as `evaluation.summarise` gives;
        scores_note says what the other methods are.
    facts, limits: what else to say about how it was made, and about what it does not mean.
    """
    plans = method.plans(people)
    parts = [
        _head(title, plans),
        _few(method, people.iloc[:shown], plans[:shown], len(people)),
        _asked_most(method.schema_, plans),
        _all(plans),
        "" if scores is None else _scores(scores, scores_note),
        _learning(method),
        _made(method, facts or {}),
        _section("What it does not mean", _list((*LIMITS, *limits))),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head>\n"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


# ---- the sections ---------------------------------------------------------------------------


def _head(title: str, plans: Plans) -> str:
    told = [plan for plan in plans if plan.status == "ok"]
    changes = sum(len(plan.changes) for plan in told)
    tiles = [
        (f"{len(plans):,}", "people"),
        (f"{len(told):,} of {len(plans):,}", "have a plan that holds"),
        (f"{changes / len(told):.1f}" if told else "–", "features change in a plan, on average"),
    ]
    return (
        f'<header><p class="eyebrow">genrecourse report</p><h1>{escape(title)}</h1>'
        '<p class="lead">A model turned these people down. For each of them this page shows a set '
        "of changes that would change the model’s decision, which leaves alone what a person "
        "cannot change and ends up looking like people whom the model accepts: this is called "
        "<em>algorithmic recourse</em>.</p>"
        '<div class="tiles">'
        + "".join(f"<div><b>{number}</b><span>{what}</span></div>" for number, what in tiles)
        + "</div></header>"
    )


def _few(method: Method, people: pd.DataFrame, plans: Plans, total: int) -> str:
    draws = method.draws(people) if hasattr(method, "draws") else None
    cards = []
    for i, plan in enumerate(plans):
        some = None
        if draws is not None:
            n = len(draws) // len(people)  # by position: labels may stand more than once
            some = draws.iloc[i * n : (i + 1) * n]
        cards.append(_card(method, people.iloc[i], plan, some))
    which = f"The first {len(plans)} of {total:,} in the table, not picked by hand."
    return _section("A few people, one plan each", *cards, lead=which)


def _card(method: Method, row: pd.Series, plan: Plan, draws: pd.DataFrame | None) -> str:
    inside = [
        f"<h3>Person {escape(str(plan.person))}</h3>",
        f'<p class="facts">{escape(plan.facts)}</p>',
        _plan(method, plan, draws) if plan.status == "ok" else f"<p>{escape(plan.reason)}</p>",
    ]
    inside.append(_profile(method.schema_, row, plan))
    return f'<article class="card">{"".join(inside)}</article>'


def _plan(method: Method, plan: Plan, draws: pd.DataFrame | None) -> str:
    score_range = method.classifier_.score_range
    pictures = [
        _picture(
            lambda ax: plots.before_after(ax, plan, score_range),
            f"Before and after, person {plan.person}",
            "Ring: today. Dot: with the plan. A line is a number’s range, or the categories.",
            (4.8, 0.55 * (len(plan.changes) + 1) + 0.1),
        )
    ]
    if draws is not None:
        pictures.append(
            _picture(
                lambda ax: plots.cost_against_likelihood(ax, draws, plan.cutoff),
                f"Cost against likelihood of the draws, person {plan.person}",
                "All that was drawn for this person. The draw that became the plan is ringed.",
                (4.2, 3.2),
            )
        )
    return (
        f"<h4>{escape(PURPOSE)}</h4>{plan.changes_html()}"
        f'<div class="pair">{"".join(pictures)}</div>'
    )


def _profile(schema: Schema, row: pd.Series, plan: Plan) -> str:
    changed = {change.feature.name for change in plan.changes}
    cells = []
    for feature in schema:
        mark = ' class="changed"' if feature.name in changed else ""
        fixed = " <i>fixed</i>" if feature.role == "immutable" else ""
        value = escape(in_words(feature, row[feature.name]))
        cells.append(f"<div{mark}><dt>{escape(feature.label)}{fixed}</dt><dd>{value}</dd></div>")
    return f'<h4>The person today</h4><dl class="profile">{"".join(cells)}</dl>'


def _asked_most(schema: Schema, plans: Plans) -> str:
    told = [plan for plan in plans if plan.status == "ok"]
    if not told:
        return ""
    asked = pd.Series(0.0, index=[feature.name for feature in schema if feature.role == "mutable"])
    for plan in told:
        asked[[change.feature.name for change in plan.changes]] += 1 / len(told)
    shares = asked.rename({feature.name: feature.label for feature in schema})
    rows = min(len(shares), plots.MOST_BARS)
    return _section(
        "What people are asked to change most",
        _picture(
            lambda ax: plots.asked_most(ax, shares),
            "Share of people asked to change each feature",
            f"Share of the {len(told):,} people with a plan; the {rows} features asked most.",
            (5.0, 0.36 * rows + 0.3),
        ),
    )


def _all(plans: Plans) -> str:
    rows = []
    for plan in plans:
        said = plan.reason or "; ".join(change.to_text() for change in plan.changes)
        rows.append([str(plan.person), said, "–" if plan.cost is None else f"{plan.cost:.2f}"])
    table = _table(["person", PURPOSE, "cost"], rows, "all")
    return f"<details><summary>All {len(plans):,} plans</summary>{table}</details>"


def _scores(scores: pd.DataFrame, note: str) -> str:
    notes = "".join(
        f"<div><dt>{head[:-2]}</dt><dd>{what}</dd></div>" for head, what in SCORES.values()
    )
    return _section(
        "How well it does",
        _table(*score_table(scores), "scores"),
        f"<p>{escape(note)}</p>" if note else "",
        f'<dl class="notes">{notes}</dl>',
        lead="Means over n people, nobody left out: somebody for whom a method finds nothing is "
        "scored as they are today. ↑ more is better, ↓ less is better.",
    )


def score_table(scores: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Head and rows of the score table in words; a share comes with its denominator."""
    rows = []
    for name, row in scores.iterrows():
        n = int(row["n"])
        cells = [str(name), f"{n:,}"]
        for column in SCORES:
            text = f"{row[column]:.1f}" if column == "changes" else f"{row[column]:.3f}"
            if column in SHARES:
                text = f"{row[column]:.2f} ({round(row[column] * n):,}/{n:,})"
            cells.append(text)
        rows.append(cells)
    return ["method", "n", *(head for head, _ in SCORES.values())], rows


def _learning(method: Method) -> str:
    training = getattr(method, "fit_report_", {}).get("training")
    if not training or not training["curve"]:
        return ""
    return _section(
        "How it learned",
        _picture(
            lambda ax: plots.loss_curve(ax, training["curve"], training["best_step"]),
            "Loss by training step",
            f"{training['steps']:,} steps. The weights of the best held-out step are kept.",
        ),
    )


def _made(method: Method, facts: Mapping[str, str]) -> str:
    packages = ("genrecourse", "torch", "scikit-learn", "numpy", "pandas")
    every = {
        "method": type(method).__name__,
        "settings": ", ".join(_settings(method)),
        "cannot change": ", ".join(f.label for f in method.schema_ if f.role == "immutable"),
        **facts,
        "seed": str(method.seed),
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
        ),
        "written": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    }
    rows = "".join(
        f"<div><dt>{escape(what)}</dt><dd>{escape(said)}</dd></div>"
        for what, said in every.items()
        if said
    )
    return _section("How it was made", f'<dl class="notes">{rows}</dl>')


def _settings(method: Method) -> list[str]:
    """What was chosen in training, and how many draws a person has."""
    names = ("gamma", "temperature", "margin")
    chosen = [f"{n} {getattr(method, n + '_'):g}" for n in names if hasattr(method, n + "_")]
    return chosen + ([f"{method.n_draws} draws a person"] if hasattr(method, "n_draws") else [])


# ---- building blocks ------------------------------------------------------------------------


def _section(title: str, *inside: str, lead: str = "") -> str:
    lead = f'<p class="muted">{lead}</p>' if lead else ""
    return f"<section><h2>{title}</h2>{lead}{''.join(inside)}</section>"


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
