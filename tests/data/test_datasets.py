"""load_dataset: what is in each data set, and what is said when it cannot be had."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import requests

from genrecourse.data import datasets, loan
from genrecourse.data.datasets import (
    CF_DATA_URL,
    DATASETS,
    DatasetEntry,
    Downloaded,
    is_local,
    load_dataset,
)
from genrecourse.errors import UserError

DOWNLOADED = ("adult-carla", "compas", "heloc")
MADE = ("moons", "circles", "corr")

# name: rows train, rows test, features, favourable rows train, favourable rows test
FACTS = {
    "german": (750, 250, 20, 525, 175),
    "adult": (36_624, 12_208, 13, 8_765, 2_922),
    "adult-carla": (36_624, 12_208, 13, 8_747, 2_940),
    "compas": (4_629, 1_543, 7, 3_764, 1_264),
    "heloc": (7_403, 2_468, 21, 3_548, 1_187),
}
IMMUTABLE = {
    "german": ["personal_status_sex", "age", "foreign_worker"],
    "adult": ["race", "sex"],
    "adult-carla": ["race", "sex"],
    "compas": ["race", "sex"],
    "loan": ["sex", "dependants"],
}
DIRECTIONS = {"loan": {"age": "increase", "education": "increase", "job_years": "increase"}}
ADULT_CATEGORIES = [
    *("workclass", "marital-status", "occupation", "relationship", "race", "sex"),
    "native-country",
]
CATEGORIES = {
    "german": [
        *("checking_account", "credit_history", "purpose", "savings", "employed_since"),
        *("personal_status_sex", "other_debtors", "property", "other_instalments", "housing"),
        *("job", "telephone", "foreign_worker"),
    ],
    "adult": ADULT_CATEGORIES,
    "adult-carla": ADULT_CATEGORIES,
    "compas": ["two_year_recid", "c_charge_degree", "race", "sex"],
    "loan": ["sex", "education", "housing", "purpose"],
}


def each(names: Iterable[str]) -> list[Any]:
    """Parameters of a test that skips by name what is not on this machine."""
    return [pytest.param(name, marks=pytest.mark.needs_downloads(name)) for name in names]


@pytest.mark.parametrize("name", each(FACTS))
def test_shapes_and_class_counts(name: str) -> None:
    data = load_dataset(name)
    n_train, n_test, n_features, good_train, good_test = FACTS[name]
    assert data.X_train.shape == (n_train, n_features)
    assert data.X_test.shape == (n_test, n_features)
    assert data.y_train.value_counts().to_dict() == {0: n_train - good_train, 1: good_train}
    assert data.y_test.value_counts().to_dict() == {0: n_test - good_test, 1: good_test}


@pytest.mark.parametrize("name", each(DATASETS))
def test_tables_and_labels_fit_together(name: str) -> None:
    data = load_dataset(name)
    assert list(data.X_train.columns) == list(data.X_test.columns) == data.schema.names
    assert data.target not in data.X_train
    assert data.y_train.name == data.y_test.name == data.target
    assert data.y_train.dtype == data.y_test.dtype == "int64"
    assert data.X_train.index.equals(data.y_train.index)
    assert data.X_test.index.equals(data.y_test.index)
    assert pd.concat([data.X_train, data.X_test]).index.is_unique
    assert not data.X_train.isna().any(axis=None)
    assert not data.X_test.isna().any(axis=None)
    assert data.name == name
    assert data.favourable
    assert data.source
    assert data.licence


@pytest.mark.parametrize("name", each(DATASETS))
def test_schema_says_what_the_protocol_says(name: str) -> None:
    schema = load_dataset(name).schema
    assert [f.name for f in schema if f.role == "immutable"] == IMMUTABLE.get(name, [])
    assert [f.name for f in schema if f.is_category] == CATEGORIES.get(name, [])
    directions = {f.name: f.direction for f in schema if f.direction != "any"}
    assert directions == DIRECTIONS.get(name, {})
    assert all(f.max_step is None for f in schema)


@pytest.mark.parametrize("name", each(DATASETS))
def test_training_rows_hold_every_level(name: str) -> None:
    data = load_dataset(name)
    for feature in data.schema:
        if feature.is_category:
            levels = set(data.X_train[feature.name])
            assert levels == set(feature.categories), feature.name
            assert set(data.X_test[feature.name]) <= levels, feature.name


# ---- embedded -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sha256"),
    [
        ("german", "19e56ae35db201ef0406be3c84c2431773295e049d7561cae9915c6e473489b8"),
        ("adult", "1d1e20cf72640ec7a30517b6a41a4415f82b2fa7ac9702c69112678a8e8f3edd"),
    ],
)
def test_embedded_files_are_the_documented_ones(name: str, sha256: str) -> None:
    """The CSV is hashed, not the file: another zlib may compress the same text differently."""
    folder = files("genrecourse") / "data" / "embedded"
    text = gzip.decompress((folder / f"{name}.csv.gz").read_bytes())
    assert hashlib.sha256(text).hexdigest() == sha256
    assert sha256 in (folder / "README.md").read_text(encoding="utf-8")


def test_german_is_readable() -> None:
    data = load_dataset("german")
    assert set(data.X_train["checking_account"]) == {
        *("< 0 DM", "0-200 DM", ">= 200 DM", "no account")
    }
    numbers = [f.name for f in data.schema if not f.is_category]
    assert (data.X_train[numbers].dtypes == "int64").all()
    assert data.schema["credit_amount"].unit == "DM"
    assert data.schema["duration"].label == "duration of the credit"


def test_german_purposes_have_the_meaning_of_uci() -> None:
    """The raw copy has them under shifted names; these are the counts of UCI's A43 and A46."""
    data = load_dataset("german")
    counts = pd.concat([data.X_train, data.X_test])["purpose"].value_counts()
    assert counts["radio or television"] == 280
    assert counts["education"] == 50


