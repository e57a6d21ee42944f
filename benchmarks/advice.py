"""Are plans worth following? Models of six libraries on six tables, before and now.

    git worktree add ../before 4c6828d
    python -m benchmarks.advice --before ../before
    python -m benchmarks.advice --pairs german-hgb --people 20      # only this version
    python -m benchmarks.advice --show

Each pair of a model and a table is run by both versions, one after the other, each in a process of
its own, on the same people. The checks are code of this file: it undoes each change of a plan and
asks the model again, compares the numbers that plans print, and counts the calls of the model.
Results go to benchmarks/results/advice.json.

A change is *removable* if the model still accepts the plan without it and the plan does not say
that it is there for safety. For people whose first plan has fewer than 6 of 8 votes, all proposals,
accepted rows and changes of up to three features are searched for a plan that has them
(`sturdy_search`). *Fresh copies* are eight more models of the same kind, trained by this file on
other bootstraps; neither version has seen them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from genrecourse import Classifier, GenRe, Policy, Schema, load_dataset
from genrecourse.model.classifier import fit_mlp

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results" / "advice.json"
STURDY = 0.75  # 6 of 8 retrained copies
FRESH = 8  # copies that judge both versions
ONE_BY_ONE = 10  # people who are asked about alone


# ---- tables -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """A table, its schema and the rules that everybody is under."""

    X: pd.DataFrame
    y: np.ndarray
    people: pd.DataFrame
    schema: Schema
    rules: Any = None


def known(name: str, most: int = 4000) -> Rows:
    data = load_dataset(name, seed=0)
    return Rows(data.X_train[:most], np.asarray(data.y_train)[:most], data.X_test, data.schema)


def german() -> Rows:
    rows, policy = known("german"), Policy.read(ROOT / "policies" / "german.toml")
    schema = policy.schema(rows.X, base=rows.schema)
    return Rows(rows.X, rows.y, rows.people, schema, policy.request.get("rules"))


def breast_cancer() -> Rows:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    test = np.random.default_rng(0).permutation(len(X)) < len(X) // 3
    return Rows(X[~test], y[~test].to_numpy(), X[test], Schema.infer(X[~test]))


TABLES: dict[str, Callable[[], Rows]] = {
    "german": german,
    "loan": lambda: known("loan"),
    "adult": lambda: known("adult"),
    "breast_cancer": breast_cancer,
    "compas": lambda: known("compas"),
    "heloc": lambda: known("heloc"),
}


# ---- models -------------------------------------------------------------------------------------


def encoded(model: Any) -> Any:
    levels = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    text = make_column_selector(dtype_exclude="number")
    return make_pipeline(make_column_transformer((levels, text), remainder="passthrough"), model)


def lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return encoded(LGBMClassifier(n_estimators=60, random_state=0, verbose=-1, n_jobs=1))


def xgboost() -> Any:
    from xgboost import XGBClassifier

    return encoded(XGBClassifier(n_estimators=60, random_state=0, n_jobs=1))


MODELS: dict[str, Callable[[], Any]] = {
    "hgb": lambda: encoded(HistGradientBoostingClassifier(random_state=0)),
    "forest": lambda: encoded(RandomForestClassifier(100, min_samples_leaf=3, random_state=0)),
    "logistic": lambda: encoded(make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))),
    "calibrated": lambda: encoded(
        CalibratedClassifierCV(RandomForestClassifier(50, random_state=0), cv=3)
    ),
    "lightgbm": lightgbm,
    "xgboost": xgboost,
}


class Scorecard:
    """Points for the four columns that a small tree model finds most useful; reads no other."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Scorecard:
        numbers = X.select_dtypes("number").columns
        strength = [abs(np.corrcoef(X[c].rank(), y)[0, 1]) for c in numbers]
        self.columns = list(numbers[np.argsort(strength)[::-1][:4]])
        self.model = make_pipeline(StandardScaler(), LogisticRegression())
        self.model.fit(X[self.columns], y)
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self.model.predict_proba(X[self.columns])


class Counted:
    """A fitted model that counts how often, and about how many rows, it is asked.

    Copies of it are copies of the model, which count nothing.
    """

    def __init__(self, model: Any):
        self.model, self.calls, self.rows = model, 0, 0
        self.classes_ = np.array([0, 1])

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        self.calls, self.rows = self.calls + 1, self.rows + len(X)
        return np.asarray(self.model.predict_proba(X))

    def __sklearn_clone__(self) -> Any:
        return clone(self.model)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)


