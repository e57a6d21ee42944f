"""What is run: configs/*.toml -> entries of a comparison -> results/CONFIG/DATASET.jsonl.

A config has one results file a data set, so that data sets can be run side by side. Each of its
entries says which tables and figures need it, so that a command runs what it needs and `all` runs
everything with one case for each data set and seed.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from genrecourse.evaluation.comparison import Entry, compare
from genrecourse.methods import METHODS
from genrecourse.methods.genre import PAPER_PRESET, GenRe

HERE = Path(__file__).parent
LAMBDAS = ("0.5", "1.0", "2.5", "5.0", "10.0")
TAUS = ("5.0", "10.0", "15.0")
SIGMAS = ("2e-07", "2e-06", "2e-05", "2e-4", "2e-3", "2e-2")  # as the paper writes them
SAFETIES = ("0.0", "0.25", "0.5", "0.75", "1.0")
COMPARED = ("main", "baselines", "settings", "others")  # configs whose entries are run by `all`
FRACTIONS = ("0.1", "0.2", "0.4", "0.8", "1.0")
# What one fitted model is asked; the empty name is the request without any option.
ASKS: dict[str, dict[str, dict[str, float]]] = {
    "lambda": {lam: {"lam": float(lam)} for lam in LAMBDAS},
    "guidance": {"": {}, "lambda=10": {"lam": 10.0}},
    "safety": {"": {}} | {f"safety {safety}": {"safety": float(safety)} for safety in SAFETIES},
    "temperature": {"": {}}
    | {
        # the paper's tau multiplies the logits, our temperature divides them
        f"{tau}, {sigma}": {"temperature": 1 / float(tau), "sigma": float(sigma)}
        for sigma in SIGMAS
        for tau in TAUS
    },
}


@dataclass(frozen=True)
class Scale:
    """How much is run, and where it goes."""

    name: str  # "full" or "quick"
    results: Path
    images: Path
    seeds: tuple[int, ...]
    rows: int | None
    theory_repeats: int
    people_2d: int
    steps_2d: int
    economies: tuple[str, ...]

    @property
    def is_quick(self) -> bool:
        return self.name == "quick"

    def file(self, name: str) -> Path:
        """Where the lines of something that is no comparison are."""
        return self.results / f"{name}.jsonl"

    def compared(self, config: str, dataset: str) -> Path:
        """Where the lines of a config on a data set are."""
        return self._folder(config) / f"{dataset}.jsonl"

    def all_compared(self, config: str) -> list[Path]:
        return sorted(self._folder(config).glob("*.jsonl"))

    def _folder(self, config: str) -> Path:
        """The preset is never run quickly: its lines are shown."""
        return (HERE / "results" if config == "preset" else self.results) / config


def scale(name: str) -> Scale:
    said = read("protocol")[name]
    results, images = HERE / "results", HERE / "images"
    if name == "quick":
        results, images = results / "quick", results / "quick" / "images"
    return Scale(
        name,
        results,
        images,
        tuple(said["seeds"]),
        None if said["rows"] == "all" else said["rows"],
        said["theory_repeats"],
        said["people_2d"],
        said["steps_2d"],
        tuple(said.get("economies", ())),
    )


@cache
def read(config: str) -> dict[str, Any]:
    return tomllib.loads((HERE / "configs" / f"{config}.toml").read_text(encoding="utf-8"))


def economies(size: Scale) -> list[str]:
    """Everything that a quick run leaves out, in words."""
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
    """Entries that a quick run has on some data sets only, or on none."""
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
    """For each data set what is run on it, `needed_by` one table or figure or by any."""
    said = read(config)
    found: dict[str, list[Entry]] = {name: [] for name in said["datasets"]}
    for label, spec in said["entries"].items():
        if needed_by not in (None, *spec["for"]) or not exists(label, spec):
            continue
        where = spec.get("datasets", said["datasets"])
        if size.is_quick:
            where = spec.get("quick_datasets", where)
        entry = _entry(label, spec, _quick_params(said, spec) if size.is_quick else {})
        for name in where:
            found[name].append(entry)
    return {name: listed for name, listed in found.items() if listed}


def exists(label: str, spec: Mapping[str, Any]) -> bool:
    """Whether the library has the method and each of its parameters; else the row is absent."""
    maker = METHODS.get(spec.get("method", label))
    if maker is None:
        return False
    return set(spec.get("params", {})) <= set(maker().get_params(deep=False))


def is_absent(label: str) -> bool:
    """Whether a label (of an entry, or of one of its asks) is something the library cannot do."""
    for name in (*COMPARED, "preset"):
        spec = read(name)["entries"].get(label.split("/")[0])
        if spec is not None:
            return not exists(label, spec)
    return label not in METHODS


def _quick_params(said: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a quick run makes smaller: of this entry, or of every GenRe of the config."""
    return spec.get("quick_params") or said["quick"].get("params", {})


def _entry(label: str, spec: Mapping[str, Any], quick: Mapping[str, Any]) -> Entry:
    method = spec.get("method", label)
    kind = _class_of(METHODS[method])
    params = dict(PAPER_PRESET) if spec.get("preset") == "paper" else {}
    params |= spec.get("params", {})
    params = dict(quick if issubclass(kind, GenRe) or "quick_params" in spec else {}) | params
    return Entry(
        label,
        method,
        {name: _record(kind, name, value) for name, value in params.items()},
        ASKS[spec["asks"]] if "asks" in spec else {"": {}},
        spec.get("data_fraction", 1.0),
    )


def _record(kind: Any, name: str, value: Any) -> Any:
    """A table of TOML as the dataclass that the parameter is."""
    return kind._records[name](**value) if isinstance(value, dict) else value


def _class_of(maker: Any) -> Any:
    return _class_of(maker.func) if isinstance(maker, partial) else maker


# ---- running ------------------------------------------------------------------------------------


def run(config: str, size: Scale, needed_by: str | None = None) -> None:
    """Run what is missing in the results file of a config, one seed after the other."""
    for name in read(config)["datasets"]:
        for seed in seeds(config, size):
            run_at(config, size, name, seed, needed_by)


def run_at(config: str, size: Scale, name: str, seed: int, needed_by: str | None = None) -> None:
    """The same on one data set and seed; nothing, where the config does not have them."""
    said, file = read(config), size.compared(config, name)
    listed = entries(config, size, needed_by).get(name, [])
    if seed not in seeds(config, size):
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    place = seeds(config, size).index(seed)
    witnesses = said["witnesses"] and name in said.get(size.name, {}).get("witnesses", [name])
    for rows, some in _by_rows(said, listed, place, size).items():
        with warnings.catch_warnings():
            # a results file is shared by several commands, data sets and seeds
            warnings.filterwarnings("ignore", message=".*belong to other runs")
            compare(some, [name], [seed], rows=rows, output=file, witnesses=witnesses)


def seeds(config: str, size: Scale) -> list[int]:
    return list(read(config).get(size.name, {}).get("seeds", size.seeds))


def _by_rows(
    said: Mapping[str, Any], listed: list[Entry], place: int, size: Scale
) -> dict[int | None, list[Entry]]:
    """The entries that are run on the seed at this place, by the number of people they get: a slow
    one may have fewer `seeds` and `rows` than the rest."""
    found: dict[int | None, list[Entry]] = {}
    usual = said.get(size.name, {}).get("rows", size.rows)
    for entry in listed:
        spec = said["entries"][entry.label]
        if place < spec.get("seeds", len(size.seeds)):
            rows = usual if size.is_quick else spec.get("rows", usual)
            found.setdefault(rows, []).append(entry)
    return found
