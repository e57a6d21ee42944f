"""An audit in one line and as a table: the numbers of the audit, with what is hidden hidden."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from genrecourse.auditing.page import audit_picture
from genrecourse.auditing.result import Audit, audit
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.table.schema import Schema

SCRIPT = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def found() -> Audit:
    X = pd.DataFrame({"income": np.arange(200.0) % 100, "side": ["low"] * 90 + [SCRIPT] * 110})
    schema = Schema.infer(X[["income"]])
    method = NearestNeighbour(lambda X: X["income"].to_numpy() / 100, schema).fit(X[["income"]])
    return audit(method, X, groups="side", n_boot=200)


def test_the_line_counts_groups_metrics_and_differences(found: Audit) -> None:
    called, made = len(found.called), len(found.differences)
    assert f"3 groups, {len(found.metrics)} metrics; {called} of {made} comparisons" in repr(found)
    assert len(repr(found)) < 120


def test_the_table_has_every_number_with_its_interval(found: Audit) -> None:
    page = found._repr_html_()
    for name in found.metrics:
        assert found.metric(name).title in page
        for group in found.groups:
            number = found.number(group, name)
            value, _, rest = found.in_words(number).partition(" (")
            assert f"<td>{value}<" in page
            assert f"{rest.rstrip(')')}, n {found.count(number)}" in page
    shares = [float(width) for width in re.findall(r"gr-share\" style=\"width:(\d+)%", page)]
    drawn = [
        round(100 * found.number(group, name).value)
        for name in found.metrics
        if found.metric(name).is_share
        for group in found.groups
    ]
    assert shares == drawn
    for sentence in found.findings:
        assert sentence.replace("<", "&lt;").replace(">", "&gt;").replace("'", "&#x27;") in page


def test_groups_are_escaped(found: Audit) -> None:
    assert "<script" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


def test_what_is_hidden_stays_hidden() -> None:
    X = pd.DataFrame({"income": np.arange(100.0), "side": ["a"] * 90 + ["b"] * 10})
    schema = Schema.infer(X[["income"]])
    method = NearestNeighbour(lambda X: X["income"].to_numpy() / 100, schema).fit(X[["income"]])
    page = audit(method, X, groups="side", n_boot=100)._repr_html_()
    assert "fewer than 20" in page
    assert "nan" not in page


def test_the_picture_has_a_panel_for_each_metric_and_the_means(found: Audit) -> None:
    axes = audit_picture(found).axes
    assert len(axes) == 4
    dots = [line.get_xdata() for line in axes[0].lines if line.get_marker() == "o"]
    means = [found.number(group, "rejected").value for group in found.groups]
    np.testing.assert_allclose([float(np.atleast_1d(xs)[0]) for xs in dots], means)
