"""recheck: which plans that were given still hold under another model?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.errors import UserError
from genrecourse.model.classifier import Classifier
from genrecourse.planning.plans import Plans
from genrecourse.table.text_files import path_of, read_text

if TYPE_CHECKING:
    from genrecourse.table.schema import Schema


def recheck(plans: Plans, new_classifier: Any) -> pd.DataFrame:
    """Return one row for each plan: person, plan (its number), holds, score, cutoff.

    new_classifier: a fitted one; anything that a method takes. A person without a plan has no row.
    Rules are not checked again, because they do not depend on the model.

    >>> from genrecourse import NearestNeighbour, Schema
    >>> X = pd.DataFrame({"income": range(80)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> recheck(method.plans(X.head(2)), lambda X: X["income"].to_numpy() / 100)["holds"].tolist()
    [False, False]
    """
    h = Classifier.wrap(new_classifier)
    if not h.is_fitted:
        raise UserError("recheck: the new classifier is not fitted; fit it first")
    shown = [(plan.person, i) for plan in plans for i in range(1, len(plan.every) + 1)]
    score = h.score(plans.x_plus()) if shown else np.zeros(0)
    return pd.DataFrame(
        {
            "person": pd.Series([person for person, _ in shown], dtype=object),
            "plan": np.array([number for _, number in shown], dtype=int),
            "holds": score > h.cutoff,
            "score": score,
            "cutoff": np.full(len(shown), float(h.cutoff)),
        }
    )


def read_plans(path: str | os.PathLike[str], like: pd.DataFrame | None = None) -> Plans:
    """Return the plans in a .json that `genrecourse plans` or `Plans.to_json` wrote.

    like: a table with the dtypes that the rows get, if the model needs them; JSON has none.

    >>> import tempfile
    >>> from genrecourse import NearestNeighbour, Schema
    >>> X = pd.DataFrame({"income": range(80)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "plans.json").write_text(method.plans(X.head(2)).to_json())
    ...     [plan.status for plan in read_plans(Path(folder, "plans.json"))]
    ['ok', 'ok']
    """
    path = path_of(path, "the plans")
    check_plans_name(path)
    return Plans.from_json(read_text(path), like=like, where=str(path))


def check_plans_name(path: Path) -> None:
    """Refuse, before a model is loaded, a file that cannot hold plans to be read again.

    >>> check_plans_name(Path("plans.json"))
    >>> check_plans_name(Path("plans.csv"))
    Traceback (most recent call last):
    genrecourse.errors.UserError: plans.csv holds no plans that can be read again; ...
    """
    if path.suffix.lower() != ".json":
        raise UserError(
            f"{path} holds no plans that can be read again; give the .json that "
            "'genrecourse plans -o plans.json' wrote"
        )


def check_same_columns(plans: Plans, schema: Schema) -> None:
    """Refuse plans whose rows have other columns than the model's table.

    >>> from genrecourse import NearestNeighbour, Schema
    >>> X = pd.DataFrame({"income": range(80)})
    >>> method = NearestNeighbour(lambda X: X["income"].to_numpy() / 80, Schema.infer(X)).fit(X)
    >>> check_same_columns(method.plans(X.head(1)), Schema.infer(X.assign(age=30)))
    Traceback (most recent call last):
    genrecourse.errors.UserError: these plans belong to another model's table: ...
    """
    has = list(plans.x_plus().columns) if plans.shown else schema.columns
    lacks = [name for name in schema.columns if name not in has]
    more = [name for name in has if name not in schema.columns]
    if lacks or more:
        raise UserError(
            f"these plans belong to another model's table: they have the columns {more or 'none'} "
            f"that this model does not know, and lack {lacks or 'none'}; give a model that was "
            "fitted on the columns of the plans"
        )
