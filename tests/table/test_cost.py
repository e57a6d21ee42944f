"""Cost: hand-computed prices, and the same numbers from every way of asking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Schema

X = pd.DataFrame(
    {
        "income": [0, 100, 50, 25],
        "gap": [0.0, np.nan, 4.0, 1.0],
        "two": ["n", "y", "n", "y"],
        "four": ["a", "b", "c", "d"],
        "two_gap": ["n", None, "y", "n"],
    }
)
WEIGHTS = {"income": 2.0, "gap": 3.0, "two": 5.0, "four": 7.0, "two_gap": 11.0}


def encoder_of(weights: dict[str, float]) -> TableEncoder:
    schema = Schema.infer(X)
    for name, weight in weights.items():
        schema = schema.with_feature(name, cost_weight=weight)
    return TableEncoder(schema).fit(X)


def price(weights: dict[str, float], before: dict[str, Any], after: dict[str, Any]) -> float:
    """C between two rows that are like row 0 of X but for what is given."""
    encoder = encoder_of(weights)
    base = X.iloc[:1].to_dict("records")[0]
    rows = pd.DataFrame([base | before, base | after]).astype({"gap": "float64"})
    Z = encoder.encode(rows)
    return float(Cost(encoder)(Z[0], Z[1]))


@pytest.mark.parametrize(
    ("before", "after", "plain", "weighted"),
    [
        ({}, {}, 0.0, 0.0),
        ({"income": 20}, {"income": 70}, 0.5, 2 * 0.5),
        ({"income": 70}, {"income": 20}, 0.5, 2 * 0.5),
        ({"income": -100}, {"income": 200}, 3.0, 2 * 3.0),  # beyond the training rows
        ({"gap": 1.0}, {"gap": 4.0}, 0.75, 3 * 0.75),
        ({"gap": None}, {"gap": None}, 0.0, 0.0),
        ({"gap": None}, {"gap": 0.0}, 1.0, 3.0),
        ({"gap": None}, {"gap": 4.0}, 1.0, 3.0),  # the same whatever the value
        ({"gap": 4.0}, {"gap": None}, 1.0, 3.0),
        ({"two": "n"}, {"two": "y"}, 1.0, 5.0),
        ({"four": "a"}, {"four": "b"}, 1.0, 7.0),
        ({"four": "a"}, {"four": "d"}, 1.0, 7.0),  # levels have no distance
        ({"two_gap": "n"}, {"two_gap": "y"}, 1.0, 11.0),
        ({"two_gap": None}, {"two_gap": "y"}, 1.0, 11.0),
        ({"two_gap": None}, {"two_gap": None}, 0.0, 0.0),
        (
            {"income": 0, "gap": None, "two": "n", "four": "a", "two_gap": None},
            {"income": 25, "gap": 2.0, "two": "y", "four": "c", "two_gap": "n"},
            4.25,
            2 * 0.25 + 3 + 5 + 7 + 11,
        ),
    ],
)
def test_prices_by_hand(
    before: dict[str, Any], after: dict[str, Any], plain: float, weighted: float
) -> None:
    assert price({}, before, after) == pytest.approx(plain, abs=1e-12)
    assert price(WEIGHTS, before, after) == pytest.approx(weighted, abs=1e-12)


def random_rows(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "income": rng.integers(-20, 140, n),
            "gap": np.where(rng.random(n) < 0.4, np.nan, rng.normal(2, 2, n)),
            "two": rng.choice(["n", "y"], n),
            "four": rng.choice(list("abcd"), n),
        }
    )
    return rows.assign(two_gap=rng.choice(np.array(["n", "y", None], dtype=object), n))


def loop(encoder: TableEncoder, a: pd.DataFrame, b: pd.DataFrame) -> np.ndarray:
    """The docstring's formula, feature by feature, from the raw tables: (n, m)."""
    total = np.zeros((len(a), len(b)))
    for feature, block in zip(encoder.schema, encoder.blocks, strict=True):
        for i, u in enumerate(a[feature.name]):
            for k, v in enumerate(b[feature.name]):
                if pd.isna(u) or pd.isna(v):
                    gap = float(pd.isna(u) != pd.isna(v))
                elif feature.is_category:
                    gap = float(u != v)
                else:
                    gap = abs(u - v) / block.span
                total[i, k] += feature.cost_weight * gap
    return total


