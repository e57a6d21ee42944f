"""Searched: GenRe's search, with the candidates of another method in place of GenRe's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from genrecourse.errors import UserError
from genrecourse.genre.fit import fit_verifier
from genrecourse.genre.search import FINALISTS, Finalists, scored, search
from genrecourse.methods import METHODS
from genrecourse.methods.abilities import HasCandidates
from genrecourse.methods.base import Method, rows_shown_to, shown_to, with_configs
from genrecourse.model.artifact import under, within
from genrecourse.model.settings import (
    DRAWS,
    NOTHING,
    SAFETY,
    Allowed,
    Choice,
    Kind,
    Or,
    check_size,
    fault_in,
)
from genrecourse.planning.proposer import Proposals
from genrecourse.table.encoding import unchanged
from genrecourse.table.limits import DRAWS_AT_ONCE
from genrecourse.table.noise import KeyedNoise
from genrecourse.trust.verifier import Verifier

if TYPE_CHECKING:
    from genrecourse.methods.base import TrainingRows
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.encoding import Array
    from genrecourse.table.schema import Schema
    from genrecourse.trust.score import Scored

OFFERED = 3  # refined candidates for each plan asked for, if several are
PROBED = 32  # rejected training rows that show whether the base's answers depend on noise


class Searched(Method):
    """GenRe's search among the candidates of another method: a verifier chooses and refines them.

    The verifier, the number of finalists, refining and the final choice are those of GenRe's
    search, which has 64 draws and the 32 nearest targets as candidates. So a difference in Score
    between the two comes from the candidates. With n_candidates=96 a person gets

    - from `tabsyn_q`: 64 draws from Q and the 32 nearest synthetic rows. If no synthetic row shares
      the person's immutables, the 32 nearest of all, with the immutables carried over.
    - from `cchvae`: up to 96 draws that h accepts, from the first latent shell that has one and
      the nine shells after it.
    - from `revise` and any other method whose answer does not depend on noise: one, its answer.
      `fit` finds this out: it asks the method twice, with different noise, for 32 training rows.
    - from any other method: its answers to 96 different noises.

    No training rows are added to them. Under the rules of a request, `cchvae` searches within the
    rules, and the nearest rows of `tabsyn_q` are the nearest within the rules. Other candidates are
    found without the rules, unless the method takes rules itself; values that break a rule then
    return to x's.

    Weakness: refining only moves a candidate back towards x. If all candidates are poor, or h
    accepts none of them, the search cannot repair that.

    base: the name of the method in METHODS.
    base_params: its parameters, if they differ from the defaults; a config such as `vae` may be a
        dict of its fields, and must be one if the model is saved. "quick": cheap ones for tests.
    n_candidates: the largest number of candidates of a person.
    safety: from as cheap as possible (0) to as safe as possible (1), as in GenRe.

    >>> import pandas as pd
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> method = Searched(h, base="growing_spheres", n_candidates=8).fit(X, X["income"] >= 40)
    >>> method.assess(X.head(2), method.recourse(X.head(2)))["status"].tolist()
    ['ok', 'ok']
    """

    options: ClassVar[tuple[str, ...]] = ("safety", "rules")
    _knows_roles = True  # the verifier hides protected features, and the base sees what it may see

    base_: Method
    verifier_: Verifier
    is_random_: bool  # whether the base's answers depend on noise

    allowed: ClassVar[dict[str, Allowed]] = {
        "base": Choice(METHODS),
        "base_params": Or(
            Kind(dict, "a dict of parameters of the base"), Choice(("quick",)), NOTHING
        ),
        "n_candidates": DRAWS,
        "safety": SAFETY,
    }

    def __init__(
        self,
        classifier: Any = None,
        schema: Schema | None = None,
        *,
        base: str = "revise",
        base_params: dict[str, Any] | Literal["quick"] | None = None,
        n_candidates: int = 96,
        safety: float = 0.5,
        random_state: int = 0,
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.base = base
        self.base_params = base_params
        self.n_candidates = n_candidates
        self.safety = safety

    @staticmethod
    def _test_params() -> dict[str, Any]:
        """Return quick settings for the checks of the contract."""
        return {"base_params": "quick", "n_candidates": 9}

    # ---- fit ----------------------------------------------------------------------------------

    def _fit(self, rows: TrainingRows) -> None:
        self.base_ = self._new_base()
        self.base_._fit(rows_shown_to(self.base_, rows))
        self.fit_report_ = self.base_.fit_report_
        self.is_random_ = self._depends_on_noise(rows)
        self.verifier_ = fit_verifier(self.problem_, rows, self.random_state)

    def _new_base(self) -> Method:
        """Return the base method, not fitted, on the same problem."""
        problem = self.problem_
        base = self._unfitted()
        base.set_params(classifier=problem.classifier, schema=problem.schema)
        base.problem_, base.schema_, base.classifier_ = problem, problem.schema, problem.classifier
        return base

    def _unfitted(self) -> Method:
        """Return the base method with its parameters. Raises UserError if it has no such ones."""
        maker = METHODS[self.base]
        kind, params = getattr(maker, "func", maker), self.base_params
        if params == "quick":
            params = getattr(kind, "_test_params", dict)()
        made = with_configs(kind, params or {})
        return maker(**{"random_state": self.random_state, **made})

    def conflict(self) -> str:
        """Return what is wrong with the parameters of the base; "" if nothing is."""
        try:
            base = self._unfitted()
        except UserError as error:
            return f"base_params: {error}"
        return fault_in(base, "base_params.")

    def _depends_on_noise(self, rows: TrainingRows) -> bool:
        """Return whether other noise changes the base's answer for any of PROBED rejected rows.

        Decided once for everybody, because a person's recourse must not depend on who else asks.
        """
        Z = rows.Z[rows.confidence <= 0.5][:PROBED]
        if isinstance(self.base_, HasCandidates) or len(Z) == 0:
            return True
        once, again = (self._answers(Z, KeyedNoise(self.random_state + i), None) for i in (0, 1))
        return not bool(unchanged(once, again).all())

    # ---- recourse -----------------------------------------------------------------------------

    def _recourse(
        self,
        Z: Array,
        noise: KeyedNoise,
        *,
        safety: float | None = None,
        rules: RuleBook | None = None,
    ) -> Array:
        found = self._candidates(Z, noise, rules)
        best = self._search(Z, found, safety, rules).best
        return self.problem_.encoder.from_features(best)

    def propose(self, Z: Array, noise: KeyedNoise, n: int, **options: Any) -> Proposals:
        """Return what recourse gives, then more refined candidates."""
        safety, rules = options.get("safety"), options.get("rules")
        found = self._candidates(Z, noise, rules)
        offers = self._search(Z, found, safety, rules).best[:, None]
        if n > 1:
            more = self._search(Z, found, safety, rules, finalists=OFFERED * n).F
            offers = np.concatenate([offers, more], axis=1)
        return Proposals(
            self._legal_each(Z, offers, rules), found.F.shape[1], lambda: self._reason(Z)
        )

    def _search(
        self,
        Z: Array,
        found: Scored,
        safety: float | None,
        rules: RuleBook | None,
        finalists: int = FINALISTS,
    ) -> Finalists:
        safety = self.safety if safety is None else float(safety)
        known = (self.problem_, self.verifier_, Z, found)
        most = None if rules is not None else self.verifier_.most_candidates
        return search(*known, safety=safety, finalists=finalists, most=most, request=rules)

    def _candidates(self, Z: Array, noise: KeyedNoise, rules: RuleBook | None) -> Scored:
        """Return the base's candidates within the rules."""
        check_size(type(self).__name__, len(Z), self.n_candidates, "draws", DRAWS_AT_ONCE)
        base, encoder = self.base_, self.problem_.encoder
        if isinstance(base, HasCandidates):
            Z_plus = base.candidates(shown_to(base, Z), noise, self.n_candidates, rules)
            flat = encoder.to_features(Z_plus.reshape(-1, Z.shape[1]))
            F_plus = flat.reshape(*Z_plus.shape[:2], -1)
        else:
            n = self.n_candidates if self.is_random_ else 1
            noises = [KeyedNoise(noise.seed + i) for i in range(n)]
            F_plus = np.stack([self._answers(Z, each, rules) for each in noises], axis=1)
        return scored(self.problem_, Z, self._legal_each(Z, F_plus, rules))

    def _answers(self, Z: Array, noise: KeyedNoise, rules: RuleBook | None) -> Array:
        """Return (N, d) the base's own answers."""
        knows = rules is not None and "rules" in self.base_.options
        given = {"rules": rules} if knows else {}
        return self.base_.propose(Z, noise, 1, **given).F_plus[:, 0]

    def _legal_each(self, Z: Array, F_plus: Array, rules: RuleBook | None) -> Array:
        """Return F_plus (N, k, d) on legal values and within the rules."""
        N, k, d = F_plus.shape
        again = np.repeat(np.arange(N), k)
        F = self.problem_.encoder.to_features(Z)[again]
        mine = None if rules is None else rules.take(again)
        return self.problem_.legal_features(F, F_plus.reshape(-1, d), mine).reshape(N, k, d)

    # ---- model files --------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = self.base_._state()
        verifier = under("verifier", self.verifier_.arrays())
        return {"base": state, "random": self.is_random_}, under("base", arrays) | verifier

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.base_ = self._new_base()
        self.base_._restore(state["base"], within("base", arrays))
        self.fit_report_, self.is_random_ = self.base_.fit_report_, state["random"]
        problem = self.problem_
        self.verifier_ = Verifier.from_arrays(
            within("verifier", arrays), problem.encoder.width, problem.protected.hide_encoded
        )
