"""The protocol: one case (data, labels, h, judge, people) for a seed, and how a method is scored.

A seed decides the forest, the drawn labels, h, the test rows and the method. `nested=True` makes
the same case from training rows alone, for development: nothing of it touches a test row.

`measure` gives one number a person and metric, `evaluate` the tidy rows of one run, and
`base_rates` what accepted people themselves would get, to read those rows by.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.data.datasets import Dataset, load_dataset
from genrecourse.errors import UserError
from genrecourse.evaluation.gold import TrueJudge, Witnesses
from genrecourse.evaluation.metrics import METRICS, Outcome
from genrecourse.genre.pairs import cost_blocks
from genrecourse.genre.targets import make_targets
from genrecourse.methods.base import Method
from genrecourse.model.classifier import Classifier, MLPConfig, fit_mlp
from genrecourse.rules.book import RuleBook
from genrecourse.rules.problem import reading, same_layout
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import TOLERANCE, Array, TableEncoder
from genrecourse.table.schema import Feature, Schema
from genrecourse.trust.judge import CrossFittedJudge, Judge, fit_lof
from genrecourse.trust.neighbours import Neighbours

# Streams of random numbers of a case, apart from those that a method makes of the same seed: a
# verifier that holds retrained copies of h must not hold the very copies that judge it.
PROTOCOL, NESTED, RETRAINED, ACCEPTED = 1, 2, 71_993, 71_999
OTHER_HIDDEN = ((32, 32), (64, 64))  # layers of an h of other architecture: the first that differs
LOF_NEIGHBOURS = 20
BASE_ROWS = 1000
BASE_METRICS = (
    "val",
    "soft_val",
    "lof",
    "val_oof",
    "lof_20",
    "knn_distance",
    "noise",
    "h_noise",
    "retrained_seed",
    "retrained_bootstrap",
    "retrained_architecture",
)
NO_SUCH_LEVEL = -1.0  # in F: a cell that holds none of its feature's categories


@dataclass(frozen=True)
class Case:
    """What the protocol hands out. A method may see X, y, h and schema; the rest is for us."""

    name: str
    seed: int
    schema: Schema
    X: pd.DataFrame  # training rows
    y: np.ndarray  # labels drawn from the gold forest
    h: Classifier
    people: pd.DataFrame  # rejected test rows
    judge: Judge
    encoder: TableEncoder
    h_accuracy: float  # on drawn test labels
    h_config: MLPConfig  # how h was trained
    judge_rows: Array  # of Z, training and test: what the gold judge was fitted on ...
    judge_labels: np.ndarray  # ... and their real outcomes


def with_schema(case: Case, schema: Schema) -> Case:
    """The same case for methods that are held to other rules; its judge reads the same columns."""
    encoder = TableEncoder(schema).fit(case.X)
    if not same_layout(encoder, case.encoder):
        raise UserError(
            f"the judge of '{case.name}' cannot read rows by this schema: it lays features out "
            "otherwise than the data set's; keep its names, kinds and categories"
        )
    return replace(case, schema=schema, encoder=encoder)


def make_case(
    name: str,
    seed: int,
    *,
    rows: int | None = 200,
    nested: bool = False,
    h_config: MLPConfig | None = None,
) -> Case:
    """Sections 1-4 of the protocol. rows: how many rejected test rows; None: all of them."""
    data = load_dataset(name, seed=seed)
    X_train, y_train, X_test, y_test = _parts(data, seed, nested)
    encoder = TableEncoder(data.schema).fit(X_train)
    Z_train, Z_test = encoder.encode(X_train), encoder.encode(X_test)
    judge_rows, judge_labels = np.concatenate([Z_train, Z_test]), np.concatenate([y_train, y_test])
    judge = Judge(seed)
    if data.truth is not None:  # validity is exact, and no forest need stand in for it
        judge = TrueJudge(data.truth, encoder, X_train)
    judge.fit(judge_rows, judge_labels)
    rng = np.random.default_rng([seed, PROTOCOL])
    drawn = (rng.random(len(X_train)) < judge.probability(Z_train)).astype(int)
    drawn_test = (rng.random(len(X_test)) < judge.probability(Z_test)).astype(int)
    h_config = h_config or data.h_config
    h = fit_mlp(X_train, drawn, data.schema, config=h_config, seed=seed)
    accepted = h.accepts(X_test)
    rejected = rng.permutation(np.flatnonzero(~accepted))[:rows]
    return Case(
        name,
        seed,
        data.schema,
        X_train,
        drawn,
        h,
        X_test.iloc[rejected],
        judge,
        encoder,
        float((accepted == drawn_test).mean()),
        h_config,
        judge_rows,
        judge_labels,
    )


def _parts(
    data: Dataset, seed: int, nested: bool
) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    if not nested:
        return data.X_train, data.y_train.to_numpy(), data.X_test, data.y_test.to_numpy()
    order = np.random.default_rng([seed, NESTED]).permutation(len(data.X_train))
    cut = len(order) * 3 // 4
    fit, test = order[:cut], order[cut:]
    X, y = data.X_train, data.y_train.to_numpy()
    return X.iloc[fit], y[fit], X.iloc[test], y[test]


# ---- witnesses ------------------------------------------------------------------------------


def witnesses(case: Case) -> Witnesses:
    """Those whom the further metrics ask. It trains h three times and 25 forests: once a case."""
    cost = Cost(case.encoder)
    accepted = np.unique(case.judge_rows[case.judge.valid(case.judge_rows)], axis=0)
    out_of_fold = CrossFittedJudge(
        case.seed, balanced=True, min_leaf=1, calibrated=True, copies_together=True
    )
    return Witnesses(
        retrained={name: _decides(case, h) for name, h in _retrained(case)},
        out_of_fold=out_of_fold.fit(case.judge_rows, case.judge_labels),
        accepted=Neighbours(accepted, cost),
        lof=fit_lof(accepted, LOF_NEIGHBOURS),
        training=Neighbours(case.encoder.encode(case.X), cost),
        favourable=case.y == 1,
    )


def _retrained(case: Case) -> Iterable[tuple[str, Classifier]]:
    """h as it would be after another day's training: the recipe stays, one thing differs."""
    rng = np.random.default_rng([case.seed, RETRAINED])
    rows = rng.integers(len(case.X), size=len(case.X))
    hidden = next(layers for layers in OTHER_HIDDEN if layers != case.h_config.hidden)
    variants = {
        "seed": (case.X, case.y, case.h_config),
        "bootstrap": (case.X.iloc[rows].reset_index(drop=True), case.y[rows], case.h_config),
        "architecture": (case.X, case.y, replace(case.h_config, hidden=hidden)),
    }
    for name, (X, y, config) in variants.items():
        seed = int(rng.integers(2**31))
        yield name, fit_mlp(X, y, case.schema, config=config, seed=seed)