@pytest.mark.needs_downloads("adult-carla")
def test_adult_has_the_rows_of_adult_carla() -> None:
    def rows(name: str) -> Counter[tuple[object, ...]]:
        data = load_dataset(name)
        X, y = pd.concat([data.X_train, data.X_test]), pd.concat([data.y_train, data.y_test])
        return Counter(X.assign(income=y).itertuples(index=False, name=None))

    assert rows("adult") == rows("adult-carla")


# ---- made -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MADE)
def test_made_sets_are_balanced(name: str) -> None:
    data = load_dataset(name)
    assert data.X_train.shape == (1000, 2)
    assert data.X_test.shape == (500, 2)
    assert data.y_train.sum() + data.y_test.sum() == 750
    assert 400 < data.y_train.sum() < 600  # shuffled before they are split


@pytest.mark.parametrize("name", MADE)
def test_made_sets_follow_the_seed(name: str) -> None:
    first, again, other = load_dataset(name, 7), load_dataset(name, 7), load_dataset(name, 8)
    pd.testing.assert_frame_equal(first.X_train, again.X_train)
    pd.testing.assert_frame_equal(first.X_test, again.X_test)
    pd.testing.assert_series_equal(first.y_train, again.y_train)
    assert list(first.X_train.columns) == ["x1", "x2"]
    assert not first.X_train.equals(other.X_train)
    assert not first.X_test.equals(other.X_test)


def test_corr_is_two_correlated_gaussians() -> None:
    data = load_dataset("corr")
    for label, centre in ((0, 0.0), (1, 2.0)):
        points = data.X_train[data.y_train == label]
        assert points.corr().loc["x1", "x2"] == pytest.approx(0.8, abs=0.05)
        assert points["x1"].mean() == pytest.approx(centre, abs=0.15)
        assert points["x2"].mean() == pytest.approx(0.0, abs=0.15)


# ---- the loan table, whose truth is known -----------------------------------------------------

PERSON = {
    "age": 40,
    "sex": "female",
    "education": "vocational",
    "job_years": 0,
    "dependants": 2,
    "income": 2550,
    "housing": "renting",
    "savings": 0,
    "debt": 0,
    "purpose": "car",
    "amount": 12750,
    "duration": 20,
}


def chance(**changes: Any) -> float:
    return float(loan.true_probability(pd.DataFrame([{**PERSON, **changes}]))[0])


