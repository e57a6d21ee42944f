"""A fit from Parquet and from batches: equal to one table in one go, and bounded beyond the cap."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.errors import UserError
from genrecourse.genre.choose_gamma import gammas_for
from genrecourse.methods import other_rows
from genrecourse.methods.base import Method, TrainingRows
from genrecourse.methods.genre import GenRe
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.table import large_tables
from genrecourse.table.large_tables import row_keys
from genrecourse.table.schema import Schema

RNG = np.random.default_rng(0)
N = 600
X = pd.DataFrame(
    {
        "income": RNG.integers(0, 100, N),
        "debt": RNG.normal(30, 10, N).round(2),
        "job": RNG.choice(["cook", "nurse", "baker"], N),
    }
)
REPAID = np.where(X["income"] - X["debt"] + RNG.normal(0, 5, N) > 20, "yes", "no")
TABLE = X.assign(repaid=REPAID)


def score(table: pd.DataFrame) -> np.ndarray:
    return np.clip(0.5 + (table["income"] - table["debt"] - 20).to_numpy() / 200, 0.0, 1.0)


def quick(**changes: Any) -> GenRe:
    return GenRe(**{**GenRe._test_params(), **changes})


def learned(method: Method) -> dict[str, Any]:
    """Return what a model file would hold, without the seconds that the fit took."""
    state, arrays = method._state()
    report = dict(state.pop("report", {}))
    timed = {"seconds", "training", "rows"}
    kept = {name: report[name] for name in report if name not in timed}
    curve = report.get("training", {}).get("curve")
    arrays = {name: array.tobytes() for name, array in arrays.items()}
    return {"state": state, "report": kept, "curve": curve, "arrays": arrays}


@pytest.fixture(scope="module")
def in_one_go() -> GenRe:
    from genrecourse.model.classifier import Classifier

    return quick(classifier=Classifier(favourable="yes")).fit(X, TABLE["repaid"])


@pytest.mark.parametrize("kind", ["folder", "batches", "named"])
def test_a_table_that_fits_gives_the_model_of_one_go(
    kind: str, tmp_path: Path, in_one_go: GenRe
) -> None:
    from genrecourse.model.classifier import Classifier

    parts = [TABLE.iloc[i : i + 71] for i in range(0, N, 71)]
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{i:02}.parquet")
    source: Any = {
        "folder": tmp_path,
        "batches": parts,
        "named": TABLE,
    }[kind]
    method = quick(classifier=Classifier(favourable="yes")).fit(source, y="repaid")
    assert learned(method) == learned(in_one_go)
    assert learned(method)["arrays"]["net.decoded"]  # the density is among what was compared


# ---- more rows than are held -------------------------------------------------------------------


class Looking(NearestNeighbour):
    """Remembers the rows that it is given."""

    def _fit(self, rows: TrainingRows) -> None:
        self.given_ = rows
        super()._fit(rows)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_tables, "MOST_HELD", 100)
    monkeypatch.setattr(other_rows, "MOST_SOURCES", 150)
    monkeypatch.setattr(other_rows, "MOST_CANDIDATES", 60)


def batches(size: int) -> list[pd.DataFrame]:
    return [TABLE.iloc[i : i + size] for i in range(0, N, size)]


@pytest.mark.usefixtures("small")
def test_more_rejected_and_accepted_rows_join_the_held_ones() -> None:
    from genrecourse.model.classifier import Classifier

    h = Classifier(score, favourable="yes")
    method = Looking(h).fit(batches(50), y="repaid")
    rows, larger = method.given_, method.given_.larger
    assert larger is not None
    rejected, favourable = ~h.accepts(X), REPAID == "yes"
    assert larger.rows == N
    assert larger.rejected == rejected.sum()
    assert larger.accepted == (~rejected & favourable).sum()
    held = large_tables.hold(batches(600), method.random_state).rows
    assert larger.even == len(held) < 120
    # the rejected and accepted rows with the smallest keys, as many as there is room for
    keys, F = row_keys(np.arange(N), 0), method.problem_.encoder.features(X)
    more = np.setdiff1d(np.arange(N), held)
    expected = [held]
    for which, most in ((rejected, 150), (~rejected & favourable, 60)):
        mine = more[which[more]]
        room = max(0, most - int(which[held].sum()))
        expected.append(np.sort(mine[np.argsort(keys[mine])][:room]))
    np.testing.assert_array_equal(rows.F, F[np.concatenate(expected)])
    np.testing.assert_array_equal(rows.favourable, favourable[np.concatenate(expected)])
    assert len(rows.even.Z) == len(rows.some(10**6, 0).Z) == len(held)
    even = {tuple(row) for row in rows.even.F}
    assert {tuple(row) for row in rows.some(90, 0).F} <= even  # judge and verifier learn from these
    assert method.schema_ == Schema.infer(X)


@pytest.mark.usefixtures("small")
def test_the_model_of_a_long_table_does_not_depend_on_the_batches() -> None:
    from genrecourse.model.classifier import Classifier

    h = Classifier(favourable="yes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, many = (quick(classifier=h).fit(batches(n), y="repaid") for n in (600, 37))
    assert learned(one) == learned(many)
    report = one.fit_report_
    assert report["rows"]["found"] == N
    assert report["rows"]["held"] < 120
    accepted = report["accepted"]
    assert accepted["found"] > accepted["used"] >= 60
    assert accepted["mass_lost"] == pytest.approx(1 - accepted["used"] / accepted["found"])
    assert one.gamma_ in gammas_for(np.linspace(0.5, 1, 100))


@pytest.mark.usefixtures("small")
def test_a_rare_outcome_is_found_beyond_the_held_rows() -> None:
    """One row in a hundred is accepted, so a sample alone would hold hardly any of them."""
    rare = np.where(np.arange(N) % 100 == 7, 90, 10)
    parts = [pd.DataFrame({"income": rare}).iloc[i : i + 50] for i in range(0, N, 50)]
    method = Looking(lambda T: T["income"].to_numpy() / 100).fit(parts)
    assert int((method.given_.confidence > 0.5).sum()) == N // 100


@pytest.mark.usefixtures("small")
def test_a_method_that_does_not_ask_for_more_is_given_even_rows() -> None:
    class Even(Looking):
        _takes_more = False

    parts = [X.iloc[i : i + 50] for i in range(0, N, 50)]
    method = Even(score).fit(parts)
    assert method.given_.larger is None
    assert len(method.given_.Z) == method.fit_report_["rows"]["held"] < 120


def test_outcomes_of_batches_are_a_column() -> None:
    with pytest.raises(UserError, match="y must be the name of the column"):
        NearestNeighbour(score).fit(batches(50), REPAID)
    with pytest.raises(UserError, match=r"y names no column 'repayed' \(did you mean 'repaid'\?\)"):
        NearestNeighbour(score).fit(batches(50), "repayed")
    with pytest.raises(UserError, match="y names no column 'paid'"):
        NearestNeighbour(score).fit(TABLE, "paid")
