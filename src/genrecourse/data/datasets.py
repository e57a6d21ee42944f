"""Data sets to try the library on: `load_dataset(name)`. To add one, add an entry to `DATASETS`.

There are three kinds: *embedded* in the package (embedded/README.md has their sources and
licences), *downloaded* on first use (or read from the folder that GENRECOURSE_DATA names), and
*made* from a seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pooch
from platformdirs import user_cache_dir
from rich.console import Console
from rich.progress import Progress
from sklearn.datasets import make_circles, make_moons

from genrecourse.data import loan
from genrecourse.errors import UserError, did_you_mean
from genrecourse.model.classifier import MLPConfig
from genrecourse.table.schema import Schema

# If this variable names a folder, files are read from it and nothing is downloaded.
DATA_VARIABLE = "GENRECOURSE_DATA"
EMBEDDED = Path(__file__).parent / "embedded"  # the data sets and the policy in the package
CF_DATA_COMMIT = "2d56677095bd11deba5d8e3731f8941b95e0a880"
CF_DATA_URL = f"https://raw.githubusercontent.com/carla-recourse/cf-data/{CF_DATA_COMMIT}/"

TrainAndTest = tuple[pd.DataFrame, pd.DataFrame]
Truth = Callable[[pd.DataFrame], np.ndarray]  # rows -> true probabilities of a favourable outcome


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table split into training and test rows, with facts about it.

    In `y_train` and `y_test`, 1 is the favourable outcome. The index of the test rows continues
    that of the training rows, so both can be put together.

    Examples:
        >>> data = load_dataset("moons", seed=3)
        >>> data.X_train.shape, data.X_test.index[0] == len(data.X_train)
        ((1000, 2), True)
    """

    name: str
    X_train: pd.DataFrame
    y_train: pd.Series
    X_test: pd.DataFrame
    y_test: pd.Series
    schema: Schema
    target: str
    favourable: str
    source: str
    licence: str
    h_config: MLPConfig  # how the evaluation protocol trains h on this data
    truth: Truth | None = None  # None: the true mechanism is unknown


@dataclass(frozen=True)
class DatasetEntry:
    """How to read a data set, and the facts about it that are not in the table.

    Examples:
        >>> DATASETS["german"].target, DATASETS["german"].label
        ('credit', 'good')
        >>> DATASETS["german"].immutable
        ('personal_status_sex', 'age', 'foreign_worker')
    """

    read: Callable[[int], TrainAndTest]  # takes a seed, which only made data sets use
    target: str
    favourable: str  # the favourable outcome in words
    label: str | int  # the favourable outcome in the target column
    source: str
    licence: str
    immutable: tuple[str, ...] = ()
    features: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # for with_feature
    h_config: MLPConfig = field(default_factory=MLPConfig)
    truth: Truth | None = None
    schema: Schema | None = None  # None: as it is inferred from the training rows


def load_dataset(name: str, seed: int = 0) -> Dataset:
    """Return the data set of that name. `seed` has an effect only on data sets that are made.

    Examples:
        >>> data = load_dataset("german")
        >>> data.X_train.shape, data.target, data.favourable
        ((750, 20), 'credit', 'good')
    """
    entry = _entry(name)
    train, test = entry.read(seed)
    train = train.reset_index(drop=True)
    test = test.set_axis(pd.RangeIndex(len(train), len(train) + len(test)), axis="index")
    X_train = train.drop(columns=entry.target)
    return Dataset(
        name=name,
        X_train=X_train,
        y_train=_is_favourable(train, entry),
        X_test=test.drop(columns=entry.target),
        y_test=_is_favourable(test, entry),
        schema=_schema(X_train, entry),
        target=entry.target,
        favourable=entry.favourable,
        source=entry.source,
        licence=entry.licence,
        h_config=entry.h_config,
        truth=entry.truth,
    )


def read_whole(name: str, seed: int = 0) -> pd.DataFrame:
    """Return training and test rows as one table, with the outcome as a column.

    Examples:
        >>> read_whole("german")["credit"].value_counts().to_dict()
        {'good': 700, 'bad': 300}
    """
    return pd.concat(_entry(name).read(seed), ignore_index=True)


