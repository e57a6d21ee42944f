"""Cells: single cells of a table as plain values, each column read once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from genrecourse.planning.plans import cell_value

if TYPE_CHECKING:
    import pandas as pd

    from genrecourse.table.schema import Feature


class Cells:
    """The cells of a table, by feature and row.

    A column becomes a list when it is first asked for: pandas takes longer for a few single cells.

    >>> import pandas as pd
    >>> from genrecourse import Schema
    >>> X = pd.DataFrame({"age": [30, 41], "job": ["cook", "nurse"]})
    >>> cells = Cells(X)
    >>> [cells(feature, 1) for feature in Schema.infer(X)]
    [41, 'nurse']
    """

    def __init__(self, table: pd.DataFrame):
        self._table = table
        self._columns: dict[str, list[Any]] = {}

    def __call__(self, feature: Feature, row: int) -> Any:
        if feature.name not in self._columns:
            self._columns[feature.name] = feature.values(self._table).tolist()
        return cell_value(self._columns[feature.name][row])
