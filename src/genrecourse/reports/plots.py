"""Every picture. Each function draws on matplotlib axes; `svg` and `save` write the result."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from genrecourse.errors import UserError
from genrecourse.model.locks import Lock, without_warnings
from genrecourse.planning.plans import Change, Plan, in_words, score_words
from genrecourse.planning.wording import Wording, english
from genrecourse.table.text_files import make_folder, path_of

if TYPE_CHECKING:
    from genrecourse.model.classifier import Classifier

ACCEPTED, REJECTED, ARROW = "#4878cf", "#d65f5f", "#333333"
INK, MUTED, TRACK = "#1f2933", "#6b7785", "#dde3ea"
MOST_BARS = 12
# Okabe & Ito's colours, which colour-blind people can distinguish; the markers differ as well.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
DPI = 110  # of a picture in a notebook
DRAWING = Lock()  # matplotlib's settings belong to the whole process


def arrows(
    ax: Axes,
    X: pd.DataFrame,
    y: Any,
    people: pd.DataFrame,
    X_plus: pd.DataFrame,
    h: Classifier | None = None,
) -> None:
    """Draw training rows with two features, h's boundary, and an arrow from each x to its x_plus.

    >>> X = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 1.0]})
    >>> "<svg" in svg(lambda ax: arrows(ax, X, [0, 1], X.head(1), X.tail(1).set_axis([0])))
    True
    """
    a, b = X.columns
    favourable = np.asarray(y).astype(bool)
    for rows, colour in ((~favourable, REJECTED), (favourable, ACCEPTED)):
        ax.scatter(X[a][rows], X[b][rows], s=5, c=colour, alpha=0.25, linewidths=0)
    if h is not None:
        _boundary(ax, X, h)
    ax.quiver(
        people[a],
        people[b],
        X_plus[a] - people[a],
        X_plus[b] - people[b],
        angles="xy",
        scale_units="xy",
        scale=1,
        width=0.003,
        color=ARROW,
        alpha=0.7,
    )
    ax.scatter(people[a], people[b], s=14, c="#8b0000", label="x", zorder=3)
    ax.scatter(X_plus[a], X_plus[b], s=14, c="#003c8f", label="x_plus", zorder=3)
    ax.set_xlabel(a)
    ax.set_ylabel(b)


def _boundary(ax: Axes, X: pd.DataFrame, h: Classifier) -> None:
    a, b = X.columns
    xs = np.linspace(X[a].min(), X[a].max(), 120)
    ys = np.linspace(X[b].min(), X[b].max(), 120)
    grid = pd.DataFrame({a: np.tile(xs, len(ys)), b: np.repeat(ys, len(xs))})
    scores = h.score(grid).reshape(len(ys), len(xs))
    ax.contour(xs, ys, scores, levels=[h.cutoff], colors="grey", linewidths=1, linestyles="--")


# ---- one person -----------------------------------------------------------------------------


def before_after(ax: Axes, plan: Plan, score_range: tuple[float, float]) -> None:
    """Draw a track for the score and for each change: a ring at x, a dot at x_plus.

    >>> from genrecourse.table.schema import Feature
    >>> income = Feature(name="income", kind="number", range=(0, 100))
    >>> plan = Plan(1, "ok", 0.3, 0.5, (Change(income, 20, 60),), score_after=0.7, cost=0.4)
    >>> "income" in svg(lambda ax: before_after(ax, plan, (0.0, 1.0)))
    True
    """
    assert plan.score_before is not None
    assert plan.score_after is not None
    words = plan.language
    score, after, cutoff = score_words(
        plan.score_before, plan.score_after, plan.cutoff, language=words
    )
    low, high = score_range
    place = [(v - low) / (high - low) for v in (plan.score_before, plan.score_after, plan.cutoff)]
    both = words("pictures.before_after", before=score, after=after)
    _track(ax, 0, words("pictures.score"), both, place[0], place[1])
    ax.plot([place[2]] * 2, [0.16, 0.38], color=INK, lw=1.2)
    _write(
        ax, place[2], 0.55, words("pictures.cutoff", cutoff=cutoff), MUTED, ha="center", size=7.5
    )
    for i, change in enumerate(plan.changes, start=1):
        _change_track(ax, i, change)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(len(plan.changes) + 0.7, -0.3)
    ax.axis("off")


def _change_track(ax: Axes, i: int, change: Change) -> None:
    feature = change.feature
    room = round(3.7 * ax.figure.bbox.width / ax.figure.dpi)  # letters of a value
    before, after = (_cut(word, room) for word in change.words)
    label = _cut(feature.label, 24)
    words = change.language("pictures.before_after", before=before, after=after)
    if feature.is_category:
        levels = list(feature.categories)
        at = np.linspace(0, 1, len(levels)) if len(levels) > 1 else np.array([0.5])
        ax.plot(at, np.full(len(at), i + 0.27), "o", color="white", mec="#b8c2cc", ms=4, zorder=2)
        places = [np.nan if v is None else at[levels.index(v)] for v in _ends(change)]
        _track(ax, i, label, words, *places)
        return
    # the range of the schema if it is finite, extended to the values of the change
    known = [v for v in (*_ends(change), *(feature.range or ())) if v is not None]
    low, high = min(filter(np.isfinite, known)), max(filter(np.isfinite, known))
    span = (high - low) or 1.0
    places = [np.nan if v is None else (v - low) / span for v in _ends(change)]
    _track(ax, i, label, words, *places)
    for x, side, value in ((0, "left", low), (1, "right", high)):
        _write(
            ax,
            x,
            i + 0.52,
            in_words(feature, value, None, change.language),
            MUTED,
            ha=side,
            size=7.5,
        )


def _ends(change: Change) -> tuple[Any, Any]:
    return change.before, change.after


def _track(ax: Axes, i: int, label: str, words: str, before: float, after: float) -> None:
    """Draw row i: its label, its values in words, and their positions between 0 and 1."""
    y = i + 0.27
    _write(ax, 0, i, label, INK, ha="left", weight="bold")
    _write(ax, 1, i, words, INK, ha="right")
    ax.plot([0, 1], [y, y], color=TRACK, lw=4, solid_capstyle="round", zorder=1)
    ax.plot([before, after], [y, y], color=ACCEPTED, lw=2, zorder=3)
    ax.plot(before, y, "o", color="white", mec=MUTED, mew=2, ms=8, zorder=4)
    ax.plot(after, y, "o", color=ACCEPTED, ms=9, zorder=5)


def cost_against_likelihood(ax: Axes, draws: pd.DataFrame, plan: Plan) -> None:
    """Draw cost and log-likelihood of the draws for one person, with a ring at the plan.

    draws: columns score, cost and log_likelihood. The plan need not be one of the draws.

    >>> from genrecourse.table.schema import Feature
    >>> income = Feature(name="income", kind="number", range=(0, 100))
    >>> plan = Plan(1, "ok", 0.3, 0.5, (Change(income, 20, 60),), score_after=0.7, cost=0.4)
    >>> draws = pd.DataFrame({"score": [0.4, 0.7], "cost": [0.2, 0.4], "log_likelihood": [-2, -3]})
    >>> "cost" in svg(lambda ax: cost_against_likelihood(ax, draws, plan))
    True
    """
    words = plan.language
    accepted = draws["score"] > plan.cutoff
    for rows, colour, label in (
        (~accepted, REJECTED, "pictures.rejected"),
        (accepted, ACCEPTED, "pictures.accepted"),
    ):
        if rows.any():
            ax.scatter(
                draws.loc[rows, "cost"],
                draws.loc[rows, "log_likelihood"],
                s=34,
                c=colour,
                alpha=0.45,
                linewidths=0,
                label=words(label, n=int(rows.sum()), draws=len(draws)),
            )
    if plan.cost is not None and plan.log_likelihood is not None:
        ring: dict[str, Any] = {"s": 110, "c": "none", "ec": INK, "lw": 1.6}
        ax.scatter([plan.cost], [plan.log_likelihood], **ring, label=words("pictures.plan"))
    ax.set_xlabel(words("pictures.cost"))
    ax.set_ylabel(words("pictures.likelihood"))
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 1.0), borderaxespad=0.2)
    _plain_axes(ax)


def what_changes(ax: Axes, plans: Sequence[Plan]) -> None:
    """Draw a row for each feature and a column for each plan, with the new values.

    >>> from genrecourse.table.schema import Feature
    >>> income = Feature(name="income", kind="number", range=(0, 100))
    >>> plan = Plan(1, "ok", 0.3, 0.5, (Change(income, 20, 60),), score_after=0.7, cost=0.4)
    >>> ">60<" in svg(lambda ax: what_changes(ax, [plan]))
    True
    """
    first = {change.feature.name: change for plan in reversed(plans) for change in plan.changes}
    order = list(dict.fromkeys(c.feature.name for plan in plans for c in plan.changes))
    for k, plan in enumerate(plans):
        for change in plan.changes:
            i = order.index(change.feature.name)
            ax.barh(i, 0.92, left=k - 0.46, height=0.78, color=ACCEPTED)
            new = "\n".join(wrap(change.words[1], 17, max_lines=2, placeholder="…"))
            _write(ax, k, i, new, "white", ha="center", weight="bold", size=8.5)
    rows = [
        f"{_cut(first[name].feature.label, 30)}\nnow {_cut(first[name].words[0], 26)}"
        for name in order
    ]
    ax.set_yticks(range(len(order)), rows, color=INK, parse_math=False)
    ax.set_xticks(range(len(plans)), [_column(plan, k) for k, plan in enumerate(plans, start=1)])
    ax.set_xlim(-0.5, len(plans) - 0.5)
    ax.set_ylim(len(order) - 0.5, -0.5)
    for k in range(len(order) - 1):
        ax.axhline(k + 0.5, color=TRACK, lw=0.8)
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    for side in ax.spines.values():
        side.set_visible(False)


def _column(plan: Plan, number: int) -> str:
    words = plan.language
    cost = "" if plan.cost is None else words("plan.cost", cost=words.number(f"{plan.cost:.2f}"))
    return f"plan {number}\n{cost}".strip()


# ---- all people -----------------------------------------------------------------------------


def asked_most(ax: Axes, shares: pd.Series) -> None:
    """Draw the share of people who are asked to change each feature, the largest first.

    >>> ">80%<" in svg(lambda ax: asked_most(ax, pd.Series({"income": 0.8, "debt": 0.3})))
    True
    """
    top = shares.sort_values(ascending=False).head(MOST_BARS)
    for i, (label, share) in enumerate(top.items()):
        ax.barh(i, 1.0, height=0.28, color=TRACK)
        ax.barh(i, share, height=0.28, color=ACCEPTED)
        _write(ax, 0, i - 0.38, _cut(str(label), 60), INK, ha="left")
        _write(ax, 1, i - 0.38, f"{share:.0%}", INK, ha="right", weight="bold")
    ax.set_xlim(0, 1)
    ax.set_ylim(len(top) - 0.5, -0.75)
    ax.axis("off")


def loss_curve(
    ax: Axes,
    curve: Sequence[tuple[int, float, float]],
    best_step: int,
    language: Wording | None = None,
) -> None:
    """Draw the loss on training pairs and on held-out pairs, and mark the best step.

    curve: (step, training loss, held-out loss) of each evaluation.

    >>> "loss" in svg(lambda ax: loss_curve(ax, [(10, 2.0, 2.1), (20, 1.5, 1.8)], best_step=20))
    True
    """
    words = language or english()
    steps, trained, held = (np.array(column) for column in zip(*curve, strict=True))
    ax.plot(steps, trained, color=MUTED, lw=1.6, label=words("pictures.training"))
    ax.plot(steps, held, color=ACCEPTED, lw=2, label=words("pictures.held_out"))
    ax.axvline(best_step, color=INK, lw=1, ls=":")
    ax.plot(steps[steps == best_step], held[steps == best_step], "o", color=ACCEPTED, mec=INK, ms=8)
    best = words("pictures.best", step=words.number(f"{best_step:,}"))
    ax.plot([], [], "o", color=ACCEPTED, mec=INK, ms=8, label=best)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(words("pictures.step"))
    ax.set_ylabel(words("pictures.loss"))
    ax.legend(frameon=False)
    _plain_axes(ax)


# ---- groups ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Span:
    """A mean with its interval, and their text; NaN: not known.

    >>> Span("women", 0.4, 0.3, 0.5, "40% (30% to 50%)").strong
    False
    """

    label: str
    value: float
    low: float
    high: float
    words: str
    mark: float = float("nan")  # a reference value
    heading: str = ""  # a heading above the row
    strong: bool = False  # the row is the reference


HEADING = 0.65  # height of a heading, in lines
SHORT = 28  # letters of a label next to its numbers, at most


def short(parts: Sequence[str], most: int = SHORT) -> str:
    """Return several words as one label; the longest words are cut if it is too long.

    >>> short(["female", "Black"])
    'female · Black'
    """
    room, cut = most - 3 * (len(parts) - 1), {}
    for done, i in enumerate(sorted(range(len(parts)), key=lambda i: len(parts[i]))):
        cut[i] = _cut(parts[i], room // (len(parts) - done))
        room -= len(cut[i])
    return " · ".join(cut[i] for i in range(len(parts)))


def spans(ax: Axes, rows: Sequence[Span], *, is_share: bool) -> None:
    """Draw a track per row: a dot at the mean, a bar for the interval, and the reference mark.

    >>> rows = [Span("women", 0.4, 0.3, 0.5, "40%"), Span("men", 0.5, 0.4, 0.6, "50%")]
    >>> "women" in svg(lambda ax: spans(ax, rows, is_share=True))
    True
    """
    low, high = _ends_of(rows, is_share)
    top = 0.0
    for row in rows:
        if row.heading:
            _write(ax, low, top + 0.1, _cut(row.heading, 60), MUTED, ha="left", size=8)
            top += HEADING
        y, known, colour = top + 0.3, not np.isnan(row.value), INK if row.strong else ACCEPTED
        _write(ax, low, top, row.label, INK, ha="left", weight="bold" if row.strong else "normal")
        _write(ax, high, top, row.words, INK if known else MUTED, ha="right")
        ax.plot([low, high], [y, y], color=TRACK, lw=4, solid_capstyle="round", zorder=1)
        ax.plot([row.mark] * 2, [y - 0.13, y + 0.13], color=MUTED, lw=1.2, zorder=2)
        ax.plot([row.low, row.high], [y, y], color=colour, lw=4, alpha=0.45, zorder=3)
        ax.plot(row.value, y, "o", color=colour, ms=7, zorder=4)
        top += 1
    ax.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    ax.set_ylim(top - 0.25, -0.45)
    ax.set_yticks([])
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5))
    if is_share:
        ax.xaxis.set_major_formatter(PercentFormatter(1, decimals=None))
    for side in ("top", "right", "left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.tick_params(color=TRACK, labelcolor=MUTED, labelsize=7.5)


def _ends_of(rows: Sequence[Span], is_share: bool) -> tuple[float, float]:
    """Return the ends of the tracks: around all values, and between 0 and 1 for a share."""
    drawn = np.array([[row.low, row.high, row.mark] for row in rows])
    if np.isnan(drawn).all():
        return 0.0, 1.0
    low, high = float(np.nanmin(drawn)), float(np.nanmax(drawn))
    room = 0.08 * (high - low) or 0.05 * (abs(high) or 1.0)
    if is_share:
        return max(0.0, low - room), min(1.0, high + room)
    return max(0.0, low - room) if low >= 0 else low - room, high + room


class Picture(Figure):
    """A matplotlib figure that a notebook shows by itself, also without pyplot.

    >>> Picture(figsize=(1, 1))._repr_png_()[1:4]
    b'PNG'
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        with DRAWING, without_warnings("Glyph .* missing from font"):
            self.savefig(file, dpi=DPI, metadata={"Software": None}, facecolor="white")
        return file.getvalue()


