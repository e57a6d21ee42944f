"""One pure function over a batch of people: a table in, one row for each person out.

    planner = BatchPlanner.of("model", PlanRequest(n=3), key="id")
    answers = planner(table)  # a DataFrame gives a DataFrame, an Arrow table an Arrow table

A `BatchPlanner` holds a path, some words and a request, so any engine can send it to any process;
a process loads the model when it is first asked. A person's answer depends on neither the rows
beside them nor on how an engine divides a table.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.advice.cells import as_fitted, read_cells
from genrecourse.advice.own_model import import_model
from genrecourse.advice.service import AS_FITTED, Service
from genrecourse.errors import UserError
from genrecourse.model import artifact
from genrecourse.table.csv_cells import text_levels

if TYPE_CHECKING:
    import pyarrow as pa

    from genrecourse.advice.request import PlanRequest
    from genrecourse.planning.plans import Plan, Plans
    from genrecourse.rules.problem import Problem

AT_ONCE = 1_000  # people whose plans are made together: the memory does not grow with a batch
DECIMALS = 6  # of a score: a model's own rounding differs by less from batch to batch
PERSON = ("key", "status", "reason_code", "reason", "about_rules", "score_before", "cutoff")
STATUSES = ("ok", "already-accepted", "no-plan", "unreadable", "failed")  # of a row

Answer = dict[str, Any]


@dataclass(frozen=True)
class BatchPlanner:
    """Plans for a batch of people: call it with a table. It can be sent to another process.

    model: the folder of the model, which every process must be able to read.
    request: what is asked for; rules of single people name them by key, or by index label.
    key: the column that names a person; None: the index of the table does.
    classifier: the user's own model as MODULE:NAME, which every process must be able to import.
    policy: the file of another policy than the model's own.
    model_hash: of the model that is meant; a process that finds another one raises an error.

    >>> import tempfile
    >>> from genrecourse import NearestNeighbour
    >>> from genrecourse.evaluation.checks import make_example
    >>> example = make_example(rows=80, people=10)
    >>> method = NearestNeighbour(None, example.schema).fit(example.X, example.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     method.save(folder)
    ...     answers = BatchPlanner.of(folder)(example.people)
    >>> len(answers) == len(example.people), set(answers["status"]) <= set(STATUSES)
    (True, True)
    """

    model: str
    request: PlanRequest = AS_FITTED
    key: str | None = None
    classifier: str | None = None
    policy: str | None = None
    model_hash: str = ""

    @classmethod
    def of(
        cls,
        model: str | os.PathLike[str],
        request: PlanRequest = AS_FITTED,
        *,
        key: str | None = None,
        classifier: str | None = None,
        policy: str | os.PathLike[str] | None = None,
    ) -> BatchPlanner:
        """Return the planner of a model folder, after a request about rows that it knows.

        What is wrong with the folder or the request is found here, and not a million times later.
        """
        planner = cls(
            os.path.abspath(model),
            request,
            key,
            classifier,
            None if policy is None else os.path.abspath(policy),
            artifact.checksum(model),
        )
        return planner.asking(request)

    def asking(self, request: PlanRequest) -> BatchPlanner:
        """Return a planner of the same model for another request, after a trial of it."""
        everybodys = request
        if request.rules is not None and request.rules.people:
            everybodys = replace(request, rules=request.rules.only(pd.Index([])))
        service = self.service
        problem = service.method.problem_
        rejected = problem.probe[problem.read(problem.probe).rejected]
        probe = rejected if len(rejected) else problem.probe
        found = (_error(service, probe.iloc[[i]], everybodys) for i in range(len(probe)))
        first = next(found)
        # one row may be unable to meet a rule; a request is wrong if it is wrong for every row
        if first is not None and all(error is not None for error in found):
            raise first
        return replace(self, request=request)

    @property
    def service(self) -> Service:
        """The model and its policy; each process loads them once."""
        return _opened(self.model, self.classifier, self.policy, self.model_hash)

    @property
    def columns(self) -> list[str]:
        """The columns that a table needs: the model's, and the key's."""
        named = self.service.schema.columns
        return named if self.key is None or self.key in named else [*named, self.key]

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The levels of each column of texts: what a reader of a CSV has to know."""
        return text_levels(self.service.schema)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of every answer; it depends on the model and on n alone."""
        import pyarrow as pa

        texts = {name: pa.string() for name in PERSON[:5]}
        person = texts | {"score_before": pa.float64(), "cutoff": pa.float64()}
        whole = {"promise": pa.float64(), "n_plans": pa.int32(), "model": pa.string()}
        each = {
            "score": pa.float64(),
            "cost": pa.float64(),
            "n_changes": pa.int32(),
            "robust": pa.bool_(),
            "accepted_by_retrained": pa.float64(),
            "accepted_with_noise": pa.float64(),
            "words": pa.string(),
        }
        kinds = self._kinds
        plans = {
            name: kind
            for i in range(1, self.request.n + 1)
            for name, kind in (
                *((f"{fact}_{i}", kind) for fact, kind in each.items()),
                *((f"plan_{i}_{column}", kind) for column, kind in kinds.items()),
            )
        }
        return pa.schema([*(person | whole | plans).items()])

    @property
    def _kinds(self) -> dict[str, pa.DataType]:
        """The Arrow type of each column of the model's table.

        Numbers are floats throughout: a person may have 2.5 where the training rows had integers.
        """
        import pyarrow as pa

        service = self.service
        like = service.method.problem_.like
        kinds: dict[str, pa.DataType] = {}
        for feature in service.schema:
            for column in feature.stored_in:
                kind = pa.float64() if not feature.is_category else pa.string()
                if feature.is_category and pd.api.types.is_bool_dtype(like[column].dtype):
                    kind = pa.bool_()
                elif feature.is_category and pd.api.types.is_integer_dtype(like[column].dtype):
                    kind = pa.int64()
                elif feature.is_category and pd.api.types.is_float_dtype(like[column].dtype):
                    kind = pa.float64()
                kinds[column] = kind
        return kinds

    def facts(self) -> dict[str, Any]:
        """Return what the answers depend on, as plain data: equal for equal answers."""
        request = self.request
        asked = {each.name: getattr(request, each.name) for each in fields(request)}
        asked["rules"] = None if request.rules is None else request.rules.model_dump(mode="json")
        asked["language"] = str(request.language)
        policy = self.policy and hashlib.sha256(Path(self.policy).read_bytes()).hexdigest()
        return {
            "model": self.model_hash,
            "policy": policy,
            "classifier": self.classifier,
            "key": self.key,
            "request": asked | {"options": dict(request.options)},
        }

    # ---- a batch --------------------------------------------------------------------------------

    def __call__(self, batch: Any) -> Any:
        """Return the answers to a batch, in the form that it has: a DataFrame or an Arrow table."""
        if isinstance(batch, pd.DataFrame):
            found = self.answers(batch).to_pandas(types_mapper=_pandas_type)
            return found.set_axis(batch.index)
        # floats would not hold every whole number of a column with a gap, such as a long key
        return self.answers(batch.to_pandas(ignore_metadata=True, integer_object_nulls=True))

    def answers(self, X: pd.DataFrame, unread: Mapping[int, str] | None = None) -> pa.Table:
        """Return one row for each row of X, in its order, as an Arrow table.

        unread: what whoever read X could not read, by the place of the row.
        """
        import pyarrow as pa

        parts = [
            self._answered(X.iloc[i : i + AT_ONCE], _shifted(unread or {}, i))
            for i in range(0, max(len(X), 1), AT_ONCE)
        ]
        return parts[0] if len(parts) == 1 else pa.concat_tables(parts).combine_chunks()

    def _answered(self, X: pd.DataFrame, unread: Mapping[int, str]) -> pa.Table:
        import pyarrow as pa

        lines = self._lines(X, unread)
        schema = self.schema
        columns = [
            pa.array([line.get(n) for line in lines], schema.field(n).type) for n in schema.names
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def _lines(self, X: pd.DataFrame, unread: Mapping[int, str]) -> list[Answer]:
        service, keys = self.service, self._keys(X)
        problem = service.method.problem_
        service.schema.check_columns(X, "the batch")
        table, wrong = read_cells(X[service.schema.columns], service.schema, problem.like)
        table.index = pd.Index(keys, dtype=object) if self.key is not None else X.index
        wrong |= unread
        lines: list[Answer] = [{} for _ in keys]
        for place, sentence in wrong.items():
            lines[place] = _without("unreadable", "unreadable", sentence)
        rest = np.setdiff1d(np.arange(len(keys)), list(wrong))
        for places, found in each_or_error(rest, lambda some: problem.read(table.iloc[some])):
            if isinstance(found, Exception):
                lines[places[0]] = _without("unreadable", "unreadable", _sentence(found))
                continue
            for which, people in as_fitted(table, problem.like, places):
                for some, made in self._planned(people):
                    for place, line in zip(which[some], made, strict=True):
                        lines[place] = line
        for line, key in zip(lines, keys, strict=True):
            line |= {"key": key, "model": self.model_hash}
        return lines

    def _planned(self, X: pd.DataFrame) -> Iterator[tuple[np.ndarray, list[Answer]]]:
        """Yield places of X and their lines; a row that cannot be answered has a line, too."""
        for some, made in each_or_error(np.arange(len(X)), lambda some: self._made(X.iloc[some])):
            if isinstance(made, Exception):
                made = [_without("failed", type(made).__name__, _sentence(made))]
            yield some, made

    def _made(self, X: pd.DataFrame) -> list[Answer]:
        problem = self.service.method.problem_
        rules = self.request.rules
        request = self.request.only(X.index) if rules is not None and rules.people else self.request
        plans = self.service.method.plans(X, **request.keywords(self.service.policy))
        before = steady_scores(problem, X)
        return [
            line | {"score_before": score}
            for line, score in zip(_described(plans, problem), before, strict=True)
        ]

    def _keys(self, X: pd.DataFrame) -> list[str | None]:
        if self.key is None:
            return [str(label) for label in X.index]
        if self.key not in X.columns:
            raise UserError(f"there is no key column '{self.key}'; the table has {list(X.columns)}")
        return [None if pd.isna(cell) else _as_text(cell) for cell in X[self.key]]


def _shifted(unread: Mapping[int, str], start: int) -> dict[int, str]:
    """Return what could not be read of `AT_ONCE` rows from `start` on, by places among these."""
    return {i - start: why for i, why in unread.items() if start <= i < start + AT_ONCE}


def each_or_error(
    places: np.ndarray, act: Callable[[np.ndarray], Any]
) -> Iterator[tuple[np.ndarray, Any]]:
    """Yield places and what `act` returns for them; where it fails for one place, the exception.

    It asks for all places at once. Only if that fails, it halves them until the place is found.

    >>> def inverse(some):
    ...     return [1 // int(n) for n in some]
    >>> [(some.tolist(), found) for some, found in each_or_error(np.array([1, 1, 0, 1]), inverse)]
    [([1, 1], [1, 1]), ([0], ZeroDivisionError(...)), ([1], [1])]
    """
    if len(places) == 0:
        return
    try:
        found = act(places)
    except Exception as error:  # the user's own model may raise anything
        if len(places) > 1:
            for half in np.array_split(places, 2):
                yield from each_or_error(half, act)
            return
        found = error
    yield places, found


def steady_scores(problem: Problem, X: pd.DataFrame) -> list[float]:
    """Return h's score of each row, whatever rows are asked about with it.

    The last bits of a network's score depend on how many rows are asked about at once, so a network
    is asked about one row at a time. Other models are asked once; scores are rounded.

    >>> from genrecourse.evaluation.example_tables import example_rows
    >>> problem, rows = example_rows()
    >>> steady_scores(problem, problem.probe.head(2)) == steady_scores(problem, problem.probe)[:2]
    True
    """
    if len(X) == 0:
        return []
    h, encoder = problem.classifier, problem.encoder
    if not h.reads(encoder):
        return [round(float(score), DECIMALS) for score in h.score(X)]
    alone = h.score_each(encoder.encode(X), encoder)
    return [round(float(score), DECIMALS) for score in alone]


# ---- one line for each person -------------------------------------------------------------------


def _described(plans: Plans, problem: Problem) -> list[Answer]:
    """Return a line for each person; `score_before` is left to the caller."""
    shown = plans.shown
    rows = plans.x_plus()[problem.schema.columns] if shown else pd.DataFrame()
    scores = iter(steady_scores(problem, rows))
    cells = zip(*(map(_cell, rows[name]) for name in rows.columns), strict=True)
    lines = []
    for plan in plans:
        line = _without(plan.status, plan.reason_code, plan.reason)
        line |= {
            "about_rules": plan.about_rules,
            "cutoff": float(plan.cutoff),
            "promise": plan.promise.share if plan.promise and plan.every else None,
            "n_plans": len(plan.every),
        }
        for i, each in enumerate(plan.every, start=1):
            line |= _facts(each, i) | {f"score_{i}": next(scores)}
            names = [f"plan_{i}_{name}" for name in rows.columns]
            line |= dict(zip(names, next(cells), strict=True))
        lines.append(line)
    return lines


def _facts(plan: Plan, i: int) -> Answer:
    facts = {
        "cost": plan.cost,
        "n_changes": len(plan.changes),
        "robust": not plan.is_fragile,
        "accepted_by_retrained": plan.retrained and plan.retrained.estimate,
        "accepted_with_noise": plan.imprecise and plan.imprecise.estimate,
        "words": "; ".join(change.to_text() for change in plan.changes),
    }
    return {f"{name}_{i}": value for name, value in facts.items()}


def _without(status: str, code: str, reason: str) -> Answer:
    return {
        "status": status,
        "reason_code": code,
        "reason": reason,
        "about_rules": "",
        "n_plans": 0,
    }


def _sentence(error: Exception) -> str:
    """Return what went wrong as one line that every file can hold."""
    text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    return str(UserError(" ".join(text.split())))


def _cell(value: Any) -> Any:
    return None if pd.api.types.is_scalar(value) and pd.isna(value) else value


def _as_text(key: Any) -> str:
    """Return a key as text: 7.0 as "7", because an engine may have made floats of integers."""
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)


def _pandas_type(kind: pa.DataType) -> Any:
    import pyarrow as pa

    mapped = {
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    return mapped.get(kind)


def _error(service: Service, X: pd.DataFrame, request: PlanRequest) -> Exception | None:
    """Return what a request raises, or None."""
    try:
        service.plans(X, request)
    except Exception as error:  # the user's own model may raise anything
        return error
    return None


# ---- the model, once a process ------------------------------------------------------------------


@lru_cache(maxsize=4)
def _opened(model: str, classifier: str | None, policy: str | None, expected: str) -> Service:
    """Return the service of a folder, which must hold the model that is meant."""
    if expected and artifact.checksum(model) != expected:
        raise UserError(
            f"{model} holds another model than when this run was started; start a new run with it"
        )
    own = None if classifier is None else import_model(classifier)
    return Service.open(model, own, policy)
