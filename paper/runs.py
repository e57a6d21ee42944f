"""Runs configs/*.toml: each config is a list of entries, and writes results/CONFIG/DATASET.jsonl.

There is one results file per data set, so that data sets can run at the same time. Each entry lists
the tables and figures that need it, so that a command runs only those entries, and `all` runs every
entry with one case per data set and seed.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from genrecourse.errors import UserError
from genrecourse.evaluation.comparison import Entry, compare
from genrecourse.evaluation.comparison.entries import code_hash
from genrecourse.methods import METHODS
from genrecourse.methods.genre import PAPER_PRESET, GenRe
from paper import frozen

HERE = Path(__file__).parent
LAMBDAS = ("0.5", "1.0", "2.5", "5.0", "10.0")
TAUS = ("5.0", "10.0", "15.0")
SIGMAS = ("2e-07", "2e-06", "2e-05", "2e-4", "2e-3", "2e-2")  # as the paper writes them
SAFETIES = ("0.0", "0.25", "0.5", "0.75", "1.0")
COMPARED = ("main", "baselines", "settings", "others")  # configs whose entries are run by `all`
FRACTIONS = ("0.1", "0.2", "0.4", "0.8", "1.0")
# The requests to one fitted model; the empty name is the request without options.
ASKS: dict[str, dict[str, dict[str, Any]]] = {
    "lambda": {lam: {"lam": float(lam)} for lam in LAMBDAS},
    "guidance": {"": {}, "lambda=10": {"lam": 10.0}},
    "safety": {"": {}} | {f"safety {safety}": {"safety": float(safety)} for safety in SAFETIES},
    "searched": {"": {"effort": "search"}}
    | {f"safety {s}": {"safety": float(s), "effort": "search"} for s in SAFETIES},
    "temperature": {"": {}}
    | {
        # the paper's tau multiplies the logits; our temperature divides them
        f"{tau}, {sigma}": {"temperature": 1 / float(tau), "sigma": float(sigma)}
        for sigma in SIGMAS
        for tau in TAUS
    },
}


@dataclass(frozen=True)
class Scale:
    """How much is run, and where the results go."""

    name: str  # "full" or "quick"
    results: Path
    images: Path
    seeds: tuple[int, ...]
    rows: int | None
    theory_repeats: int
    seeds_2d: int
    people_2d: int
    steps_2d: int
    economies: tuple[str, ...]

    @property
    def is_quick(self) -> bool:
        return self.name == "quick"

    def file(self, name: str) -> Path:
        """Return the results file of a part that is not a comparison."""
        return self.results / f"{name}.jsonl"

    def compared(self, config: str, dataset: str) -> Path:
        """Return the results file of a config on a data set."""
        return self._folder(config) / f"{dataset}.jsonl"

    def all_compared(self, config: str) -> list[Path]:
        return sorted(self._folder(config).glob("*.jsonl"))

    def _folder(self, config: str) -> Path:
        """Return the folder of a config; a quick run shows the preset's full results."""
        return (HERE / "results" if config == "preset" else self.results) / config


def scale(name: str) -> Scale:
    """Return the scale "full" or "quick"."""
    settings = read("protocol")[name]
    results, images = HERE / "results", HERE / "images"
    if name == "quick":
        results, images = results / "quick", results / "quick" / "images"
    return Scale(
        name,
        results,
        images,
        tuple(settings["seeds"]),
        how_many(settings["rows"]),
        settings["theory_repeats"],
        settings["seeds_2d"],
        settings["people_2d"],
        settings["steps_2d"],
        tuple(settings.get("economies", ())),
    )


def how_many(rows: int | str) -> int | None:
    """Return the number of people a seed; None stands for "all" rejected test rows."""
    return None if isinstance(rows, str) else rows


@cache
def read(config: str) -> dict[str, Any]:
    return tomllib.loads((HERE / "configs" / f"{config}.toml").read_text(encoding="utf-8"))


def economies(size: Scale) -> list[str]:
    """Return everything that a quick run leaves out, in words."""
    if not size.is_quick:
        return []
    more = [line for name in COMPARED for line in read(name)["quick"]["economies"]]
    return [
        *size.economies,
        *more,
        *_fewer_datasets(),
        "the paper's preset is not run: its committed result is shown",
    ]


def _fewer_datasets() -> list[str]:
    """Return the entries that a quick run has on some data sets only, or on none."""
    fewer = [
        (f"`{label}` ({', '.join(spec['for'])})", spec["quick_datasets"])
        for name in COMPARED
        for label, spec in read(name)["entries"].items()
        if "quick_datasets" in spec
    ]
    some = [f"{entry} on {', '.join(kept)} only" for entry, kept in fewer if kept]
    return [*some, "not run: " + ", ".join(entry for entry, kept in fewer if not kept)]


# ---- entries ------------------------------------------------------------------------------------


def entries(config: str, size: Scale, needed_by: str | None = None) -> dict[str, list[Entry]]:
    """Return the entries of each data set; `needed_by` keeps those of one table or figure."""
    settings = read(config)
    found: dict[str, list[Entry]] = {name: [] for name in settings["datasets"]}
    for label, spec in settings["entries"].items():
        if needed_by not in (None, *spec["for"]) or not exists(label, spec):
            continue
        where = spec.get("datasets", settings["datasets"])
        if size.is_quick:
            where = spec.get("quick_datasets", where)
        entry = _entry(label, spec, _quick_params(settings, spec) if size.is_quick else {})
        for name in where:
            found[name].append(entry)
    return {name: listed for name, listed in found.items() if listed}


