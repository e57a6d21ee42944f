"""Method: the public verbs, written once. An author writes `_fit` and `_recourse` on matrices."""

from __future__ import annotations

import copy
import inspect
import os
import warnings
from abc import abstractmethod
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from genrecourse.errors import UserError, did_you_mean
from genrecourse.genre.select import SHORTFALL
from genrecourse.methods.request import check_safety, check_settings
from genrecourse.model import artifact
from genrecourse.model.artifact import pack, unpack
from genrecourse.model.classifier import Classifier, fit_mlp
from genrecourse.planning.enumeration import ObservedValues
from genrecourse.planning.guarantee import make_plans
from genrecourse.planning.planner import (
    AS_FITTED,
    Planner,
    as_worded,
    enduring,
    make_checker,
    promise_levels,
    promised,
)
from genrecourse.planning.plans import Plans
from genrecourse.planning.promise import (
    DELTA,
    Promise,
    PromiseData,
    ThresholdTest,
    check_promise,
    choose,
    test_arrays,
    tests_from_arrays,
)
from genrecourse.planning.wording import Wording
from genrecourse.rules.book import RuleBook, split_by_rules
from genrecourse.rules.policy import Policy
from genrecourse.rules.requests import request_book
from genrecourse.rules.roles import ProtectedMask, protected_used_by
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder, unchanged
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Schema
from genrecourse.trust.verifier import Verifier

N_PROBES = 64  # training rows by whose scores a classifier is known again


@dataclass(frozen=True)
class TrainingRows:
    """What `_fit` is given: the training rows, as numbers, and what was seen of them."""

    Z: Array  # (n, D)
    F: Array  # (n, d)
    favourable: np.ndarray  # (n,) booleans: the outcome seen, or h's decision where none was given
    confidence: Array  # (n,) h on the common scale, 0.5 at the cutoff


