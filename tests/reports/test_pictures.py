"""Pictures of plans show the numbers of the plans: what is drawn is compared with closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from genrecourse.errors import UserError
from genrecourse.planning.binomial import Share
from genrecourse.planning.plans import Change, Plan, Plans
from genrecourse.reports import pictures
from genrecourse.reports.plots import ACCEPTED, Picture
from genrecourse.table.schema import Feature

INCOME = Feature(name="income", kind="number", range=(0, 100), wording="monthly $income$")
JOB = Feature(name="job", kind="category", categories=("none", "cook", "nurse"))


def plan(person: str, *changes: Change, score: float = 0.8, cost: float = 1.0, **more: Any) -> Plan:
    return Plan(person, "ok", 0.25, 0.5, changes, score_after=score, cost=cost, **more)


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def assert_nothing_is_clipped(picture: Picture) -> None:
    picture.draw_without_rendering()
    whole = picture.bbox.padded(1)
    for ax in picture.axes:
        drawn = ax.get_tightbbox()  # with all texts
        assert drawn is not None
        assert whole.x0 <= drawn.x0 < drawn.x1 <= whole.x1
        assert whole.y0 <= drawn.y0 < drawn.y1 <= whole.y1


def test_before_and_after_lie_on_the_features_own_range() -> None:
    ada = plan("Ada", Change(INCOME, 20, 60), Change(JOB, "none", "nurse"))
    (ax,) = pictures.before_after(ada).axes
    lines = [line.get_xdata() for line in ax.lines if line.get_color() == ACCEPTED]
    drawn = [tuple(map(float, xs)) for xs in lines if len(xs) == 2]
    assert drawn == [(0.25, 0.8), (0.2, 0.6), (0.0, 1.0)]  # the score, the income, the job
    assert {"monthly $income$", "20 → 60", "none → nurse", "0", "100"} <= set(texts(ax))
    on_a_scale = pictures.before_after(replace(ada, score_after=1.25), score_range=(0.0, 2.0))
    first = next(line for line in on_a_scale.axes[0].lines if line.get_color() == ACCEPTED)
    assert list(first.get_xdata()) == [0.125, 0.625]


def test_each_plan_has_a_column_and_each_feature_a_row() -> None:
    second = plan("Ada", Change(JOB, "none", "cook"), cost=2.5)
    ada = plan("Ada", Change(INCOME, 20, 60), alternatives=(second,))
    (ax,) = pictures.different_plans(ada).axes
    cells = {
        (round(p.get_x() + p.get_width() / 2), round(p.get_y() + p.get_height() / 2))
        for p in ax.patches
    }
    assert cells == {(0, 0), (1, 1)}  # plan 1 changes the income, plan 2 the job
    assert texts(ax) == ["60", "cook"]
    assert [t.get_text() for t in ax.get_xticklabels()] == [
        "plan 1\ncost 1.00",
        "plan 2\ncost 2.50",
    ]
    rows = [t.get_text() for t in ax.get_yticklabels()]
    assert rows == ["monthly $income$\nnow 20", "job\nnow none"]


def test_bars_are_the_shares_of_people() -> None:
    both = plan("Ada", Change(INCOME, 20, 60), Change(JOB, "none", "nurse"))
    other = plan("Ben", Change(INCOME, 20, 60), alternatives=(plan("Ben", Change(JOB, "a", "b")),))
    third = plan("Cid", Change(INCOME, 20, 60))
    nobody = Plan("Dan", "no-plan", 0.25, 0.5, reason_code="rules-block")
    (ax,) = pictures.asked_to_change(Plans((both, other, third, nobody))).axes
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, [1, 1, 1, 1 / 3])  # each bar lies on a full track
    assert texts(ax) == ["monthly $income$", "100%", "job", "33%"]
    assert "3 people" in ax.get_title(loc="left")
    alternative = plan(
        "Eve", Change(INCOME, 20, 60), alternatives=(plan("Eve", Change(JOB, 1, 2)),)
    )
    (ax,) = pictures.asked_to_change(Plans((alternative,))).axes
    assert texts(ax) == [
        "monthly $income$",
        "100%",
    ]  # what only an alternative asks for is left out


def test_curves_are_means_over_people_who_have_a_plan_everywhere() -> None:
    change = Change(INCOME, 20, 60)
    cheap = Plans(
        (
            plan("Ada", change, score=0.6, cost=1.0, retrained=Share(2, 8)),
            plan("Ben", change, score=0.7, cost=2.0, retrained=Share(4, 8)),
            plan("Cid", change, score=0.9, cost=9.0, retrained=Share(8, 8)),
        )
    )
    safe = Plans(
        (
            plan("Ben", change, score=0.8, cost=3.0, retrained=Share(7, 8)),
            Plan("Cid", "no-plan", 0.25, 0.5, reason_code="rules-block"),
            plan("Ada", change, score=0.9, cost=4.0, retrained=Share(8, 8)),
        )
    )
    picture = pictures.cheaper_or_safer({1.0: safe, 0.0: cheap}, "min_robust")
    score, votes = picture.axes
    for ax, ys in ((score, [0.65, 0.85]), (votes, [3 / 8, 15 / 16])):
        line = ax.lines[0]
        np.testing.assert_allclose(line.get_xdata().astype(float), [1.5, 3.5])
        np.testing.assert_allclose(line.get_ydata().astype(float), ys)
        assert texts(ax) == ["0", "1"]
        assert "2 people" in ax.get_xlabel()
        assert "min_robust" in ax.get_xlabel()
    silent = Plans(tuple(replace(each, retrained=None) for each in cheap))
    assert len(pictures.cheaper_or_safer({0.0: silent}).axes) == 1


def test_what_cannot_be_drawn_is_an_error_of_one_sentence() -> None:
    nobody = Plan("Dan", "no-plan", 0.25, 0.5, reason_code="rules-block")
    for draw in (pictures.before_after, pictures.different_plans):
        with pytest.raises(UserError, match="'Dan' has no plan to draw \\(status 'no-plan'\\)"):
            draw(nobody)
    with pytest.raises(UserError, match="nobody has a plan"):
        pictures.asked_to_change(Plans((nobody,)))
    with pytest.raises(UserError, match="nobody has a plan at each of 1 value of safety"):
        pictures.cheaper_or_safer({0.5: Plans((nobody,))})
    with pytest.raises(UserError, match="0 values"):
        pictures.cheaper_or_safer({})


def test_long_names_are_not_clipped() -> None:
    long = Feature(name="a", kind="category", categories=("b" * 40, "c d " * 12), wording="w " * 40)
    ada = plan("Ada", Change(long, "b" * 40, "c d " * 12), Change(INCOME, 20, 60))
    ada = replace(ada, alternatives=(plan("Ada", Change(INCOME, 20, 70)),) * 2)
    plans = {0.0: Plans((ada,)), 0.5: Plans((replace(ada, cost=2.0, score_after=0.9),))}
    assert_nothing_is_clipped(pictures.before_after(ada))
    assert_nothing_is_clipped(pictures.different_plans(ada))
    assert_nothing_is_clipped(pictures.asked_to_change(Plans((ada,))))
    assert_nothing_is_clipped(pictures.cheaper_or_safer(plans))


def test_a_notebook_shows_the_picture_without_pyplot() -> None:
    picture = pictures.before_after(plan("Ada", Change(INCOME, 20, 60)))
    png = picture._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert png == picture._repr_png_()
    assert len(png) < 40_000