def panels(
    draws: Mapping[str, Callable[[Axes], None]], width: float, height: float, columns: int = 2
) -> Picture:
    """Return a figure with several drawings, each with its title.

    >>> len(panels({"one": lambda ax: None, "two": lambda ax: None}, 3.0, 2.0).axes)
    2
    """
    rows = -(-len(draws) // columns)
    with rc_context({"text.parse_math": False, "font.size": 9}):
        figure = Picture(figsize=(width * columns, height * rows), layout="constrained")
        for i, (title, draw) in enumerate(draws.items(), start=1):
            ax = figure.add_subplot(rows, columns, i)
            draw(ax)
            ax.set_title(title, loc="left", color=INK, fontweight="bold", size=10)
    return figure


# ---- methods --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dots:
    """A series of means, one per label: (mean, half of its interval); None: not known.

    >>> Dots("nnr", [(1.4, 0.1), None]).hollow
    False
    """

    name: str
    values: Sequence[tuple[float, float] | None]
    hollow: bool = False  # the series is a reference


def dots(ax: Axes, labels: Sequence[str], series: Sequence[Dots], *, names: bool = True) -> None:
    """Draw one line per label, with a dot and an interval for each series.

    names: write the labels.

    >>> series = [Dots("nnr", [(1.4, 0.1)]), Dots("genre", [(1.5, 0.1)])]
    >>> "german" in svg(lambda ax: dots(ax, ["german"], series))
    True
    """
    shift = np.linspace(-0.24, 0.24, len(series)) if len(series) > 1 else [0.0]
    for i, one in enumerate(series):
        known = [(y + shift[i], v) for y, v in enumerate(one.values) if v is not None]
        ax.errorbar(
            [mean for _, (mean, _) in known],
            [y for y, _ in known],
            xerr=[np.nan_to_num(half) for _, (_, half) in known],
            fmt=MARKERS[i % len(MARKERS)],
            ms=5.5,
            lw=1.4,
            color=INK if one.hollow else SERIES[i % len(SERIES)],
            mfc="white" if one.hollow else None,
            label=one.name,
        )
    ax.set_yticks(range(len(labels)), list(labels) if names else [""] * len(labels))
    ax.set_ylim(len(labels) - 0.5, -0.5)
    _plain_axes(ax)


@dataclass(frozen=True)
class Point:
    """One point of a curve, and a note next to it.

    >>> Point(0.5, 1.4, note="lam 5").note
    'lam 5'
    """

    x: float
    y: float
    half: float = float("nan")  # half of the interval of y
    note: str = ""


def curves(ax: Axes, lines: Mapping[str, Sequence[Point]], *, below: bool = False) -> None:
    """Draw a line through the points of each name, in their order; a single point is a marker.

    below: write the notes below the points, beside a rising line.

    >>> lines = {"genre": [Point(0.2, 1.4), Point(0.5, 1.5, note="lam 5")]}
    >>> "lam 5" in svg(lambda ax: curves(ax, lines))
    True
    """
    for i, (name, points) in enumerate(lines.items()):
        if not points:
            continue
        ax.errorbar(
            [p.x for p in points],
            [p.y for p in points],
            yerr=np.nan_to_num([p.half for p in points]),
            fmt=MARKERS[i % len(MARKERS)] + ("-" if len(points) > 1 else ""),
            ms=5.5,
            lw=1.4,
            color=SERIES[i % len(SERIES)],
            label=name,
        )
        for p in points:
            ax.annotate(
                p.note,
                (p.x, p.y),
                xytext=(6, -11) if below else (4, 5),
                textcoords="offset points",
                size=7.5,
                color=MUTED,
                parse_math=False,
            )
    _plain_axes(ax)


def density(
    ax: Axes,
    xs: np.ndarray,
    ys: np.ndarray,
    p: np.ndarray,
    shares: Sequence[float] = (0.95, 0.8, 0.5),
) -> None:
    """Draw the smallest areas that contain these shares of the mass of a density.

    p: (len(xs), len(ys)) the mass of each cell.

    >>> xs = np.linspace(-2, 2, 20)
    >>> p = np.exp(-(xs[:, None] ** 2) - xs[None, :] ** 2)
    >>> "<svg" in svg(lambda ax: density(ax, xs, xs, p))
    True
    """
    order = np.sort(p.reshape(-1))[::-1]
    held = np.cumsum(order) / order.sum()
    # the mass of the last cell of each share; the levels must differ, also with ties
    last = [int(np.searchsorted(held, share)) for share in sorted(shares, reverse=True)]
    levels = [float(order[min(i, len(order) - 1)]) for i in last]
    levels = [level * (1 + 1e-9) ** i for i, level in enumerate(levels)]
    top = max(float(order[0]), levels[-1]) * (1 + 1e-6)
    # a border of zeros closes areas at the edge of the grid
    p = np.pad(p, 1)
    xs, ys = (np.concatenate([[v[0] - _step(v)], v, [v[-1] + _step(v)]]) for v in (xs, ys))
    shades = ["#cfe1f2", "#93c4e0", "#4a98c9", "#1764ab"][: len(levels)]
    ax.contourf(xs, ys, p.T, levels=[*levels, top], colors=shades)
    ax.contour(xs, ys, p.T, levels=levels, colors="#0b4a85", linewidths=0.6)


def _step(values: np.ndarray) -> float:
    return float(np.diff(values).mean()) if len(values) > 1 else 1.0


def save(figure: Figure, path: Path, dpi: int = 130) -> None:
    """Write a figure as a PNG file; the same drawing gives the same file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(panels({"one": lambda ax: None}, 2.0, 1.0, columns=1), Path(folder, "a.png"))
    ...     Path(folder, "a.png").exists()
    True
    """
    path = path_of(path, "the image")
    make_folder(path.parent)
    try:
        figure.savefig(path, dpi=dpi, metadata={"Software": None}, facecolor="white")
    except (OSError, ValueError) as error:  # a ValueError: no image has this ending
        raise UserError(f"cannot write {path}: {error}") from None


# ---- shared ---------------------------------------------------------------------------------


def svg(draw: Callable[[Axes], None], width: float = 5.6, height: float = 3.4) -> str:
    """Return the drawing of `draw` on new axes as SVG text, with the fonts of the browser.

    width, height: in inches. pyplot is not used, so no global state changes. The same drawing gives
    the same text.

    >>> "hello" in svg(lambda ax: ax.set_title("hello"))
    True
    """
    style: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "genrecourse",
        "text.parse_math": False,  # in a user's text, "$" does not start a formula
        "font.size": 9,
    }
    file = io.StringIO()
    # the browser has its own fonts, so ours need not have every letter
    with DRAWING, rc_context(style), without_warnings("Glyph .* missing from font"):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(file, format="svg", metadata={"Date": None}, transparent=True)
    return file.getvalue().replace("'DejaVu Sans'", "system-ui, 'Segoe UI', Roboto, sans-serif")


def _cut(text: str, most: int) -> str:
    """Return a text of at most `most` letters; brackets are removed first, then the end is cut."""
    if len(text) > most:
        text = text.split(" (")[0]
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def _write(ax: Axes, x: float, y: float, text: str, colour: str, **style: Any) -> None:
    # parse_math: "$" does not start a formula
    options: dict[str, Any] = {"va": "center", "size": 9, "parse_math": False} | style
    ax.text(x, y, text, color=colour, **options)


def _plain_axes(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(TRACK)
    ax.tick_params(color=TRACK, labelcolor=MUTED)
    ax.grid(color=TRACK, lw=0.6, alpha=0.6)
    ax.set_axisbelow(True)
