"""Editors complete the options of requests and the fields of a feature, and mypy refuses others."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from genrecourse import GenRe, Schema
from genrecourse.methods.genre import DensityMethod
from genrecourse.planning.options import AskedOfPlans, Options
from genrecourse.table.schema import Feature, FeatureChanges

SNIPPET = """
from genrecourse.methods.genre import GenRe
from genrecourse.table.schema import Schema
import pandas as pd

X = pd.DataFrame({"a": [1]})
schema = Schema.infer(X)
schema.with_feature("a", direction="increase", unit="EUR", role="mutable")
schema.with_feature("a", dirction="up")
schema.with_feature("a", direction="up")
method = GenRe(schema=schema)
method.recourse(X, safety=0.8, lam=2.0)
method.recourse(X, saftey=0.8)
method.plans(X, n=2, safety=0.8, most_changes=3)
method.plans(X, n_drws=2)
"""


@pytest.mark.slow
def test_mypy_refuses_a_misspelt_option(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api", reason="mypy is not installed")
    root = Path(__file__).parents[2]
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET)
    how = ["--config-file", str(root / "pyproject.toml"), "--no-error-summary", "--no-pretty"]
    printed, problem, _ = api.run([*how, "--cache-dir", str(root / ".mypy_cache"), str(file)])
    assert problem == ""
    lines = {int(line.split(":")[1]): line for line in printed.splitlines() if ": error:" in line}
    wrong = {9: "dirction", 10: "up", 13: "saftey", 15: "n_drws"}
    assert lines.keys() == wrong.keys(), printed
    assert all(word in lines[number] for number, word in wrong.items())


def test_the_typed_names_are_the_names_that_are_taken() -> None:
    assert set(FeatureChanges.__annotations__) == set(Feature.model_fields) - {"name"}
    assert set(Options.__annotations__) == set(DensityMethod.options) - {"rules"}
    asked = inspect.signature(GenRe.plans).parameters.keys() - {"self", "X", "options"}
    assert set(AskedOfPlans.__annotations__) - set(Options.__annotations__) == asked - {
        *("errors", "language")  # which `audit` and `report_html` take themselves
    }
    assert "FeatureChanges" in str(inspect.signature(Schema.with_feature))


def test_the_docstring_of_genre_opens_with_its_use_and_has_every_parameter() -> None:
    text = inspect.getdoc(GenRe) or ""
    opening, parameters = text.split("Parameters\n", 1)
    assert "plans(X)" in opening
    assert "R(x+" not in opening
    lines = parameters.split("What it learns")[0].splitlines()
    heads = [line.split(":")[0] for line in lines if line[:1].isalpha()]
    named = {name.strip() for head in heads for name in head.split(",")}
    assert set(inspect.signature(GenRe).parameters) <= named
