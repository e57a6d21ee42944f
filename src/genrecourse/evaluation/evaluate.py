"""The protocol: make a case (data, labels, h, judge, people) from a seed, and score a method on it.

The seed decides the forest, the drawn labels, h, the test rows and the method. With `nested=True`
the case is made from training rows only, for development: it uses no test row. With `fresh=True`
all rows are pooled and split again.

`measure` returns one number per person and metric. `evaluate` returns the tidy rows of one run.
`base_rates` returns what accepted people themselves get, as a reference for these rows.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.data.datasets import Dataset, load_dataset
from genrecourse.errors import UserError, rejections_expected
from genrecourse.evaluation.gold import GoldJudge, TrueJudge, Witnesses
from genrecourse.evaluation.metrics import METRICS, Outcome
from genrecourse.genre.pairs import cost_blocks
from genrecourse.genre.targets import make_targets
from genrecourse.methods.abilities import HasDensity
from genrecourse.model.classifier import Classifier, MLPConfig, fit_mlp
from genrecourse.rules.book import RuleBook
from genrecourse.rules.problem import reading, same_layout
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder
from genrecourse.trust.judge import CrossFittedJudge, Judge, fit_lof
from genrecourse.trust.neighbours import Neighbours

if TYPE_CHECKING:
    from genrecourse.methods.base import Method
    from genrecourse.table.schema import Feature, Schema

# Random streams of a case. They differ from the streams that a method makes from the same seed: the
# retrained models of a verifier must not be the retrained models that evaluate it.
PROTOCOL, NESTED, FRESH, RETRAINED, ACCEPTED = 1, 2, 4, 71_993, 71_999
OTHER_HIDDEN = ((32, 32), (64, 64))  # another architecture of h: the first that differs
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
NO_SUCH_LEVEL = -1.0  # in F: the cell has none of the categories of its feature


@dataclass(frozen=True)
class Case:
    """Everything about one evaluation. A method may see only X, y, h and schema.

    >>> from genrecourse.evaluation.examples import example_case
    >>> case = example_case()
    >>> len(case.X), len(case.people), case.h.accepts(case.people).tolist()
    (6, 3, [False, False, False])
    """

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
    judge_rows: Array  # rows of Z, training and test, on which the gold judge was fitted
    judge_labels: np.ndarray  # the real outcomes of these rows


def with_schema(case: Case, schema: Schema) -> Case:
    """Return the case with other rules; the judge must be able to read the same columns.

    >>> from genrecourse.evaluation.examples import example_case
    >>> case = example_case()
    >>> with_schema(case, case.schema.with_feature("job", role="immutable")).schema["job"].role
    'immutable'
    """
    encoder = TableEncoder(schema).fit(case.X)
    if not same_layout(encoder, case.encoder):
        raise UserError(
            f"the judge of '{case.name}' cannot read rows of this schema; keep the names, kinds "
            "and categories of the features of the data set"
        )
    return replace(case, schema=schema, encoder=encoder)


def make_case(
    name: str,
    seed: int,
    *,
    rows: int | None = 200,
    nested: bool = False,
    fresh: bool = False,
    h_config: MLPConfig | None = None,
) -> Case:
    """Return the case of a data set and a seed (sections 1-4 of the protocol).

    name: a data set of `load_dataset`.
    rows: how many rejected test rows; None: all of them.
    nested: use training rows only, for development.
    fresh: pool the training and test rows and split them again, by the seed and into the same
        sizes. The fixed test rows have been looked at for long; these people are new.
    h_config: how h is trained; None: as the data set recommends.

    >>> case = make_case("german", seed=0, rows=50)  # doctest: +SKIP
    >>> len(case.people)  # doctest: +SKIP
    50
    """
    data = load_dataset(name, seed=seed)
    X_train, y_train, X_test, y_test = split_rows(data, seed, nested=nested, fresh=fresh)
    encoder = TableEncoder(data.schema).fit(X_train)
    Z_train, Z_test = encoder.encode(X_train), encoder.encode(X_test)
    judge_rows, judge_labels = np.concatenate([Z_train, Z_test]), np.concatenate([y_train, y_test])
    judge: Judge = GoldJudge(seed)
    if data.truth is not None:  # the true probability is known, so no forest is needed
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


def split_rows(
    data: Dataset, seed: int, *, nested: bool = False, fresh: bool = False
) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Return the training rows of a case, their outcomes, its test rows and their outcomes.

    nested, fresh: as in `make_case`.

    >>> from genrecourse.data.datasets import load_dataset
    >>> X, y, X_test, y_test = split_rows(load_dataset("german"), seed=0, fresh=True)
    >>> len(X), len(y), len(X_test), len(y_test)
    (750, 750, 250, 250)
    """
    if nested and fresh:
        raise UserError("a case is nested or has fresh people, not both; choose one of the two")
    if not nested and not fresh:
        return data.X_train, data.y_train.to_numpy(), data.X_test, data.y_test.to_numpy()
    X, y, cut = data.X_train, data.y_train.to_numpy(), len(data.X_train) * 3 // 4
    if fresh:
        X = pd.concat([X, data.X_test], ignore_index=True)
        y, cut = np.concatenate([y, data.y_test.to_numpy()]), len(data.X_train)
    order = np.random.default_rng([seed, FRESH if fresh else NESTED]).permutation(len(X))
    fit, test = order[:cut], order[cut:]
    return X.iloc[fit], y[fit], X.iloc[test], y[test]


