"""Wachter: gradient search for the cheapest row that h accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from genrecourse.methods._gradient_method import GradientMethod, ell
from genrecourse.methods._gradient_search import cheapest_valid
from genrecourse.model.settings import COUNT, RATE, STEPS, WEIGHT, Allowed

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array
    from genrecourse.table.noise import KeyedNoise
    from genrecourse.table.schema import Schema


class Wachter(GradientMethod):
    """Gradient search for the cheapest row that the model accepts.

        min over z of  ell(h(z)) + lam * C(x, z),  lam is halved until h accepts

    Wachter, Mittelstadt & Russell, "Counterfactual Explanations without Opening the Black Box",
    Harvard Journal of Law & Technology 2018. The result is the cheapest point of the search path
    that h accepts. With a small lam this is the point where the path first crosses the boundary.

    Weakness: nothing keeps z plausible, so z can lie where h is wrong, far from the data. A result
    on the boundary is often rejected by a retrained h, or with a little noise.

    Differences from the original: cross-entropy instead of the squared error; L1 (the cost of the
    schema) instead of L1 scaled by median deviations; lam weighs the cost and is halved, so it
    never becomes negative; categories are relaxed during the search, and every point is projected
    onto the rules before h scores it.

    lam: the first weight of the cost.
    lr, steps: Adam's learning rate, and its steps for each lam.
    rounds: how many values of lam are tried, for rows that h still rejects.

    >>> from genrecourse.table.schema import Schema
    >>> import pandas as pd
    >>> from genrecourse.model.classifier import MLPConfig, fit_mlp
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> y, schema = X["income"] >= 40, Schema.infer(X)
    >>> h = fit_mlp(X, y, schema, config=MLPConfig(lr=0.05, epochs=10))
    >>> method = Wachter(h, schema, steps=40, lr=0.05, rounds=2).fit(X, y)
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    allowed: ClassVar[dict[str, Allowed]] = {
        "lam": WEIGHT,
        "lr": RATE,
        "steps": STEPS,
        "rounds": COUNT,
    }

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
