"""Registry: methods by name. A class is imported when it is first asked for."""

from __future__ import annotations

import ast
from collections import UserDict
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Listed:
    """A class of a module in `methods/`, and settings that differ from its defaults.

    settings: a dict, or the name of one in the module. words: what they change, for people.

    >>> Listed("nearest", "NearestNeighbour", {"gamma": 0.7}).maker().keywords
    {'gamma': 0.7}
    """

    module: str
    name: str
    settings: dict[str, Any] | str = field(default_factory=dict)
    words: str = ""

    def maker(self) -> Any:
        """Import the class; return it, or a partial of it with the settings."""
        module = import_module(f"genrecourse.methods.{self.module}")
        kind, settings = getattr(module, self.name), self.settings
        if isinstance(settings, str):
            settings = getattr(module, settings)
        return partial(kind, **settings) if settings else kind


class Registry(UserDict[str, Any]):
    """A dict from names to methods, which imports a `Listed` class when it is looked up.

    >>> Registry(nnr=Listed("nearest", "NearestNeighbour"))["nnr"].__name__
    'NearestNeighbour'
    """

    def __init__(self, *args: Any, **listed: Any):
        self.words: dict[str, str] = {}  # what the settings change, by name
        super().__init__(*args, **listed)

    def __setitem__(self, name: str, item: Any) -> None:
        if isinstance(item, Listed):
            self.words[name] = item.words
        super().__setitem__(name, item)

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, Listed):
            found = self.data[name] = found.maker()
        return found

    def docstring(self, name: str) -> str:
        """Return the docstring of a class. One that is listed is read, and not imported.

        >>> Registry(nnr=Listed("nearest", "NearestNeighbour")).docstring("nnr").split()[0]
        'Copies'
        """
        found = self.data[name]
        if not isinstance(found, Listed):
            return getattr(found, "func", found).__doc__ or ""
        text = Path(__file__).with_name(f"{found.module}.py").read_text(encoding="utf-8")
        classes = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
        return next(ast.get_docstring(node) or "" for node in classes if node.name == found.name)

    def class_names(self) -> dict[str, str]:
        """Return the name under which each class is found, without importing the classes."""
        return {self._class_name(name): name for name in reversed(list(self))}

    def _class_name(self, name: str) -> str:
        found = self.data[name]
        if isinstance(found, Listed):
            return found.name
        return str(getattr(found, "func", found).__name__)
