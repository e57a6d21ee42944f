"""The log of a fit: its stages, its choices, and nothing about a person."""

from __future__ import annotations

import logging
import re

import numpy as np
import pandas as pd
import pytest

import genrecourse
from genrecourse import GenRe, NearestNeighbour


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    income = np.arange(120) + 7_000_000.25
    job = np.where(np.arange(120) % 3, "keeper of bees", "cook")
    return pd.DataFrame({"salary_of_persons": income, "job": job}).rename(index="Ada {}".format)


def score(X: pd.DataFrame) -> np.ndarray:
    return (X["salary_of_persons"].to_numpy() - 7_000_000) / 120


@pytest.fixture(scope="module")
def records(table: pd.DataFrame) -> list[logging.LogRecord]:
    found: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = found.append  # type: ignore[method-assign]
    log = logging.getLogger("genrecourse")
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        GenRe(score, **GenRe._test_params()).fit(table, score(table) > 0.5)
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
    return found


def texts(records: list[logging.LogRecord], level: int) -> list[str]:
    return [each.getMessage() for each in records if each.levelno == level]


def test_info_has_rows_stages_choices_and_seconds(records: list[logging.LogRecord]) -> None:
    info = texts(records, logging.INFO)
    assert info[0].startswith("GenRe.fit: 120 rows; the model accepts 60, and 60 have")
    stages = [line.split("'")[1] for line in info if "the stage" in line]
    assert stages == ["judge", "gamma", "pairs", "verifier", "search", "training"]
    assert any(line.startswith("GenRe.fit: gamma is 0.") for line in info)
    assert any(line.startswith("training GenRe: 20 of 20 steps in ") for line in info)
    assert info[-1].startswith("GenRe.fit: done in ")


def test_debug_has_the_settings_and_what_was_tried(records: list[logging.LogRecord]) -> None:
    debug = texts(records, logging.DEBUG)
    assert "'n_draws': 4" in debug[0]
    (tried,) = [line for line in debug if "report on gamma" in line]
    assert "tried" in tried


def test_no_log_holds_a_value_of_a_person(records: list[logging.LogRecord]) -> None:
    everything = "\n".join(each.getMessage() for each in records)
    assert len(records) > 10
    for secret in ("Ada", "bees", "cook", "7,000,"):
        assert secret not in everything
    assert not re.search(r"(?<![\d.])7000[01]\d\d", everything)  # an income


def test_without_an_application_s_handler_nothing_is_printed(
    table: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = logging.getLogger(genrecourse.__name__).handlers
    assert any(isinstance(each, logging.NullHandler) for each in handlers)
    NearestNeighbour(score).fit(table)
    assert capsys.readouterr() == ("", "")
