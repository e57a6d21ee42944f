"""A user's own classifier, named as MODULE:NAME."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from genrecourse.errors import UserError, did_you_mean


def import_model(where: str) -> Any:
    """Return the object NAME of the module MODULE, for `where` = "MODULE:NAME".

    A file of the working folder may be the module, with or without ".py". This runs the user's own
    code, so a front end must never take `where` from a stranger.

    >>> import_model("math:sqrt")(9.0)
    3.0
    """
    module_name, _, name = where.partition(":")
    if not module_name or not name:
        raise UserError(f"classifier {where!r} should be MODULE:NAME, such as mymodel:score")
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")
    module_name = module_name.removesuffix(".py")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # their code may raise anything
        raise UserError(f"classifier {where}: {_why(error, module_name)}") from None
    if not hasattr(module, name):
        close = did_you_mean(name, vars(module))
        raise UserError(f"classifier {where}: {module_name} has no '{name}'{close}")
    return getattr(module, name)


def _why(error: Exception, module_name: str) -> str:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if f"{module_name}.".startswith(f"{missing}."):  # the module itself, not one that it imports
        return f"{error}; is it in this folder?"
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{module_name} fails with {message}"
