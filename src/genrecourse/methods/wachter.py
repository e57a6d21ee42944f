"""Wachter: the cheapest flip, by gradients."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from genrecourse.methods._gradient_method import GradientMethod, ell
from genrecourse.methods._gradient_search import cheapest_valid
from genrecourse.methods.base import TrainingRows
from genrecourse.model.settings import check_settings
from genrecourse.table.encoding import Array
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Schema


class Wachter(GradientMethod):
    """The cheapest flip, by gradients:

        min over z of  ell(h(z)) + lam * C(x, z),  lam halved until h accepts

    Wachter, Mittelstadt & Russell, "Counterfactual Explanations without Opening the Black Box",
    Harvard Journal of Law & Technology 2018. Each row keeps the cheapest place on its way that h
    accepts, which with a small lam is where it first crosses the boundary.

    It fails where h is wrong beyond its data: nothing keeps z plausible, and an answer on the
    boundary does not bear a retrained h or noise.

    Departs from the original: cross-entropy for the squared error; plain L1 (the schema's cost) for
    L1 by median deviations; lam weighs the cost and is halved, so it never becomes negative;
    categories are relaxed on the way and every place is projected and shown to h.

    lam: the price of a unit of cost, to begin with.
    lr, steps: Adam's rate, and its steps for each lam.
    rounds: how many values of lam are tried, each half the last, for rows that h still rejects.
    """

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        lam: float = 0.01,
        lr: float = 0.01,
        steps: int = 1000,
        rounds: int = 5,
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.lam = lam
        self.lr = lr
        self.steps = steps
        self.rounds = rounds

    @staticmethod
    def _test_params() -> dict[str, Any]:
        return {"steps": 40, "lr": 0.05, "rounds": 2}

    def _fit(self, rows: TrainingRows) -> None:
        check_settings(
            self._where("fit"),
            above_zero={"lr": self.lr},
            from_zero={"lam": self.lam},
            counts={"steps": self.steps, "rounds": self.rounds},
        )
        super()._fit(rows)

    def _loss(self, Z_plus: Tensor, Z: Tensor, lam: float | Tensor) -> Tensor:
        return ell(self.h_logits_(Z_plus)) + lam * self.problem_.cost(Z, Z_plus)

    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        return self._search_lowering(
            Z,
            self._loss,
            cheapest_valid(self.problem_.cost),
            lam=self.lam,
            rounds=self.rounds,
            steps=self.steps,
            lr=self.lr,
        )