class Method(BaseEstimator):
    """A way to recourse around a classifier. Subclasses: `_fit(rows)`, `_recourse(Z, noise)`.

    classifier: a `Classifier`, or any model that one can wrap; None: the paper's MLP, trained in
        `fit` from X and y.
    schema: a `Schema`; None: inferred from X.
    random_state: decides everything random; the same one, row and version give the same recourse.
    """

    # parameters that are dataclasses, so that a model file can name their fields and nothing else
    _records: ClassVar[dict[str, type[Any]]] = {}
    # whether a model file holds training rows with their outcomes, for promises made after loading
    _keeps_ground: ClassVar[bool] = False
    # whether it shows protected features to h alone, and settles what follows, by itself; any other
    # method is given rows with the same protected values for everybody, and h settles for it
    _knows_roles: ClassVar[bool] = False

    def __init__(
        self, classifier: Any = None, schema: Schema | None = None, *, random_state: int = 0
    ):
        self.classifier = classifier
        self.schema = schema
        self.random_state = random_state

    def __sklearn_clone__(self) -> Method:
        # scikit-learn's clone would forget what a fitted classifier has learned
        return type(self)(**self.get_params(deep=False))

    # ---- what an author writes ----------------------------------------------------------------

    @abstractmethod
    def _fit(self, rows: TrainingRows) -> None:
        """Learn from the training rows; state ends in an underscore."""

    @abstractmethod
    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        """Z (n, D) of rejected people -> Z_plus (n, D), the best attempt for each.

        A keyword-only argument here is an option of `recourse` at each request.
        """

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What `_fit` learned, for a model file: plain values, and arrays."""
        raise UserError(f"{self._where('save')}: {type(self).__name__} has no _state and _restore")

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """The inverse of `_state`, with the parameters, encoder, rules and h already in place."""
        raise UserError(f"{self._where('load')}: {type(self).__name__} has no _state and _restore")

    # ---- the verbs ----------------------------------------------------------------------------

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        """Learn from a table. y: outcomes seen in the data; None: h's own decisions stand in."""
        self._fitted = False
        self.policy_: Policy | None = None  # that `save` was told of: `plans(X, **policy_.request)`
        self.schema_ = Schema.infer(X) if self.schema is None else self.schema.as_in(X)
        self.encoder_ = TableEncoder(self.schema_).fit(X)
        X = X[self.schema_.names]
        if y is not None and len(y) != len(X):
            raise UserError(f"{self._where('fit')}: X has {len(X)} rows but y has {len(y)}")
        self.classifier_ = self._ready_classifier(X, y)
        self._like = X.iloc[:1]
        self.classifier_ = reading(self.classifier_, self.encoder_)
        self.rules_, self.cost_ = RuleBook.of_schema(self.encoder_), Cost(self.encoder_)
        self.blank_ = ProtectedMask(self.encoder_)
        F = self.encoder_.features(X)
        self.observed_ = ObservedValues.of(F, self.encoder_)
        scores = self.classifier_.score(X)
        probes = np.linspace(0, len(X) - 1, min(len(X), N_PROBES)).astype(int)
        self._probe, self._probe_scores = X.iloc[probes].copy(), scores[probes]
        favourable = (
            scores > self.classifier_.cutoff if y is None else self.classifier_.is_favourable(y)
        )
        self._warn_of_roles(X)
        F = F if self._knows_roles else self._unseen(F)
        rows = TrainingRows(
            self.encoder_.from_features(F), F, favourable, self.classifier_.confidence(scores)
        )
        self._ground = None  # h's own decisions say nothing of the real ones
        if y is not None:
            rejected = rows.confidence <= 0.5
            self._ground = PromiseData.some(
                rows.Z,
                favourable,
                rejected,
                self.cost_,
                self.random_state,
                self.blank_.hide_encoded,
            )
        self._levels: dict[str, list[ThresholdTest]] = {}
        self._fit(rows)
        self._fitted = True
        return self

    def _warn_of_roles(self, X: pd.DataFrame) -> None:
        """What a schema says of a feature, and h or the table do not keep to."""
        for use in protected_used_by(self.classifier_, self.schema_, X):
            warnings.warn(
                f"{self._where('fit')}: {use.sentence}. It is protected: plans keep each person's "
                "own value, but the decision depends on it",
                stacklevel=3,
            )
        for remark in self.schema_.lint_formulas(X):
            warnings.warn(f"{self._where('fit')}: {remark}", stacklevel=3)

    def recourse(self, X: pd.DataFrame, **request: Any) -> pd.DataFrame:
        """One row back for each row in: same index, columns and dtypes.

        People whom h accepts already come back unchanged. Whether the others' x_plus is valid is
        measured (`assess`), not encoded as NaN.

        request: options of this one call, for methods that have any (GenRe: `lam`, `temperature`,
        `sigma`, `n_draws`, `safety`; GenRe and NearestNeighbour: `rules`, on top of the schema's,
        see `genrecourse.Rules`); None, or left out: as fitted.
        """
        self._check_fitted("recourse")
        self._check_request("recourse", request)
        Z = self.encoder_.encode(X)
        rejected = ~self.classifier_.accepts(self._ordered(X))
        rules = self._compiled(request.pop("rules", None), X)
        Z_plus, people = Z.copy(), np.flatnonzero(rejected)
        for places, mine in split_by_rules(rules, people):
            rows = people[places]
            told = {} if mine is None else {"rules": mine}
            found = self._answer(Z[rows], KeyedNoise(self.random_state), **request, **told)
            Z_plus[rows] = self._legal(Z[rows], found, mine)
        return self.encoder_.decode(Z_plus, like=X)

    def assess(self, X: pd.DataFrame, X_plus: pd.DataFrame, rules: Any = None) -> pd.DataFrame:
        """What recourse did for each person: status, scores before and after, cost, changes.

        status: `already-accepted`; `ok`, h accepts x_plus and no rule is broken, of the schema or
        of the request; otherwise the reason: `rule-broken`, `not-accepted`, or what the method
        itself knows (`_reason`).
        """
        self._check_fitted("assess")
        rules = self._compiled(rules, X) or self.rules_
        X, X_plus = self._ordered(X), self._ordered(X_plus)
        F, F_plus = self.encoder_.features(X), self.encoder_.features(X_plus)
        Z, Z_plus = self.encoder_.from_features(F), self.encoder_.from_features(F_plus)
        score, score_plus = self.classifier_.score(X), self.classifier_.score(X_plus)
        cutoff = self.classifier_.cutoff
        reason = np.where(score_plus > cutoff, "ok", self._reason(Z))
        reason = np.where(rules.feasible(F, F_plus), reason, "rule-broken")
        return pd.DataFrame(
            {
                "status": np.where(score > cutoff, "already-accepted", reason),
                "score": score,
                "score_plus": score_plus,
                "cost": self.cost_(Z, Z_plus),
                "changes": (~unchanged(F, F_plus) & ~self.rules_.derived.mask).sum(axis=1),
            },
            index=X.index,
        )

    def save(self, folder: str | os.PathLike[str], policy: Policy | None = None) -> None:
        """Write what was learned to a folder, as data: `genrecourse.load` reads it.

        policy: that it was fitted under, to be found again as `policy_`. The command line keeps its
        rules; in Python they are told to `plans`, as all rules of a request are.

        The folder holds training rows: 64 of them, and whatever rows the method keeps (GenRe
        and nearest neighbours: up to 10,000 with their outcomes, so that a promise can be made). A
        classifier that is not the library's own is not stored; it is given again at load.
        """
        self._check_fitted("save")
        policy = policy or self.policy_
        state, arrays = self._state()
        h, weights = artifact.pack_classifier(self.classifier_)
        meta = {
            "method": type(self).__name__,
            "params": self._packed_params(),
            "schema": artifact.pack_schema(self.schema_),
            "encoder": artifact.pack_encoder(self.encoder_),
            "classifier": h,
            "probe": {
                "rows": artifact.pack_table(self._probe),
                "scores": pack(self._probe_scores),
            },
            "state": pack(state),
            "policy": {} if policy is None else policy.pack(),
        }
        menu = {str(j): values for j, values in enumerate(self.observed_.values)}
        arrays = {
            **artifact.under("state", arrays),
            **artifact.under("classifier", weights),
            **artifact.under("menu", menu),
        }
        if self._keeps_ground and self._ground is not None:
            arrays |= artifact.under("ground", self._ground.arrays())
            arrays |= artifact.under("levels", test_arrays(self._levels.get(AS_FITTED, [])))
        artifact.write(folder, meta, arrays)

    @classmethod
    def _load(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray], classifier: Any) -> Self:
        """The method that `save` was called on, from what `artifact.read` gives."""
        schema = artifact.unpack_schema(meta["schema"])
        encoder = artifact.unpack_encoder(meta["encoder"])
        probe = artifact.unpack_table(meta["probe"]["rows"])
        scores = np.array(meta["probe"]["scores"], dtype=np.float64)
        h = artifact.unpack_classifier(
            meta["classifier"], artifact.within("classifier", arrays), classifier, probe, scores
        )
        h = reading(h, encoder)
        method = cls(**cls._unpacked_params(meta["params"], schema, h))
        method.schema_, method.encoder_, method.classifier_ = schema, encoder, h
        method.rules_, method.cost_, method.blank_ = (
            RuleBook.of_schema(encoder),
            Cost(encoder),
            ProtectedMask(encoder),
        )
        menu = artifact.within("menu", arrays)
        method.observed_ = ObservedValues(tuple(menu[str(j)] for j in range(len(schema))))
        method._probe, method._probe_scores, method._like = probe, scores, probe.iloc[:1]
        ground, learned = artifact.within("ground", arrays), artifact.within("levels", arrays)
        about = (method.cost_, method.random_state, method.blank_.hide_encoded)
        method._ground = PromiseData.from_arrays(ground, *about) if ground else None
        method._levels = {AS_FITTED: tests_from_arrays(learned)} if learned else {}
        method.policy_ = Policy.unpack(meta["policy"]) if meta.get("policy") else None
        method._restore(unpack(meta["state"]), artifact.within("state", arrays))
        method._fitted = True
        return method

    def _packed_params(self) -> dict[str, Any]:
        """The parameters as JSON; of schema and classifier only whether they were given."""
        params = self.get_params(deep=False)
        params["schema"] = self.schema is not None
        given = Classifier.wrap(self.classifier)
        params["classifier"] = None if self.classifier is None else given.is_fitted
        for name, value in params.items():
            if is_dataclass(value) and type(value) is self._records.get(name):
                params[name] = {f.name: getattr(value, f.name) for f in fields(value)}
        return {name: pack(value) for name, value in params.items()}

    @classmethod
    def _unpacked_params(cls, packed: dict[str, Any], schema: Schema, h: Classifier) -> Any:
        params = {name: unpack(value) for name, value in packed.items()}
        params |= {name: kind(**params[name]) for name, kind in cls._records.items()}
        params["schema"] = schema if params["schema"] else None
        if params["classifier"] is not None:
            to_be_trained = Classifier(
                None, favourable=h.favourable, cutoff=h.cutoff, score_range=h.score_range
            )
            params["classifier"] = h if params["classifier"] else to_be_trained
        return params

    def plans(
        self,
        X: pd.DataFrame,
        n: int = 1,
        rules: Any = None,
        fewest_changes: bool = False,
        *,
        promise: float | None = None,
        delta: float = DELTA,
        language: str | os.PathLike[str] | Wording = "en",
        **request: Any,
    ) -> Plans:
        """What would change h's decision on each person, in units and words.

        Every plan holds: decoded to original units it is accepted by h and breaks no rule. Who
        has none gets the reason, what it rests on, and the rule that alone stands in the way.

        n: how many plans a person, which differ in the features they change; fewer where there are
        no more that are worth showing. rules: for this request. fewest_changes: undo
        changes that are not needed while h and the verifier accept. promise: show only plans of
        which at least this share is accepted by the real decision, on average over the people who
        get one, with the confidence 1 - delta; the others are told why not (docs/promise.md).
        language: of the words, a language that is shipped or a file. request: as in `recourse`.
        """
        self._check_fitted("plans")
        self._check_request("plans", request)
        check_settings(self._where("plans"), counts={"n": n})
        made = None
        if promise is not None:
            made = self.promise(
                promise,
                delta,
                fewest_changes=fewest_changes,
                rules=rules,
                n=n,
                **request,
            )
        words, gate = Wording.of(language), make_checker(self, self._ordered(X), rules)
        offers = Planner(self, gate, request, fewest_changes=fewest_changes).offers(n)
        found = as_worded(gate, make_plans(gate, offers, n, words))
        return enduring(self, gate, found if made is None else promised(self, found, made))

    def promise(
        self,
        share: float,
        delta: float = DELTA,
        *,
        fewest_changes: bool = False,
        rules: Any = None,
        n: int = 1,
        **request: Any,
    ) -> Promise:
        """What `plans(X, promise=share)` rests on; `holds` is False where it cannot be promised.

        rules: the same for everybody; rules of single people are refused, since nothing can
        be tested under them. The first call scores training rows and makes plans for rejected
        ones, as `plans` with these options would; then it is known, and `save` keeps what was
        asked for without options.
        """
        self._check_fitted("promise")
        self._check_request("promise", request)
        check_promise(self._where("promise"), share, delta)
        levels = promise_levels(self, request, fewest_changes=fewest_changes, rules=rules, n=n)
        return choose(levels, float(share), float(delta))

    @property
    def like(self) -> pd.DataFrame:
        """A row of the table that was fitted on: its columns, in their order and dtypes."""
        return self._like

    def kept_rows(self) -> Array | None:
        """(n, D) training rows of accepted people that a model file of this method would hold, to
        be compared with; None where it holds none. Protected features are blank in them."""
        verifier = getattr(self, "verifier_", None)
        if not isinstance(verifier, Verifier):
            return None
        return self.blank_.hide_encoded(np.concatenate(verifier.like_))

    def probe_rows(self) -> pd.DataFrame:
        """A few training rows, from all over the table, that every model file holds."""
        return self._probe.copy()

    # ---- for authors --------------------------------------------------------------------------

    def _several(self, Z: Array, noise: KeyedNoise, n: int, **request: Any) -> Array:
        """(N, k, d) x_plus of rejected people that plans are chosen from; what `_recourse` gives
        comes first. A method that has more to choose from than that says so here."""
        found = self._legal(Z, self._answer(Z, noise, **request), request.get("rules"))
        return self.encoder_.to_features(found)[:, None, :]

    def _answer(self, Z: Array, noise: KeyedNoise, **request: Any) -> Array:
        """What `_recourse` gives for rows as it may see them."""
        if not self._knows_roles and self.blank_:
            Z = self.encoder_.from_features(self._unseen(self.encoder_.to_features(Z)))
        return self._recourse(Z, noise, **request)

    def _unseen(self, F: Array) -> Array:
        """F with what is usual in place of protected features: the same for everybody."""
        if not self.blank_:
            return F
        return np.where(self.blank_.mask, usual(self.encoder_.features(self._probe)), F)

    def _n_tried(self, request: dict[str, Any]) -> int:
        """How many x_plus a request looks at for each person."""
        return 1

    def _safety_asked(self, request: dict[str, Any]) -> float:
        asked = request.get("safety")
        return float(getattr(self, "safety", 0.5) if asked is None else asked)

    def _worth(self, Z: Array, F_plus: Array, safety: float) -> Array:
        """The expected Score of each row, as selection counts it; what h rejects comes last.

        Without a verifier: h's confidence, less the cost.
        """
        verifier: Verifier | None = getattr(self, "verifier_", None)
        Z_plus = self.encoder_.from_features(F_plus)
        confidence = self._settled_confidence(Z_plus)
        price = self.cost_(Z, Z_plus) / F_plus.shape[1]
        if verifier is None:
            return np.where(confidence > 0.5, confidence - price, confidence - 10.0)
        found = verifier.measures(Z_plus, confidence)
        lacks = np.maximum(0.0, 0.5 - found[:, 1])
        worth = verifier.worth(found, safety) - SHORTFALL * lacks - price
        return np.where(found[:, 0] > 0.5, worth, found[:, 0] - 10.0)

    def _confidence(self, Z: Array) -> Array:
        """h on rows of Z, on the common scale; for a search that knows no roles, on what would
        follow from what it proposes."""
        if self.rules_.derived and not self._knows_roles:
            F = self.rules_.derived.ahead(self.encoder_.to_features(Z))
            Z = self.encoder_.from_features(F)
        return self._settled_confidence(Z)

    def _settled_confidence(self, Z: Array) -> Array:
        """h on rows of Z just as they are."""
        scores = self.classifier_.score_encoded(Z, self.encoder_, self._like)
        return self.classifier_.confidence(scores)

    def _reason(self, Z: Array) -> np.ndarray:
        """Why a row of Z whose recourse h rejects could not be helped."""
        return np.full(len(Z), "not-accepted", dtype=object)

    def _compiled(self, rules: Any, X: pd.DataFrame) -> RuleBook | None:
        """The rules of a request, for each row of X; whom h accepts already needs to meet none."""
        if rules is None:
            return None
        X = self._ordered(X)
        rejected = ~self.classifier_.accepts(X)
        return request_book(rules, self.rules_, X, rejected)

    def _legal(self, Z: Array, Z_plus: Array, request: RuleBook | None = None) -> Array:
        """Z_plus on legal values and within the rules; a feature left alone stays exactly so.

        Under a request, a row that breaks a rule which single features cannot put right is x.
        """
        F, raw = self.encoder_.to_features(Z), self.encoder_.to_features(Z_plus)
        same = unchanged(F, raw)
        clipped = self.encoder_.from_features(self.rules_.clip(F, raw))
        projected = self.encoder_.to_features(self.encoder_.project(clipped))
        legal = self.rules_.revert(F, np.where(same, F, projected))
        if request is not None:
            legal = request.revert(F, legal)
        legal = self._settled(F, legal, request)
        return self.encoder_.from_features(legal)

    def _settled(self, F: Array, F_plus: Array, request: RuleBook | None = None) -> Array:
        """F_plus (..., d) with what follows from it, and x itself where a rule on whole rows, of
        the request or on what follows, is broken."""
        rules = self._whole(request)
        if rules is None:
            return F_plus
        F_plus = rules.with_derived(F, F_plus)
        return np.where(rules.feasible(F, F_plus)[..., None], F_plus, F)

    def _whole(self, request: RuleBook | None) -> RuleBook | None:
        """The rules in force, if there are any that single features cannot keep by themselves."""
        return request or (self.rules_ if self.rules_.derived else None)

    def _check_changeable(self) -> None:
        """Refuse to learn where the schema lets nothing change."""
        if self.rules_.immutable.all():
            raise UserError(f"{self._where('fit')}: every feature is immutable: nothing can change")

    def _ready_classifier(self, X: pd.DataFrame, y: Any) -> Classifier:
        wrapped = Classifier.wrap(self.classifier)
        if wrapped.is_fitted:
            return wrapped
        if y is None:
            raise UserError(
                f"{self._where('fit')}: with no classifier, the outcomes y are needed to learn one"
            )
        return fit_mlp(
            X,
            y,
            self.schema_,
            favourable=wrapped.favourable,
            cutoff=wrapped.cutoff,
            seed=self.random_state,
            progress=getattr(self, "progress", False),
        )

    def _long(self, X: pd.DataFrame, Z_plus: Array, name: str) -> pd.DataFrame:
        """k rows of Z_plus for each of X, as a table indexed (row, name)."""
        k = len(Z_plus) // max(1, len(X))
        like = X.iloc[np.repeat(np.arange(len(X)), k)]
        table = self.encoder_.decode(Z_plus, like=like)
        table.index = long_index(X, k, name)
        return table

    def _ordered(self, X: pd.DataFrame) -> pd.DataFrame:
        self.encoder_.check(X)
        return X[self.schema_.names]

    def _check_fitted(self, verb: str) -> None:
        if not getattr(self, "_fitted", False):  # also after a fit that failed halfway
            raise UserError(f"{self._where(verb)}: call fit(X, y) first")

    def _check_request(self, verb: str, request: dict[str, Any]) -> None:
        """Refuse options that `_recourse` does not take; a method adds what its values must be."""
        parameters = inspect.signature(self._recourse).parameters.values()
        options = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        unknown = [name for name in request if name not in options]
        if unknown:
            raise UserError(
                f"{self._where(verb)}: no option {unknown} at a request; "
                f"{type(self).__name__} takes {options or 'none'}"
            )
        if request.get("safety") is not None:
            check_safety(self._where(verb), request["safety"])

    def _where(self, verb: str) -> str:
        return f"{type(self).__name__}.{verb}"


