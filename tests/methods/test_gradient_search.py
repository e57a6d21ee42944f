"""The batched search, its limits, h with gradients, and undoing: all against known answers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from genrecourse.methods._gradient_search import (
    REJECTED,
    Limits,
    attempt,
    cheapest_valid,
    gradient_search,
    onto_simplex,
)
from genrecourse.methods._sparsify import undo_needless
from genrecourse.methods.wachter import Wachter
from genrecourse.model.classifier import MLP, Classifier
from genrecourse.rules.book import RuleBook
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Feature, Schema

# ---- a plane: two numbers on [0, 1], so that Z is X ------------------------------------------

RNG = np.random.default_rng(0)
PLANE = pd.DataFrame(np.vstack([[0, 0], [1, 1], RNG.random((200, 2))]), columns=["a", "b"])
SCHEMA = Schema.infer(PLANE)
ENCODER = TableEncoder(SCHEMA).fit(PLANE)


def linear_h(w: tuple[float, ...] = (4.0, 2.0), b: float = -3.0, **params: Any) -> Classifier:
    """A torch h whose logit is w.z + b."""
    with torch.random.fork_rng(devices=[]):
        model = MLP(len(w), ())
    linear = model.layers[0]
    assert isinstance(linear, nn.Linear)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([w]))
        linear.bias.fill_(b)
    return Classifier(model, encoder=ENCODER, **params)


def search(Z: np.ndarray, loss: Any, rank: Any, schema: Schema = SCHEMA, **settings: Any) -> Any:
    """Without h: every place is accepted."""
    encoder = TableEncoder(schema).fit(PLANE)
    settings = {"steps": 300, "lr": 0.02, **settings}
    return gradient_search(
        np.asarray(Z, dtype=float),
        loss,
        rank,
        limits=Limits(encoder, RuleBook.of_schema(encoder)),
        legal=settings.pop("legal", lambda Z, Z_plus: Z_plus),
        confidence=settings.pop("confidence", lambda Z: np.ones(len(Z))),
        **settings,
    )


def towards(target: tuple[float, float]) -> tuple[Any, Any]:
    """Loss and rank: the squared distance to a point."""
    point = torch.tensor(target, dtype=torch.float64)

    def loss(Z_plus: torch.Tensor, Z: torch.Tensor) -> torch.Tensor:
        return (Z_plus - point).square().sum(-1)

    def rank(Z_plus: np.ndarray, Z: np.ndarray, confidence: np.ndarray) -> np.ndarray:
        return np.square(Z_plus - np.array(target)).sum(-1)

    return loss, rank


@pytest.mark.parametrize(
    ("rules", "target", "answer"),
    [
        ({}, (0.7, 0.3), (0.7, 0.3)),
        ({}, (1.5, 0.3), (1.0, 0.3)),  # the data's range
        ({"range": (0.0, 0.6)}, (0.9, 0.3), (0.6, 0.3)),
        ({"role": "immutable"}, (0.9, 0.3), (0.5, 0.3)),
        ({"direction": "decrease"}, (0.9, 0.3), (0.5, 0.3)),
        ({"direction": "increase"}, (0.1, 0.3), (0.5, 0.3)),
        ({"max_step": 0.2}, (0.9, 0.3), (0.7, 0.3)),
        ({"max_step": 0.2}, (0.1, 0.3), (0.3, 0.3)),
    ],
)
def test_the_search_finds_the_nearest_point_within_the_rules(
    rules: dict[str, Any], target: Any, answer: Any
) -> None:
    found = search([[0.5, 0.5]], *towards(target), schema=SCHEMA.with_feature("a", **rules))
    np.testing.assert_allclose(found.Z_plus, [answer], atol=0.005)


@pytest.mark.parametrize(
    ("optimizer", "step"), [("adam", 0.1), ("rmsprop", 0.1 / 0.01**0.5), ("sgd", 0.1 * 0.4)]
)
def test_one_step_of_each_optimizer_by_hand(optimizer: Any, step: float) -> None:
    """From 0.5 towards 0.7 the gradient is -0.4; cut at the edge of the data, 1."""
    loss, _ = towards((0.7, 0.5))
    found = search(
        [[0.5, 0.5]],
        loss,
        lambda Z_plus, Z, confidence: -Z_plus[..., 0],
        steps=1,
        lr=0.1,
        optimizer=optimizer,
    )
    np.testing.assert_allclose(found.Z_plus, [[min(0.5 + step, 1.0), 0.5]], atol=1e-6)
    assert found.rank[0] == -found.Z_plus[0, 0]


def test_each_row_keeps_its_own_best_whoever_stands_beside() -> None:
    """More rows than a chunk, each with a best step of its own; alone it finds the same bits."""
    Z = RNG.random((300, 2)) * 0.4
    loss, _ = towards((1.0, 1.0))
    line = RNG.uniform(0.9, 1.4, 300)  # how far each has to come: the first place beyond is best

    def rank(Z_plus: Any, Z: Any, confidence: Any, line: Any) -> Any:
        total = Z_plus.sum(-1)
        return np.where(total > line, total, REJECTED)

    def per_row_loss(Z_plus: Any, Z: Any, line: Any) -> Any:
        return loss(Z_plus, Z)

    whole = search(Z, per_row_loss, rank, per_row=[line], lr=0.01)
    total = whole.Z_plus.sum(-1)
    assert (total > line).all()
    assert (total <= line + 0.021).all()
    for i in (0, 7, 255, 256, 299):
        alone = search(Z[[i]], per_row_loss, rank, per_row=[line[[i]]], lr=0.01)
        np.testing.assert_array_equal(alone.Z_plus[0], whole.Z_plus[i])
    turned = search(Z[::-1], per_row_loss, rank, per_row=[line[::-1]], lr=0.01)
    np.testing.assert_array_equal(turned.Z_plus[::-1], whole.Z_plus)


def test_what_is_kept_is_legal_and_h_was_asked_about_it() -> None:
    """Places are rounded to halves by `legal`; h accepts a >= 1 alone; so 1 is kept, not 0.74."""
    asked = []

    def confidence(Z: np.ndarray) -> np.ndarray:
        asked.append(Z)
        return np.where(Z[:, 0] >= 1, 0.9, 0.2)

    found = search(
        [[0.1, 0.4]],
        towards((0.8, 0.4))[0],
        cheapest_valid(Cost(ENCODER)),
        legal=lambda Z, Z_plus: np.round(2 * Z_plus) / 2,
        confidence=confidence,
    )
    np.testing.assert_array_equal(found.Z_plus, [[1.0, 0.5]])
    assert found.confidence.tolist() == [0.9]
    assert set(np.unique(np.concatenate(asked))) <= {0.0, 0.5, 1.0}


def test_a_row_that_h_never_accepts_keeps_its_best_attempt() -> None:
    found = search(
        [[0.1, 0.4]],
        towards((0.9, 0.4))[0],
        cheapest_valid(Cost(ENCODER)),
        confidence=lambda Z: 0.4 - np.abs(Z[:, 0] - 0.6),  # highest in passing, at 0.6
    )
    np.testing.assert_allclose(found.Z_plus, [[0.6, 0.4]], atol=0.02)
    assert found.rank[0] >= REJECTED


def test_cheapest_valid_ranks_by_cost_then_by_h() -> None:
    rank = cheapest_valid(Cost(ENCODER))
    Z, Z_plus = np.zeros((4, 2)), np.array([[0.3, 0.2], [0.1, 0.0], [0.0, 0.0], [0.0, 0.0]])
    got = rank(Z_plus, Z, np.array([0.6, 0.9, 0.4, 0.3]))
    assert got[:2].tolist() == [0.5, 0.1]
    assert got[2:].tolist() == attempt(np.array([0.4, 0.3])).tolist()
    assert REJECTED < got[2] < got[3]


def test_a_latent_search_moves_codes_and_pins_what_is_immutable() -> None:
    """z = (u, 1 - u); b is immutable, so only a follows u, which itself may leave [0, 1]."""
    seen = []

    def decode(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch.cat([codes * scale[:, None], 1 - codes], dim=-1)

    def loss(Z_plus: torch.Tensor, Z: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        seen.append(Z_plus.detach().numpy().copy())
        return (Z_plus[..., 0] - 0.9).square()

    schema = SCHEMA.with_feature("b", role="immutable")
    found = search(
        [[0.5, 0.25], [0.5, 0.75]],
        loss,
        lambda Z_plus, Z, confidence, scale: np.abs(Z_plus[..., 0] - 0.9),
        schema=schema,
        start=np.array([[0.5], [0.5]]),
        decode=decode,
        per_row=[np.array([1.0, 0.5])],
    )
    np.testing.assert_allclose(found.Z_plus, [[0.9, 0.25], [0.9, 0.75]], atol=0.01)
    assert all((Z_plus[:2, 1] == [0.25, 0.75]).all() for Z_plus in seen)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_loss_that_is_no_number_moves_nobody(broken: float) -> None:
    def loss(Z_plus: torch.Tensor, Z: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return (Z_plus - 0.9).square().sum(-1) + scale * Z_plus.sum(-1)

    _, rank = towards((0.9, 0.9))
    found = search(
        [[0.1, 0.1], [0.5, 0.5]],
        loss,
        lambda Z_plus, Z, confidence, scale: rank(Z_plus, Z, confidence),
        per_row=[np.array([broken, 0.0])],
    )
    np.testing.assert_allclose(found.Z_plus, [[0.1, 0.1], [0.9, 0.9]], atol=0.01)


# ---- limits ----------------------------------------------------------------------------------

MIXED = Schema(
    features=(
        Feature(name="debt", kind="number", missing=True, range=(0.0, 8.0)),
        Feature(name="rise", kind="number", missing=True, direction="increase"),
        Feature(name="job", kind="category", categories=("x", "y", "z"), missing=True),
        Feature(
            name="level",
            kind="category",
            categories=("low", "mid", "high"),
            ordered=True,
            direction="increase",
        ),
        Feature(name="flag", kind="category", categories=("no", "yes")),
        Feature(name="sex", kind="category", categories=("f", "m"), role="immutable"),
    )
)
PEOPLE = pd.DataFrame(
    {
        "debt": [0.0, 10.0, np.nan],
        "rise": [0.0, 10.0, np.nan],
        "job": ["x", "y", None],
        "level": ["low", "mid", "high"],
        "flag": ["no", "yes", "no"],
        "sex": ["f", "m", "f"],
    }
)


def test_the_box_by_hand() -> None:
    encoder = TableEncoder(MIXED).fit(PEOPLE)
    low, high = Limits(encoder, RuleBook.of_schema(encoder)).box(encoder.encode(PEOPLE))
    # debt, missing?, rise, missing?, job x y z missing, level low mid high, flag, sex
    assert low.tolist() == [
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],  # rise is missing and cannot be known to rise
    ]
    assert high.tolist() == [
        [0.8, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0],
        [1, 0, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1],  # x's own debt, beyond the range, stays
        [0.8, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0],
    ]


def test_pull_stays_in_the_box_and_adds_categories_up() -> None:
    encoder = TableEncoder(MIXED).fit(PEOPLE)
    limits = Limits(encoder, RuleBook.of_schema(encoder))
    Z = encoder.encode(PEOPLE)
    low, high = map(torch.tensor, limits.box(Z))
    wild = torch.tensor(np.random.default_rng(1).normal(size=(3, encoder.width)) * 3)
    pulled = limits.pull(wild, low, high)
    assert ((pulled >= low - 1e-12) & (pulled <= high + 1e-12)).all()
    torch.testing.assert_close(pulled[:, 4:8].sum(1), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(pulled[:, 8:11].sum(1), torch.ones(3, dtype=torch.float64))
    start = torch.tensor(Z)
    torch.testing.assert_close(limits.pull(start, low, high), start)  # x itself is not moved


def test_onto_simplex_is_the_nearest_point() -> None:
    rng = np.random.default_rng(2)
    values = torch.tensor(rng.normal(size=(50, 4)))
    closed = torch.zeros(50, 4, dtype=torch.bool)
    closed[::2, 1] = True
    found = onto_simplex(values, closed)
    torch.testing.assert_close(found.sum(1), torch.ones(50, dtype=torch.float64))
    assert (found >= 0).all()
    assert (found[closed] == 0).all()
    for i in range(50):
        open_ = np.flatnonzero(~closed[i].numpy())
        others = np.zeros((3000, 4))
        others[:, open_] = rng.dirichlet(np.full(len(open_), 0.5), size=3000)
        nearest = np.square(others - values[i].numpy()).sum(1).min()
        assert float((found[i] - values[i]).square().sum()) <= nearest + 1e-9
    by_hand = onto_simplex(torch.tensor([[0.9, 0.5, -1.0]]), torch.zeros(1, 3, dtype=torch.bool))
    torch.testing.assert_close(by_hand, torch.tensor([[0.7, 0.3, 0.0]]))


# ---- h with gradients --------------------------------------------------------------------------


def fitted(h: Any, **params: Any) -> Wachter:
    return Wachter(h, SCHEMA, **{"steps": 30, "lr": 0.05, **params}).fit(PLANE)


class Smooth(nn.Module):
    """Not the library's own: (n, 2) -> (n, 1) scores from 0 to 10, accepted above 8."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, Z: torch.Tensor) -> torch.Tensor:
        return 10 * torch.sigmoid(4 * Z[:, :1] + 2 * Z[:, 1:] - 3)


