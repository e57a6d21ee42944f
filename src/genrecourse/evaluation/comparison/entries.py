"""Entry: one method in a comparison, and the hashes of its settings and of the code.

`config` is a hash of every parameter, of the request, and of the constants of the library (grids,
margins, sizes). A comparison uses an old result only if this hash is the same. `source` is a hash
of the code that a result depends on. If only this hash differs, the comparison uses the old result
and warns.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version as installed_version
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import genrecourse.methods
from genrecourse.errors import UserError, did_you_mean
from genrecourse.methods import METHODS
from genrecourse.methods.params import check_params, pack_params
from genrecourse.model.artifact import pack

if TYPE_CHECKING:
    from genrecourse.evaluation.comparison.isolation import Ask
    from genrecourse.evaluation.comparison.results import Line

PACKAGE = Path(genrecourse.methods.__file__).parents[1]
BOUNDS = ("ceiling", "accepted")  # references, not methods: the best copies, and accepted people
GIVEN = ("classifier", "schema", "random_state", "progress")  # parameters that the comparison sets
# Modules that do not affect the result of `recourse`, which is what a comparison measures. The
# `source` hash contains all other modules.
SHOWS = (
    *("__main__.py", "apps", "advice", "auditing", "reports", "planning"),
    *(
        "evaluation/comparison",
        "evaluation/checks.py",
        "evaluation/examples.py",
        "table/table_files.py",
        "table/text_files.py",
    ),
    *("rules/policy.py", "rules/relaxations.py", "trust/out_of_fold.py"),
)


@dataclass(frozen=True)
class Entry:
    """One method in a comparison: how it is made, and what it is asked after the fit.

    label: its name in the tables.
    method: a name in METHODS.
    params: parameters that differ from the defaults of the method.
    asks: requests to the same fitted model, `recourse(people, **ask)`. Each request has its own
        line with the label `label/name`, or `label` if the name is empty.
    data_fraction: the share of the training rows that the method gets; the rows of a smaller share
        are part of a larger one.

    >>> entry = Entry("cheap", "revise", {"steps": 200}, asks={"": {}, "lam 1": {"lam": 1.0}})
    >>> [entry.named(ask) for ask in entry.asks]
    ['cheap', 'cheap/lam 1']
    """

    label: str
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    asks: Mapping[str, Ask] = field(default_factory=lambda: {"": {}})
    data_fraction: float = 1.0

    def __post_init__(self) -> None:
        if self.method not in METHODS and self.method not in BOUNDS:
            close = did_you_mean(self.method, METHODS)
            raise UserError(
                f"there is no method '{self.method}'{close}; the methods are {', '.join(METHODS)}"
            )
        if not 0 < self.data_fraction <= 1:
            raise UserError(
                f"{self.label}: data_fraction is {self.data_fraction}; it must be in (0, 1]"
            )
        ours = [name for name in GIVEN if name in self.params]
        if ours:
            raise UserError(f"{self.label}: the comparison sets {ours}; leave them out of params")
        if not self.asks:
            raise UserError(f"{self.label}: asks is empty; leave it out for a single request")

    def named(self, ask: str) -> str:
        """Return the label of one request."""
        return f"{self.label}/{ask}" if ask else self.label


def check_entries(entries: Sequence[Entry | str]) -> list[Entry]:
    """Return the entries; a name becomes an entry with the default parameters.

    >>> [entry.label for entry in check_entries(["nnr", Entry("mine", "wachter")])]
    ['nnr', 'mine']
    """
    made = [entry if isinstance(entry, Entry) else Entry(entry, entry) for entry in entries]
    if not made:
        raise UserError("there is no method to compare; choose from " + ", ".join(METHODS))
    labels = [entry.named(ask) for entry in made for ask in entry.asks]
    twice = sorted({name for name in labels if labels.count(name) > 1 or name in BOUNDS})
    if twice:
        raise UserError(f"the labels {twice} are used twice; give each entry its own label")
    return made


def heads(entry: Entry) -> list[Line]:
    """Return the part of the lines of an entry that does not depend on the case, one per request.

    >>> [head["label"] for head in heads(Entry("mine", "nnr"))]
    ['mine']
    """
    settings, kind = _settings(entry)
    return [
        {
            "label": entry.named(name),
            "method": entry.method,
            "params": {key: settings[key] for key in entry.params},
            "ask": pack(dict(ask)),
            "data_fraction": entry.data_fraction,
            "config": _config(settings, ask, entry.data_fraction),
            "source": hash_of([*_contents(), _file_of(kind)]),
            "settings": settings,
            "versions": _versions(),
        }
        for name, ask in entry.asks.items()
    ]


def _config(settings: dict[str, Any], ask: Ask, data_fraction: float) -> str:
    frozen = [settings, pack(dict(ask)), data_fraction, _constants()]
    return hash_of([json.dumps(frozen, sort_keys=True).encode()])


def _versions() -> dict[str, str]:
    packages = ("genrecourse", "numpy", "scikit-learn", "torch")
    return {"python": platform.python_version()} | {p: installed_version(p) for p in packages}


def _settings(entry: Entry) -> tuple[dict[str, Any], type]:
    """Return all parameters of the method as JSON, also the defaults, and its class."""
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
    """Return the constants of the library (grids, margins, sizes), which are settings as well."""
    found = {}
    for path in _decisive():
        parts = (PACKAGE.name, *path.with_suffix("").parts)
        module = importlib.import_module(".".join(p for p in parts if p != "__init__"))
        for name, value in vars(module).items():
            if name.isupper():
                with suppress(UserError):  # METHODS, for example, is not data
                    found[f"{module.__name__}.{name}"] = pack(value)
    return found


@cache
def code_hash() -> str:
    """Return the `source` of a result of the package's own methods, made by this code.

    >>> code_hash() == heads(Entry("nnr", "nnr"))[0]["source"]
    True
    """
    return hash_of(_contents())


@cache
def _contents() -> list[bytes]:
    return [(PACKAGE / path).read_bytes() for path in _decisive()]


def _decisive() -> list[PurePath]:
    return decisive((path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")), SHOWS)


def decisive(paths: Iterable[PurePath], shows: Sequence[str]) -> list[PurePath]:
    """Return the modules that a result depends on, in the order of the `source` hash.

    paths: the modules of the package, within the package. shows: as SHOWS, which can differ in
    other versions of the package.

    >>> [str(path) for path in decisive([PurePath("reports/html.py"), PurePath("a.py")], SHOWS)]
    ['a.py']
    """
    return [p for p in sorted(paths) if not any(p.is_relative_to(each) for each in shows)]


def _file_of(kind: type) -> bytes:
    """Return the source of a method that is not part of the package."""
    try:
        path = Path(inspect.getfile(kind))
    except (OSError, TypeError):  # defined at a prompt
        return b""
    return b"" if path.is_relative_to(PACKAGE) else path.read_bytes()


def hash_of(contents: Iterable[bytes]) -> str:
    """Return the hash of some contents, one after the other.

    >>> hash_of([b"a", b"b"]) == hash_of([b"ab"])
    True
    """
    return hashlib.sha256(b"".join(contents)).hexdigest()[:12]