def exists(label: str, spec: Mapping[str, Any]) -> bool:
    """Return whether the library has the method and each parameter; if not, the row is absent."""
    maker = METHODS.get(spec.get("method", label))
    if maker is None:
        return False
    return set(spec.get("params", {})) <= set(maker().get_params(deep=False))


def is_absent(label: str) -> bool:
    """Return whether the library lacks the method or a parameter of a label."""
    own = label.split("/")[0]  # without the request
    for name in (*COMPARED, "preset"):
        spec = read(name)["entries"].get(own)
        if spec is not None:
            return not exists(own, spec)
    return own not in METHODS


def _quick_params(settings: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a quick run: those of the entry, or those of the config."""
    return spec.get("quick_params") or settings["quick"].get("params", {})


def _entry(label: str, spec: Mapping[str, Any], quick: Mapping[str, Any]) -> Entry:
    method = spec.get("method", label)
    kind = _class_of(METHODS[method])
    params = dict(PAPER_PRESET) if spec.get("preset") == "paper" else {}
    params |= spec.get("params", {})
    if "quick_params" in spec:  # the entry's own come last
        params |= quick
    elif issubclass(kind, GenRe):
        params = {**quick, **params}
    return Entry(
        label,
        method,
        {name: _record(kind, name, value) for name, value in params.items()},
        ASKS[spec["asks"]] if "asks" in spec else {"": {}},
        spec.get("data_fraction", 1.0),
    )


def _record(kind: Any, name: str, value: Any) -> Any:
    """Return a table of TOML as the dataclass that the parameter takes."""
    return kind._records[name](**value) if isinstance(value, dict) else value


def _class_of(maker: Any) -> Any:
    return _class_of(maker.func) if isinstance(maker, partial) else maker


# ---- running ------------------------------------------------------------------------------------


def run(config: str, size: Scale, needed_by: str | None = None) -> None:
    """Run the entries of a config that have no result, one seed after the other."""
    for name in read(config)["datasets"]:
        for seed in seeds(config, size):
            run_at(config, size, name, seed, needed_by)


def run_at(config: str, size: Scale, name: str, seed: int, needed_by: str | None = None) -> None:
    """Run a config on one data set and seed; do nothing if the config does not have them."""
    settings, file = read(config), size.compared(config, name)
    listed = entries(config, size, needed_by).get(name, [])
    if seed not in seeds(config, size):
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    check_source(file, size)
    place, witnesses = seeds(config, size).index(seed), has_witnesses(config, name, size)
    for rows, some in _by_rows(settings, listed, place, size).items():
        with warnings.catch_warnings():
            # several commands and seeds share a results file
            warnings.filterwarnings("ignore", message=".*belong to other runs")
            compare(some, [name], [seed], rows=rows, output=file, witnesses=witnesses, fresh=True)


def has_witnesses(config: str, name: str, size: Scale) -> bool:
    """Return whether a config measures on this data set what needs further models."""
    settings = read(config)
    return settings["witnesses"] and name in settings.get(size.name, {}).get("witnesses", [name])


def check_source(file: Path, size: Scale) -> None:
    """Raise if this code or lines of the file are not the frozen source.

    A quick run may use any code; it removes a file with lines of other code.
    """
    if not size.is_quick:
        frozen.require()
    others = {str(each) for each in frozen.sources(file)} - {code_hash()}
    if others and size.is_quick:
        file.unlink()
    elif others:
        raise UserError(
            f"{file} has results of the source {', '.join(sorted(others))}, and the frozen source "
            f"is {code_hash()}; remove the file to start anew"
        )


def seeds(config: str, size: Scale) -> list[int]:
    return list(read(config).get(size.name, {}).get("seeds", size.seeds))


def seeds_of(config: str, label: str, size: Scale) -> list[int]:
    """Return the seeds of an entry; a slow entry has the first ones only."""
    every = seeds(config, size)
    return every[: read(config)["entries"][label].get("seeds", len(every))]


def people_and_seeds(size: Scale, needed_by: str) -> str:
    """Return the people and seeds of each entry of a table as list items, from the configs."""
    found: dict[tuple[int | None, tuple[int, ...]], list[str]] = {}
    for config in (*COMPARED, "preset"):
        settings = read(config)
        for label, spec in settings["entries"].items():
            if needed_by in spec["for"] and exists(label, spec):
                own = tuple(seeds_of(config, label, size))
                found.setdefault((rows_of(settings, spec, size), own), []).append(f"`{label}`")
    return "\n".join(
        f"- {', '.join(dict.fromkeys(labels))}: {_in_words(rows, own)}."
        for (rows, own), labels in found.items()
    )


def _in_words(rows: int | None, own: tuple[int, ...]) -> str:
    people = "all rejected test rows" if rows is None else f"{rows} rejected test rows a seed"
    return f"{people}, seed{'s' if len(own) > 1 else ''} {', '.join(map(str, own))}"


def _by_rows(
    settings: Mapping[str, Any], listed: list[Entry], place: int, size: Scale
) -> dict[int | None, list[Entry]]:
    """Return the entries to run on the seed at this place, grouped by their number of people.

    A slow entry may have fewer `seeds` and `rows` than the others.
    """
    found: dict[int | None, list[Entry]] = {}
    for entry in listed:
        spec = settings["entries"][entry.label]
        if place < spec.get("seeds", len(size.seeds)):
            found.setdefault(rows_of(settings, spec, size), []).append(entry)
    return found


def rows_of(settings: Mapping[str, Any], spec: Mapping[str, Any], size: Scale) -> int | None:
    """Return the number of people a seed of an entry; None: all."""
    own = {} if size.is_quick else spec
    stated = own.get("rows", settings.get(size.name, {}).get("rows"))
    return size.rows if stated is None else how_many(stated)