class NoGradient(Smooth):
    def forward(self, Z: torch.Tensor) -> torch.Tensor:
        return super().forward(Z).detach() / 10


def test_a_module_that_reads_z_is_asked_itself() -> None:
    Z = torch.tensor(RNG.random((3, 5, 2)))
    logit = 4 * Z[..., 0] + 2 * Z[..., 1] - 3
    torch.testing.assert_close(fitted(linear_h()).h_logits_(Z), logit)
    strict = fitted(linear_h(cutoff=0.8))
    torch.testing.assert_close(strict.h_logits_(Z), logit - np.log(4))
    scores = Classifier(Smooth(), encoder=ENCODER, cutoff=8.0, score_range=(0.0, 10.0))
    torch.testing.assert_close(fitted(scores).h_logits_(Z), logit - np.log(4))
    assert strict.h_logits_.arrays() == {}


def by_table(X: pd.DataFrame) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(3 - 4 * X["a"] - 2 * X["b"])))


@pytest.mark.parametrize(
    "h",
    [by_table, Classifier(NoGradient(), encoder=ENCODER), Classifier(linear_h().model)],
    ids=["function", "no gradient", "reads X"],
)
def test_any_other_h_gets_a_stand_in_that_says_how_far_it_agrees(h: Any) -> None:
    with pytest.warns(UserWarning, match="guides the search") as caught:
        method = fitted(h)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    said = re.search(r"agree on ([\d.]+)% of decisions", str(caught[0].message))
    assert said is not None
    # counted again: the rows that were held out are the first fifth of the seed's permutation
    held = np.random.default_rng(0).permutation(len(PLANE))[: round(0.2 * len(PLANE))]
    rows = PLANE.iloc[held]
    logits = method.h_logits_(torch.tensor(rows.to_numpy())).numpy()
    agreement = np.mean((logits > 0) == (by_table(rows) > 0.5))
    assert float(said[1]) == pytest.approx(100 * agreement, abs=0.05)
    assert agreement > 0.9
    answer = method.recourse(PLANE)
    assert (by_table(answer) > 0.5).all()