def test_one_truth_in_numpy_torch_and_pairwise() -> None:
    encoder = encoder_of(WEIGHTS)
    cost = Cost(encoder)
    a, b = random_rows(17, seed=0), random_rows(13, seed=1)
    Z, Z_plus = encoder.encode(a), encoder.encode(b)
    expected = loop(encoder, a, b)
    assert np.isnan(a["gap"]).any()
    assert np.isnan(b["gap"]).any()

    in_numpy = cost(Z[:, None, :], Z_plus[None, :, :])
    assert isinstance(in_numpy, np.ndarray)
    np.testing.assert_allclose(in_numpy, expected, rtol=0, atol=1e-12)

    T, T_plus = torch.as_tensor(Z), torch.as_tensor(Z_plus)
    in_torch = cost(T[:, None, :], T_plus[None, :, :])
    assert in_torch.dtype == torch.float64
    np.testing.assert_allclose(in_torch.numpy(), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(cost.pairwise(T, T_plus).numpy(), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(cost(Z[:13], Z_plus), np.diag(expected), rtol=0, atol=1e-12)

    single = cost.pairwise(T.float(), T_plus.float())
    assert single.dtype == cost(T[0].float(), T_plus.float()).dtype == torch.float32
    np.testing.assert_allclose(single.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_without_missing_values_too() -> None:
    complete = X[["income", "two", "four"]]
    encoder = TableEncoder(Schema.infer(complete)).fit(complete)
    cost, Z = Cost(encoder), torch.as_tensor(encoder.encode(complete))
    expected = loop(encoder, complete, complete)
    np.testing.assert_allclose(cost.pairwise(Z, Z).numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(cost(Z[:, None], Z[None]).numpy(), expected, atol=1e-12)
    assert cost.n_features == 3


def test_a_price_is_a_distance() -> None:
    encoder = encoder_of(WEIGHTS)
    Z = torch.as_tensor(encoder.encode(random_rows(12, seed=3)))
    C = Cost(encoder).pairwise(Z, Z)
    assert torch.equal(C, C.T)
    assert (C.diagonal() == 0).all()
    assert (C >= 0).all()


def test_gradient_flows_and_is_the_weight() -> None:
    encoder = encoder_of(WEIGHTS)
    row = encoder.encode(X.iloc[[3]].assign(gap=1.0))[0]
    Z = torch.as_tensor(row)
    Z_plus = (Z + 0.1).requires_grad_(True)
    with torch.no_grad():
        Z_plus[2] = 0.0  # "gap" is not missing
    Cost(encoder)(Z, Z_plus).backward()
    # income, gap, its flag (not asked about), two, four one-hot, two_gap one-hot
    expected = [2.0, 3.0, None, 5.0, *[3.5] * 4, *[5.5] * 3]
    assert Z_plus.grad is not None
    for found, wanted in zip(Z_plus.grad.tolist(), expected, strict=True):
        assert wanted is None or found == pytest.approx(wanted)


def test_gradient_of_a_missing_value_is_zero_where_it_does_not_count() -> None:
    encoder = encoder_of({})
    Z = torch.as_tensor(encoder.encode(X.iloc[[1]]))[0]  # "gap" is missing
    Z_plus = Z.clone()
    Z_plus[1], Z_plus[2] = 0.8, 0.0
    Z_plus.requires_grad_(True)
    value = Cost(encoder)(Z, Z_plus)
    value.backward()
    assert value.item() == 1.0
    assert Z_plus.grad is not None
    assert Z_plus.grad[1] == 0.0