@dataclass(frozen=True)
class Decision:
    """h's decision on rows of a case's Z, also where h has a scale of its own."""

    h: Classifier
    encoder: TableEncoder
    like: pd.DataFrame  # lends its dtypes

    def __call__(self, Z: Array) -> np.ndarray:
        return self.h.score_encoded(Z, self.encoder, self.like) > self.h.cutoff


def _decides(case: Case, h: Classifier) -> Decision:
    return Decision(reading(h, case.encoder), case.encoder, case.X.iloc[:1])


# ---- measures -------------------------------------------------------------------------------


def measure(
    case: Case,
    X_plus: pd.DataFrame,
    witnesses: Witnesses | None = None,
    log_prob: Any = None,
) -> dict[str, np.ndarray]:
    """One number a person for each metric that can be told.

    X_plus: one row for each of the case's people, in their order; NaN throughout where a method
    gave none. log_prob: (N,) log R_theta(x_plus | x), of a method that has a density. Without
    witnesses, what asks them is left out.
    """
    if len(X_plus) != len(case.people):
        raise UserError(
            f"X_plus has {len(X_plus)} rows for {len(case.people)} people; give one row each, NaN "
            "throughout where there is no recourse"
        )
    outcome = _outcome(
        case, case.encoder.features(case.people), _read(case, X_plus), witnesses, log_prob
    )
    return _told(outcome, METRICS)