def test_the_real_h_has_the_last_word() -> None:
    """A stand-in that finds everybody accepted still points uphill; h decides what is kept."""
    with pytest.warns(UserWarning, match="guides the search"):
        method = fitted(by_table)
    method.h_logits_ = lambda Z: 4 * Z[..., 0] + 2 * Z[..., 1] + 2.0  # type: ignore[assignment]
    answer = method.recourse(PLANE)
    assert (by_table(answer) > 0.5).all()
    assert by_table(answer).max() < 0.98


# ---- undoing -----------------------------------------------------------------------------------


def test_undo_needless_by_hand() -> None:
    def confidence(Z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(3 - 4 * Z[:, 0] - 2 * Z[:, 1]))

    Z = np.zeros((4, 2))
    Z_plus = np.array([[0.9, 0.3], [0.6, 0.5], [0.8, 0.9], [0.2, 0.1]])
    # b is not needed; both are; a is cheaper and needed, then b is not; rejected: left alone
    wanted = [[0.9, 0.0], [0.6, 0.5], [0.8, 0.0], [0.2, 0.1]]
    found = undo_needless(Z, Z_plus, ENCODER, Cost(ENCODER), confidence)
    np.testing.assert_array_equal(found, wanted)
    # either would do: the cheaper change is undone first, and then the other is needed
    found = undo_needless(
        Z[:2],
        np.array([[0.6, 0.7], [0.7, 0.6]]),
        ENCODER,
        Cost(ENCODER),
        lambda Z: np.where(Z.sum(axis=1) > 0.5, 0.9, 0.1),
    )
    np.testing.assert_array_equal(found, [[0.0, 0.7], [0.7, 0.0]])
