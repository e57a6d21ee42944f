"""Checks of the options that a fitted method takes at each request.

None means "as fitted", so that a program can pass an option on without checking if its user has
set it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from genrecourse.errors import UserError
from genrecourse.genre.any_lam import LAM_RANGE
from genrecourse.genre.select import Effort
from genrecourse.model.settings import is_number, is_whole

if TYPE_CHECKING:
    from genrecourse.genre.fit import Lam


def check_lam(where: str, lam: Any) -> None:
    """Raise an error unless lam, a parameter of a method, is a number from 0 on or "any".

    >>> check_lam("GenRe.fit", "any")  # no error
    >>> check_lam("GenRe.fit", -1)
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: GenRe.fit: lam is -1; give a number from 0 on, or 'any'...
    """
    if isinstance(lam, str):
        good = lam == "any"
    else:
        good = is_number(lam) and lam >= 0
    if not good:
        raise UserError(
            f"{where}: lam is {lam!r}; give a number from 0 on, or 'any' for a model that "
            "takes lam at each request"
        )


def check_weight(where: str, lam: Any) -> None:
    """Raise an error unless lam is a number from 0 on, for methods that use lam only in sampling.

    >>> check_weight("TabSynQ.recourse", "any")
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: TabSynQ.recourse: lam is 'any'; it must be a number from 0 on
    """
    if not (is_number(lam) and lam >= 0):
        raise UserError(f"{where}: lam is {lam!r}; it must be a number from 0 on")


def check_request(where: str, request: Mapping[str, Any], fitted: Lam) -> None:
    """Raise an error if an option has an invalid value. fitted: the lam of the fitted model.

    >>> check_request("GenRe.recourse", {"lam": 2.5, "n_draws": None}, fitted="any")  # no error
    >>> check_request("GenRe.recourse", {"n_draws": 0}, fitted=5.0)
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: GenRe.recourse: n_draws is 0; it must be a whole number from 1 on
    """
    if request.get("lam") is not None:
        _check_lam_asked(where, request["lam"], fitted)
    for name, (needed, is_good) in _NEEDED.items():
        value = request.get(name)
        if value is not None and not is_good(value):
            raise UserError(f"{where}: {name} is {value!r}; it must be {needed}")


def _check_lam_asked(where: str, lam: Any, fitted: Lam) -> None:
    low, high = LAM_RANGE
    if fitted == "any":
        if not (is_number(lam) and low <= lam <= high):
            raise UserError(
                f"{where}: lam is {lam!r}; a model that was fitted with lam='any' knows lam from "
                f"{low:g} to {high:g}"
            )
    elif lam != fitted:
        raise UserError(
            f"{where}: lam is {lam!r}, but this model was fitted with lam={fitted!r} and knows no "
            "other; fit one with lam='any' to choose it at each request"
        )


_NEEDED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "temperature": ("a number above 0", lambda value: is_number(value) and value > 0),
    "sigma": ("a number from 0 on", lambda value: is_number(value) and value >= 0),
    "n_draws": ("a whole number from 1 on", lambda value: is_whole(value) and value >= 1),
    "effort": ("'sample' or 'search'", lambda value: value in get_args(Effort)),
}