def usual(F: Array) -> Array:
    """(d,) the value of each feature that most rows have, the smallest of several; 0 for none."""
    answer = np.zeros(F.shape[1])
    for j, column in enumerate(F.T):
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        if len(values):
            answer[j] = values[counts.argmax()]
    return answer


def long_index(X: pd.DataFrame, k: int, name: str) -> pd.MultiIndex:
    """(row, name) for k of something for each row of X."""
    places = np.tile(np.arange(k), len(X))
    return pd.MultiIndex.from_arrays([X.index.repeat(k), places], names=["row", name])


def reading(h: Classifier, encoder: TableEncoder) -> Classifier:
    """h, but reading this encoder's Z directly where it means the same to h as its own.

    The method's own encoder stays: its schema holds the rules, and h's may have others.
    """
    if h.encoder is None or not same_layout(h.encoder, encoder):
        return h
    h = copy.copy(h)
    h.encoder = encoder
    return h


def same_layout(a: TableEncoder, b: TableEncoder) -> bool:
    """Whether a row of Z means the same to both."""
    levels_a, levels_b = ([(f.name, f.categories) for f in e.schema] for e in (a, b))
    return levels_a == levels_b and a.blocks == b.blocks


def check_params(method: type[Method], params: dict[str, Any]) -> None:
    """Refuse a parameter that the method does not have, and say which it has."""
    known = list(inspect.signature(method.__init__).parameters)[1:]
    unknown = [name for name in params if name not in known]
    if unknown:
        close = did_you_mean(unknown[0], known)
        raise UserError(f"{method.__name__} has no parameter {unknown}{close}; it has {known}")
