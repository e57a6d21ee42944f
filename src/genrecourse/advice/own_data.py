"""A user's own table for the evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from genrecourse.advice.columns import as_seen, outcomes, without_columns
from genrecourse.data.own_table import add_own_table
from genrecourse.errors import UserError
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
    >>> import pandas as pd
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
