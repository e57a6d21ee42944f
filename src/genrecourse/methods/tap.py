"""TAP: gradient search with candidates that a learned verifier of pairs accepts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from genrecourse.errors import UserError
from genrecourse.methods._gradient_method import GradientMethod, ell
from genrecourse.methods._gradient_search import REJECTED, SURELY, attempt
from genrecourse.model.artifact import fill, under, weights, within
from genrecourse.model.classifier import MLP
from genrecourse.model.settings import COUNT, RATE, SHARE, STEPS, WEIGHT, Allowed
from genrecourse.model.threads import seeded
from genrecourse.model.training import TrainingPlan, train

if TYPE_CHECKING:
    from genrecourse.methods.base import TrainingRows
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise
    from genrecourse.table.schema import Schema

HIDDEN = (50, 50, 50, 50)
HELD_OUT = 0.1  # share of the rows on whose pairs the verifier is tested


class TAP(GradientMethod):
    """Gradient search for the cheapest row that the model and a learned verifier accept.

    The candidates are the points of the search path of  min over z of ell(h(z)) + lam * C(x, z).

    The verifier V(x, z) in [0, 1] is the probability that x and z have different outcomes. It is a
    network that is fitted on pairs of training rows and their outcomes. Friedbaum, Adiga & Tandon,
    "Trustworthy Actionable Perturbations", ICML 2024. V checks the candidates and is not part of
    the loss: otherwise the search would exploit the errors of V as it exploits the errors of h.

    Weakness: far from the data, V has seen no pairs and can be as wrong as h. If V accepts no
    candidate, the result is the accepted candidate with the highest V, or else the candidate with
    the highest score of h.

    Differences from the original: cross-entropy and the cost of the schema instead of its own goal
    and action costs; new pairs for each batch, half of them with different outcomes; training ends
    after `max_batches`, which with more than about 1,300 rows is before 2000 epochs. `fit_report_`
    has the number of batches, and the accuracy of V on pairs of held-out rows.

    lam: the weight of the cost.
    lr, steps: Adam's learning rate and steps, for the candidates.
    sure: V must be above this.
    epochs, verifier_lr, batch_size, max_batches: the training of the verifier.

    >>> from genrecourse.table.schema import Schema
    >>> import pandas as pd
    >>> from genrecourse.model.classifier import MLPConfig, fit_mlp
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> y, schema = X["income"] >= 40, Schema.infer(X)
    >>> h = fit_mlp(X, y, schema, config=MLPConfig(lr=0.05, epochs=10))
    >>> method = TAP(h, schema, steps=40, lr=0.05, max_batches=60).fit(X, y)
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    allowed: ClassVar[dict[str, Allowed]] = {
        "lam": WEIGHT,
        "lr": RATE,
        "steps": STEPS,
        "sure": SHARE,
        "epochs": STEPS,
        "verifier_lr": RATE,
        "batch_size": COUNT,
        "max_batches": STEPS,
    }

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        lam: float = 0.01,
        lr: float = 0.01,
        steps: int = 1000,
        sure: float = 0.5,
        epochs: int = 2000,
        verifier_lr: float = 1e-4,
        batch_size: int = 128,
        max_batches: int = 20_000,
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.lam = lam
        self.lr = lr
        self.steps = steps
        self.sure = sure
        self.epochs = epochs
        self.verifier_lr = verifier_lr
        self.batch_size = batch_size
        self.max_batches = max_batches

    @staticmethod
    def _test_params() -> dict[str, Any]:
        return {"steps": 40, "lr": 0.05, "max_batches": 60, "verifier_lr": 1e-3}

    def _fit(self, rows: TrainingRows) -> None:
        super()._fit(rows)
        self._fit_verifier_of_pairs(rows)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = super()._state()
        return state, {**arrays, **under("verifier", weights(self.pair_verifier_))}

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(state, arrays)
        with torch.device("meta"):
            self.pair_verifier_ = MLP(2 * self.problem_.encoder.width, HIDDEN)
        fill(self.pair_verifier_, within("verifier", arrays))

    # ---- the verifier -------------------------------------------------------------------------

    def _fit_verifier_of_pairs(self, rows: TrainingRows) -> None:
        order = np.random.default_rng(self.random_state).permutation(len(rows.Z))
        used = order[round(HELD_OUT * len(order)) :]
        if np.unique(rows.favourable[used]).size < 2:
            raise UserError(
                f"{self._where('fit')}: {int(rows.favourable.sum())} of {len(rows.Z)} outcomes are "
                "favourable; the verifier needs training rows with both outcomes"
            )
        with seeded(self.random_state):
            self.pair_verifier_ = MLP(2 * rows.Z.shape[1], HIDDEN)

        def loss(batch: tuple[Tensor, Tensor]) -> Tensor:
            return binary_cross_entropy_with_logits(self.pair_verifier_.logits(batch[0]), batch[1])

        per_epoch = -(-len(used) // self.batch_size)
        plan = TrainingPlan(
            steps=min(self.epochs * per_epoch, self.max_batches),
            lr=self.verifier_lr,
            schedule="constant",
            eval_every=0,
        )
        pairs = _pairs(rows.Z[used], rows.favourable[used], self.batch_size, self.random_state)
        done = train(self.pair_verifier_, loss, pairs, plan)
        held = order[: len(order) - len(used)]
        report: dict[str, float] = {"batches": done.steps}
        self.fit_report_ = {"verifier": report}
        if np.unique(rows.favourable[held]).size == 2:
            both, differ = next(
                _pairs(rows.Z[held], rows.favourable[held], 4096, self.random_state)
            )
            with torch.no_grad():
                right = ((self.pair_verifier_(both) > 0.5) == (differ > 0.5)).double().mean()
            report["right_on_held_out_pairs"] = round(float(right), 4)

    def _verify(self, Z: Array, Z_plus: Array) -> Array:
        """Return V of pairs: (..., D), (..., D) -> (...)."""
        both = np.concatenate([np.broadcast_to(Z, Z_plus.shape), Z_plus], axis=-1)
        flat = torch.tensor(both.reshape(-1, both.shape[-1]), dtype=torch.float32)
        with torch.no_grad():
            return self.pair_verifier_(flat).double().numpy().reshape(Z_plus.shape[:-1]).round(4)

    # ---- the search ---------------------------------------------------------------------------

    def _loss(self, Z_plus: Tensor, Z: Tensor) -> Tensor:
        return ell(self.h_logits_(Z_plus)) + self.lam * self.problem_.cost(Z, Z_plus)

    def _rank(self, Z_plus: Array, Z: Array, confidence: Array) -> Array:
        """Return the rank: by cost if h and V accept; by V if only h accepts; else by h."""
        differ = self._verify(Z, Z_plus)
        accepted = np.where(
            differ > self.sure, self.problem_.cost(Z, Z_plus).round(9), REJECTED * (2 - differ)
        )
        return np.where(confidence > SURELY, accepted, REJECTED + attempt(confidence))

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        return self._search(Z, self._loss, self._rank, steps=self.steps, lr=self.lr).Z_plus


def _pairs(
    Z: Array, favourable: np.ndarray, size: int, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield batches of pairs (x, z) and whether their outcomes differ; half of them do."""
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(~favourable), np.flatnonzero(favourable)]
    inputs = torch.as_tensor(Z, dtype=torch.float32)
    while True:
        first = rng.integers(len(Z), size=size)
        differ = rng.random(size) < 0.5
        wanted = favourable[first] ^ differ
        place = rng.random(size)
        second = np.where(
            wanted,
            classes[1][(place * len(classes[1])).astype(int)],
            classes[0][(place * len(classes[0])).astype(int)],
        )
        both = torch.cat([inputs[first], inputs[second]], dim=1)
        yield both, torch.as_tensor(differ, dtype=torch.float32)