# ---- witnesses ------------------------------------------------------------------------------


def witnesses(case: Case) -> Witnesses:
    """Return the witnesses of a case; this trains h three times and 25 forests.

    >>> found = witnesses(make_case("german", seed=0))  # doctest: +SKIP
    >>> sorted(found.retrained)  # doctest: +SKIP
    ['architecture', 'bootstrap', 'seed']
    """
    cost = Cost(case.encoder, protocol=True)
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
    """Yield models that were trained like h, with one difference each."""
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
    """h's decision on rows of a case's Z, even if h itself uses another encoding.

    >>> from genrecourse.evaluation.examples import example_case
    >>> case = example_case()
    >>> Decision(case.h, case.encoder, case.X.head(1))(case.encoder.encode(case.X))
    array([False,  True, False,  True,  True,  True])
    """

    h: Classifier
    encoder: TableEncoder
    like: pd.DataFrame  # a table with the dtypes that h expects

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
    """Return (N,) numbers for each metric, one per person; metrics that are only NaN are left out.

    X_plus: one row per person of the case, in their order; only NaN if the method found nothing.
    witnesses: without them, the metrics that need them are left out.
    log_prob: (N,) log R_theta(x_plus | x), if the method has a density.

    >>> from genrecourse.evaluation.examples import ANSWERS, example_case
    >>> measure(example_case(), ANSWERS)["cost"].round(2)
    array([0.5 , 1.05,  nan])
    """
    if len(X_plus) != len(case.people):
        raise UserError(
            f"X_plus has {len(X_plus)} rows for {len(case.people)} people; it needs one row per "
            "person, with only NaN if there is no recourse"
        )
    outcome = _outcome(
        case, case.encoder.features(case.people), _read(case, X_plus), witnesses, log_prob
    )
    return _known(outcome, METRICS)


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


