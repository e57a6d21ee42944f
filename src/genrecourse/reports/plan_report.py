"""The report about plans: one HTML file without network access and without scripts.

For a fitted method and people whom h rejects, it shows some people in detail, what people are asked
to change, the quality of the method, how the report was made, and what it does not mean.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, counted
from genrecourse.methods.abilities import HasDraws
from genrecourse.planning.plans import Plan, Plans, cell_in_words
from genrecourse.planning.wording import Wording, english
from genrecourse.reports import plots
from genrecourse.reports.html import bullets, document, header, notes, picture, section, table
from genrecourse.rules.kinds import Rules
from genrecourse.rules.stated import PersonalRules, read_rules
from genrecourse.table.frames import to_pandas
from genrecourse.table.reading import known_columns
from genrecourse.table.text_files import make_folder, path_of, write_text

if TYPE_CHECKING:
    from genrecourse.methods.base import Method
    from genrecourse.planning.options import AskedOfPlans
    from genrecourse.rules.problem import Problem
    from genrecourse.table.schema import Feature, Schema

SCORES = ("score", "val", "lof", "cost", "h_valid", "changes")  # columns of the score table
SHARES = ("val", "lof", "h_valid")
SAME = 1e-3  # tolerance of cost and log-likelihood: decoding can change a draw slightly


def write_report(path: str | Path, method: Method, people: Any, **options: Any) -> Path:
    """Write `report_html(method, people, **options)` to a file, and return its path.

    >>> from genrecourse.table.schema import Schema
    >>> import tempfile
    >>> from genrecourse.methods.nearest import NearestNeighbour
    >>> X = pd.DataFrame({"income": np.arange(80.0)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Path(folder, "report.html"), method, X.head(2)).name
    'report.html'
    """
    path = path_of(path, "the report")
    make_folder(path.parent)
    write_text(report_html(method, people, **options), path)
    return path


def report_html(
    method: Method,
    people: Any,
    *,
    title: str | None = None,
    shown: int = 3,
    scores: pd.DataFrame | None = None,
    scores_note: str = "",
    facts: Mapping[str, str] | None = None,
    limits: Sequence[str] = (),
    language: str | Path | Wording = "en",
    plans: Plans | None = None,
    which: Sequence[int] | None = None,
    which_note: str = "",
    **request: Unpack[AskedOfPlans],
) -> str:
    """Return the report as HTML.

    people: accepted people are left out; the first `shown` of the others are shown in detail.
    which: the positions of the people to show in detail instead, among those others; which_note:
        the rule that chose them, as a sentence.
    scores: one row per method, with the columns of `SCORES` and n, as `summarise` returns them.
    scores_note: a sentence about the other methods in `scores`.
    facts, limits: more entries for "How it was made" and "What it does not mean".
    language: the language of the report, as in `Wording.of`.
    plans: the plans of these people from the same request, if they exist already.
    request: options of `Method.plans`.

    >>> from genrecourse.table.schema import Schema
    >>> from genrecourse.methods.nearest import NearestNeighbour
    >>> X = pd.DataFrame({"income": np.arange(80.0)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> page = report_html(method, X.head(3), shown=1)
    >>> "3 of 3" in page
    True
    """
    words = Wording.of(language)
    title = title or words("report.title")
    people = known_columns(method.schema_, to_pandas(people, method.schema_))
    if plans is None:
        plans = method.plans(people, language=words, **request)
    unreadable = plans.unreadable
    people, plans = _turned_down(method.problem_.read_each(people).X, plans)
    about = _AboutMethod(
        name=type(method).__name__,
        problem=method.problem_,
        random_state=method.random_state,
        chosen={name: getattr(method, f"{name}_") for name in method.chosen},
        n_draws=getattr(method, "n_draws_", None),
        training=method.fit_report_.get("training"),
        has_verifier=method.verifier_ is not None,
        draws=method.draws if isinstance(method, HasDraws) else None,
        rules=read_rules(request.get("rules") or Rules()),
        words=words,
        n=int(request.get("n", 1)),
    )
    limits = (*words.under("report.limit").values(), *limits)
    parts = [
        _head(title, plans, words),
        about.few(people, plans, range(len(plans))[:shown] if which is None else which, which_note),
        _unreadable(unreadable, words),
        _asked_most(method.schema_, plans, words),
        _all(plans, words),
        "" if scores is None else _scores(scores, scores_note, words),
        about.learning(),
        about.made(facts or {}),
        section(words("report.limits"), bullets(limits)),
    ]
    return document(title, parts, words("code"))


def _turned_down(people: pd.DataFrame, plans: Plans) -> tuple[pd.DataFrame, Plans]:
    """Return the people whom h rejects and their plans. people: those who can be read."""
    read = [plan for plan in plans if plan.fault is None]
    asking = [plan.status != "already-accepted" for plan in read]
    if not any(asking):
        raise UserError(f"{_nobody(plans)}; a report needs people whom the model turns down")
    return people[asking], Plans(
        tuple(plan for plan, asks in zip(read, asking, strict=True) if asks)
    )


def _nobody(plans: Plans) -> str:
    """Return why there is nobody whom the model turns down."""
    lost, n = plans.unreadable, len(plans)
    accepted = f"the model accepts all {n - len(lost):,} people"
    if not lost:
        return accepted if n else "the table has no people"
    first = f"{len(lost):,} of {counted(n, 'row')} cannot be read (first: {lost[0].reason})"
    return first if len(lost) == n else f"{first}, and {accepted} in the others"


# ---- the sections about the method ----------------------------------------------------------


@dataclass(frozen=True)
class _AboutMethod:
    """What a report shows of a fitted method, and the sections that show it."""

    name: str
    problem: Problem
    random_state: int
    chosen: Mapping[str, float]  # the numbers that `fit` chose
    n_draws: int | None  # per person
    training: Mapping[str, Any] | None  # of the fit report, if a net was trained
    has_verifier: bool
    draws: Callable[..., pd.DataFrame] | None  # as `GenRe.draws`
    rules: PersonalRules  # of the request
    words: Wording
    n: int = 1  # plans that were asked for, per person

    def few(self, people: pd.DataFrame, plans: Plans, which: Sequence[int], note: str) -> str:
        """Return the section with some people in detail. people: all rejected people."""
        words, total, people = self.words, len(people), people.iloc[list(which)]
        plans = Plans(tuple(plans[place] for place in which))
        draws = None
        if self.draws is not None:
            stated = None if self.rules == PersonalRules() else self.rules.only(people.index)
            draws = self.draws(people, rules=stated)
        cards = []
        for i, plan in enumerate(plans):
            some = None
            if draws is not None:
                n = len(draws) // len(people)  # by position: labels need not be unique
                some = draws.iloc[i * n : (i + 1) * n]
            locked = _locked(self.rules, people.index[[i]])
            cards.append(self._card(people.iloc[i], plan, some, locked))
        lead = note or words("report.few_which", shown=len(plans), people=_count(total, words))
        notes = [words("plan.note")]
        if any(plan.alternatives for plan in plans):  # only a verifier can weigh plans
            how = "first_weighed" if self.has_verifier else "first_chosen"
            notes.append(words(f"report.{how}"))
        paragraphs = [f"<p>{escape(note)}</p>" for note in notes]
        return section(words("report.few"), *paragraphs, *cards, lead=lead)

    def _card(
        self, row: pd.Series, plan: Plan, draws: pd.DataFrame | None, locked: set[str]
    ) -> str:
        person = plan.language("panel.person", person=plan.person)
        inside = [f"<h3>{escape(person)}</h3>", f'<p class="facts">{escape(plan.facts)}</p>']
        if plan.status == "ok":
            inside.append(_plan(plan, draws, self.problem.classifier.score_range))
            inside.append(_facts(*self._why_fewer(plan)))
        else:
            sentences = (plan.reason, plan.about_rules)
            inside += [f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence]
        inside.append(_profile(self.problem.schema, row, plan, locked))
        return f'<article class="card">{"".join(inside)}</article>'

    def _why_fewer(self, plan: Plan) -> list[str]:
        """Return why a person has fewer plans than were asked for; nothing if they have all."""
        found = len(plan.every)
        if found >= self.n:
            return []
        name = "fewer_fragile" if plan.is_fragile else "fewer"
        return [plan.language(f"report.{name}", n=self.n, shown=found)]

    def learning(self) -> str:
        """Return the section with the loss curve; empty if no net was trained."""
        training, words = self.training, self.words
        if not training or not training["curve"]:
            return ""
        return section(
            words("report.learning"),
            picture(
                lambda ax: plots.loss_curve(ax, training["curve"], training["best_step"], words),
                words("report.learning_picture"),
                words("report.learning_note", steps=_count(training["steps"], words)),
            ),
        )

    def made(self, facts: Mapping[str, str]) -> str:
        """Return the section on how the report was made. facts: more entries for it."""
        locked = _locked(self.rules)

        def that(how: str) -> str:
            schema = self.problem.schema
            return ", ".join(f.label for f in schema if _how_it_moves(f, locked) == how)

        packages = ("genrecourse", "torch", "scikit-learn", "numpy", "pandas")
        name = self.words.under("report.made_of")
        every = {
            name["method"]: self.name,
            name["settings"]: ", ".join(self._settings()),
            name["cannot_change"]: that("fixed"),
            name["advances"]: that("advances"),
            name["derived"]: that("derived"),
            **facts,
            name["seed"]: str(self.random_state),
            name["versions"]: ", ".join(
                [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
            ),
            name["written"]: datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        }
        return section(self.words("report.made"), notes(every))

    def _settings(self) -> list[str]:
        """Return what was chosen in training, and the number of draws per person."""
        found = [f"{name} {value:g}" for name, value in self.chosen.items()]
        if self.n_draws is not None:
            found.append(self.words("report.made_of.draws", n=self.n_draws))
        return found


# ---- the sections about plans ---------------------------------------------------------------


def _head(title: str, plans: Plans, words: Wording) -> str:
    ok = [plan for plan in plans if plan.status == "ok"]
    changes = sum(len(plan.changes) for plan in ok)
    count = words(
        "report.told_count", told=_count(len(ok), words), people=_count(len(plans), words)
    )
    mean = words.number(f"{changes / len(ok):.1f}") if ok else "–"
    tiles = [
        (_count(len(plans), words), words("report.people")),
        (count, words("report.told")),
        (mean, words("report.changes")),
    ]
    return header(words("report.eyebrow"), title, words("report.lead"), tiles)


def _locked(rules: PersonalRules, person: pd.Index | None = None) -> set[str]:
    """Return the features that a request locks for everybody, or also for one person."""
    stated = rules.default
    for own in rules.only(person).people.values() if person is not None else ():
        stated = stated.also(own)
    return set(stated.lock)


def _plan(plan: Plan, draws: pd.DataFrame | None, score_range: tuple[float, float]) -> str:
    words = plan.language
    pictures = [
        picture(
            lambda ax: plots.before_after(ax, plan, score_range),
            words("report.before_after", person=plan.person),
            words("report.before_after_note"),
            (4.4, 0.55 * (len(plan.changes) + 1) + 0.1),
        )
    ]
    if draws is not None:
        pictures.append(
            picture(
                lambda ax: plots.cost_against_likelihood(ax, draws, plan),
                words("report.draws", person=plan.person),
                words(f"report.{_draws_note(plan, draws)}"),
                (4.2, 3.2),
            )
        )
    others = "".join(
        f"<h4>{escape(words('report.another'))}</h4>{other.changes_html()}{_facts(*other.remarks)}"
        for other in plan.alternatives
    )
    remarks = [each for each in plan.remarks if each != plan.facts]  # the facts are at the top
    return (
        f"<h4>{escape(plan.purpose)}</h4>{plan.changes_html()}{_facts(*remarks)}"
        f'<div class="pair">{"".join(pictures)}</div>{others}'
    )


def _draws_note(plan: Plan, draws: pd.DataFrame) -> str:
    """Return the name of the note on whether the plan is one of the draws."""
    if plan.cost is None or plan.log_likelihood is None:
        return "draws_note_nowhere"
    there = np.isclose(draws["cost"], plan.cost, rtol=0, atol=SAME)
    there &= np.isclose(draws["log_likelihood"], plan.log_likelihood, rtol=0, atol=SAME)
    return "draws_note" if there.any() else "draws_note_apart"


def _facts(*sentences: str) -> str:
    return "".join(f'<p class="facts">{escape(sentence)}</p>' for sentence in sentences)


def _profile(schema: Schema, row: pd.Series, plan: Plan, locked: set[str]) -> str:
    changed, words = {change.feature.name for change in plan.changes}, plan.language
    cells = []
    for feature in schema:
        mark = ' class="changed"' if feature.name in changed else ""
        moves = _how_it_moves(feature, locked)
        badge = f" <i>{escape(words(f'report.{moves}'))}</i>" if moves else ""
        value = escape(cell_in_words(feature, row, plan))
        cells.append(f"<div{mark}><dt>{escape(feature.label)}{badge}</dt><dd>{value}</dd></div>")
    return f'<h4>{escape(words("report.today"))}</h4><dl class="profile">{"".join(cells)}</dl>'


def _how_it_moves(feature: Feature, locked: set[str]) -> str:
    """Return "fixed", "advances" or "derived"; empty if the person may change the feature."""
    if feature.follows:
        return feature.role
    return "fixed" if feature.role != "mutable" or feature.name in locked else ""


def _asked_most(schema: Schema, plans: Plans, words: Wording) -> str:
    ok = [plan for plan in plans if plan.status == "ok"]
    if not ok:
        return ""
    asked = pd.Series(0.0, index=[feature.name for feature in schema if feature.role == "mutable"])
    for plan in ok:
        asked[[change.feature.name for change in plan.changes]] += 1 / len(ok)
    shares = asked[asked > 0].rename({feature.name: feature.label for feature in schema})
    rows = min(len(shares), plots.MOST_BARS)
    return section(
        words("report.asked_most"),
        picture(
            lambda ax: plots.asked_most(ax, shares),
            words("report.asked_most_picture"),
            words("report.asked_most_note", people=_count(len(ok), words), features=rows),
            (4.4, 0.36 * rows + 0.3),
        ),
    )


def _unreadable(plans: list[Plan], words: Wording) -> str:
    """Return the section about rows that cannot be read; empty if there is none."""
    if not plans:
        return ""
    heads = [words("report.person_head"), words("report.unreadable_head")]
    rows = [[str(plan.person), plan.reason] for plan in plans]
    title = words("report.unreadable", n=_count(len(plans), words))
    return section(title, table(heads, rows, "all"), lead=words("report.unreadable_note"))


def _all(plans: Plans, words: Wording) -> str:
    rows = []
    for plan in plans:
        for each in plan.every or (plan,):
            text = each.reason or "; ".join(change.to_text() for change in each.changes)
            remarks = (each.about_rules, each.follows, each.takes)
            text += "".join(f" ({more})" for more in remarks if more)
            cost = "–" if each.cost is None else words.number(f"{each.cost:.2f}")
            rows.append([str(plan.person), text, cost])
    heads = [words("report.person_head"), words("plan.purpose"), words("report.cost_head")]
    title = words("report.all", plans=_count(len(rows), words))
    return f"<details><summary>{escape(title)}</summary>{table(heads, rows, 'all')}</details>"


def _scores(scores: pd.DataFrame, note: str, words: Wording) -> str:
    heads, about = words.under("report.scores.head"), words.under("report.scores.about")
    meanings = {heads[name].rstrip(" ↑↓"): about[name] for name in SCORES}
    return section(
        words("report.scores.title"),
        table(*score_table(scores, words), "scores"),
        f"<p>{escape(note)}</p>" if note else "",
        notes(meanings),
        lead=words("report.scores.lead"),
    )


def score_table(
    scores: pd.DataFrame, language: Wording | None = None
) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the rows of the score table as text; a share has its counts.

    >>> row = {"n": 8, "score": 1.7, "val": 0.75, "lof": 1.0, "cost": 0.5, "h_valid": 0.5}
    >>> _, rows = score_table(pd.DataFrame([row | {"changes": 2.0}], index=["nnr"]))
    >>> rows
    [['nnr', '8', '1.700', '0.75 (6/8)', '1.00 (8/8)', '0.500', '0.50 (4/8)', '2.0']]
    """
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


def _count(n: int, words: Wording) -> str:
    return words.number(f"{n:,}")