def _outcome(
    case: Case,
    F: Array,
    F_plus: Array,
    witnesses: Witnesses | None = None,
    log_prob: Any = None,
) -> Outcome:
    known = None if log_prob is None else np.asarray(log_prob, dtype=np.float64)
    return Outcome(
        F, F_plus, _decides(case, case.h), case.encoder, case.judge, witnesses, log_prob=known
    )


def _told(outcome: Outcome, names: Iterable[str]) -> dict[str, np.ndarray]:
    values = {name: METRICS[name][0](outcome) for name in names}
    return {name: v for name, v in values.items() if not np.isnan(v).all()}


def _read(case: Case, X_plus: pd.DataFrame) -> Array:
    """F of x_plus. What the encoder would refuse counts against the method and does not end the
    run: NaN for a cell with nothing to read in it, NO_SUCH_LEVEL for a level that does not exist.
    """
    if sorted(X_plus.columns) != sorted(case.schema.names):
        raise UserError(f"X_plus has the columns {list(X_plus.columns)}, not {case.schema.names}")
    table, shape = {}, (len(X_plus), len(case.schema))
    gone, unknown = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for j, feature in enumerate(case.schema):
        cells, own = _cells(feature, X_plus), _cells(feature, case.people)
        gone[:, j] = cells.isna()
        if feature.is_category:
            unknown[:, j] = ~gone[:, j] & ~cells.isin(feature.categories).to_numpy()
        # x's own cell stands in, which can be read
        table[feature.name] = cells.where(~(gone | unknown)[:, j], own)
    F_plus = case.encoder.features(pd.DataFrame(table))
    F_plus[gone], F_plus[unknown] = np.nan, NO_SUCH_LEVEL
    return F_plus


def _cells(feature: Feature, X: pd.DataFrame) -> pd.Series:
    """One column as floats, or as any objects; what is no number is missing."""
    column = X[feature.name].reset_index(drop=True)
    if feature.is_category:
        return column.astype(object)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return pd.Series(np.where(np.isfinite(numbers), numbers, np.nan))


# ---- tidy rows ------------------------------------------------------------------------------


def evaluate(
    method: Method, case: Case, witnesses: Witnesses | None = None, *, name: str | None = None
) -> pd.DataFrame:
    """Tidy rows of one run: dataset, method, params, seed, metric, value, n and sd.

    method: built around `case.h`; fitted here, on the case's training rows and drawn outcomes, if
    it is not fitted yet. name: what to call it; None: its class.

    value is the mean over the n people of whom the metric can be told, sd the standard deviation
    between them. Two more rows have times: `fit_seconds`, if it was fitted here, n training rows,
    and `row_seconds`, a mean over people.
    """
    took: dict[str, tuple[float, int]] = {}
    if not getattr(method, "_fitted", False):
        started = time.perf_counter()
        method.fit(case.X, case.y)
        took["fit_seconds"] = (time.perf_counter() - started, len(case.X))
    _check_same_h(method, case)
    started = time.perf_counter()
    X_plus = method.recourse(case.people)
    took["row_seconds"] = ((time.perf_counter() - started) / len(X_plus), len(X_plus))
    log_prob = method.log_prob(X_plus, given=case.people) if hasattr(method, "log_prob") else None
    labels: dict[str, Any] = {
        "dataset": case.name,
        "method": name or type(method).__name__,
        "params": params_of(method),
        "seed": case.seed,
    }
    rows = tidy(measure(case, X_plus, witnesses, log_prob), **labels)
    times = [{**labels, "metric": m, "value": v, "n": n} for m, (v, n) in took.items()]
    return pd.concat([rows, pd.DataFrame(times)], ignore_index=True)