def test_the_truth_of_the_loan_table_by_hand() -> None:
    # income a head 2550 / 1.7 = 1500; burden 12750 / 20 / 2550 = 0.25; no savings, no years
    logit = 0.0 - 0.0 + 2.5 * (0 - 0.3) + 0.6 * (0 - 1.5) - 0.5 + 0.1
    assert chance() == pytest.approx(1 / (1 + np.exp(-logit)))
    # a business at the start: 0.5 worse than a car, and 1.2 for the job of under two years
    worse = logit - 0.5 - 1.2
    assert chance(purpose="business") == pytest.approx(1 / (1 + np.exp(-worse)))
    # debts of 30,600 cost 510 a month, a fifth of the income; savings as large as the amount
    other = logit - 10 * 0.2 + 2.5 * 0.5
    assert chance(debt=30_600, savings=12_750) == pytest.approx(1 / (1 + np.exp(-other)))


def test_the_truth_holds_neither_age_nor_sex_nor_education() -> None:
    assert chance(age=60, sex="male", education="degree") == chance()
    for better in (
        {"job_years": 3},
        {"dependants": 0},
        {"income": 3000},
        {"housing": "owner"},
        {"savings": 2000},
        {"purpose": "home"},
        {"amount": 10_000},
        {"duration": 36},
    ):
        assert chance(**better) > chance() + 0.01, better
    assert chance(debt=5000) < chance() - 0.01


def test_loans_are_repaid_as_often_as_the_truth_says() -> None:
    data = load_dataset("loan")
    assert data.truth is loan.true_probability
    X, y = pd.concat([data.X_train, data.X_test]), pd.concat([data.y_train, data.y_test])
    p = data.truth(X)
    assert (len(data.X_train), len(data.X_test)) == (8000, 2000)
    assert 0.4 < y.mean() < 0.7
    for part in np.array_split(np.argsort(p), 10):
        spread = np.sqrt((p[part] * (1 - p[part])).sum())
        assert abs((y.to_numpy()[part] - p[part]).sum()) < 4 * spread
    assert p.std() > 0.25  # a row tells a good deal


def test_the_loan_table_follows_its_mechanism() -> None:
    X = load_dataset("loan").X_train
    assert loan.possible(X).all()
    # what is drawn from what: women earn less, and the truth knows it through income alone
    by_sex = X.groupby("sex")["income"].median()
    assert by_sex["male"] / by_sex["female"] == pytest.approx(np.exp(0.09), abs=0.03)
    assert X.groupby("education")["income"].median()[list(loan.EDUCATION)].is_monotonic_increasing
    assert X["age"].corr(X["job_years"]) > 0.3
    assert X["income"].corr(X["savings"], method="spearman") > 0.1
    assert set(X["duration"] % 6) == {0}


def test_who_is_possible_by_hand() -> None:
    rows = [(40, 22, "degree"), (40, 23, "degree"), (21, 3, "school"), (21, 0, "degree")]
    X = pd.DataFrame(rows, columns=["age", "job_years", "education"])
    assert loan.possible(X).tolist() == [True, False, True, False]


