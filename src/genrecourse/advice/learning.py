"""From a table of people and their outcomes to a fitted Service.

    task = prepare("german.csv", target="credit", favourable=["good"])
    task.warnings  # what looks wrong about the table
    learned = task.learn()
    learned.service.save("model")

`prepare` checks everything, so that a mistake is found before the learning, which may take long.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from genrecourse.advice.columns import as_seen, outcomes, without_columns
from genrecourse.advice.service import Service
from genrecourse.errors import UserError, did_you_mean, own_warnings
from genrecourse.methods import METHODS
from genrecourse.model.classifier import Classifier
from genrecourse.rules.policy import read_policy
from genrecourse.table.large_tables import hold, is_long
from genrecourse.table.schema import Schema, check_table
from genrecourse.table.table_files import parquet_columns, read_table
from genrecourse.table.text_files import path_of

if TYPE_CHECKING:
    from genrecourse.methods.base import Method
    from genrecourse.rules.policy import Policy
    from genrecourse.table.large_tables import HeldRows


@dataclass(frozen=True)
class Learned:
    """A fitted service, and what there is to say about the fit.

    n_rows, n_accepted: rows of the table, and those that the model accepts.
    n_found: rows of a table that was too long to be held; `n_rows` of them are held.
    notes: the library's warnings during the fit.
    interrupted_at: the step whose weights were kept, if Ctrl-C ended the training; else None.

    >>> table = pd.DataFrame({"income": range(80), "repaid": [0] * 40 + [1] * 40})
    >>> h = Classifier(lambda X: X["income"].to_numpy() / 80)
    >>> learned = prepare(table, target="repaid", classifier=h, method="nnr").learn()
    >>> learned.n_rows, learned.n_accepted
    (80, 39)
    """

    service: Service
    n_rows: int
    n_accepted: int
    n_found: int
    notes: tuple[str, ...] = ()
    interrupted_at: int | None = None


@dataclass(frozen=True)
class LearningTask:
    """A table that was checked, with the method that will learn from it.

    warnings: what looks wrong about the table, in sentences.

    >>> table = pd.DataFrame({"income": range(80), "repaid": [0] * 40 + [1] * 40})
    >>> task = prepare(table, target="repaid", method="nnr")
    >>> type(task.method).__name__, task.y.name
    ('NearestNeighbour', 'repaid')
    """

    method: Method
    X: pd.DataFrame
    y: pd.Series
    policy: Policy | None = None
    warnings: tuple[str, ...] = ()
    long: HeldRows | None = None  # the table with its outcomes, if it is too long to be held

    def learn(self, *, progress: bool = False) -> Learned:
        """Return the fitted service. progress: show a bar, if the method has one."""
        method = self.method
        if "progress" in method.get_params():
            method.set_params(progress=progress)
        with own_warnings() as notes:
            if self.long is None:
                method.fit(self.X, self.y)
            else:
                method.fit(self.long, str(self.y.name))
        method = method if self.policy is None else self.policy.applied_to(method)
        accepted = method.classifier_.accepts(self.X[method.schema_.columns])
        training = method.fit_report_.get("training", {})
        interrupted = training.get("ended") == "interrupted"
        return Learned(
            Service(method),
            len(self.X),
            int(accepted.sum()),
            len(self.X) if self.long is None else self.long.seen,
            tuple(notes),
            training["best_step"] if interrupted else None,
        )


def prepare(
    table: pd.DataFrame | str | os.PathLike[str],
    *,
    target: str | None = None,
    favourable: Any = (),
    schema: Schema | str | os.PathLike[str] | None = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    immutable: str | Sequence[str] = (),
    cost: str | None = None,
    drop: str | Sequence[str] = (),
    classifier: Any = None,
    cutoff: float | None = None,
    score_range: tuple[float, float] | None = None,
    method: str = "genre",
    random_state: int = 0,
) -> LearningTask:
    """Return a checked task: a table, the outcomes in it, and a method that is not fitted yet.

    table, schema, policy: objects, or files that hold them. The table may be a folder of Parquet
        files; of more than 200,000 rows in Parquet a part is held (see `hold`).
    target: the column with the outcome; None: the one that the policy names.
    favourable: one outcome or several, as values or as text; none: 1 of {0, 1}.
    immutable, drop: columns that nobody can change, and columns to leave out.
    cost: how a change of any number is paid (`Schema.with_cost`); None: as the schema says.
    classifier: the user's own model, fitted; None: a model is learned from the outcomes.
    cutoff, score_range: of the model's scores; None: 0.5, and (0, 1).

    A policy states favourable, schema, immutable, cost, cutoff and score_range itself; leave them
    out.

    >>> table = pd.DataFrame({"income": range(80), "age": [30, 50] * 40, "ok": ["no", "yes"] * 40})
    >>> task = prepare(table, target="ok", favourable="yes", immutable="age", method="nnr")
    >>> list(task.X.columns)
    ['income', 'age']
    """
    maker = _maker(method)
    favourable, immutable, drop = map(_listed, (favourable, immutable, drop))
    known_policy = None if policy is None else read_policy(policy)
    if known_policy is not None:
        stated = (favourable, schema, immutable, cost, cutoff, score_range)
        names = ("favourable", "schema", "immutable", "cost", "cutoff", "score_range")
        _refuse_stated(dict(zip(names, stated, strict=True)))
    given = Schema.load(schema) if isinstance(schema, str | os.PathLike) else schema
    target = _target_name(target, known_policy)
    whole, long = _table(table, given, [name for name in drop if name != target], random_state)
    y = outcomes(whole, target)
    X = without_columns(whole, [target])
    found = known_policy.schema(X) if known_policy else given or Schema.infer(X)
    for name in immutable:
        found = found.with_feature(name, role="immutable")
    found = found if cost is None else found.with_cost(cost)
    warnings: list[str] = []
    if given is None:  # a schema that was given has been looked at
        warnings = known_policy.lint(X) if known_policy else found.lint(X)
    h = _classifier(classifier, favourable, cutoff, score_range, y, known_policy)
    unfitted = maker(h, found, random_state=random_state)
    return LearningTask(unfitted, X, y, known_policy, tuple(warnings), long)


# ---- the parts of a task ------------------------------------------------------------------------


def _maker(name: str) -> Any:
    if name not in METHODS:
        close = did_you_mean(name, METHODS)
        raise UserError(f"no method '{name}'{close}; there are {', '.join(METHODS)}")
    return METHODS[name]


def _listed(values: Any) -> list[Any]:
    """Return several values as a list; one value alone, such as a name, as a list of one."""
    single = isinstance(values, str) or not isinstance(values, Iterable)
    return [values] if single else list(values)


def _refuse_stated(options: dict[str, Any]) -> None:
    """Refuse options that a policy states itself."""
    twice = [name for name, value in options.items() if value is not None and value != []]
    if twice:
        raise UserError(f"with a policy, leave out {', '.join(twice)}: the policy states it")


def _table(
    table: pd.DataFrame | str | os.PathLike[str],
    schema: Schema | None,
    drop: list[str],
    seed: int,
) -> tuple[pd.DataFrame, HeldRows | None]:
    """Return the rows that are held; and if these are not all, how to read the others."""
    if isinstance(table, pd.DataFrame):
        check_table(table)
        return without_columns(table, drop), None
    path = path_of(table, "the table")
    if not is_long(path):
        return without_columns(read_table(path, schema), drop), None
    # a column to drop, such as an id, may have too many values to be looked at
    names = without_columns(pd.DataFrame(columns=parquet_columns(path)), drop).columns
    held = hold(path, seed, columns=[str(name) for name in names])
    return held.table, None if held.is_whole else held


def _target_name(target: str | None, policy: Policy | None) -> str:
    named = target or (policy.target if policy else None)
    if named is None:
        raise UserError("no column is named as the target; name the column with the outcome")
    return named


def _classifier(
    given: Any,
    favourable: list[Any],
    cutoff: float | None,
    score_range: tuple[float, float] | None,
    y: pd.Series,
    policy: Policy | None,
) -> Classifier:
    """Return the classifier, fitted or to be trained, after a check of its favourable outcome."""
    if policy is not None:
        h = policy.classifier(given)
    elif isinstance(given, Classifier):
        if favourable or cutoff is not None or score_range is not None:
            raise UserError(
                "leave out favourable, cutoff and score_range: the classifier is a "
                "genrecourse.Classifier, which states them itself"
            )
        return given
    else:
        h = Classifier(
            given,
            favourable=as_seen(favourable, y),
            cutoff=0.5 if cutoff is None else cutoff,
            score_range=(0.0, 1.0) if score_range is None else score_range,
        )
    h.is_favourable(y)  # refuses outcomes that it does not know, before anything is learned
    return h
