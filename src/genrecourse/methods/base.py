"""Method: fit, recourse, parameters and model files. An author writes `_fit` and `_recourse`.

The verbs `plans` and `promise` come from `planning`, which sees a method as a `Proposer`.
"""

from __future__ import annotations

import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, Unpack

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from genrecourse.errors import (
    RowsUnreadable,
    StillRejected,
    UserError,
    counted,
    did_you_mean,
    shown,
    stacklevel_of_caller,
)
from genrecourse.methods.fit_log import log_choices, log_rows
from genrecourse.methods.other_rows import training_table, with_others
from genrecourse.methods.params import check_params, pack_params, unpack_params
from genrecourse.model import artifact
from genrecourse.model.answers import answers_alike
from genrecourse.model.artifact import SAME_SCORE, pack, unpack
from genrecourse.model.classifier import MLP, Classifier, fit_mlp
from genrecourse.model.settings import (
    ANYTHING,
    NOTHING,
    ROW_ERRORS,
    SAFETY,
    SEED,
    Allowed,
    Kind,
    Or,
    allowed_in,
    check_settings,
    check_values,
)
from genrecourse.planning.planner import Plannable
from genrecourse.planning.plans import fault_in_words
from genrecourse.planning.proposer import PlanningData, Proposals
from genrecourse.planning.wording import english
from genrecourse.rules.book import split_by_rules
from genrecourse.rules.policy import Policy, book_in_force, read_policy
from genrecourse.rules.problem import People, Problem, TrainingRows
from genrecourse.rules.roles import protected_used_by
from genrecourse.rules.stated import read_rules
from genrecourse.table.encoding import Array, TableEncoder, unchanged
from genrecourse.table.frames import (
    PANDAS,
    check_kind,
    in_place,
    like,
    to_pandas,
)
from genrecourse.table.noise import KeyedNoise
from genrecourse.table.schema import Schema, plain

if TYPE_CHECKING:
    from genrecourse.planning.options import Options
    from genrecourse.rules.book import RuleBook
    from genrecourse.rules.problem import ReadRows
    from genrecourse.trust.verifier import Verifier

__all__ = [
    "Method",
    "TrainingRows",
    "long_frame",
    "long_index",
    "long_like",
    "rows_shown_to",
    "shown_to",
    "with_configs",
]

N_PROBES = 64  # training rows whose scores identify a classifier at load
Frame = TypeVar("Frame")  # a table of any kind: what is returned is of the kind that was given
GROUPS = ("menu", "ground", "levels", "copies")  # of a model file's arrays: what planning keeps


