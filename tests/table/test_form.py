"""TableForm: a model sees every table in the form of the one that it was fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import Classifier, NearestNeighbour, Schema
from genrecourse.errors import UserError
from genrecourse.table.encoding import TableEncoder
from genrecourse.table.form import TableForm

LEVELS = ["low", "mid", "high"]
COLUMNS: dict[str, Any] = {
    "whole": np.array([1, 2, 3]),
    "small": np.array([1, 2, 3], dtype=np.int8),
    "nullable": pd.array([1, 2, None], dtype="Int64"),
    "real": np.array([0.5, 1.5, np.nan]),
    "flag": np.array([True, False, True]),
    "nullable flag": pd.array([True, None, False], dtype="boolean"),
    "object": np.array(["a", "b", None], dtype=object),
    "text": pd.array(["a", "b", None], dtype="string"),
    "arrow text": pd.array(["a", "b", None], dtype="string[pyarrow]"),
    "new text": pd.array(["a", "b", None], dtype="str"),
    "category": pd.Categorical(["low", "high", None], LEVELS),
    "ordered": pd.Categorical(["low", "high", "mid"], LEVELS, ordered=True),
    "numbered": pd.Categorical([3, 1, 3], [3, 1]),
}
TABLE = pd.DataFrame({name: pd.Series(cells) for name, cells in COLUMNS.items()}).astype(
    {"object": object}
)
# what else the same cells may come as, from a file for example
LOOSE = {
    "whole": "float64",
    "small": "int64",
    "nullable": "float64",
    "real": "Float64",
    "flag": "object",
    "nullable flag": "object",
    "object": "string",
    "text": "object",
    "arrow text": "object",
    "new text": "object",
    "category": "object",
    "ordered": "object",
    "numbered": "int64",
}


@pytest.mark.parametrize("name", list(COLUMNS))
def test_a_column_gets_its_dtype_back(name: str) -> None:
    form = TableForm(TABLE[[name]])
    loose = TABLE[[name]].astype({name: LOOSE[name]})
    assert loose[name].dtype != TABLE[name].dtype
    found = form.put(loose)
    pd.testing.assert_frame_equal(found, TABLE[[name]])
    assert [cell is None for cell in found[name]] == [cell is None for cell in TABLE[name]]
    if isinstance(found[name].dtype, pd.CategoricalDtype):
        assert list(found[name].cat.categories) == list(TABLE[name].cat.categories)


def test_the_levels_of_a_category_keep_their_numbers() -> None:
    """A file may hold fewer levels, and in another order: their numbers would mean others."""
    form = TableForm(TABLE[["category"]])
    few = pd.DataFrame({"category": pd.Categorical(["high", "low"])})
    assert few["category"].cat.codes.tolist() == [0, 1]
    assert form.put(few)["category"].cat.codes.tolist() == [2, 0]
    more = pd.DataFrame({"category": pd.Categorical(["new", "low"])})
    assert form.put(more)["category"].cat.codes.tolist() == [3, 0]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("whole", [1.5, 2.0]),
        ("whole", [1.0, np.nan]),
        ("small", [1, 300]),
        ("flag", [True, None]),
        ("flag", [2, 0]),
        ("new text", [1, "a"]),
        ("numbered", ["3", 1]),
        ("whole", [10**30, 1]),
    ],
)
def test_a_cell_never_gets_another_value(name: str, cells: list[Any]) -> None:
    column = pd.Series(cells, dtype=object if len({type(c) for c in cells}) > 1 else None)
    found = TableForm(TABLE[[name]]).put(pd.DataFrame({name: column}))[name]
    assert [c for c in found if not pd.isna(c)] == [c for c in cells if not pd.isna(c)]


def test_order_index_and_copy() -> None:
    form = TableForm(TABLE)
    given = TABLE[TABLE.columns[::-1]].set_axis(["x", "x", "y"], axis="index").assign(more=1)
    before = given.copy()
    found = form.put(given)
    pd.testing.assert_frame_equal(found, TABLE)
    assert found.index.equals(pd.RangeIndex(3))
    found.loc[0, "whole"] = 7
    pd.testing.assert_frame_equal(given, before)
    with pytest.raises(UserError, match=r"lacks the column\(s\) \['whole'\]"):
        form.put(TABLE.drop(columns="whole"))


class Seen:
    """An h that notes the form of every table that it sees."""

    def __init__(self) -> None:
        self.forms: list[str] = []

    def __call__(self, X: pd.DataFrame) -> np.ndarray:
        whole = (X["whole"] % 1 == 0).all()  # noise on a plan makes others
        known = X["category"].cat.categories[:3].tolist()
        self.forms.append(f"{dict(X.dtypes[1 - whole :])} {list(X.columns)} {known} {X.index[:1]}")
        return X["whole"].to_numpy(dtype=float) / 80


@pytest.mark.parametrize("verb", ["recourse", "plans", "assess"])
def test_every_verb_shows_a_model_the_form_of_its_training_table(verb: str) -> None:
    n = 80
    X = pd.DataFrame(
        {
            "whole": np.arange(n),
            "real": np.arange(n) / 4,
            "flag": np.arange(n) % 2 == 0,
            "object": pd.Series(["a", "b"] * 40, dtype=object),
            "text": pd.Series(["a", "b"] * 40, dtype="string[pyarrow]"),
            "category": pd.Categorical(["low", "high"] * 40, LEVELS),
        }
    )
    h = Seen()
    schema = Schema.infer(X)
    method = NearestNeighbour(h, schema).fit(X)
    people = X.head(3).astype({name: LOOSE[name] for name in X.columns})
    people = people[people.columns[::-1]].set_axis([7, 7, 8], axis="index")
    ask = {
        "recourse": method.recourse,
        "plans": lambda P: method.plans(P, n=2),
        "assess": lambda P: method.assess(P, P),
    }[verb]
    ask(people)
    whole = {form for form in h.forms if "'whole': dtype" in form}
    assert len(whole) == 1, whole
    assert len({form.split("}")[1] for form in h.forms}) == 1


def test_a_classifier_asked_about_z_sees_the_form_too() -> None:
    X = pd.DataFrame({"age": [30, 41], "job": pd.Series(["cook", None], dtype=object)})
    encoder = TableEncoder(Schema.infer(X)).fit(X)
    seen = []
    h = Classifier(lambda X: seen.append((dict(X.dtypes), X["job"].tolist())) or [0.1] * len(X))
    h.in_form(X).score_encoded(encoder.encode(X), encoder, X.iloc[:1])
    assert seen == [({"age": np.dtype("int64"), "job": np.dtype(object)}, ["cook", None])]
