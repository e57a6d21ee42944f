"""Entry: one method in a comparison; and the hashes that say what was frozen when it ran.

`config` is the hash of every parameter, of the request and of the library's fixed numbers (grids,
margins, sizes): a line is used again only by a comparison with the same. `source` is the hash of
the code on which a result depends: where it alone differs, the line is used and the change is said.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import genrecourse.methods
from genrecourse.errors import UserError, did_you_mean
from genrecourse.evaluation.comparison.isolation import Ask
from genrecourse.evaluation.comparison.results import Line
from genrecourse.methods import METHODS
from genrecourse.methods.base import check_params, pack_params
from genrecourse.model.artifact import pack

PACKAGE = Path(genrecourse.methods.__file__).parents[1]
BOUNDS = ("ceiling", "accepted")  # no methods: what copying can reach, and people accepted as is
GIVEN = ("classifier", "schema", "random_state", "progress")  # parameters that the comparison gives
# Modules that run, show or store, and decide no result; all others are the source of one. What is
# compared is `recourse`: what `plans` puts around it decides none either.
SHOWS = (
    *("__main__.py", "apps", "advice", "audit", "reports", "planning"),
    *("evaluation/comparison", "evaluation/checks.py", "table/table_files.py"),
    *("rules/policy.py", "rules/relaxations.py", "trust/out_of_fold.py"),
)


@dataclass(frozen=True)
class Entry:
    """One method in a comparison: how it is made, and what it is asked once it is fitted.

    label: its name in the tables.
    method: a name of METHODS.
    params: parameters other than the method's own.
    asks: several requests of one fitted model, `recourse(people, **ask)`: each has its own line,
        under `label/name`, or `label` where the name is empty.
    data_fraction: share of the training rows that it is given; a smaller share is part of a larger.
    """

    label: str
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    asks: Mapping[str, Ask] = field(default_factory=lambda: {"": {}})
    data_fraction: float = 1.0

    def __post_init__(self) -> None:
        if self.method not in METHODS and self.method not in BOUNDS:
            close = did_you_mean(self.method, METHODS)
            raise UserError(f"no method '{self.method}'{close}; there are {', '.join(METHODS)}")
        if not 0 < self.data_fraction <= 1:
            raise UserError(f"{self.label}: data_fraction is {self.data_fraction}, not in (0, 1]")
        ours = [name for name in GIVEN if name in self.params]
        if ours:
            raise UserError(f"{self.label}: {ours} are the comparison's to give; leave them out")
        if not self.asks:
            raise UserError(f"{self.label}: asks is empty; leave it out to ask once")

    def named(self, ask: str) -> str:
        return f"{self.label}/{ask}" if ask else self.label


def check_entries(entries: Sequence[Entry | str]) -> list[Entry]:
    """The entries; a name alone is a method as it is."""
    made = [entry if isinstance(entry, Entry) else Entry(entry, entry) for entry in entries]
    if not made:
        raise UserError("there is no method to compare; name one of " + ", ".join(METHODS))
    labels = [entry.named(ask) for entry in made for ask in entry.asks]
    twice = sorted({name for name in labels if labels.count(name) > 1 or name in BOUNDS})
    if twice:
        raise UserError(f"{twice} stand for more than one thing; give each entry its own label")
    return made


def heads(entry: Entry) -> list[Line]:
    """The lines of an entry as far as they do not depend on the case: one for each request."""
    settings, kind = _settings(entry)
    return [
        {
            "label": entry.named(name),
            "method": entry.method,
            "params": {key: settings[key] for key in entry.params},
            "ask": pack(dict(ask)),
            "data_fraction": entry.data_fraction,
            "config": _config(settings, ask, entry.data_fraction),
            "source": _hash(_source(), _file_of(kind)),
            "settings": settings,
            "versions": _versions(),
        }
        for name, ask in entry.asks.items()
    ]


def _config(settings: dict[str, Any], ask: Ask, data_fraction: float) -> str:
    frozen = [settings, pack(dict(ask)), data_fraction, _constants()]
    return _hash(json.dumps(frozen, sort_keys=True).encode())


def _versions() -> dict[str, str]:
    packages = ("genrecourse", "numpy", "scikit-learn", "torch")
    return {"python": platform.python_version()} | {p: installed_version(p) for p in packages}


def _settings(entry: Entry) -> tuple[dict[str, Any], type]:
    """Every parameter of the method as JSON, given or not, and the method's class."""
    if entry.method in BOUNDS:
        return {"class": entry.method}, Entry
    maker: Any = METHODS[entry.method]
    check_params(getattr(maker, "func", maker), dict(entry.params))
    made = maker(**entry.params)
    given = made.get_params(deep=False)
    settings = pack_params({k: v for k, v in given.items() if k not in GIVEN})
    return {"class": type(made).__name__} | settings, type(made)


@cache
def _constants() -> dict[str, Any]:
    """The fixed numbers of the library: grids, margins, sizes. They are settings as well."""
    found = {}
    for path in _decisive():
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = importlib.import_module(".".join(p for p in parts if p != "__init__"))
        for name, value in vars(module).items():
            if name.isupper():
                with suppress(UserError):  # METHODS and the like are no numbers
                    found[f"{module.__name__}.{name}"] = pack(value)
    return found


@cache
def _source() -> bytes:
    return b"".join(path.read_bytes() for path in _decisive())


def _decisive() -> list[Path]:
    """The package's modules on which a result depends, in order."""
    shows = [PACKAGE / name for name in SHOWS]
    paths = sorted(PACKAGE.rglob("*.py"))
    return [path for path in paths if not any(path.is_relative_to(each) for each in shows)]


def _file_of(kind: type) -> bytes:
    """The source of a method that is not the package's own."""
    try:
        path = Path(inspect.getfile(kind))
    except (OSError, TypeError):  # typed at a prompt
        return b""
    return b"" if path.is_relative_to(PACKAGE) else path.read_bytes()


def _hash(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]
