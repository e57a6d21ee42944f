"""cost="quantile": counted by hand, its laws, and one truth wherever a cost is computed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from genrecourse import METHODS, NearestNeighbour, Schema, UserError, load
from genrecourse.evaluation.checks import example_score, fit_quietly, make_example
from genrecourse.evaluation.evaluate import measure
from genrecourse.evaluation.examples import example_case
from genrecourse.genre.sample_constrained import _price
from genrecourse.methods.genre import GenRe
from genrecourse.rules.interface import RowChange
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.quantiles import GRID, Quantiles
from genrecourse.table.schema import Feature, usual_gap
from tests.support.random_tables import reproducible

Array = np.ndarray

columns = st.lists(st.integers(-50, 50), min_size=1, max_size=60).map(np.array)


def share_below(column: Array, value: float) -> float:
    """Counted: the rows below a value and half of those that have it."""
    return float((column < value).mean() + (column == value).mean() / 2)


def cost_of(column: Array) -> tuple[Any, Any]:
    """The cost between two values of a column: by numpy, and by torch."""
    X = pd.DataFrame({"money": column.astype(float)})
    encoder = TableEncoder(Schema.infer(X, cost="quantile")).fit(X)
    cost = Cost(encoder)

    def between(a: Any, b: Any) -> Array:
        Za, Zb = (encoder.encode(pd.DataFrame({"money": np.asarray(v, float)})) for v in (a, b))
        return np.asarray(cost(Za, Zb))

    def in_torch(a: Any, b: Any) -> Array:
        Za, Zb = (encoder.encode(pd.DataFrame({"money": np.asarray(v, float)})) for v in (a, b))
        return cost.pairwise(torch.as_tensor(Za), torch.as_tensor(Zb)).numpy()

    return between, in_torch


# ---- the laws of one column ---------------------------------------------------------------------


@reproducible(40)
@given(columns)
def test_between_observed_values_it_counts_people(column: Array) -> None:
    between, in_torch = cost_of(column)
    values = np.unique(column)
    shares = np.array([share_below(column, value) for value in values])
    expected = np.abs(shares[:, None] - shares)
    for i, value in enumerate(values):
        np.testing.assert_allclose(between([value] * len(values), values), expected[i], atol=1e-9)
    np.testing.assert_allclose(in_torch(values, values), expected, atol=1e-9)


@reproducible(40)
@given(columns, st.lists(st.floats(-300, 300), min_size=3, max_size=3))
def test_it_is_a_distance_on_a_line(column: Array, three: list[float]) -> None:
    between, _ = cost_of(column)
    low, middle, high = sorted(three)
    ab, bc, ac = between([low, middle, low], [middle, high, high])
    assert ac == pytest.approx(ab + bc)  # so a larger change never costs less
    assert 0.0 <= ab <= ac <= 1.0
    assert between([low], [low]) == 0.0
    assert between([high], [low]) == pytest.approx(ac)


@reproducible(40)
@given(columns, st.floats(0, 1), st.floats(0, 1))
def test_within_the_range_every_change_costs(column: Array, a: float, b: float) -> None:
    between, _ = cost_of(column)
    span = np.ptp(column)
    x, x_plus = column.min() + a * span, column.min() + b * span
    paid = float(between([x], [x_plus])[0])
    assert (paid > 1e-12) == (abs(x - x_plus) > 1e-9) or abs(x - x_plus) < 1e-6


@reproducible(30)
@given(columns, st.sampled_from([np.exp, np.cbrt, lambda v: v**3 + v, lambda v: 7.0 * v - 2.0]))
def test_no_increasing_transform_changes_it(column: Array, transform: Any) -> None:
    column = column / 10.0
    values = np.unique(column)
    plain, changed = cost_of(column)[1], cost_of(transform(column))[1]
    np.testing.assert_allclose(
        changed(transform(values), transform(values)), plain(values, values), atol=1e-7
    )


def test_an_atom_lies_in_the_middle_of_its_rows() -> None:
    column = np.array([0.0] * 90 + [*range(1, 11)])
    between, _ = cost_of(column)
    assert between([0.0], [1.0]) == pytest.approx(0.9 / 2 + 0.01 / 2)
    assert between([1.0], [10.0]) == pytest.approx(0.09)


def test_beyond_the_range_nobody_is_left_to_overtake() -> None:
    column = np.arange(10.0)  # the highest value is one row in ten
    between, _ = cost_of(column)
    far = between([9.0, 9.0, 18.0, 9.0], [13.5, 18.0, 1e9, 1e9])
    np.testing.assert_allclose(far, [0.025, 0.05, 0.0, 0.05], atol=1e-12)
    assert between([-1e9], [1e9]) == pytest.approx(1.0)


def test_a_constant_column_has_quantiles() -> None:
    between, _ = cost_of(np.full(5, 3.0))
    np.testing.assert_allclose(between([3, 3, 3], [3, 4, 2]), [0, 0.5, 0.5])


@pytest.mark.parametrize("seed", range(5))
def test_a_long_column_keeps_few_knots_and_its_atoms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    column = rng.lognormal(0, 2, 20_000)
    column[rng.random(20_000) < 0.3] = np.quantile(column, 0.6)  # an atom between many values
    scaled = (column - column.min()) / np.ptp(column)
    scale = Quantiles.of(scaled)
    assert len(scale.values) <= 2 * GRID + 6
    values, counts = np.unique(scaled, return_counts=True)
    exact = (counts.cumsum() - counts / 2) / len(scaled)
    off = np.abs(scale(values) - exact)
    assert off.max() <= 1 / GRID
    assert off[counts.argmax()] < 1e-12
    assert (np.diff(scale.values) > 0).all()
    assert (np.diff(scale.shares) > 0).all()


def test_torch_and_numpy_agree_and_a_gradient_flows() -> None:
    scale = Quantiles.of(np.array([0.0, 0.0, 0.1, 0.5, 1.0]))
    at = np.array([-3.0, -0.5, 0.0, 0.05, 0.1, 0.7, 1.0, 1.2, 5.0])
    for dtype, near in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
        found = scale(torch.as_tensor(at, dtype=dtype))
        assert found.dtype == dtype
        np.testing.assert_allclose(found.numpy(), scale(at), atol=near)
    z = torch.tensor([0.05, 0.3, 5.0], dtype=torch.float64, requires_grad=True)
    scale(z).sum().backward()
    # from 0 (share 0.2) to 0.1 (0.5), and on to 0.5 (0.7); beyond, nothing changes
    np.testing.assert_allclose(z.grad, [0.3 / 0.1, 0.2 / 0.4, 0.0])


# ---- one truth ----------------------------------------------------------------------------------


EXAMPLE = make_example(rows=150, people=30)
QUANTILE = replace(EXAMPLE, schema=EXAMPLE.schema.with_cost("quantile"))


def counted_cost(X: pd.DataFrame, X_plus: pd.DataFrame) -> Array:
    """The cost from the raw tables, feature by feature, by counting training rows.

    Between observed values it interpolates, and beyond them it goes on for one range.
    """
    total = np.zeros(len(X))
    for feature in QUANTILE.schema:
        before, after = X[feature.name], X_plus[feature.name]
        gone, gone_plus = before.isna().to_numpy(), after.isna().to_numpy()
        if feature.is_category:
            paid = (before.astype(object) != after.astype(object)).to_numpy() & ~(gone & gone_plus)
            total += feature.cost_weight * paid
            continue
        column = EXAMPLE.X[feature.name].dropna().to_numpy(dtype=float)
        low, high = column.min(), column.max()
        values = [2 * low - high, *np.unique(column), 2 * high - low]
        shares = [0.0, *(share_below(column, value) for value in np.unique(column)), 1.0]
        a, b = (
            np.interp(v.to_numpy(dtype=float, na_value=np.nan), values, shares)
            for v in (before, after)
        )
        paid = np.where(gone | gone_plus, gone != gone_plus, np.abs(a - b))
        total += feature.cost_weight * paid
    return total


def test_a_cost_of_whole_rows_is_the_counted_one() -> None:
    encoder = TableEncoder(QUANTILE.schema).fit(EXAMPLE.X)
    X, X_plus = EXAMPLE.people.reset_index(drop=True), EXAMPLE.X.head(30).reset_index(drop=True)
    assert X.isna().any(axis=None)
    Z, Z_plus = encoder.encode(X), encoder.encode(X_plus)
    cost, expected = Cost(encoder), counted_cost(X, X_plus)
    np.testing.assert_allclose(cost(Z, Z_plus), expected, atol=1e-6)
    np.testing.assert_allclose(cost.by_feature(Z, Z_plus).sum(1), expected, atol=1e-6)
    pairs = cost.pairwise(torch.as_tensor(Z), torch.as_tensor(Z_plus))
    np.testing.assert_allclose(pairs.diagonal().numpy(), expected, atol=1e-6)
    F, F_plus = encoder.features(X), encoder.features(X_plus)
    np.testing.assert_allclose(RowChange(encoder, F, F_plus).cost, expected, atol=1e-6)
    assert not np.allclose(Cost(encoder, protocol=True)(Z, Z_plus), expected, atol=0.01)


@pytest.fixture(scope="module")
def genre() -> GenRe:
    small = GenRe._test_params()
    return fit_quietly(GenRe(example_score, QUANTILE.schema, **small), EXAMPLE.X, EXAMPLE.y)


def test_the_density_pays_the_same(genre: GenRe) -> None:
    density, problem = genre.density_, genre.problem_
    F = torch.as_tensor(problem.encoder.features(EXAMPLE.people))
    choices, allowed = density.choices(F).numpy(), density.allowed(F).numpy()
    paid = density.choice_cost(F).numpy()
    exact = _price(density, density.choices(F), F).numpy()
    for t, j in enumerate(density.decoded.tolist()):
        for k in range(choices.shape[2]):
            F_plus = F.numpy().copy()
            F_plus[:, j] = choices[:, t, k]
            expected = problem.cost(*map(problem.encoder.from_features, (F.numpy(), F_plus)))
            some = allowed[:, t, k]
            np.testing.assert_allclose(paid[some, t, k], expected[some], atol=1e-5)
            np.testing.assert_allclose(exact[some, t, k], expected[some], atol=1e-9)


def test_plans_and_assessments_pay_the_same(genre: GenRe) -> None:
    X_plus = genre.recourse(EXAMPLE.people)
    expected = counted_cost(EXAMPLE.people, X_plus)
    np.testing.assert_allclose(genre.assess(EXAMPLE.people, X_plus)["cost"], expected, atol=1e-6)
    found = genre.plans(EXAMPLE.people, n=2)
    shown = [each for plan in found for each in plan.every]
    assert len(shown) > 5
    before = EXAMPLE.people.loc[[plan.person for plan in shown]].reset_index(drop=True)
    expected = counted_cost(before, found.x_plus().reset_index(drop=True))
    np.testing.assert_allclose([plan.cost for plan in shown], expected, atol=1e-6)


def test_a_limit_on_the_cost_is_in_people_overtaken(genre: GenRe) -> None:
    found = genre.plans(EXAMPLE.people, rules={"max_cost": 0.3})
    costs = [plan.cost for plan in found if plan.status == "ok"]
    assert costs
    assert max(costs) <= 0.3 + 1e-9


def test_a_model_file_keeps_the_scale(genre: GenRe, tmp_path: Path) -> None:
    nearest = METHODS["nnr"](example_score, QUANTILE.schema)
    for method in (genre, fit_quietly(nearest, EXAMPLE.X, EXAMPLE.y)):
        method.save(tmp_path / "model")
        again = load(tmp_path / "model", example_score)
        assert again.schema_ == QUANTILE.schema
        plans = method.plans(EXAMPLE.people)
        assert again.plans(EXAMPLE.people).to_json() == plans.to_json()


def test_the_nearest_row_is_another_one() -> None:
    """A millionaire makes ten more a month cheap, but nine in ten people lie in between."""
    X = pd.DataFrame({"money": np.linspace(10, 20, 91), "owned": np.linspace(0, 1, 91)})
    X.loc[0, "owned"], X.loc[90, "owned"] = 0.5, 0.0
    X.loc[91] = [1000.0, 0.0]

    def h(X: pd.DataFrame) -> Array:
        richer, owner = X["money"] >= 20, (X["owned"] >= 0.5) & (X["money"] <= 10)
        return np.where(richer | owner, 0.9, 0.1)

    person = pd.DataFrame({"money": [10.0], "owned": [0.0]})
    for cost, nearest in (("range", [20.0, 0.0]), ("quantile", [10.0, 0.5])):
        method = NearestNeighbour(h, Schema.infer(X, cost=cost)).fit(X)
        assert method.recourse(person).iloc[0].tolist() == nearest


def test_the_evaluation_keeps_to_the_protocol() -> None:
    case = example_case()
    schema = case.schema.with_cost("quantile")
    other = replace(case, schema=schema, encoder=TableEncoder(schema).fit(case.X))
    X_plus = case.X.head(len(case.people)).set_axis(case.people.index)
    assert np.isfinite(measure(case, X_plus)["cost"]).all()
    np.testing.assert_array_equal(measure(other, X_plus)["cost"], measure(case, X_plus)["cost"])


# ---- where it is stated -------------------------------------------------------------------------


def test_a_schema_states_it() -> None:
    X = EXAMPLE.X
    schema = Schema.infer(X, cost="quantile")
    assert {f.cost for f in schema if not f.is_category} == {"quantile"}
    assert {f.cost for f in schema if f.is_category} == {"range"}
    assert Schema.from_json(schema.to_json()) == schema
    assert schema.with_cost("range") == Schema.infer(X)
    assert '"cost"' not in Schema.infer(X).to_json()
    with pytest.raises(UserError, match="must be 'range' or 'quantile'"):
        Schema.infer(X, cost="quantiles")
    with pytest.raises(ValueError, match="which only numbers have"):
        Feature(name="town", kind="category", categories=("a", "b"), cost="quantile")


# ---- lint ---------------------------------------------------------------------------------------


def remarks(column: Array, **changes: Any) -> list[str]:
    X = pd.DataFrame({"money": column})
    schema = Schema.infer(X).with_feature("money", **changes)
    return [remark for remark in schema.lint(X) if "heavy tail" in remark]


def test_lint_warns_of_heavy_tails_and_of_no_others() -> None:
    rng = np.random.default_rng(0)
    for light in (rng.random(5000), rng.normal(size=5000), rng.exponential(size=5000)):
        assert remarks(light) == []
    assert remarks(np.array([1.0] * 84 + [2.0] * 16)) == []  # few values, most people share one
    assert remarks(np.full(10, 3.0)) == []
    heavy = rng.lognormal(0, 1.5, 5000)
    (said,) = remarks(heavy)
    assert said.startswith("'money' has a heavy tail")
    assert "set cost='quantile'" in said
    assert remarks(heavy, cost="quantile") == []
    assert remarks(heavy, role="immutable") == []  # costs nothing


@reproducible(30)
@given(columns)
def test_the_usual_gap_is_the_median_of_all_pairs(column: Array) -> None:
    gaps = [abs(a - b) for i, a in enumerate(column) for b in column[:i] if a != b]
    assert usual_gap(column) == (np.median(gaps) if gaps else 0.0)