def _known(outcome: Outcome, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the metrics that have a number for at least one person."""
    values = {name: METRICS[name][0](outcome) for name in names}
    return {name: v for name, v in values.items() if not np.isnan(v).all()}


def _read(case: Case, X_plus: pd.DataFrame) -> Array:
    """Return F of x_plus, also for cells that the encoder would refuse.

    Such cells count against the method and do not end the run: a cell without a readable value
    becomes NaN, and an unknown level becomes NO_SUCH_LEVEL.
    """
    if sorted(X_plus.columns) != sorted(case.schema.columns):
        raise UserError(
            f"X_plus has the columns {list(X_plus.columns)}; it must have {case.schema.columns}"
        )
    table: dict[str, pd.Series] = {}
    shape = (len(X_plus), len(case.schema))
    gone, unknown = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for j, feature in enumerate(case.schema):
        cells, own = _cells(feature, X_plus), _cells(feature, case.people)
        gone[:, j] = cells.isna()
        if feature.is_category:
            unknown[:, j] = ~gone[:, j] & ~cells.isin(feature.categories).to_numpy()
        # the encoder reads x's own cell instead; the result is overwritten below
        table |= feature.split(cells.where(~(gone | unknown)[:, j], own), case.people)
    F_plus = case.encoder.features(pd.DataFrame(table))
    F_plus[gone], F_plus[unknown] = np.nan, NO_SUCH_LEVEL
    return F_plus


def _cells(feature: Feature, X: pd.DataFrame) -> pd.Series:
    """Return a category as objects, and a number as floats; text in a number becomes NaN."""
    column = feature.values(X).reset_index(drop=True)
    if feature.is_category:
        return column.astype(object)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return pd.Series(np.where(np.isfinite(numbers), numbers, np.nan))


# ---- tidy rows ------------------------------------------------------------------------------


def evaluate(
    method: Method, case: Case, witnesses: Witnesses | None = None, *, name: str | None = None
) -> pd.DataFrame:
    """Return the tidy rows of one run: dataset, method, params, seed, metric, value, n and sd.

    method: made with `case.h`. If it is not fitted yet, it is fitted on the training rows and the
        drawn outcomes of the case.
    witnesses: for the metrics that need them.
    name: the name in the column `method`; None: the name of the class.

    `value` is the mean over the n people for whom the metric is known, `sd` their standard
    deviation. Two more rows have times: `fit_seconds` if the method was fitted here (n: training
    rows), and `row_seconds`, a mean over people.

    >>> from genrecourse.evaluation.examples import example_case
    >>> from genrecourse.methods import METHODS
    >>> case = example_case()
    >>> found = evaluate(METHODS["nnr"](case.h, case.schema), case)
    >>> found.set_index("metric").loc["h_valid", "value"].item()
    1.0
    """
    took: dict[str, tuple[float, int]] = {}
    if not method.fitted_:
        started = time.perf_counter()
        method.fit(case.X, case.y)
        took["fit_seconds"] = (time.perf_counter() - started, len(case.X))
    _check_same_h(method.classifier_, case, type(method).__name__)
    started = time.perf_counter()
    with rejections_expected():
        X_plus = method.recourse(case.people)
    took["row_seconds"] = ((time.perf_counter() - started) / len(X_plus), len(X_plus))
    log_prob = None
    if isinstance(method, HasDensity):
        log_prob = method.log_prob(X_plus, given=case.people)
    labels: dict[str, Any] = {
        "dataset": case.name,
        "method": name or type(method).__name__,
        "params": params_of(method.get_params(deep=False)),
        "seed": case.seed,
    }
    rows = tidy(measure(case, X_plus, witnesses, log_prob), **labels)
    times = [{**labels, "metric": m, "value": v, "n": n} for m, (v, n) in took.items()]
    return pd.concat([rows, pd.DataFrame(times)], ignore_index=True)


def _check_same_h(h: Classifier, case: Case, name: str) -> None:
    """Raise if a method uses another model than the case: its metrics would mean nothing."""
    if not np.allclose(h.score(case.people), case.h.score(case.people), atol=1e-6):
        raise UserError(
            f"evaluate: this {name} uses another classifier than the case; make "
            "it with METHODS[name](case.h, case.schema)"
        )


def params_of(params: Mapping[str, Any]) -> str:
    """Return a method's own parameters as JSON text, for one cell of a table.

    >>> from genrecourse.methods import METHODS
    >>> params_of(METHODS["growing_spheres"](n_draws=50).get_params(deep=False))
    '{"n_draws": 50, "sparse": true, "step": 0.2}'
    """
    given = ("classifier", "schema", "random_state", "progress")  # by the case
    own = {k: v for k, v in params.items() if k not in given}
    plain = {k: asdict(v) if is_dataclass(v) else v for k, v in own.items()}  # type: ignore[arg-type]
    return json.dumps(plain, sort_keys=True, default=repr)


def tidy(values: Mapping[str, np.ndarray], **labels: Any) -> pd.DataFrame:
    """Return one row per metric: the labels, metric, value (the mean), n and sd.

    NaNs are excluded; n counts the rest.

    >>> tidy({"cost": np.array([0.5, 1.5, np.nan])}, method="nnr").to_dict("records")
    [{'method': 'nnr', 'metric': 'cost', 'value': 1.0, 'n': 2, 'sd': 0.5}]
    """
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
    """Return the metrics of accepted people, as rows of `evaluate`.

    The people are a sample of at most `rows` training rows with a favourable outcome that the gold
    judge and h accept. The judge has seen these rows, so their values are an upper reference: a
    plan that copies such a row gets the same values.

    >>> from genrecourse.evaluation.examples import example_case
    >>> base_rates(example_case()).set_index("metric")["value"].round(2).to_dict()
    {'val': 1.0, 'soft_val': 0.85, 'lof': 1.0, 'noise': 1.0, 'h_noise': 1.0}
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
        _known(_outcome(case, F, F, witnesses), BASE_METRICS),
        dataset=case.name,
        method="accepted rows",
        params="{}",
        seed=case.seed,
    )


# ---- the ceiling ----------------------------------------------------------------------------


def ceiling(case: Case) -> pd.DataFrame:
    """Return, for each person, the nearest training row that gold judge, LOF and h all accept.

    This uses the gold judge. It is a bound on what copying training rows can reach, not a method.

    >>> from genrecourse.evaluation.examples import example_case
    >>> ceiling(example_case())["income"].to_dict()
    {'Ada': 70.0, 'Ben': 80.0, 'Cem': 90.0}
    """
    Z = case.encoder.encode(case.X)
    good = case.judge.valid(Z) & case.judge.inlier(Z) & case.h.accepts(case.X)
    rules = RuleBook.of_schema(case.encoder)
    targets = make_targets(Z[good], case.encoder.to_features(Z[good]), rules, n_bins=10**9)
    F = case.encoder.features(case.people)
    F_plus = F.copy()
    for rows, members, costs in cost_blocks(
        case.encoder.from_features(F), F, targets, rules, Cost(case.encoder, protocol=True)
    ):
        best, place = costs.min(dim=1)
        found = np.isfinite(best.numpy())
        F_plus[rows[found]] = targets.F[members[place.numpy()[found]]]
    return case.encoder.decode(case.encoder.from_features(F_plus), like=case.people)


def summarise(values: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the mean of each metric over the people for whom it is known; n counts all people.

    >>> summarise({"cost": np.array([0.5, 1.5, np.nan])})
    {'cost': 1.0, 'n': 3}
    """
    return {name: float(np.nanmean(v)) for name, v in values.items()} | {
        "n": len(next(iter(values.values())))
    }


__all__ = [
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
