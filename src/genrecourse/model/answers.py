"""What a user's model may answer, read as numbers: a list, an array, a Series, a tensor.

A model is code of somebody else. What it answers is read strictly: what could be meant in two ways
is an error and no number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from genrecourse.errors import UserError, shown

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

SHOWN = 200  # characters of a model's own error in a message


def as_numbers(answer: Any, n: int, who: str) -> Array:
    """Return an answer about n rows, numbered from 0, as numbers of whatever shape.

    A Series or table whose index holds the numbers of the rows in another order is put in order.
    Raises UserError if the answer holds no numbers. who: the model, for the message.

    >>> as_numbers(pd.Series([0.9, 0.1], index=[1, 0]), 2, "the classifier")
    array([0.1, 0.9])
    """
    if isinstance(answer, torch.Tensor):
        answer = answer.detach().cpu()
        answer = answer.numpy() if answer.is_complex() else answer.double().numpy()
    if isinstance(answer, pd.Series | pd.DataFrame):
        answer = _cells(_in_order(answer, n))
    if isinstance(answer, np.ma.MaskedArray):
        answer = np.ma.filled(answer.astype(np.float64), np.nan)
    try:
        found = np.asarray(answer)
        if found.dtype.kind == "O" and found.ndim and not _has_text(found):
            found = found.astype(np.float64)
    except (TypeError, ValueError):
        raise _no_numbers(answer, who) from None
    if found.dtype.kind not in "biuf":
        raise _no_numbers(answer, who)
    return found if found.dtype.kind == "f" else found.astype(np.float64)


def _in_order(answer: pd.Series | pd.DataFrame, n: int) -> pd.Series | pd.DataFrame:
    """Return an answer in the order of the rows, if its index says that it has another one."""
    asked = pd.RangeIndex(n)
    if len(answer) != n or answer.index.equals(asked) or answer.index.inferred_type != "integer":
        return answer
    if answer.index.is_unique and answer.index.isin(asked).all():
        return answer.loc[asked]
    return answer


def _cells(answer: pd.Series | pd.DataFrame) -> Any:
    """Return the cells of an answer; what is missing is NaN, whatever the dtype."""
    if isinstance(answer, pd.DataFrame):
        columns = [_cells(answer.iloc[:, k]) for k in range(answer.shape[1])]
        return np.stack(columns, axis=1) if columns else answer.to_numpy()
    if pd.api.types.is_extension_array_dtype(answer.dtype) and pd.api.types.is_numeric_dtype(
        answer.dtype
    ):
        return answer.to_numpy(dtype=np.float64, na_value=np.nan)
    return answer.to_numpy()


def _has_text(found: np.ndarray) -> bool:
    return any(isinstance(cell, str | bytes) for cell in found.flat)


def _no_numbers(answer: Any, who: str) -> UserError:
    return UserError(
        f"{who} returned no numbers, but a {type(answer).__name__} (first value: "
        f"{shown(_first(answer))}); it must return a score for each row"
    )


def _first(answer: Any) -> Any:
    try:
        return answer[0] if isinstance(answer, list | tuple | np.ndarray) else answer
    except IndexError:  # it is empty
        return answer


def brief(error: BaseException) -> str:
    """Return the text of an error on one line, of a length that can be read.

    >>> brief(ValueError("two\\nlines"))
    'two lines'
    """
    try:
        text = " ".join(str(error).split())
    except Exception:  # somebody else's error may be unable to say what it is
        text = ""
    if not text:
        return "it says no more"
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def has(model: Any, name: str) -> bool:
    """Return whether a model has an attribute; one that raises an error is none.

    >>> has(7, "real"), has(7, "predict_proba")
    (True, False)
    """
    try:
        return hasattr(model, name)
    except Exception:  # a property of somebody else's may raise anything
        return False


def answers_alike(first: Array, again: Array, cutoff: float, within: float) -> str:
    """Return how two answers about the same rows differ; "" if by no more than `within`.

    >>> answers_alike(np.array([0.2, 0.6]), np.array([0.2, 0.4]), cutoff=0.5, within=1e-6)
    'it gave 1 of 2 another score, by up to 0.2, and 1 another decision'
    """
    gap = np.abs(first - again)
    if not (gap > within).any():
        return ""
    decisions = int(((first > cutoff) != (again > cutoff)).sum())
    return (
        f"it gave {int((gap > within).sum()):,} of {len(gap):,} another score, by up to "
        f"{gap.max():.3g}, and {decisions:,} another decision"
    )
