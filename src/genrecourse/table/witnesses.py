"""Witnesses: the few rows of a table that show all that a schema and an encoder read off it.

They hold the least and the largest number of each column, the levels, a missing cell, and a number
with as many decimals as any. A schema made from the witnesses is the schema of the whole table, and
the witnesses of several tables' witnesses are those of the tables joined. So a table of any length
can be looked at a part at a time.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from genrecourse.errors import UserError, counted
from genrecourse.table.schema import (
    MAX_DECIMALS,
    holds_levels,
    holds_numbers,
    in_single,
    lacks_decimals,
)

MOST_LEVELS = 10_000  # of one column; an id of each row would fill the memory


def witnesses(X: pd.DataFrame) -> np.ndarray:
    """Return the places of the witnesses, in order; each is the first row that shows its fact.

    >>> X = pd.DataFrame({"age": [30, 20, 25, 41], "job": ["cook", "cook", "cook", "nurse"]})
    >>> witnesses(X)
    array([0, 1, 3])
    """
    found = [np.zeros(min(1, len(X)), dtype=int), *(_of_column(X[name]) for name in X.columns)]
    return np.unique(np.concatenate(found))


def joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """Return several tables of the same columns as one, with its rows numbered from 0.

    A column of pandas categories stays one, with the levels in the order in which they come first.

    >>> parts = [pd.DataFrame({"job": pd.Categorical([job])}) for job in ("nurse", "cook")]
    >>> joined(parts)["job"].cat.categories.tolist()
    ['nurse', 'cook']
    """
    whole = pd.concat(tables, ignore_index=True)
    for name in whole.columns:
        kinds = [table[name].dtype for table in tables]
        categories = [kind for kind in kinds if isinstance(kind, pd.CategoricalDtype)]
        if len(categories) < len(kinds) or isinstance(whole[name].dtype, pd.CategoricalDtype):
            continue
        if any(kind.ordered for kind in categories):
            raise UserError(
                f"the batches give column '{name}' an order of categories, but not the same ones: "
                f"{list(categories[0].categories)[:5]} in the first; give all batches one dtype"
            )
        parts = [table[name].array for table in tables]
        whole[name] = pd.Series(union_categoricals(parts), index=whole.index)
    return whole


def _of_column(column: pd.Series) -> np.ndarray:
    if holds_numbers(column):
        return _of_numbers(column)
    return _of_levels(column) if holds_levels(column) else np.zeros(0, dtype=int)


def _of_levels(column: pd.Series) -> np.ndarray:
    try:
        codes, levels = pd.factorize(column)
    except TypeError:  # lists and the like, which no schema takes
        return np.zeros(min(1, len(column)), dtype=int)
    if len(levels) > MOST_LEVELS:
        raise UserError(
            f"column '{column.name}' has more than {counted(MOST_LEVELS, 'different value')} that "
            f"are no numbers (such as {levels[0]!r}); if it is an id, leave it out, else group the "
            "rare ones"
        )
    return np.unique(codes, return_index=True)[1]


def _of_numbers(column: pd.Series) -> np.ndarray:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    gone = np.isnan(values)
    found = [int(gone.argmax())] if gone.any() else []
    if gone.all():
        return np.array(found, dtype=int)
    found += [int(np.nanargmin(values)), int(np.nanargmax(values))]
    if not pd.api.types.is_integer_dtype(column.dtype):
        present, single = np.where(gone, 0.0, values), in_single(column)
        for decimals in range(MAX_DECIMALS + 1):
            with np.errstate(invalid="ignore"):  # infinity, which a schema refuses
                lacks = lacks_decimals(present, decimals, single=single)
            if lacks.any():
                found.append(int(lacks.argmax()))
    return np.array(found, dtype=int)
