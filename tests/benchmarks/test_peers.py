"""What peers are given is the case, and what they hand back is read as they meant it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import bench_peers as bench
from benchmarks.peers import exchange
from benchmarks.peers.exchange import Given
from genrecourse.evaluation.evaluate import Case
from genrecourse.model.classifier import MLPConfig, fit_mlp
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.schema import Schema


@pytest.fixture(scope="module")
def case() -> Case:
    """Numbers, a category of two levels and one of three; nobody is judged."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "income": rng.normal(50, 10, 40),
            "house": rng.choice(["own", "rent"], 40),
            "job": rng.choice(["a", "b", "c"], 40),
            "years": rng.integers(0, 9, 40),
        }
    )
    y, config = np.arange(40) % 2, MLPConfig(epochs=2)
    schema = Schema.infer(X, immutable=["job"])
    h, encoder = fit_mlp(X, y, schema, config=config), TableEncoder(schema).fit(X)
    Z = encoder.encode(X)
    return Case("toy", 3, schema, X, y, h, X.iloc[5:11], None, encoder, 1.0, config, Z, y)  # type: ignore[arg-type]


def test_the_numpy_h_is_h(case: Case, tmp_path: Path) -> None:
    bench.hand_over(case, tmp_path, limit=5.0)
    given = Given(tmp_path)
    training = given.training.drop(columns=bench.OUTCOME)
    np.testing.assert_allclose(given.h.predict_proba(training)[:, 1], case.h.score(case.X), 1e-5)
    # dice-ml asks with levels as text
    text = training.assign(job=training["job"].astype(str), house=training["house"].astype(str))
    np.testing.assert_array_equal(given.h.predict(text), case.h.accepts(case.X))
    assert given.numbers == ["income", "years"]
    assert given.mutable == ["income", "house", "years"]


def test_an_h_that_says_something_else_is_refused(case: Case, tmp_path: Path) -> None:
    bench.hand_over(case, tmp_path, limit=5.0)
    people = pd.read_csv(tmp_path / "people.csv")
    people.assign(**{bench.SCORE: 0.5}).to_csv(tmp_path / "people.csv", index=False)
    with pytest.raises(SystemExit, match="exchange is broken"):
        Given(tmp_path)


def test_answers_are_read_as_they_were_meant(case: Case) -> None:
    answers = bench.as_numbers(case, case.people).astype(float)
    single = answers.astype(np.float32).astype(float)
    pd.testing.assert_frame_equal(
        bench.handed_back(case, single), case.people, check_dtype=False, check_exact=True
    )
    answers.iloc[0] = np.nan
    answers.loc[1, "job"] = 7.0
    answers.loc[2, "income"] += 0.01
    back = bench.handed_back(case, answers)
    assert back.iloc[0].isna().all()
    assert back["job"].iloc[1] not in ("a", "b", "c")
    assert back["income"].iloc[2] == answers.loc[2, "income"] != case.people["income"].iloc[2]


def test_a_person_who_takes_too_long_goes_without(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.hand_over(case, tmp_path, limit=0.5)  # of the processor: a busy machine cannot fail this
    seen: list[int] = []

    def set_up(given: object, method: str) -> object:
        def answer(person: pd.DataFrame) -> object:
            seen.append(1)
            while len(seen) == 2:
                pass
            if len(seen) == 3:
                raise ValueError("boom")
            return None if len(seen) == 4 else person.to_numpy()

        return answer

    monkeypatch.setattr(sys, "argv", ["run", str(tmp_path), "any"])
    exchange.run(set_up, ("numpy",))
    back = pd.read_csv(tmp_path / "answers.csv")
    assert back.isna().all(axis=1).tolist() == [False, True, True, True, False, False]
    told = (tmp_path / "run.json").read_text(encoding="utf-8")
    assert all(word in told for word in ("TimeoutError", "ValueError: boom", "nothing found"))
