"""Shared by all tests."""

from __future__ import annotations

import os
import warnings

import pytest

from genrecourse.data.datasets import DATA_VARIABLE, is_local
from genrecourse.evaluation.checks import Example, example_score
from genrecourse.methods.genre import GenRe

pytest.register_assert_rewrite("tests.support")  # so that a failed assert there shows its values


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "needs_downloads(*names): needs these data sets on this machine, else skipped"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests do not download; a folder that is named but lacks the files is an error, not a skip."""
    for marker in item.iter_markers("needs_downloads"):
        missing = [name for name in marker.args if not is_local(name)]
        if missing and not os.environ.get(DATA_VARIABLE):
            pytest.skip(f"not on this machine: {', '.join(missing)}; set {DATA_VARIABLE}")


@pytest.fixture(scope="module")
def method(example: Example) -> GenRe:
    """GenRe, quickly fitted on the example of the module that asks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = GenRe(example_score, example.schema, **GenRe._test_params())
        return made.fit(example.X, example.y)