def _check_same_h(method: Method, case: Case) -> None:
    """Recourse around another model than the one that it is judged by would mean nothing."""
    h = method.classifier_
    if not np.allclose(h.score(case.people), case.h.score(case.people), atol=1e-6):
        raise UserError(
            f"evaluate: this {type(method).__name__} is built around another classifier than the "
            "case; make it with METHODS[name](case.h, case.schema)"
        )


def params_of(method: Method) -> str:
    """A method's own parameters as JSON, so that they can stand in a cell of a table."""
    params = method.get_params(deep=False)
    own = {k: v for k, v in params.items() if k not in ("classifier", "schema", "seed", "progress")}
    plain = {k: asdict(v) if is_dataclass(v) else v for k, v in own.items()}  # type: ignore[arg-type]
    return json.dumps(plain, sort_keys=True, default=repr)


def tidy(values: Mapping[str, np.ndarray], **labels: Any) -> pd.DataFrame:
    """One row a metric: the labels, metric, value, n and sd. A NaN is nobody's number: n leaves it
    out, and says so."""
    rows = []
    for metric, of_people in values.items():
        known = of_people[~np.isnan(of_people)]
        value, sd = (known.mean(), known.std()) if len(known) else (np.nan, np.nan)
        row = {"metric": metric, "value": float(value), "n": len(known), "sd": float(sd)}
        rows.append({**labels, **row})
    return pd.DataFrame(rows)


def base_rates(
    case: Case, witnesses: Witnesses | None = None, *, rows: int = BASE_ROWS
) -> pd.DataFrame:
    """What people who were accepted get on the same metrics, in `evaluate`'s rows.

    They are training rows whose outcome was favourable and whom gold judge and h accept, a sample
    of at most `rows`. The judges' own rows among them: a copy of such a row gets just as much, and
    nobody could ask more of a plan.
    """
    Z = case.encoder.encode(case.X)
    genuine = np.flatnonzero((case.y == 1) & case.judge.valid(Z) & _decides(case, case.h)(Z))
    if len(genuine) == 0:
        raise UserError(
            f"base_rates: none of {len(Z)} training rows of '{case.name}' has a favourable outcome "
            "and is accepted by both h and the gold judge"
        )
    rng = np.random.default_rng([case.seed, ACCEPTED])
    F = case.encoder.to_features(Z[rng.permutation(genuine)[:rows]])
    return tidy(
        _told(_outcome(case, F, F, witnesses), BASE_METRICS),
        dataset=case.name,
        method="accepted rows",
        params="{}",
        seed=case.seed,
    )


# ---- the ceiling ----------------------------------------------------------------------------


def ceiling(case: Case) -> pd.DataFrame:
    """For each person the nearest training row that gold, LOF and h all accept. Reads the gold:
    a bound on what copying rows can reach, never a method."""
    Z = case.encoder.encode(case.X)
    good = case.judge.valid(Z) & case.judge.inlier(Z) & case.h.accepts(case.X)
    rules = RuleBook.of_schema(case.encoder)
    targets = make_targets(Z[good], case.encoder.to_features(Z[good]), rules, n_bins=10**9)
    F = case.encoder.features(case.people)
    F_plus = F.copy()
    for rows, members, costs in cost_blocks(
        case.encoder.from_features(F), F, targets, rules, Cost(case.encoder)
    ):
        best, place = costs.min(dim=1)
        found = np.isfinite(best.numpy())
        F_plus[rows[found]] = targets.F[members[place.numpy()[found]]]
    return case.encoder.decode(case.encoder.from_features(F_plus), like=case.people)


def summarise(values: dict[str, np.ndarray]) -> dict[str, Any]:
    """Each metric's mean over the people of whom it can be told; n: all of them."""
    return {name: float(np.nanmean(v)) for name, v in values.items()} | {
        "n": len(next(iter(values.values())))
    }


__all__ = [
    "TOLERANCE",
    "Case",
    "base_rates",
    "ceiling",
    "evaluate",
    "make_case",
    "measure",
    "params_of",
    "summarise",
    "tidy",
    "witnesses",
]