def is_local(name: str) -> bool:
    """Return whether `load_dataset(name)` needs no download.

    Examples:
        >>> is_local("german")
        True
    """
    read = _entry(name).read
    return not isinstance(read, Downloaded) or all((_folder() / f).is_file() for f in read.sha256)


def _entry(name: str) -> DatasetEntry:
    if name not in DATASETS:
        close = did_you_mean(name, DATASETS)
        raise UserError(f"no data set '{name}'{close}; choose one of {', '.join(DATASETS)}")
    return DATASETS[name]


def _is_favourable(table: pd.DataFrame, entry: DatasetEntry) -> pd.Series:
    return (table[entry.target] == entry.label).astype("int64")


def _schema(X: pd.DataFrame, entry: DatasetEntry) -> Schema:
    if entry.schema is not None:
        return entry.schema
    schema = Schema.infer(X, immutable=entry.immutable)
    for name, changes in entry.features.items():
        schema = schema.with_feature(name, **changes)
    return schema


# ---- embedded -------------------------------------------------------------------------------


def _embedded(name: str, seed: int) -> TrainAndTest:
    with (EMBEDDED / f"{name}.csv.gz").open("rb") as file:
        table = pd.read_csv(file, compression="gzip", keep_default_na=False)
    split = table.pop("split")
    return table[split == "train"], table[split == "test"]


# ---- downloaded -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Downloaded:
    """Reads a training and a test CSV file from the web, or from a local copy.

    Examples:
        >>> read = Downloaded("https://example.org/", {"a_train.csv": "1f", "a_test.csv": "2e"})
        >>> list(read.sha256)
        ['a_train.csv', 'a_test.csv']
    """

    address: str  # of the folder on the web that holds both files
    sha256: Mapping[str, str]  # file name -> checksum; the training file comes first

    def __call__(self, seed: int) -> TrainAndTest:
        """Return the training and the test table; `seed` has no effect."""
        train, test = (
            pd.read_csv(_fetch(self.address + file, file, sha256))
            for file, sha256 in self.sha256.items()
        )
        return train, test


def _folder() -> Path:
    return Path(os.environ.get(DATA_VARIABLE) or user_cache_dir("genrecourse"))


def _fetch(url: str, file: str, sha256: str) -> Path:
    """Return the path of the file on this machine. Raises UserError if its checksum is wrong."""
    if not os.environ.get(DATA_VARIABLE):
        return _download(url, file, sha256)
    path = _folder() / file
    if not path.is_file():
        raise UserError(
            f"no file '{file}' in the folder {path.parent}, which {DATA_VARIABLE} names; "
            f"get it from {url}, or unset {DATA_VARIABLE} to download it"
        )
    seen = pooch.file_hash(str(path))
    if seen != sha256:
        raise UserError(
            f"{path} has the sha256 {seen} instead of {sha256}; "
            f"get it again from {url}, or unset {DATA_VARIABLE} to download it"
        )
    return path


def _download(url: str, file: str, sha256: str) -> Path:
    """Return the path of the file in the cache; download it if it is not there."""
    try:
        path = pooch.retrieve(
            url,
            known_hash=f"sha256:{sha256}",
            fname=file,
            path=_folder(),
            downloader=partial(_with_progress, file),
        )
    except OSError as error:  # requests raises OSErrors, and so does a cache that is not writable
        problem = f"it could not be downloaded from {url} ({type(error).__name__})"
    except ValueError:  # pooch raises it if the checksum is wrong
        problem = f"the file from {url} does not have the sha256 {sha256}"
    else:
        return Path(path)
    raise UserError(
        f"the file '{file}' is needed, but {problem}; "
        f"put it into a folder and set {DATA_VARIABLE} to that folder"
    )


def _with_progress(file: str, url: str, output: Any, pooch_: Any) -> None:
    with Progress(console=Console(stderr=True)) as progress:
        pooch.HTTPDownloader(progressbar=_DownloadBar(progress, file))(url, output, pooch_)


class _DownloadBar:
    """The interface of pooch's progress bars, drawn by rich: pooch's own bar needs tqdm."""

    def __init__(self, progress: Progress, file: str) -> None:
        self._progress = progress
        self._task = progress.add_task(file, total=None)

    @property
    def total(self) -> float | None:
        return self._progress.tasks[0].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.update(self._task, total=size or None)  # 0: the server gave no size

    def update(self, size: int) -> None:
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        """Do nothing: the `with` around the download closes the bar, also after an error."""