def fresh_copies(kind: str, rows: Rows) -> list[Classifier]:
    """Models of the same kind, trained on bootstraps that no version of the library has drawn."""
    made = []
    for i in range(FRESH):
        some = np.random.default_rng([2026, i]).integers(len(rows.X), size=len(rows.X))
        X, y = rows.X.iloc[some].reset_index(drop=True), rows.y[some]
        if kind == "own":
            made.append(fit_mlp(X, y, rows.schema, seed=100 + i))
        else:
            made.append(Classifier(new_model(kind).fit(X, y)))
    return made


def new_model(kind: str) -> Any:
    return Scorecard() if kind == "scorecard" else MODELS[kind]()


PAIRS = (
    *("german-hgb", "german-forest", "german-scorecard", "german-own", "loan-lightgbm"),
    *("loan-xgboost", "adult-hgb", "breast_cancer-logistic", "compas-calibrated", "heloc-own"),
)


# ---- one pair -----------------------------------------------------------------------------------


def measured(pair: str, most: int) -> dict[str, Any]:
    table, kind = pair.rsplit("-", 1)
    rows = TABLES[table]()
    model: Counted | None = None
    if kind == "own":
        h = Classifier()
    else:
        model = Counted(new_model(kind).fit(rows.X, rows.y))
        h = Classifier(model)
    method = GenRe(h, rows.schema, random_state=0).fit(rows.X, rows.y)
    people = rows.people[~method.classifier_.accepts(rows.people)].head(most)
    asked = {} if rows.rules is None else {"rules": rows.rules}
    found = {"pair": pair, "people": len(people), **cost_of_plans(method, model, people, asked)}
    plans = method.plans(people, n=3, **asked)
    found |= judged(method, rows.schema, people, plans)
    return found | sturdiness(method, people, plans, rows, kind)


def sturdiness(
    method: GenRe, people: pd.DataFrame, plans: Any, rows: Rows, kind: str
) -> dict[str, Any]:
    """Count who could have a sturdy first plan, and ask fresh copies about first plans."""
    firsts = [replace(plan, alternatives=()) for plan in plans if plan.status == "ok"]
    if not firsts:
        return {}
    x_plus = type(plans)(tuple(firsts)).x_plus()
    yes = np.stack([copy.accepts(x_plus) for copy in fresh_copies(kind, rows)])
    found: dict[str, Any] = {"fresh": float(yes.mean())}
    found["fresh_sturdy"] = int((yes.mean(axis=0) >= STURDY).sum())
    if not hasattr(method.planning_, "copies"):
        return found  # an earlier version
    from benchmarks.sturdy_search import sturdy_plan_exists

    fragile = [
        place
        for place, plan in enumerate(plans)
        if plan.retrained is not None and plan.retrained.estimate < STURDY
    ]
    could = sum(sturdy_plan_exists(method, people.iloc[[i]], rows.rules) for i in fragile)
    return found | {"voters": method.planning_.voters["are"], "could_be_sturdy": could}


def cost_of_plans(
    method: GenRe, model: Counted | None, people: pd.DataFrame, asked: dict[str, Any]
) -> dict[str, Any]:
    """Calls of h, rows and milliseconds a person: one by one, and all together."""
    method.plans(people.head(1), n=3, **asked)  # warms up
    found: dict[str, Any] = {}
    for how, parts in (
        ("alone", [people.iloc[[i]] for i in range(min(ONE_BY_ONE, len(people)))]),
        ("together", [people]),
    ):
        if model is not None:
            model.calls = model.rows = 0
        started = time.perf_counter()
        for part in parts:
            method.plans(part, n=3, **asked)
        n = sum(map(len, parts))
        found[f"ms_{how}"] = (time.perf_counter() - started) / n * 1e3
        if model is not None:
            found |= {f"calls_{how}": model.calls / n, f"rows_{how}": model.rows / n}
    return found


def judged(method: GenRe, schema: Schema, people: pd.DataFrame, plans: Any) -> dict[str, Any]:
    """Count, with code of its own, what is wrong with the plans."""
    h = method.classifier_
    x_plus = plans.x_plus()
    shown = [(i, k) for i, plan in enumerate(plans) for k in range(len(plan.every))]
    accepted = int(h.accepts(x_plus).sum()) if len(shown) else 0
    fixed = [f.name for f in schema if f.role in ("immutable", "protected")]
    broken = sum(
        not same(people[name].iloc[i], x_plus[name].iloc[row])
        for row, (i, _) in enumerate(shown)
        for name in fixed
    )
    first_rows = [row for row, (_, k) in enumerate(shown) if k == 0]
    firsts = [plan for plan in plans if plan.status == "ok"]
    removable, labelled = removable_changes(h, people, x_plus, firsts, first_rows, shown)
    k = np.array([plan.retrained.k / plan.retrained.n for plan in firsts if plan.retrained])
    n_changes = [len(plan.changes) for plan in firsts]
    return {
        "with_plan": len(firsts),
        "shown": len(shown),
        "accepted": accepted,
        "fixed_features_changed": broken,
        "removable": removable,
        "for_safety": labelled,
        "dominated": sum(any(better(o, p) for o in p.alternatives) for p in firsts),
        "supersets": sum(has_superset(plan.every) for plan in firsts),
        "sturdy": int((k >= STURDY).sum()),
        "said_to_be_fragile": sum(getattr(plan, "is_fragile", False) for plan in firsts),
        "fragile_in_secret": sum(
            plan.retrained is not None
            and plan.retrained.k / plan.retrained.n < STURDY
            and not getattr(plan, "is_fragile", False)
            for plan in firsts
        ),
        "changes_median": float(np.median(n_changes)) if n_changes else None,
        "changes_most": max(n_changes, default=None),
    }


