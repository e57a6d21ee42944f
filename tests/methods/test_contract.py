"""Every method keeps the contract: METHODS x CHECKS, one test each, named method:check.

And the checks can fail: each is shown a method that does what it forbids.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from genrecourse.errors import UserError
from genrecourse.evaluation.checks import (
    CHECKS,
    ContractError,
    Subject,
    broken_rules,
    check_method,
    example_score,
    make_example,
)
from genrecourse.methods import METHODS
from genrecourse.methods.genre import GenRe
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.table.schema import Feature, Schema

# The same classes with other settings: one of them is enough.
SIBLINGS = ("nnr-search", "revise-search", "tabsyn_q-search")


@cache
def subject(name: str) -> Subject:
    """Fitted once for all checks of a method."""
    return Subject(METHODS[name])


@pytest.mark.parametrize(
    ("method", "check"),
    [pytest.param(m, c, id=f"{m}:{c}") for m in METHODS if m not in SIBLINGS for c in CHECKS],
)
def test_method(method: str, check: str) -> None:
    CHECKS[check](subject(method))


# ---- each check can fail ----------------------------------------------------------------------


class Base(NearestNeighbour):
    """A good method, to be spoilt one thing at a time: same constructor, other insides."""


class StoresMore(Base):
    def __init__(
        self, classifier: Any = None, schema: Any = None, *, gamma: Any = 0.5, random_state: int = 0
    ):
        super().__init__(classifier, schema, gamma=gamma, random_state=random_state)


class Converts(Base):
    def __init__(self, classifier: Any = None, schema: Any = None, *, random_state: int = 0):
        self.classifier, self.schema, self.random_state = classifier, schema, str(random_state)  # type: ignore[assignment]


class NoSeed(Base):
    def __init__(self, classifier: Any = None, schema: Any = None):
        super().__init__(classifier, schema)


class Swallows(Base):
    def __init__(self, classifier: Any = None, schema: Any = None, **anything: Any):
        super().__init__(classifier, schema, random_state=anything.get("random_state", 0))


class SaysNothing(Base):
    def __init__(
        self, classifier: Any = None, schema: Any = None, *, alpha: Any = 1, random_state: int = 0
    ):
        super().__init__(classifier, schema, random_state=random_state)
        self.alpha = alpha


class CloneIsItself(Base):
    def __sklearn_clone__(self) -> CloneIsItself:
        return self


class ReturnsNothing(Base):
    def fit(self, X: Any, y: Any = None) -> Any:
        super().fit(X, y)


class SpoilsX(Base):
    def fit(self, X: Any, y: Any = None) -> Any:
        super().fit(X, y)
        X.iloc[0, 0] = 0.0
        return self


class WritesParameter(Base):
    def fit(self, X: Any, y: Any = None) -> Any:
        super().fit(X, y)
        self.gamma = 0.9
        return self


class LearnsInPublic(Base):
    def fit(self, X: Any, y: Any = None) -> Any:
        super().fit(X, y)
        self.mean = 1.0
        return self


class Unguarded(Base):
    def check_ready(self, verb: str, options: Any) -> None:
        pass


class NeedsOutcomes(Base):
    def fit(self, X: Any, y: Any = None) -> Any:
        if y is None:
            raise TypeError("y, please")
        return super().fit(X, y)


class KeepsItsClassifier(Base):
    def fit(self, X: Any, y: Any = None) -> Any:
        super().fit(X, y)
        self.classifier = self.classifier_
        return self


class After(Base):
    """Spoils the answer."""

    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        raise NotImplementedError

    def recourse(self, X: pd.DataFrame) -> pd.DataFrame:
        return self.spoil(X, super().recourse(X))


class LosesIndex(After):
    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        return X_plus.reset_index(drop=True)


class LosesDtype(After):
    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        return X_plus.astype({"years": float})


class WritesIntoX(After):
    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        X.iloc[0, 0] = 7.0
        return X_plus


class GoesMissing(After):
    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        return X_plus.assign(income=np.nan)


class MovesTheAccepted(After):
    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        return X_plus.assign(member=~X_plus["member"])


class Ages(After):
    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        return X_plus.assign(age=X_plus["age"] + 1)


class LooksAtSex(After):
    """Keeps its advice from men."""

    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        kept = X_plus.copy()
        men = X["sex"].eq("m") if "sex" in X else pd.Series(False, X.index)
        kept.loc[men] = X.loc[men]
        return kept


class AllIsWell(Base):
    def assess(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        return super().assess(X, X_plus).assign(status="ok")


class ShowsWhatFails(Base):
    """Tells people to change one thing less than it takes."""

    def plans(self, X: pd.DataFrame, *args: Any, **options: Any) -> Any:
        found = super().plans(X, *args, **options)
        return [replace(plan, changes=plan.changes[1:], alternatives=()) for plan in found]


class FirstIsSpecial(After):
    """What a row gets depends on its place."""

    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        first = np.arange(len(X)) == 0
        return X_plus.assign(member=np.where(first, ~X_plus["member"], X_plus["member"]))


class SizeMatters(After):
    """What a row gets depends on how many there are."""

    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        return X_plus if len(X) != 60 else X_plus.assign(member=~X_plus["member"])


class LastTwinWins(After):
    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        twin = X.index.duplicated()
        return X_plus.assign(member=np.where(twin, ~X_plus["member"], X_plus["member"]))


class OwnColumns(After):
    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        return X_plus[self.schema_.names]


class DrawsGlobally(After):
    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        coin = np.random.random(len(X)) < 0.5  # noqa: NPY002 - the mistake
        return X_plus.assign(years=X_plus["years"] + coin)


class SeedsGlobally(Base):
    def fit(self, X: Any, y: Any = None) -> Any:
        torch.manual_seed(0)
        return super().fit(X, y)


class SeedBreaksRules(After):
    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        return X_plus.assign(age=X_plus["age"] + (self.random_state > 0))


class TakesAnything(After):
    def recourse(self, X: pd.DataFrame) -> pd.DataFrame:
        try:
            return super().recourse(X)
        except UserError:
            return X

    def spoil(self, X: pd.DataFrame, X_plus: pd.DataFrame) -> pd.DataFrame:
        return X_plus


class Obliging(Base):
    def recourse(self, X: pd.DataFrame, **request: Any) -> pd.DataFrame:
        return super().recourse(X)


class ChecksTooLate(Base):
    def recourse(self, X: pd.DataFrame, **request: Any) -> pd.DataFrame:
        return X if self.classifier_.accepts(X).all() else super().recourse(X, **request)


class Crashes(Base):
    def fit(self, X: Any, y: Any = None) -> Any:
        try:
            return super().fit(X, y)
        except UserError as error:
            raise RuntimeError("boom") from error


class QuickGenRe(GenRe):
    @staticmethod
    def _test_params() -> dict[str, Any]:
        return {
            **GenRe._test_params(),
            "gamma": 0.6,
            "temperature": 1.0,
            "margin": 0.5,
            "clean": False,
        }


class FlatDraws(QuickGenRe):
    def sample(self, X: pd.DataFrame, n: int = 10) -> pd.DataFrame:
        return super().sample(X, n).reset_index(drop=True)


class NoMass(QuickGenRe):
    def log_prob(self, x_plus: pd.DataFrame, given: pd.DataFrame) -> pd.Series:
        return super().log_prob(x_plus, given) * 0.0


SPOILT = [
    (StoresMore, "init_only_stores"),
    (Converts, "init_only_stores"),
    (NoSeed, "parameters"),
    (Swallows, "unknown_parameter"),
    (SaysNothing, "settings"),
    (Crashes, "settings"),
    (CloneIsItself, "clone"),
    (ReturnsNothing, "fit_returns_self"),
    (SpoilsX, "fit_leaves_arguments"),
    (WritesParameter, "fit_leaves_arguments"),
    (LearnsInPublic, "learned_state"),
    (Unguarded, "not_fitted"),
    (NeedsOutcomes, "without_outcomes"),
    (KeepsItsClassifier, "with_nothing_given"),
    (LosesIndex, "form_of_the_answer"),
    (LosesDtype, "form_of_the_answer"),
    (WritesIntoX, "form_of_the_answer"),
    (GoesMissing, "missing_values"),
    (MovesTheAccepted, "accepted_rows"),
    (Ages, "rules"),
    (LooksAtSex, "roles"),
    (AllIsWell, "assess"),
    (ShowsWhatFails, "plans"),
    (FirstIsSpecial, "row_order"),
    (OwnColumns, "column_order"),
    (SizeMatters, "subset"),
    (SizeMatters, "larger_table"),
    (SizeMatters, "single_row"),
    (LastTwinWins, "duplicates"),
    (DrawsGlobally, "same_seed"),
    (SeedBreaksRules, "other_seed"),
    (DrawsGlobally, "global_random_state"),
    (SeedsGlobally, "global_random_state"),
    (TakesAnything, "bad_tables"),
    (SizeMatters, "bad_rows"),
    (Crashes, "bad_outcomes"),
    (Obliging, "request"),
    (ChecksTooLate, "request"),
    (Crashes, "one_outcome"),
    (FlatDraws, "sample"),
    (NoMass, "log_prob"),
]


@pytest.mark.parametrize(
    ("spoilt", "check"), [pytest.param(m, c, id=f"{m.__name__}:{c}") for m, c in SPOILT]
)
def test_check_can_fail(spoilt: Any, check: str) -> None:
    with pytest.raises((ContractError, TypeError)):
        CHECKS[check](Subject(spoilt))


def test_every_check_is_shown_to_fail() -> None:
    assert {check for _, check in SPOILT} == set(CHECKS)


# ---- check_method ------------------------------------------------------------------------------


def test_check_method_passes_a_good_method() -> None:
    check_method(partial(NearestNeighbour, gamma=0.6), params={"n_bins": 5})


def test_check_method_names_all_that_failed() -> None:
    with pytest.raises(ContractError, match=r"(?s)checks failed:.*  rules: Ages: .* 'age' in "):
        check_method(Ages)
    with pytest.raises(ContractError, match=r"^1 of 1 checks failed:\n  learned_state: .*'mean'"):
        check_method(LearnsInPublic, skip=set(CHECKS) - {"learned_state"})


def test_check_method_refuses_an_unknown_check() -> None:
    with pytest.raises(UserError, match="there is no check"):
        check_method(NearestNeighbour, skip=["rule"])


def test_cheap_settings_come_from_the_class() -> None:
    assert Subject(METHODS["genre-paper"]).new().training == GenRe._test_params()["training"]
    assert Subject(METHODS["genre-paper"]).new().bins == "uniform"
    assert Subject(METHODS["nnr"]).params == {}


def test_the_example_has_one_of_everything() -> None:
    example = make_example()
    kinds = {str(dtype) for dtype in example.X.dtypes}
    assert {"float64", "int64", "float32", "int32", "bool", "category"} <= kinds
    assert example.X[["income", "region"]].isna().any().all()
    assert 0.3 < (example_score(example.people) > 0.5).mean() < 0.7
    assert 0.3 < example.y.mean() < 0.7


# ---- broken_rules, which judges the rules, judged by hand -------------------------------------

NUMBER = {"kind": "number", "missing": True}
LEVELS = {"kind": "category", "categories": ("low", "mid", "high"), "ordered": True}


@pytest.mark.parametrize(
    ("feature", "before", "after", "kinds"),
    [
        ({**NUMBER}, 1.0, 2.5, []),
        ({**NUMBER, "role": "immutable"}, 1.0, 1.0, []),
        ({**NUMBER, "role": "immutable"}, 1.0, 1.0 + 1e-12, ["immutable"]),
        ({**NUMBER, "role": "immutable"}, 1.0, np.nan, ["immutable", "missing"]),
        ({**NUMBER, "direction": "increase"}, 1.0, 0.9, ["direction"]),
        ({**NUMBER, "direction": "increase"}, 1.0, 1.1, []),
        ({**NUMBER, "direction": "increase"}, np.nan, 1.0, ["direction"]),
        ({**NUMBER, "direction": "decrease"}, 1.0, 1.1, ["direction"]),
        ({**NUMBER, "range": (0.0, 2.0)}, 1.0, 2.1, ["range"]),
        ({**NUMBER, "range": (0.0, 2.0)}, 1.0, -0.1, ["range"]),
        ({**NUMBER, "range": (0.0, 2.0)}, 3.0, 3.0, []),
        ({**NUMBER, "range": (0.0, 2.0)}, 3.0, 2.0, []),
        ({**NUMBER, "max_step": 0.5}, 1.0, 1.6, ["step"]),
        ({**NUMBER, "max_step": 0.5}, 1.0, 1.5, []),
        ({**NUMBER, "max_step": 0.5}, np.nan, 1.5, ["step"]),
        ({**NUMBER, "decimals": 1}, 1.0, 1.25, ["decimals"]),
        ({**NUMBER, "decimals": 1}, 1.25, 1.25, []),
        ({**NUMBER}, 1.0, np.nan, ["missing"]),
        ({**NUMBER}, np.nan, np.nan, []),
        ({**LEVELS}, "low", "high", []),
        ({**LEVELS}, "low", "top", ["category"]),
        ({**LEVELS, "missing": True}, "low", None, ["missing"]),
        ({**LEVELS, "direction": "increase"}, "mid", "low", ["direction"]),
        ({**LEVELS, "direction": "increase"}, "mid", "high", []),
        ({**LEVELS, "role": "immutable"}, "mid", "high", ["immutable"]),
    ],
)
def test_broken_rules(feature: dict[str, Any], before: Any, after: Any, kinds: list[str]) -> None:
    schema = Schema(features=(Feature(name="f", **feature),))
    broken = broken_rules(schema, pd.DataFrame({"f": [before]}), pd.DataFrame({"f": [after]}))
    assert [kind for kind, cells in broken.items() if cells.to_numpy().any()] == kinds
