"""The check of lam at a request: which lam may be asked for depends on the fitted model.

What the other options may be stands beside them, in `allowed_options` of a method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from genrecourse.errors import UserError, shown
from genrecourse.genre.any_lam import LAM_RANGE
from genrecourse.model.settings import is_number

if TYPE_CHECKING:
    from genrecourse.genre.fit import Lam


def check_lam_asked(where: str, lam: Any, fitted: Lam) -> None:
    """Raise an error if a fitted model does not know this lam; None means "as fitted".

    >>> check_lam_asked("GenRe.recourse", 2.5, fitted="any")  # no error
    >>> check_lam_asked("GenRe.recourse", 20, fitted="any")
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: GenRe.recourse: lam is 20; a model that was fitted with ...
    """
    if lam is None:
        return
    low, high = LAM_RANGE
    if fitted == "any":
        if not (is_number(lam) and low <= lam <= high):
            raise UserError(
                f"{where}: lam is {shown(lam)}; a model that was fitted with lam='any' knows lam "
                f"from {low:g} to {high:g}"
            )
    elif not (is_number(lam) and lam == fitted):
        raise UserError(
            f"{where}: lam is {shown(lam)}, but this model was fitted with lam={fitted!r} and "
            "knows no other; fit one with lam='any' to choose it at each request"
        )