def removable_changes(
    h: Classifier,
    people: pd.DataFrame,
    x_plus: pd.DataFrame,
    firsts: Sequence[Any],
    first_rows: Sequence[int],
    shown: Sequence[tuple[int, int]],
) -> tuple[int, int]:
    """Count first plans with a change that h does not need: not labelled, and labelled."""
    trials, owner, says = [], [], []
    for number, (plan, row) in enumerate(zip(firsts, first_rows, strict=True)):
        for change in plan.changes if len(plan.changes) > 1 else ():
            trial = x_plus.iloc[[row]].copy()
            trial[change.feature.name] = people[change.feature.name].iloc[shown[row][0]]
            trials.append(trial.astype(x_plus.dtypes.to_dict()))
            owner.append(number)
            says.append(getattr(change, "safety", None) is not None)
    if not trials:
        return 0, 0
    yes, owner_, says_ = h.accepts(pd.concat(trials)), np.array(owner), np.array(says)
    return len(set(owner_[yes & ~says_])), len(set(owner_[yes & says_]))


def same(a: Any, b: Any) -> bool:
    return bool(a == b or (pd.isna(a) and pd.isna(b)))


def better(one: Any, other: Any) -> bool:
    """Whether a plan is as good in every printed number and better in one."""
    a, b = printed(one), printed(other)
    return all(x >= y for x, y in zip(a, b, strict=True)) and a != b


def printed(plan: Any) -> list[float]:
    shares = [s.k for s in (plan.retrained, plan.imprecise) if s is not None]
    likely = -np.inf if plan.log_likelihood is None else round(plan.log_likelihood, 1)
    return [-len(plan.changes), -round(plan.cost, 2), likely, *shares]


def has_superset(every: Sequence[Any]) -> bool:
    sets = [{change.feature.name for change in plan.changes} for plan in every]
    return any(a <= b for i, a in enumerate(sets) for j, b in enumerate(sets) if i != j)


# ---- all pairs ----------------------------------------------------------------------------------


def run_version(sources: Path, pair: str, people: int) -> dict[str, Any]:
    """Measure one pair with one version, in a process of its own."""
    command = [sys.executable, __file__, "--child", "--pairs", pair, "--people", str(people)]
    places = [str(sources / "src"), str(ROOT)]  # the library of that version, and this benchmark
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


COLUMNS = (
    *("people", "with_plan", "removable", "for_safety", "dominated", "supersets", "sturdy"),
    *("could_be_sturdy", "fresh"),
    *("said_to_be_fragile", "fragile_in_secret", "changes_median", "changes_most"),
    *("accepted", "shown", "fixed_features_changed", "calls_alone", "rows_alone", "ms_alone"),
)


def show() -> None:
    table = Table(title="First plans, before and now")
    for column in ("pair", "version", *COLUMNS):
        table.add_column(column.replace("_", " "), justify="right")
    for line in json.loads(RESULTS.read_text(encoding="utf-8")):
        for version in ("before", "now"):
            if version in line:
                cells = [line[version].get(column) for column in COLUMNS]
                table.add_row(
                    line["pair"], version, *("" if c is None else f"{c:g}" for c in cells)
                )
    Console(width=230).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", type=Path, help="a checkout of an earlier commit")
    parser.add_argument("--pairs", default=",".join(PAIRS))
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        warnings.simplefilter("ignore")
        print(json.dumps(measured(options.pairs, options.people)))
        return
    if not options.show:
        versions = {"now": ROOT}
        if options.before is not None:
            versions = {"before": options.before.resolve(), **versions}
        lines = []
        for pair in options.pairs.split(","):
            found = {v: run_version(place, pair, options.people) for v, place in versions.items()}
            lines.append({"pair": pair, **found})
            print(json.dumps(lines[-1], indent=1), flush=True)
        RESULTS.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    show()


if __name__ == "__main__":
    main()