# ---- made -----------------------------------------------------------------------------------

N_TRAIN, N_TEST = 1000, 500


def _made(draw: Callable[[int], tuple[np.ndarray, np.ndarray]], seed: int) -> TrainAndTest:
    points, labels = draw(seed)  # rows in random order
    table = pd.DataFrame(points, columns=["x1", "x2"]).assign(y=labels)
    return table.iloc[:N_TRAIN], table.iloc[N_TRAIN:]


def _moons(seed: int) -> tuple[np.ndarray, np.ndarray]:
    points, labels = make_moons(N_TRAIN + N_TEST, noise=0.15, random_state=seed)
    return points, labels


def _circles(seed: int) -> tuple[np.ndarray, np.ndarray]:
    points, labels = make_circles(N_TRAIN + N_TEST, noise=0.08, factor=0.5, random_state=seed)
    return points, labels


def _corr(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussians with correlation 0.8, the second one 2 to the right of the first."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(N_TRAIN + N_TEST) % 2
    noise = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], N_TRAIN + N_TEST)
    return noise + np.outer(labels, [2.0, 0.0]), labels


# ---- the data sets --------------------------------------------------------------------------

_CF_DATA = f"carla-recourse/cf-data on GitHub, commit {CF_DATA_COMMIT}"
_MIT_ONLY = "MIT (the repository); the terms of the data in it are not stated there"

_GERMAN_FEATURES: dict[str, dict[str, Any]] = {
    "checking_account": {
        "wording": "checking account",
        "categories": ("no account", "< 0 DM", "0-200 DM", ">= 200 DM"),
    },
    "duration": {"wording": "duration of the credit", "unit": "months"},
    "credit_history": {"wording": "credit history"},
    "purpose": {"wording": "purpose of the credit"},
    "credit_amount": {"wording": "credit amount", "unit": "DM"},
    "savings": {
        "wording": "savings",
        "categories": ("unknown or none", "< 100 DM", "100-500 DM", "500-1000 DM", ">= 1000 DM"),
    },
    "employed_since": {
        "wording": "time in the present job",
        "categories": ("unemployed", "< 1 year", "1-4 years", "4-7 years", ">= 7 years"),
        "ordered": True,
    },
    # These four numbers are classes, not amounts (embedded/README.md), so they have no unit.
    "instalment_rate": {"wording": "instalments by income (class 1: 35% and more, 4: under 20%)"},
    "residence_since": {
        "wording": "time at this address (class 1: under a year, 4: seven and more)"
    },
    "existing_credits": {"wording": "credits at this bank (class 1 to 4)"},
    "dependants": {"wording": "dependants (class 1: three or more, 2: up to two)"},
    "personal_status_sex": {"wording": "personal status and sex"},
    "other_debtors": {"wording": "other debtors or guarantors"},
    "property": {"wording": "property"},
    "age": {"wording": "age", "unit": "years"},
    "other_instalments": {"wording": "other instalment plans"},
    "housing": {"wording": "housing"},
    "job": {"wording": "job"},
    "telephone": {"wording": "telephone"},
    "foreign_worker": {"wording": "foreign worker"},
}

_ADULT_FEATURES: dict[str, dict[str, Any]] = {
    "age": {"unit": "years"},
    "workclass": {"wording": "class of work"},
    "fnlwgt": {"wording": "census weight"},
    "education-num": {"wording": "level of education (1 to 16)"},
    "marital-status": {"wording": "marital status"},
    "capital-gain": {"wording": "capital gain", "unit": "USD"},
    "capital-loss": {"wording": "capital loss", "unit": "USD"},
    "hours-per-week": {"wording": "working time per week", "unit": "hours"},
    "native-country": {"wording": "native country"},
}

_COMPAS_FEATURES: dict[str, dict[str, Any]] = {
    "age": {"unit": "years"},
    # The file has 0 and 1, but it is an event, not an amount.
    "two_year_recid": {
        "wording": "new offence within two years",
        "kind": "category",
        "categories": (0, 1),
        "range": None,
        "decimals": None,
    },
    "c_charge_degree": {"wording": "degree of the charge"},
    "priors_count": {"wording": "number of prior offences"},
    "length_of_stay": {"wording": "length of stay in jail", "unit": "days"},
}