def test_the_loan_table_follows_the_seed() -> None:
    first, again, other = (load_dataset("loan", seed) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(first.X_train, again.X_train)
    pd.testing.assert_series_equal(first.y_test, again.y_test)
    assert not first.X_train.equals(other.X_train)


def test_no_other_data_set_claims_to_know_the_truth() -> None:
    assert [name for name, entry in DATASETS.items() if entry.truth is not None] == ["loan"]


def test_the_seed_does_not_touch_loaded_sets() -> None:
    pd.testing.assert_frame_equal(load_dataset("german", 1).X_train, load_dataset("german").X_train)


# ---- not to be had --------------------------------------------------------------------------

TRAIN, TEST = b"a,good\n1,0\n2,1\n", b"a,good\n3,1\n"


def tiny(address: str, train: bytes = TRAIN) -> DatasetEntry:
    """An entry whose files are known by the checksums of `train` and TEST."""
    sha256 = {
        "tiny_train.csv": hashlib.sha256(train).hexdigest(),
        "tiny_test.csv": hashlib.sha256(TEST).hexdigest(),
    }
    read = Downloaded(address, sha256)
    return DatasetEntry(read, target="good", favourable="yes", label=1, source="-", licence="-")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and no folder."""
    monkeypatch.delenv("GENRECOURSE_DATA", raising=False)
    monkeypatch.setattr(datasets, "user_cache_dir", lambda name: str(tmp_path / name))
    return tmp_path / "genrecourse"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise requests.exceptions.ConnectionError("no network in this test")

    monkeypatch.setattr(requests, "get", refuse)


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A web server on this machine with the two tiny files."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "tiny_train.csv").write_bytes(TRAIN)
    (site / "tiny_test.csv").write_bytes(TEST)

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(site))  # type: ignore[arg-type]

        def log_message(self, *args: object) -> None:
            pass

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_unknown_name_lists_the_names() -> None:
    with pytest.raises(UserError, match="no data set 'mnist'") as error:
        load_dataset("mnist")
    assert all(name in str(error.value) for name in DATASETS)


@pytest.mark.usefixtures("cache")
def test_what_is_local_without_a_download() -> None:
    assert [name for name in DATASETS if is_local(name)] == ["german", "adult", *MADE, "loan"]


@pytest.mark.usefixtures("cache", "no_network")
@pytest.mark.parametrize("name", DOWNLOADED)
def test_no_network_and_no_folder(name: str) -> None:
    file = name.removesuffix("-carla") + "_train.csv"
    with pytest.raises(UserError) as error:
        load_dataset(name)
    said = str(error.value)
    assert f"'{file}'" in said
    assert CF_DATA_URL + file in said
    assert "GENRECOURSE_DATA" in said
    assert "ConnectionError" in said


@pytest.mark.usefixtures("no_network")
def test_a_file_that_the_folder_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENRECOURSE_DATA", str(tmp_path))
    with pytest.raises(UserError, match=r"no file 'heloc_train\.csv'") as error:
        load_dataset("heloc")
    assert str(tmp_path) in str(error.value)
    assert CF_DATA_URL + "heloc_train.csv" in str(error.value)


@pytest.mark.usefixtures("no_network")
def test_the_folder_is_read_and_its_checksums_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENRECOURSE_DATA", str(tmp_path))
    monkeypatch.setitem(DATASETS, "tiny", tiny("https://example.org/"))
    (tmp_path / "tiny_train.csv").write_bytes(TRAIN)
    assert not is_local("tiny")
    (tmp_path / "tiny_test.csv").write_bytes(TEST)
    assert is_local("tiny")
    assert load_dataset("tiny").X_train["a"].to_list() == [1, 2]

    (tmp_path / "tiny_test.csv").write_bytes(TEST + b"4,1\n")
    with pytest.raises(UserError, match=r"tiny_test\.csv has the sha256 .* instead of"):
        load_dataset("tiny")


def test_a_download_is_kept(
    cache: Path, address: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setitem(DATASETS, "tiny", tiny(address))
    assert not is_local("tiny")
    assert load_dataset("tiny").y_train.to_list() == [0, 1]
    assert (cache / "tiny_train.csv").read_bytes() == TRAIN

    request.getfixturevalue("no_network")
    assert is_local("tiny")
    assert load_dataset("tiny").X_test["a"].to_list() == [3]


def test_a_download_shows_its_progress(
    address: str, cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(DATASETS, "tiny", tiny(address))
    load_dataset("tiny")
    out, err = capfd.readouterr()
    assert out == ""  # a command's output is not mixed with it
    assert "100%" in err


def test_a_download_that_is_not_the_file(
    cache: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DATASETS, "tiny", tiny(address, train=b"something else"))
    with pytest.raises(
        UserError, match=r"the file from .*tiny_train\.csv does not have the sha256"
    ):
        load_dataset("tiny")
    assert not (cache / "tiny_train.csv").exists()


@pytest.mark.usefixtures("cache")
def test_a_download_that_the_server_does_not_have(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DATASETS, "tiny", tiny(address + "elsewhere/"))
    with pytest.raises(UserError, match="HTTPError"):
        load_dataset("tiny")
