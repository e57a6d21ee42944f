"""A schema in one line and as a table: short, complete, escaped, and readable on any page."""

from __future__ import annotations

import re

from genrecourse.table.notebook import CSS, Html, box, grid, html
from genrecourse.table.schema import Feature, Schema

SCRIPT = "<script>alert('x')</script>"


def number(name: str, **fields: object) -> Feature:
    return Feature.model_validate({"name": name, "kind": "number", **fields})


def words(page: str) -> str:
    return re.sub(
        r"\s+", " ", re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.S))
    )


def test_a_repr_is_one_line_however_many_features_there_are() -> None:
    schema = Schema(features=tuple(number(f"x{i}") for i in range(500)))
    assert (
        repr(schema)
        == str(schema)
        == "Schema(500 features: 500 numbers, 0 categories; 500 mutable)"
    )
    related = Schema(features=schema.features[:2], relations=("x0 <= x1",))
    assert repr(related) == "Schema(2 features: 2 numbers, 0 categories; 2 mutable; 1 relation)"


def test_a_feature_shows_only_what_is_not_the_default() -> None:
    assert repr(number("a")) == "Feature(name='a', kind='number')"
    assert eval(repr(number("a", range=(0, 1), role="immutable"))) == number(
        "a", range=(0, 1), role="immutable"
    )


def test_the_table_says_what_each_feature_is_and_how_it_may_change() -> None:
    levels = ("none", "school", "degree")
    page = Schema(
        features=(
            number("debt", range=(0, float("inf")), unit="€", direction="decrease", max_step=2000),
            number("age", range=(18, 90), role="advances", horizon=2, unit="years", missing=True),
            number("ratio", role="derived", formula="debt / age"),
            Feature(name="edu", kind="category", categories=levels, ordered=True, cost_weight=2.5),
            Feature(name="job", kind="category", categories=tuple("abcdefgh"), wording="the job"),
        ),
        relations=("debt <= 100000",),
    )._repr_html_()
    text = words(page)
    assert "debt 0 to ∞ € mutable only down, by at most 2,000 1" in text
    assert "age 18 to 90 years or missing advances +2 years" in text
    assert "ratio -∞ to ∞ derived = debt / age" in text
    assert "edu in order: none, school, degree mutable 2.5" in text
    assert "the job job a, b, c, d, e, f and 2 more mutable 1" in text
    assert "every plan keeps: debt &lt;= 100000" in text


def test_a_long_schema_shows_its_beginning_and_says_so() -> None:
    page = Schema(features=tuple(number(f"x{i}") for i in range(62)))._repr_html_()
    assert page.count("<tr>") == 1 + 60
    assert "and 2 more features" in page


def test_everything_is_escaped_and_nothing_is_loaded() -> None:
    evil = Feature(
        name=SCRIPT, kind="category", categories=(SCRIPT, "b"), wording=SCRIPT + "w", unit=SCRIPT
    )
    page = Schema(features=(evil, number("n", unit=SCRIPT, range=(0, 1))))._repr_html_()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 4  # name, wording, category, unit of n
    assert "http" not in page
    assert "url(" not in page


def test_text_and_its_background_are_the_pages_own_or_stated_together() -> None:
    for rule in re.findall(r"{([^}]*)}", CSS):
        colours = re.findall(r"(?<![-\w])color: ([^;}]+)", rule)
        if colours and colours != ["inherit"]:
            assert re.search(r"background: #", rule), rule
    assert all(
        rule.strip().startswith(".genrecourse")
        for rule in re.sub(r"{[^}]*}", "\n", CSS).split("\n")
        if rule.strip()
    )


def test_only_html_stays_html() -> None:
    assert html("<b>") == "&lt;b&gt;"
    assert html(Html("<b>")) == "<b>"
    assert "<td>&lt;i&gt;</td>" in grid(["<u>"], [["<s>", "<i>"]])
    assert "&lt;u&gt;" in grid(["<u>"], [["<s>", "<i>"]])
    assert "&lt;b&gt;" in box("<b>")