def _made_entry(
    draw: Callable[[int], tuple[np.ndarray, np.ndarray]],
    source: str,
    hidden: tuple[int, ...] = (4, 4),
) -> DatasetEntry:
    return DatasetEntry(
        read=partial(_made, draw),
        target="y",
        favourable="class 1",
        label=1,
        source=source,
        licence="none needed: made by this library",
        h_config=MLPConfig(hidden=hidden, lr=0.05, epochs=400, balanced=False),
    )


DATASETS: dict[str, DatasetEntry] = {
    "german": DatasetEntry(
        read=partial(_embedded, "german"),
        target="credit",
        favourable="good",
        label="good",
        source="UCI Statlog (German Credit Data), doi:10.24432/C5NC77",
        licence="CC BY 4.0",
        immutable=("personal_status_sex", "age", "foreign_worker"),
        features=_GERMAN_FEATURES,
    ),
    "adult": DatasetEntry(
        read=partial(_embedded, "adult"),
        target="income",
        favourable=">50K",
        label=">50K",
        source="UCI Adult, doi:10.24432/C5XW20",
        licence="CC BY 4.0",
        immutable=("race", "sex"),
        features=_ADULT_FEATURES,
    ),
    "adult-carla": DatasetEntry(
        read=Downloaded(
            CF_DATA_URL,
            {
                "adult_train.csv": (
                    "949236c2502a3daa4b660ba35093ee133e1d152f865a5323768b0b7a50a8e292"
                ),
                "adult_test.csv": (
                    "5fa0554e72173473f4f826ed28daec5f2ce76c3af7a9f1cb6fe3a806f87b6b6b"
                ),
            },
        ),
        target="income",
        favourable=">50K",
        label=1,
        source=_CF_DATA,
        licence="MIT (the repository), CC BY 4.0 (UCI Adult, of which it is a copy)",
        immutable=("race", "sex"),
        features=_ADULT_FEATURES,
    ),
    "compas": DatasetEntry(
        read=Downloaded(
            CF_DATA_URL,
            {
                "compas_train.csv": (
                    "d9cab073348a902bc09e4e0792f2b73aab1c6e419db1da655bbad978f33b80cf"
                ),
                "compas_test.csv": (
                    "6849f34e0edad380bfa3b62c5a947bd0a9122cc639496e3048f04c6c674127eb"
                ),
            },
        ),
        target="score",
        favourable="not high risk",
        label=1,
        source=_CF_DATA,
        licence=_MIT_ONLY,
        immutable=("race", "sex"),
        features=_COMPAS_FEATURES,
    ),
    "heloc": DatasetEntry(
        read=Downloaded(
            CF_DATA_URL,
            {
                "heloc_train.csv": (
                    "92187da9daab7d1b074192d45d29fd3c1aca1f3cac8f37800780310ea7cf2b36"
                ),
                "heloc_test.csv": (
                    "56a00b4f7b96bf1020a8d05d3b61ea3a4bc6fe637376c0b929dceb3f319a0e58"
                ),
            },
        ),
        target="RiskPerformance",
        favourable="Good",
        label=1,
        source=_CF_DATA,
        licence=_MIT_ONLY,
        h_config=MLPConfig(balanced=False),
    ),
    "moons": _made_entry(_moons, "made: sklearn.datasets.make_moons, noise 0.15"),
    "circles": _made_entry(
        _circles, "made: sklearn.datasets.make_circles, noise 0.08, factor 0.5", (8, 4)
    ),
    "corr": _made_entry(_corr, "made: two Gaussians with correlation 0.8, one a class"),
    "loan": DatasetEntry(
        read=loan.read,
        target=loan.TARGET,
        favourable="repaid",
        label=loan.REPAID,
        source="made: a structural causal model (genrecourse/data/loan.py)",
        licence="none needed: made by this library",
        immutable=loan.IMMUTABLE,
        features=loan.FEATURES,
        h_config=MLPConfig(balanced=False),
        truth=loan.true_probability,
    ),
}
