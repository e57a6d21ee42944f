"""Shared by all tests."""

from __future__ import annotations

import os

import pytest

from genrecourse.datasets import DATA_VARIABLE, is_local


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