class Method(Plannable, BaseEstimator, ABC):
    """A recourse method around a classifier. A subclass writes `_fit` and `_recourse`.

    classifier: a `Classifier`, or any model that one can wrap; None: `fit` trains the paper's MLP
        on X and y.
    schema: a `Schema`; None: inferred from X.
    random_state: decides everything random; equal values, rows and versions give equal recourse.

    >>> import pandas as pd
    >>> class Richest(Method):
    ...     def _fit(self, rows):
    ...         self.best_ = rows.Z[rows.confidence.argmax()]
    ...
    ...     def _recourse(self, Z, noise):
    ...         return np.repeat(self.best_[None], len(Z), axis=0)
    >>> X = pd.DataFrame({"income": range(80)})
    >>> Richest(lambda X: X["income"] / 80).fit(X).recourse(X.head(2))["income"].tolist()
    [79, 79]
    """

    # what each parameter may be (see `model.settings`); a subclass declares its own
    allowed: ClassVar[dict[str, Allowed]] = {
        "classifier": ANYTHING,  # `Classifier` looks at it
        "schema": Or(Kind(Schema, "a Schema"), NOTHING),
        "random_state": SEED,
    }
    # the keyword-only arguments of `_recourse`: options of `recourse` and `plans` at each request
    options: ClassVar[tuple[str, ...]] = ()
    # what each of them may be, besides None, which means "as fitted"
    allowed_options: ClassVar[dict[str, Allowed]] = {"safety": SAFETY}
    # the numbers that `fit` chooses and reports show; "gamma" names the attribute `gamma_`
    chosen: ClassVar[tuple[str, ...]] = ()
    # parameters that are dataclasses, so that a model file can name their fields and nothing else
    _records: ClassVar[dict[str, type[Any]]] = {}
    # whether a model file holds training rows with their outcomes, so that it can make promises
    _keeps_outcomes: ClassVar[bool] = False
    # whether the method itself hides protected features and recomputes derived ones; any other
    # method is given rows in which protected features have the same value for everybody
    _knows_roles: ClassVar[bool] = False
    # whether `_fit` wants more rejected and accepted rows of a table that is too long to be held,
    # although all its rows together are then no even sample (see `TrainingRows.even`)
    _takes_more: ClassVar[bool] = False

    safety: float = 0.5
    fitted_: bool = False  # False also after a fit that failed halfway
    policy_: Policy | None = None  # in force in every verb; see `Policy.applied_to`
    verifier_: Verifier | None = None
    fit_report_: Mapping[str, Any] = MappingProxyType({})  # how the fit went; empty: no report

    def __new__(cls, *_: Any, **params: Any) -> Self:
        check_params(cls, params)  # before Python refuses an unknown name in its own words
        return super().__new__(cls)

    def __init__(
        self, classifier: Any = None, schema: Schema | None = None, *, random_state: int = 0
    ):
        self.classifier = classifier
        self.schema = schema
        self.random_state = random_state

    def __sklearn_clone__(self) -> Method:
        # scikit-learn's clone would forget what a fitted classifier has learned
        return type(self)(**self.get_params(deep=False))

    # ---- what an author writes ------------------------------------------------------------------

    @abstractmethod
    def _fit(self, rows: TrainingRows) -> None:
        """Learn from the training rows; learned attributes end in an underscore."""

    @abstractmethod
    def _recourse(self, Z: Array, noise: KeyedNoise) -> Array:
        """Return Z_plus (n, D), the best attempt for each rejected person in Z (n, D).

        Name the keyword-only arguments in `options`: they become options of each request.
        """

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what `_fit` learned, for a model file: plain values, and arrays."""
        raise UserError(f"{self._where('save')}: {type(self).__name__} has no _state and _restore")

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Invert `_state`; the parameters and `problem_` are already there."""
        raise UserError(f"{self._where('load')}: {type(self).__name__} has no _state and _restore")

    def _reason(self, Z: Array) -> np.ndarray:
        """Return (n,) a code for why a row of Z has no recourse that h accepts."""
        return np.full(len(Z), "not-accepted", dtype=object)

    def propose(self, Z: Array, noise: KeyedNoise, n: int, **options: Any) -> Proposals:
        """Return the x_plus of rejected people that plans are chosen from, `_recourse`'s first.

        A method that has more to choose from overrides this.
        """
        rules = options.get("rules")
        found = self.problem_.legal(Z, self._recourse(shown_to(self, Z), noise, **options), rules)
        F_plus = self.problem_.encoder.to_features(found)[:, None, :]
        return Proposals(F_plus, 1, lambda: self._reason(Z))

    # ---- the verbs -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a table.

        X: a DataFrame of pandas or polars, a pyarrow Table, or an array whose columns are those of
        the schema. From then on the classifier's model is shown tables of this kind. For a table of
        any length a Parquet file, a folder of Parquet files, a list of batches, or a function that
        returns an iterator of them (see `hold`).
        y: the outcomes in the data, or the name of their column; None: h's own decisions are used.
        """
        self.fitted_, started = False, time.perf_counter()
        check_settings(self._where("fit"), self)
        outcome, seed = y if isinstance(y, str) else None, self.random_state
        kind, X, y, held = training_table(X, y, self.schema, seed, self._where("fit"))
        schema = Schema.infer(X) if self.schema is None else self.schema.as_in(X)
        encoder = TableEncoder(schema).fit(X)
        X = X[schema.columns]
        if y is not None and not hasattr(y, "__len__"):
            raise UserError(f"{self._where('fit')}: y is {shown(y)}; give one outcome for each row")
        if y is not None and len(y) != len(X):
            raise UserError(f"{self._where('fit')}: X has {len(X)} rows but y has {len(y)}")
        h = _trained(self, X, y, schema)
        places = np.linspace(0, len(X) - 1, min(len(X), N_PROBES)).astype(int)
        self.problem_ = Problem.of(encoder, h, X.iloc[places].copy(), kind)
        self.schema_, self.classifier_ = schema, self.problem_.classifier
        if self.policy_ is not None:  # fitted again: the policy stays in force
            self.policy_.check_fitted(self)
        scores = self.classifier_.score(X)
        self._probe_scores = scores[places]
        _warn_if_unsteady(self._where("fit"), self.problem_, self._probe_scores)
        if y is None:
            favourable = scores > self.classifier_.cutoff
        else:
            favourable = self.classifier_.is_favourable(y)
        for warning in role_warnings(self.problem_, X):
            warnings.warn(f"{self._where('fit')}: {warning}", stacklevel=2)
        F, confidence = encoder.features(X), self.classifier_.confidence(scores)
        rows = TrainingRows(encoder.from_features(F), F, favourable, confidence)
        shown_rows = rows_shown_to(self, rows)
        log_rows(type(self).__name__, shown_rows, self.get_params(deep=False))
        self.planning_ = PlanningData.learn(
            F, shown_rows, self.problem_, self.random_state, has_outcomes=y is not None
        )
        self.planning_.keeps_rows = self._keeps_outcomes
        if held is not None and not held.is_whole and self._takes_more:
            shown_rows = rows_shown_to(self, with_others(rows, held, outcome, self.problem_))
        self._fit(shown_rows)
        if held is not None and not held.is_whole:
            read = {"rows": {"found": held.seen, "held": len(held.rows)}}
            self.fit_report_ = {**self.fit_report_, **read}
        if self._keeps_outcomes and self.verifier_ is not None:  # then a loaded one can do it, too
            self.planning_.retrain(y, self.problem_, self.random_state)
            self.fit_report_ = {**self.fit_report_, "voters": self.planning_.voters}
        self.fitted_ = True
        chosen = {name: getattr(self, f"{name}_", None) for name in self.chosen}
        log_choices(type(self).__name__, chosen, self.fit_report_, started)
        return self

    def recourse(
        self,
        X: Frame,
        *,
        rules: Any = None,
        status: bool = False,
        errors: str = "status",
        **options: Unpack[Options],
    ) -> Frame:
        """Return one row for each row of X, with the same index, columns and dtypes.

        X: a table of any kind that `fit` reads; what is returned is of the same kind.

        People whom h accepts are returned unchanged. The x_plus of the others may be one that h
        still rejects: a warning counts them. Invalid recourse is never encoded as NaN. A row that
        cannot be read is returned unchanged with a warning, and so is a column that the schema does
        not know.

        rules: come on top of the schema's rules and of the policy in force (GenRe and
        NearestNeighbour). status: add the column `status` of `assess` instead of the warnings.
        errors: "raise": a row that cannot be read is a UserError.
        options: of this call, for methods that have any (GenRe: `lam`, `temperature`, `sigma`,
        `n_draws`, `safety`); None: as fitted.
        """
        asked = options if rules is None else {**options, "rules": rules}
        self.check_ready("recourse", asked)
        check_values(self._where("recourse"), {"errors": errors}, {"errors": ROW_ERRORS})
        table = to_pandas(X, self.schema_)
        problem, read = self.problem_, self.problem_.read_each(table, errors)
        if status:
            _check_room(self._where("recourse"), X, table)
        people, rules = read.people, read.rules(rules, table.index)
        compiled = book_in_force(self.policy_, rules, people)
        Z, Z_plus, rejected = people.Z, people.Z.copy(), np.flatnonzero(people.rejected)
        for places, mine in split_by_rules(compiled, rejected):
            rows = rejected[places]
            ruled: dict[str, Any] = {}
            if mine is not None and "rules" in self.options:
                ruled["rules"] = mine
            noise = KeyedNoise(self.random_state)
            found = self._recourse(shown_to(self, Z[rows]), noise, **{**options, **ruled})
            Z_plus[rows] = problem.legal(Z[rows], found, mine)
        X_plus = problem.encoder.decode(Z_plus, like=read.X, F_like=people.F)
        if status:
            assessed = _assessed(self, people, problem.read(X_plus), compiled)
            column = np.full(len(table), "unreadable", dtype=object)
            column[read.rows] = assessed["status"].to_numpy()
            whole = _in_place(table, read.rows, X_plus).assign(status=column)
            return in_place(whole, X, table, problem.schema.columns)
        if read.faults:
            _warn_of_unreadable(self._where("recourse"), read, table.index)
        _warn_if_rejected(self, Z[rejected], X_plus.iloc[rejected], Z_plus[rejected])
        whole = _in_place(table, read.rows, X_plus)
        return in_place(whole, X, table, problem.schema.columns)

    def assess(
        self,
        X: Any,
        X_plus: Any,
        rules: Any = None,
        *,
        errors: str = "status",
    ) -> pd.DataFrame:
        """Return what recourse did for each person: status, scores, cost, number of changes.

        A pandas DataFrame, whatever the kind of X and X_plus.

        status: `already-accepted`; `ok` if h accepts x_plus and no rule is broken; `unreadable`,
        with no numbers, if x or x_plus cannot be read; otherwise `rule-broken`, `not-accepted`, or
        a reason that the method itself knows. errors: "raise": such a row is a UserError.
        """
        self.check_ready("assess", {})
        where = self._where("assess")
        check_values(where, {"errors": errors}, {"errors": ROW_ERRORS})
        X, X_plus = (to_pandas(each, self.schema_) for each in (X, X_plus))
        read, read_plus = (self.problem_.read_each(each, errors) for each in (X, X_plus))
        if len(X) != len(X_plus):
            raise UserError(f"{where}: X has {len(X)} rows but X_plus has {len(X_plus)}")
        both = np.intersect1d(read.rows, read_plus.rows)
        before = read.people.take(np.searchsorted(read.rows, both))
        after = read_plus.people.take(np.searchsorted(read_plus.rows, both))
        rules = read.rules(rules, X.index)
        if rules is not None and len(both) < len(read.rows):
            rules = read_rules(rules).only(before.X.index)
        compiled = book_in_force(self.policy_, rules, before)
        found = _assessed(self, before, after, compiled)
        if len(both) == len(X):
            return found
        found = found.set_axis(both).reindex(np.arange(len(X)))
        return found.fillna({"status": "unreadable"}).set_axis(X.index)

    # ---- model files -----------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str], policy: Policy | None = None) -> None:
        """Write what was learned to a folder, as data: `genrecourse.load` reads it.

        policy: the policy to be in force once it is loaded; None: the one in force now.

        The folder holds training rows: 64 of them, and the rows that the method keeps (GenRe and
        nearest neighbours: up to 10,000 with their outcomes, for promises). A classifier that is
        not the library's own is not stored; give it again at load.
        """
        self.check_ready("save", {})
        if policy is not None:
            policy.check_fitted(self)
        artifact.write(folder, *_packed(self, policy or self.policy_))

    @classmethod
    def restored(
        cls,
        meta: dict[str, Any],
        arrays: dict[str, np.ndarray],
        classifier: Any,
        policy: Policy | str | os.PathLike[str] | None = None,
        *,
        is_same: bool = False,
    ) -> Self:
        """Return the method that `save` was called on, from what `artifact.read` returns.

        policy: another policy than the one in the file; see `load`. is_same: the classifier is
        known to be the one that it was fitted with, and is not asked.
        """
        schema = artifact.unpack_schema(meta["schema"])
        encoder = artifact.unpack_encoder(meta["encoder"])
        probe = artifact.unpack_table(meta["probe"]["rows"])
        scores = np.array(meta["probe"]["scores"], dtype=np.float64)
        kind = check_kind(meta["probe"].get("kind", PANDAS), "the model file")
        h = artifact.unpack_classifier(
            meta["classifier"],
            artifact.within("classifier", arrays),
            classifier,
            probe,
            None if is_same else scores,
            kind,
        )
        problem = Problem.of(encoder, h, probe, kind)
        method = cls(**unpack_params(meta["params"], cls._records, schema, problem.classifier))
        method.problem_, method.schema_ = problem, schema
        method.classifier_, method._probe_scores = problem.classifier, scores
        groups = {name: artifact.within(name, arrays) for name in GROUPS}
        method.planning_ = PlanningData.from_arrays(groups, problem, method.random_state)
        method.policy_ = Policy.unpack(meta["policy"]) if meta.get("policy") else None
        method._restore(unpack(meta["state"]), artifact.within("state", arrays))
        if meta.get("voters"):  # older files have none
            method.planning_.why_stand_ins = str(meta["voters"].get("why", ""))
            method.fit_report_ = {**method.fit_report_, "voters": dict(meta["voters"])}
        method.fitted_ = True
        return method if policy is None else read_policy(policy).applied_to(method)

    def kept_rows(self) -> Array | None:
        """Return (n, D) training rows of accepted people that a model file holds, or None.

        Protected features are hidden in them.
        """
        if self.verifier_ is None:
            return None
        return self.problem_.protected.hide_encoded(np.concatenate(self.verifier_.like_))

    # ---- pickle ----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return what pickle stores, for processes that share a method (joblib, Ray, Spark).

        What was learned is stored as in a model file. The parameters, and with them a classifier of
        the user's, are pickled as they are.
        """
        if not _is_packable(self):
            return dict(vars(self))
        h = self.classifier_
        ours = type(h.model) is MLP and h.encoder is not None
        return {
            "params": self.get_params(deep=False),
            "classifier": None if ours else h,
            "files": artifact.to_bytes(*_packed(self, self.policy_)),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "files" not in state:
            self.__dict__.update(state)
            return
        meta, arrays = artifact.from_bytes(state["files"])
        made = type(self).restored(meta, arrays, state["classifier"], is_same=True)
        self.__dict__.update(vars(made) | state["params"])

    def __copy__(self) -> Self:  # it shares what was learned, without a way through bytes
        made = type(self).__new__(type(self))
        made.__dict__.update(vars(self))
        return made

    # ---- checks ----------------------------------------------------------------------------------

    def check_ready(self, verb: str, options: Mapping[str, Any]) -> None:
        """Raise an error if the method is not fitted or does not take an option at a request.

        A subclass adds checks of the options' values.
        """
        if not self.fitted_:
            raise UserError(f"{self._where(verb)}: call fit(X, y) first")
        unknown = [name for name in options if name not in self.options]
        if unknown:
            raise UserError(
                f"{self._where(verb)}: no option {shown(unknown)}"
                f"{did_you_mean(unknown[0], self.options)} at a request; {type(self).__name__} "
                f"takes {list(self.options) or 'none'}"
            )
        given = {name: value for name, value in options.items() if value is not None}
        check_values(self._where(verb), given, allowed_in(type(self), "allowed_options"))

    def _where(self, verb: str) -> str:
        return f"{type(self).__name__}.{verb}"


# ---- model files and pickles ---------------------------------------------------------------------


def _packed(method: Method, policy: Policy | None) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what a model file holds: plain values, and arrays."""
    state, arrays = method._state()
    h, weights = artifact.pack_classifier(method.classifier_)
    params = pack_params(method.get_params(deep=False))
    params["schema"] = method.schema is not None
    given = Classifier.wrap(method.classifier)
    params["classifier"] = None if method.classifier is None else given.is_fitted
    kind = method.problem_.kind
    meta = {
        "method": type(method).__name__,
        "params": params,
        "schema": artifact.pack_schema(method.schema_),
        "encoder": artifact.pack_encoder(method.problem_.encoder),
        "classifier": h,
        "probe": {
            "rows": artifact.pack_table(method.problem_.probe),
            "scores": pack(method._probe_scores),
            **({} if kind == PANDAS else {"kind": kind}),
        },
        "state": pack(state),
        "policy": {} if policy is None else policy.pack(),
        "voters": dict(method.fit_report_.get("voters", {})),
    }
    arrays = {**artifact.under("state", arrays), **artifact.under("classifier", weights)}
    for name, group in method.planning_.arrays(with_outcomes=method._keeps_outcomes).items():
        arrays |= artifact.under(name, group)
    return meta, arrays


def _is_packable(method: Method) -> bool:
    """Whether there is something learned that a model file can hold."""
    return method.fitted_ and type(method)._state is not Method._state


# ---- what recourse did ---------------------------------------------------------------------------


def _assessed(
    method: Method, before: People, after: People, compiled: RuleBook | None
) -> pd.DataFrame:
    """Return what `assess` returns. compiled: the rules of the policy and the request, if any."""
    problem = method.problem_
    in_force = compiled or problem.rules
    reason = np.where(after.rejected, method._reason(before.Z), "ok")
    reason = np.where(in_force.feasible(before.F, after.F), reason, "rule-broken")
    changed = ~unchanged(before.F, after.F) & ~problem.rules.derived.mask
    return pd.DataFrame(
        {
            "status": np.where(before.rejected, reason, "already-accepted"),
            "score": before.score,
            "score_plus": after.score,
            "cost": problem.cost(before.Z, after.Z),
            "changes": changed.sum(axis=1),
        },
        index=before.X.index,
    )


def _in_place(X: pd.DataFrame, rows: np.ndarray, X_plus: pd.DataFrame) -> pd.DataFrame:
    """Return the table X with X_plus in these rows; X_plus may lack columns of X."""
    if len(rows) == len(X):
        same = len(X_plus.columns) == len(X.columns)
        return X_plus if same else X.assign(**{str(name): X_plus[name] for name in X_plus})
    left = np.delete(np.arange(len(X)), rows)
    back = np.argsort(np.concatenate([rows, left]))
    whole = {
        str(name): _joined(X_plus[name], X[name].iloc[left]).iloc[back].set_axis(X.index)
        for name in X_plus.columns
    }
    return X.assign(**whole)


def _joined(found: pd.Series, left: pd.Series) -> pd.Series:
    """Return x_plus of some people and the cells of those who cannot be read, in one dtype."""
    if left.dtype == object or found.dtype == left.dtype:
        found = found.astype(left.dtype)
    else:
        left = left.astype(found.dtype)  # a value of a plan has made the column wider
    cells = [found.reset_index(drop=True), left.reset_index(drop=True)]
    return pd.concat([each for each in cells if len(each)], ignore_index=True)


def _check_room(where: str, given: Any, X: pd.DataFrame) -> None:
    if isinstance(given, np.ndarray):
        raise UserError(
            f"{where}: an array has no room for a column 'status'; use assess(X, recourse(X)) for "
            "the status"
        )
    if "status" in X.columns:
        raise UserError(
            f"{where}: the table has a column 'status' of its own; use assess(X, recourse(X)) for "
            "the status"
        )


def _warn_of_unreadable(where: str, read: ReadRows, index: pd.Index) -> None:
    """Warn about rows that are returned as they are because they cannot be read."""
    row, fault = next(iter(read.faults.items()))
    many, label = len(read.faults), shown(plain(index[row]))
    warnings.warn(
        f"{where}: {many:,} of {counted(len(index), 'row')} cannot be read and "
        f"{'is' if many == 1 else 'are'} returned unchanged (first: index {label}: "
        f"{fault_in_words(fault, english())}); recourse(X, status=True) says which these are, "
        "and recourse(X, errors='raise') refuses such a table",
        RowsUnreadable,
        stacklevel=stacklevel_of_caller(),
    )


def _warn_if_rejected(method: Method, Z: Array, X_plus: pd.DataFrame, Z_plus: Array) -> None:
    """Warn if h rejects some of these x_plus of people Z whom it rejected.

    h is asked once about equal rows, and not about people who stay as they are.
    """
    moved = np.flatnonzero((Z_plus != Z).any(axis=1))
    left = len(Z) - len(moved)
    if len(moved):
        _, first, count = np.unique(Z_plus[moved], axis=0, return_index=True, return_counts=True)
        some, h, problem = moved[first], method.classifier_, method.problem_
        table = X_plus[problem.schema.columns].iloc[some]
        left += int(count[h.score_rows(table, Z_plus[some], problem.encoder) <= h.cutoff].sum())
    if left:
        warnings.warn(
            f"{type(method).__name__}.recourse: h still rejects {left:,} of the "
            f"{counted(len(X_plus), 'row')} that it rejected before; `plans` shows only changes "
            "that h accepts, or why there are none, and recourse(X, status=True) says which rows "
            "these are",
            StillRejected,
            stacklevel=stacklevel_of_caller(),
        )


# ---- fit -----------------------------------------------------------------------------------------


def _warn_if_unsteady(where: str, problem: Problem, scores: Array) -> None:
    """Warn if h gives some probe rows other scores than it gave them among all training rows.

    It is asked about the middle ones: among them, a row's rank or its share of the range differs.
    """
    h = problem.classifier
    if type(h.model) is MLP:  # the library's own
        return
    low, high = h.score_range
    some = np.argsort(scores, kind="stable")[len(scores) // 4 :][: -(-len(scores) // 2)]
    again = h.score(problem.probe.iloc[some])
    differ = answers_alike(scores[some], again, h.cutoff, SAME_SCORE * (high - low))
    if differ:
        warnings.warn(
            f"{where}: the classifier answers differently about the same row: asked twice about "
            f"{counted(len(some), 'training row')}, {differ}. It may reject a plan that it "
            "accepted when the plan was made; let its score depend on the row alone (fix its seed, "
            "and use nothing of the other rows)",
            stacklevel=stacklevel_of_caller(),
        )


def _trained(method: Method, X: pd.DataFrame, y: Any, schema: Schema) -> Classifier:
    """Return the method's classifier, trained on X and y if it is not fitted yet."""
    wrapped = Classifier.wrap(method.classifier)
    if wrapped.is_fitted:
        return wrapped
    if y is None:
        raise UserError(
            f"{type(method).__name__}.fit: without a classifier, fit needs the outcomes y to "
            "train one"
        )
    return fit_mlp(
        X,
        y,
        schema,
        favourable=wrapped.favourable,
        cutoff=wrapped.cutoff,
        seed=method.random_state,
        progress=method.get_params(deep=False).get("progress", False),
    )


def role_warnings(problem: Problem, X: pd.DataFrame) -> list[str]:
    """Return warnings about roles of the schema that h or the table contradicts.

    >>> import pandas as pd
    >>> from genrecourse.methods.nearest import NearestNeighbour
    >>> X = pd.DataFrame({"income": range(80)})
    >>> role_warnings(NearestNeighbour(lambda X: X["income"] / 80).fit(X).problem_, X)
    []
    """
    found = [
        f"{use.sentence}. It is protected: plans keep each person's own value, but the decision "
        "depends on it"
        for use in protected_used_by(problem.classifier, problem.schema, X)
    ]
    return found + problem.schema.lint_formulas(X)


# ---- what a method sees, and its parameters ------------------------------------------------------


def shown_to(method: Method, Z: Array) -> Array:
    """Return rows of Z as `_recourse` of a method may see them.

    Unless the method knows roles, protected features have the same value for everybody.

    >>> from genrecourse.methods.growing_spheres import GrowingSpheres
    >>> X = pd.DataFrame({"income": range(80), "sex": [0, 0, 0, 1] * 20})
    >>> schema = Schema.infer(X).with_feature("sex", role="protected")
    >>> method = GrowingSpheres(lambda X: X["income"] / 80, schema).fit(X)
    >>> shown_to(method, np.array([[0.5, 0.0], [0.5, 1.0]]))
    array([[0.5, 0. ],
           [0.5, 0. ]])
    """
    problem = method.problem_
    if method._knows_roles or not problem.protected:
        return Z
    F = problem.without_protected(problem.encoder.to_features(Z))
    return problem.encoder.from_features(F)


def rows_shown_to(method: Method, rows: TrainingRows) -> TrainingRows:
    """Return training rows as `_fit` of a method may see them, as `shown_to` does.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> from genrecourse.methods.growing_spheres import GrowingSpheres
    >>> method = GrowingSpheres()
    >>> method.problem_, rows = example_rows()
    >>> rows_shown_to(method, rows) is rows  # no feature is protected
    True
    """
    if method._knows_roles or not method.problem_.protected:
        return rows
    F = method.problem_.without_protected(rows.F)
    return replace(rows, Z=method.problem_.encoder.from_features(F), F=F)


def with_configs(kind: type[Method], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters in which each config that is a dict of its fields is the config.

    >>> from genrecourse.methods.revise import Revise
    >>> with_configs(Revise, {"vae": {"n_latent": 3}})["vae"].n_latent
    3
    """
    made = dict(params)
    for name, config in kind._records.items():
        if isinstance(made.get(name), dict):
            check_params(config, made[name])
            made[name] = config(**made[name])
    return made


# ---- several rows for each -----------------------------------------------------------------------


def long_like(table: pd.DataFrame, given: Any, read: pd.DataFrame) -> Any:
    """Return the table of `long_frame` in the kind of the one that was given.

    A frame without an index has the columns `row` and `draw` (or `choice`) first. An array has no
    labels; its rows are in the same order. read: what `to_pandas` made of the given table.

    >>> X = pd.DataFrame({"income": [10, 20]})
    >>> table = pd.DataFrame({"income": [11, 12, 21, 22]}, index=long_index(X, 2, "draw"))
    >>> long_like(table, X, X) is table, long_like(table, X.to_numpy(), X).shape
    (True, (4, 1))
    """
    if isinstance(given, pd.DataFrame | np.ndarray):
        return like(table, given, read)
    labels = table.index.to_frame(index=False)
    twice = [name for name in labels.columns if name in table.columns]
    if twice:
        raise UserError(
            f"the table has a column {shown(twice[0])} of its own, where the answer says which "
            "row each belongs to; rename it"
        )
    return like(pd.concat([labels, table.reset_index(drop=True)], axis=1), given, read)


def long_frame(encoder: TableEncoder, X: pd.DataFrame, Z_plus: Array, name: str) -> pd.DataFrame:
    """Return k rows of Z_plus for each row of X, as a table indexed (row, name).

    >>> X = pd.DataFrame({"income": [10, 20]}, index=["a", "b"])
    >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
    >>> table = long_frame(encoder, X, np.array([[0.0], [1.0], [0.0], [1.0]]), "draw")
    >>> table["income"].to_dict()
    {('a', 0): 10, ('a', 1): 20, ('b', 0): 10, ('b', 1): 20}
    """
    k = len(Z_plus) // max(1, len(X))
    like = X.iloc[np.repeat(np.arange(len(X)), k)]
    nobody = np.zeros((0, len(encoder.schema))) if len(like) == 0 else None
    table = encoder.decode(Z_plus, like=like, F_like=nobody)
    table.index = long_index(X, k, name)
    return table


def long_index(X: pd.DataFrame, k: int, name: str) -> pd.MultiIndex:
    """Return the index (row, name) for k rows for each row of X.

    >>> long_index(pd.DataFrame(index=["a", "b"]), k=2, name="draw").tolist()
    [('a', 0), ('a', 1), ('b', 0), ('b', 1)]
    """
    places = np.tile(np.arange(k), len(X))
    return pd.MultiIndex.from_arrays([X.index.repeat(k), places], names=["row", name])
