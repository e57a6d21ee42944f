"""A user's own table: judged on like the others, and split without a person in both parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genrecourse.advice.own_data import own_data
from genrecourse.data.datasets import DATASETS, load_dataset
from genrecourse.errors import UserError
from genrecourse.evaluation.comparison.fence import Fence
from genrecourse.table.splits import split_table

N = 120


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    income = rng.integers(10, 90, N)
    job = np.where(np.arange(N) == 0, "pilot", rng.choice(["cook", "nurse"], N))  # one alone
    paid = np.where(income + rng.normal(0, 9, N) > 45, "yes", "no")
    return pd.DataFrame({"id": range(N), "income": income, "job": job, "paid": paid})


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    known = dict(DATASETS)
    path = tmp_path / "mine.csv"
    people().to_csv(path, index=False)
    yield path
    for name in [name for name in DATASETS if name not in known]:
        del DATASETS[name]


def test_an_own_table_is_a_data_set_that_each_seed_splits_anew(file: Path) -> None:
    name = own_data(file, "paid", favourable=["yes"], immutable=["job"], drop=["id"])
    first, second = load_dataset(name, seed=0), load_dataset(name, seed=1)
    assert first.schema.names == ["income", "job"]
    assert first.schema["job"].role == "immutable"
    assert set(first.schema["job"].categories) == {"cook", "nurse", "pilot"}  # of all rows
    assert len(first.X_train) == 90
    both = pd.concat([first.X_train.assign(y=first.y_train), first.X_test.assign(y=first.y_test)])
    whole = people().assign(y=people()["paid"].eq("yes").astype(int))[["income", "job", "y"]]
    key = ["income", "job", "y"]
    pd.testing.assert_frame_equal(
        both.sort_values(key).reset_index(drop=True), whole.sort_values(key).reset_index(drop=True)
    )
    assert (
        not first.X_test["income"]
        .reset_index(drop=True)
        .equals(second.X_test["income"].reset_index(drop=True))
    )


def test_another_table_or_another_schema_has_another_name(file: Path) -> None:
    one = own_data(file, "paid", favourable=["yes"], drop=["id"])
    assert own_data(file, "paid", favourable=["yes"], drop=["id"]) == one
    assert own_data(file, "paid", favourable=["no"], drop=["id"]) != one
    assert own_data(file, "paid", favourable=["yes"], drop=["id"], immutable=["job"]) != one
    people().head(100).to_csv(file, index=False)
    assert own_data(file, "paid", favourable=["yes"], drop=["id"]) != one


def test_a_method_may_not_read_the_table(file: Path, tmp_path: Path) -> None:
    own_data(file, "paid", favourable=["yes"])
    assert str(file.resolve()) in Fence.around(str(tmp_path), ()).closed


def test_an_own_table_without_a_target(file: Path) -> None:
    with pytest.raises(UserError, match=r"mine\.csv is your own table: name the column"):
        own_data(file, None)
    with pytest.raises(UserError, match="favourable outcome 'good' does not occur in 'paid'"):
        own_data(file, "paid", favourable=["good"])


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.25, 0.5]), st.booleans())
def test_a_split_keeps_every_row_and_no_person_is_in_both(
    seed: int, share: float, by_outcome: bool
) -> None:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"who": rng.integers(0, 60, 200), "x": rng.integers(0, 9, 200)})
    table["paid"] = (rng.random(200) < 0.3).astype(int)
    target = "paid" if by_outcome else None
    rest, held = split_table(table, share=share, target=target, together="who", seed=seed)
    pd.testing.assert_frame_equal(pd.concat([rest, held]).sort_index(), table)
    assert not set(rest["who"]) & set(held["who"])
    assert abs(len(held) - share * 200) < 25


def test_rows_that_are_alike_stay_together_and_outcomes_keep_their_shares() -> None:
    table = pd.concat([people()] * 2, ignore_index=True)
    rest, held = split_table(table, target="paid")
    assert not set(rest["id"]) & set(held["id"])
    share = (table["paid"] == "yes").mean()
    assert abs((held["paid"] == "yes").mean() - share) < 0.03
    again = split_table(table, target="paid")[1]
    pd.testing.assert_frame_equal(held, again)
    assert set(split_table(table, target="paid", seed=1)[1]["id"]) != set(held["id"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 1.0}, "the share is 1; it must be between 0 and 1"),
        ({"share": 0.001}, "leaves one part empty"),
        ({"together": "customer"}, "no column 'customer'|no column \\['customer'\\]"),
        ({"target": "piad"}, "did you mean 'paid'"),
    ],
)
def test_a_split_that_cannot_be_made(options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        split_table(people(), **options)  # type: ignore[arg-type]
