"""Words come from a file, whole or not at all, and none of them promises an approval."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.errors import UserError
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.planning.plans import Change, Plan, in_words, score_words
from genrecourse.planning.wording import FOLDER, Wording, english
from genrecourse.reports.plan_report import report_html
from genrecourse.table.schema import Feature, Schema

SOURCE = (FOLDER / "en.toml").read_text(encoding="utf-8")
AMOUNT = Feature(name="amount", kind="number", decimals=1, unit="DM", wording="Betrag")


def loud(sentence: str) -> str:
    """A language that is made up: English in capitals, what is filled in left alone."""
    return "".join(
        part if part.startswith("{") else part.upper() for part in re.split(r"(\{\w*\})", sentence)
    )


def written(path: Path, change: Any = lambda name, sentence: loud(sentence)) -> Path:
    """en.toml with each sentence changed; None leaves it out."""

    def lines(table: dict[str, Any], prefix: str = "") -> list[str]:
        own = {k: change(prefix + k, v) for k, v in table.items() if isinstance(v, str)}
        made = [f"{k} = {v!r}" if "'" not in v else f'{k} = "{v}"' for k, v in own.items() if v]
        for name, inner in table.items():
            if isinstance(inner, dict):
                made += [f"[{prefix}{name}]", *lines(inner, f"{prefix}{name}.")]
        return made

    path.write_text("\n".join(lines(tomllib.loads(SOURCE))), encoding="utf-8")
    return path


@pytest.fixture
def other(tmp_path: Path) -> Path:
    numbers = {"numbers.decimal": ",", "numbers.thousands": "."}
    return written(
        tmp_path / "loud.toml", lambda name, said: numbers.get(name) or loud(said).replace("”", "“")
    )


@pytest.mark.parametrize("sentence", english()._sentences.values(), ids=english()._sentences)
def test_no_sentence_promises_or_explains_the_decision(sentence: str) -> None:
    words = sentence.lower()
    for promise in ("approv", "guarantee", "will be accepted", "will get", "entitled", "ensure"):
        assert promise not in words
    for reason in ("because", "you were rejected", "the reason is", "due to"):
        assert reason not in words


def test_what_it_is_not_is_said() -> None:
    note = english()("plan.note")
    assert "no promise" in note
    assert "not give the reasons" in note


def test_a_promise_with_a_number_says_what_it_goes_by() -> None:
    """It is about likely outcomes of many, on assumptions; no decision about one is announced."""
    said = english()("plan.promise", share="90", confidence="90")
    for part in ("past outcomes", "at least 90%", "likelier than not", "assumes", "one person"):
        assert part in said
    for part in ("share of many people", "not the chance of one person", "confidence of 90%"):
        assert part in said
    for word in ("promised", "accepted", "real decision", ".md"):
        assert word not in said


def test_whose_decision_a_headline_counts_is_said() -> None:
    assert "the model accepts" in english()("report.told")


def test_another_language_says_everything_in_it(other: Path) -> None:
    words = Wording.of(other)
    change = Change(AMOUNT, 1234.5, None, words)
    assert change.to_text() == "Betrag: 1.234,5 DM → NOT GIVEN"
    plan = Plan(7, "ok", 0.31, 0.5, (change,), 0.72, 0.413, -6.21, language=words)
    assert plan.to_text() == (
        "7: WHAT WOULD CHANGE THE MODEL'S DECISION\n"
        "  Betrag: 1.234,5 DM → NOT GIVEN\n"
        "  MODEL'S SCORE 0,31 → 0,72 (FAVOURABLE ABOVE 0,50), COST 0,41, LOG-LIKELIHOOD -6,2"
    )
    assert in_words(
        Feature(name="m", kind="number", unit="months", decimals=0), 1, None, words
    ) == ("1 MONTH")
    assert score_words(0.31, 0.5, language=words) == ["0,31", "0,50"]


def test_the_report_speaks_the_language_too(other: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.integers(1, 50, 80), "job": rng.choice(["a", "b"], 80)})
    schema = Schema.infer(X)

    def h(X: pd.DataFrame) -> np.ndarray:
        return np.where(X["income"] > 25, 0.9, 0.1)

    method = NearestNeighbour(h, schema).fit(X)
    people = X[X["income"] <= 25].head(4)
    scores = pd.DataFrame(
        {"cost": 0.5, "val": 0.75, "lof": 1.0, "score": 1.7, "h_valid": 0.5, "changes": 2, "n": 8},
        index=["nnr"],
    )
    page = report_html(method, people, n=2, scores=scores, language=other)
    text = re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.S))
    said = {name: s for name, s in english()._sentences.items() if len(s) > 8 and "{" not in s}
    assert [name for name, s in said.items() if s in text and s != loud(s)] == []
    assert "WHAT IT DOES NOT MEAN" in text
    assert "PERSON" in text


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            lambda name, said: None if name == "plan.purpose" else said,
            "lacks the sentences plan.purpose",
        ),
        (lambda name, said: None if name.startswith("value.") else said, "and 5 more"),
        (lambda name, said: said + " {approved}" if name == "plan.cost" else said, "approved"),
        (
            lambda name, said: "{cost.__class__}" if name == "plan.cost" else said,
            r"'plan.cost' has the placeholders \['cost.__class__'\]; it may use \['cost'\]",
        ),
        (lambda name, said: said + " {" if name == "plan.cost" else said, "stray braces"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, change: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        Wording.of(written(tmp_path / "x.toml", change))


def test_other_mistakes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no wording 'tlh': .*\['en'\]"):
        Wording.of("tlh")
    path = tmp_path / "x.toml"
    path.write_text("code = ")
    with pytest.raises(UserError, match="is not TOML"):
        Wording.of(path)
    path.write_text(SOURCE + "\n[more]\nx = 'y'\n")
    with pytest.raises(UserError, match=r"has unknown sentences: more\.x"):
        Wording.of(path)
    path.write_text("code = 3")
    with pytest.raises(UserError, match="'code' is 3; it must be text"):
        Wording.of(path)
