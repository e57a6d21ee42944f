"""A user's own table for the evaluation, and its split into rows to learn from and to audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from genrecourse.advice.learning import as_seen, outcomes, without_columns
from genrecourse.data.own_table import add_own_table
from genrecourse.errors import UserError, counted
from genrecourse.model.classifier import Classifier
from genrecourse.table.schema import Schema
from genrecourse.table.table_files import KINDS, read_table


def is_file_name(name: str) -> bool:
    """Return whether the name of a data set is the name of a file.

    >>> is_file_name("mine.csv"), is_file_name("german")
    (True, False)
    """
    return Path(name).suffix.lower() in KINDS


def own_data(
    file: Path,
    target: str | None,
    *,
    favourable: Sequence[str] = (),
    immutable: Sequence[str] = (),
    drop: Sequence[str] = (),
    schema: Path | None = None,
) -> str:
    """Read a table for `evaluate` and `compare`, and return the name of the data set.

    target: the column with the outcome. favourable: one outcome or several; none: 1 of {0, 1}.

    >>> import tempfile
    >>> from genrecourse.data.datasets import DATASETS
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "people.csv")
    ...     pd.DataFrame({"income": range(80), "paid": [0, 1] * 40}).to_csv(file, index=False)
    ...     name = own_data(file, "paid")
    >>> DATASETS.pop(name).schema.names
    ['income']
    """
    if target is None:
        raise UserError(f"{file} is your own table: name the column with the outcome, --target")
    known = None if schema is None else Schema.load(schema)
    whole = read_table(file, known)
    y = outcomes(whole, target)
    good = Classifier(favourable=as_seen(list(favourable), y)).is_favourable(y)
    X = without_columns(whole, [*drop, target])
    found = known or Schema.infer(X)
    for name in immutable:
        found = found.with_feature(name, role="immutable")
    return add_own_table(X[found.columns], np.asarray(good), found.as_in(X), file)


def split_table(
    table: pd.DataFrame,
    *,
    share: float = 0.25,
    target: str | None = None,
    together: str | None = None,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows to learn from and the rows to hold out, each in the order of the table.

    share: of the rows that are held out. target: each outcome keeps its share in both parts.
    together: rows with the same value in this column, such as a customer's number, go to the same
    part. Rows that are alike in every column stay together, too: a person who is in both parts
    would be judged by a model that knows them.

    >>> table = pd.DataFrame({"income": range(80), "paid": [0] * 60 + [1] * 20})
    >>> rest, held = split_table(table, target="paid")
    >>> len(rest), len(held), int(held["paid"].sum())
    (60, 20, 5)
    """
    if not 0 < share < 1:
        raise UserError(f"the share is {share:g}; it must be between 0 and 1, such as 0.25")
    for name in (target, together):
        if name is not None:
            without_columns(table, [name])  # refuses an unknown name
    if together is None:
        group = table.groupby(list(table.columns), dropna=False, sort=False).ngroup()
    else:
        group = table.groupby(together, dropna=False, sort=False).ngroup()
    stratum = None if target is None else outcomes(table, target)
    held = _held(group.to_numpy(), stratum, share, np.random.default_rng([seed, 6]))
    if held.all() or not held.any():
        raise UserError(
            f"a share of {share:g} of {counted(len(table), 'row')} in "
            f"{counted(group.nunique(), 'group')} leaves one part empty; choose another share, or "
            "give more rows"
        )
    return table[~held], table[held]


def _held(
    group: np.ndarray, stratum: pd.Series | None, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Return (n,) booleans: the row is held out. Groups stay whole, by the outcome of the first."""
    labels, first, sizes = np.unique(group, return_index=True, return_counts=True)
    kinds = np.zeros(len(labels), dtype=int)
    if stratum is not None:
        kinds = pd.factorize(stratum.iloc[first])[0]
    chosen = []
    for kind in np.unique(kinds):
        mine = rng.permutation(np.flatnonzero(kinds == kind))
        wanted = share * sizes[mine].sum()
        before = np.cumsum(sizes[mine]) - sizes[mine]
        chosen.append(labels[mine[before + sizes[mine] / 2 <= wanted]])
    return np.isin(group, np.concatenate(chosen))
