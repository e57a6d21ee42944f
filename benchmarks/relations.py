"""Which relations are found in tables, and do plans keep them?

    python -m benchmarks.relations

Three parts, all in benchmarks/results/relations.json:

1. made: tables with planted relations and planted accidents, several seeds and numbers of rows.
   Precision: a relation that was found is right if it holds in at least 99.8% of 100,000 fresh rows
   of the same process and is not one of the planted accidents. Recall: the share of planted
   relations that were found.
2. found: the relations of german, adult, heloc, compas and scikit-learn's breast cancer, and of
   german and adult with one column of 0 and 1 for each level: are the groups found again?
3. plans: for held-out people, the plans that break a relation, before and after it is accepted. A
   plan breaks a relation if it changes one of its columns and the row then does not keep it. This
   is counted here, on the cells of the user's table, without the library's checks.

No test row is used: where a data set has a test part, it stays unread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from genrecourse import (
    METHODS,
    Classifier,
    Schema,
    discover_relations,
    keep_relations,
    load_dataset,
)
from genrecourse.table.discovery import Suggestion
from genrecourse.table.patterns import AtMost, IfThen, MissingTogether, OneHot, Term, WeightedSum

RESULTS = Path(__file__).parent / "results" / "relations.json"
SIZES, SEEDS = (300, 1_000, 5_000, 20_000), 10
FRESH, RIGHT = 100_000, 0.998
Row = dict[str, Any]

# ---- 1. made tables -----------------------------------------------------------------------------

PLANTED = {  # kind, columns
    "bounded pair": ("order", {"lowest", "highest"}),
    "part of a whole": ("order", {"used", "limit"}),
    "difference": ("sum", {"income", "spending", "saved"}),
    "total of four": ("sum", {"rent", "food", "fuel", "fun", "expenses"}),
    "ratio": ("sum", {"monthly", "yearly"}),
    "rounded ratio": ("sum", {"metres", "feet"}),
    "one of four": ("one-hot", {"home_own", "home_rent", "home_free", "home_other"}),
    "at most one": ("one-hot", {"plan_a", "plan_b", "plan_c"}),
    "missing together": ("missing together", {"landlord", "lease"}),
    "level and level": ("if-then", {"role", "sex"}),
    "level and zero": ("if-then", {"job", "job_years"}),
}
ACCIDENTS = {
    "ranges do not overlap": ("order", {"age", "postcode"}),
    "nearly an order (0.5% off)": ("order", {"bid", "ask"}),
    "nearly a sum (2% off)": ("sum", {"net", "tax", "paid"}),
    "nearly a ratio": ("sum", {"weight", "parcel"}),
    "rare flags": ("one-hot", {"has_boat", "has_plane", "has_horse"}),
    "nearly always true": ("if-then", {"country", "region"}),
    "strong, not strict (3% off)": ("if-then", {"area", "dialect"}),
    "many levels": ("if-then", {"town", "team"}),
    "nearly missing together": ("missing together", {"phone", "email"}),
}


def made(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table: dict[str, Any] = {}
    table["lowest"], table["highest"] = np.sort(rng.integers(0, 200, (2, n)), axis=0)
    table["limit"] = rng.gamma(3, 2000, n).round(2)
    table["used"] = (table["limit"] * rng.beta(1.5, 3, n)).round(2)
    table["income"] = rng.gamma(4, 800, n).round(2)
    table["spending"] = rng.gamma(3, 700, n).round(2)
    table["saved"] = (table["income"] - table["spending"]).round(2)
    parts = {"rent": 400, "food": 200, "fuel": 60, "fun": 80}
    table |= {name: rng.gamma(2, size, n).round(2) for name, size in parts.items()}
    table["expenses"] = sum(table[name] for name in parts).round(2)
    table["monthly"] = rng.gamma(3, 100, n).round(2)
    table["yearly"] = (12 * table["monthly"]).round(2)
    table["metres"] = rng.normal(1.7, 0.1, n).round(3)
    table["feet"] = (3.28084 * table["metres"]).round(1)
    home = rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    table |= {f"home_{v}": (home == k) * 1 for k, v in enumerate(["own", "rent", "free", "other"])}
    plan = rng.choice(4, n, p=[0.3, 0.2, 0.1, 0.4])
    table |= {f"plan_{v}": (plan == k) * 1 for k, v in enumerate("abc")}
    gone = rng.random(n) < 0.3
    table["landlord"] = np.where(gone, None, rng.choice(["private", "city"], n))
    table["lease"] = np.where(gone, np.nan, rng.integers(1, 120, n))
    table["role"] = rng.choice(["husband", "wife", "single"], n, p=[0.35, 0.25, 0.4])
    free = rng.choice(["f", "m"], n)
    table["sex"] = np.where(table["role"] == "husband", "m", np.where(free == "m", "m", "f"))
    table["sex"] = np.where(table["role"] == "wife", "f", table["sex"])
    table["job"] = rng.choice(["none", "clerk", "cook"], n, p=[0.25, 0.4, 0.35])
    table["job_years"] = np.where(table["job"] == "none", 0, rng.integers(0, 40, n))
    return pd.DataFrame(table | _accidents(n, rng))


def _accidents(n: int, rng: np.random.Generator) -> dict[str, Any]:
    bid = rng.normal(0, 1, n)
    broken = rng.random(n) < 0.005
    gap = np.where(broken, -1, 1) * rng.gamma(2, 0.3, n)
    tax, paid = rng.gamma(2, 100, n).round(2), rng.gamma(3, 300, n).round(2)
    weight = rng.gamma(4, 2, n)
    area, same = rng.choice(["n", "s"], n), rng.random(n) < 0.97
    gone, other = rng.random(n) < 0.2, rng.random(n) < 0.02
    return {
        "age": rng.integers(18, 90, n),
        "postcode": rng.integers(10_000, 99_999, n),
        "bid": bid,
        "ask": bid + gap,
        "tax": tax,
        "paid": paid,
        "net": np.where(rng.random(n) < 0.02, paid, (paid - tax).round(2)),
        "weight": weight,
        "parcel": 1.1 * weight * rng.normal(1, 0.01, n),
        **{f"has_{what}": (rng.random(n) < 0.01) * 1 for what in ("boat", "plane", "horse")},
        "country": rng.choice(["here", "abroad"], n, p=[0.995, 0.005]),
        "region": rng.choice(["east", "west", "north"], n),
        "area": area,
        "dialect": np.where(same, area, np.where(area == "n", "s", "n")),
        "town": rng.choice([f"t{k}" for k in range(60)], n),
        "team": rng.choice(["red", "blue", "green"], n, p=[0.7, 0.2, 0.1]),
        "phone": np.where(gone, np.nan, rng.random(n)),
        "email": np.where(gone ^ other, np.nan, rng.random(n)),
    }


def measure_made(sizes: tuple[int, ...], seeds: int) -> list[Row]:
    lines = []
    for n in sizes:
        fresh, found_right, found_wrong = made(FRESH, 10_000), 0, Counter[str]()
        planted, seconds = Counter[str](), 0.0
        for seed in range(seeds):
            X = made(n, seed)
            started = time.perf_counter()
            found = discover_relations(X)
            seconds += time.perf_counter() - started
            for each in found:
                wrong = is_wrong(each, fresh)
                found_right += not wrong
                found_wrong.update([wrong] if wrong else [])
            planted.update(name for name, what in PLANTED.items() if was_found(what, found))
        right, wrong = found_right, sum(found_wrong.values())
        line: Row = {
            "rows": n,
            "tables": seeds,
            "found": right + wrong,
            "precision": round(right / max(1, right + wrong), 4),
            "recall": round(sum(planted.values()) / (seeds * len(PLANTED)), 4),
            "found_in_tables": {name: planted[name] for name in PLANTED},
            "wrong": dict(found_wrong),
            "seconds_a_table": round(seconds / seeds, 2),
        }
        print(json.dumps(line), flush=True)
        lines.append(line)
    return lines


def is_wrong(each: Suggestion, fresh: pd.DataFrame) -> str:
    """Return why a relation that was found is wrong, or ""."""
    for accident, (kind, columns) in ACCIDENTS.items():
        if each.kind == kind and set(each.pattern.features) <= columns:
            return accident
    kept = keeps(each, fresh, with_groups(fresh))
    return "" if kept.mean() >= RIGHT else f"{each.pattern.words} ({kept.mean():.4f})"


def was_found(what: tuple[str, set[str]], found: list[Suggestion]) -> bool:
    kind, columns = what
    return any(each.kind == kind and set(each.pattern.features) == columns for each in found)


def with_groups(X: pd.DataFrame) -> pd.DataFrame:
    """The made table with its groups as categories, as the relations on them are named."""
    more = {}
    for start in ("home", "plan"):
        flags = X[[name for name in X if name.startswith(f"{start}_")]]
        more[start] = flags.idxmax(axis=1).str.removeprefix(f"{start}_")
        more[start] = more[start].where(flags.sum(axis=1) > 0, "none")
    return X.assign(**more)


# ---- does a row keep a relation? ----------------------------------------------------------------


def keeps(each: Suggestion, X: pd.DataFrame, named: pd.DataFrame) -> np.ndarray:
    """(n,) booleans, counted on the cells of a table; named: with its groups as categories."""
    pattern = each.pattern
    if isinstance(pattern, AtMost):
        a, b = named[pattern.small].to_numpy(float), named[pattern.large].to_numpy(float)
        return np.asarray(~(a > b + 1e-9 * np.abs(b)))
    if isinstance(pattern, WeightedSum):
        total = sum(factor * named[name].to_numpy(float) for name, factor in pattern.terms)
        own = named[pattern.name].to_numpy(float)
        return np.asarray(~(np.abs(own - total) > 2 * pattern.tolerance + 1e-6 * np.abs(own)))
    if isinstance(pattern, OneHot):
        ones = X[list(pattern.columns)].to_numpy(float).sum(axis=1)
        return np.asarray(ones <= 1 if pattern.or_none else ones == 1)
    if isinstance(pattern, MissingTogether):
        gone = named[list(pattern.names)].isna().to_numpy()
        return np.asarray(gone.all(axis=1) | ~gone.any(axis=1))
    assert isinstance(pattern, IfThen)
    known = named[pattern.condition.name].notna() & named[pattern.then.name].notna()
    return np.asarray(~known | ~_is(pattern.condition, named) | _is(pattern.then, named))


def _is(term: Term, X: pd.DataFrame) -> np.ndarray:
    column = X[term.name]
    if term.is_number:
        inside = np.isin(column.to_numpy(float), [float(value) for value in term.values])
    else:
        inside = column.astype(str).isin(term.values).to_numpy()
    return np.asarray(inside != term.is_not)


# ---- 2. what real tables keep -------------------------------------------------------------------


def real_tables() -> Iterator[tuple[str, pd.DataFrame, pd.Series]]:
    """Yield (name, X, y) of the training rows; y: 1 is favourable."""
    for name in ("german", "adult", "heloc", "compas"):
        data = load_dataset(name)
        yield name, data.X_train, pd.Series(np.asarray(data.y_train, int), data.X_train.index)
    cancer = load_breast_cancer(as_frame=True)
    yield "breast cancer", cancer.data, cancer.target


def as_dummies(X: pd.DataFrame) -> pd.DataFrame:
    """One column of 0 and 1 for each level of each category."""
    categories = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    return pd.get_dummies(X, columns=categories, dtype=int)


def measure_found() -> list[Row]:
    lines = []
    for name, X, _ in real_tables():
        for table, how in ((X, ""), (as_dummies(X), ", dummies")):
            if how and name not in ("german", "adult"):
                continue
            started = time.perf_counter()
            found = discover_relations(table)
            line: Row = {
                "table": name + how,
                "rows": len(table),
                "columns": table.shape[1],
                "found": dict(Counter(each.kind for each in found)),
                "seconds": round(time.perf_counter() - started, 2),
            }
            if how:
                line["groups_made"] = sum(name not in table for name in X)
            else:
                line["relations"] = [str(each) for each in found]
            print(json.dumps(line), flush=True)
            lines.append(line)
    return lines


# ---- 3. plans -----------------------------------------------------------------------------------

MOST_TRAINED = 3_000


def tables_for_plans() -> Iterator[tuple[str, pd.DataFrame, pd.Series]]:
    for name, X, y in real_tables():
        if name == "german":
            yield "german, dummies", as_dummies(X), y
        elif name != "compas":  # nothing is found there
            yield name, X, y
    X = made(3_000, 0).drop(columns=["town"])
    rng = np.random.default_rng(0)
    merit = X["saved"] / 1500 + X["job_years"] / 15 - X["expenses"] / 600 + X["home_own"]
    merit += (X["highest"] - X["lowest"]) / 100 + 0.3 * rng.normal(size=len(X))
    yield "made", X, (merit > merit.median()).astype(int)


def fitted_classifier(X: pd.DataFrame, y: pd.Series) -> Any:
    """The user's own model, which reads the user's own columns."""
    texts = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((encoder, texts), remainder="passthrough")
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    return make_pipeline(columns, model).fit(X, y)


def measure_plans(most: int, method: str, table: str | None, known: list[Row]) -> list[Row]:
    """Return the lines of all tables, or of one beside the known lines of the others."""
    lines = [line for line in known if table not in (None, line["table"])]
    for name, X, y in tables_for_plans():
        if table not in (None, name):
            continue
        order = np.random.default_rng(0).permutation(len(X))
        train, held = order[: min(len(X) * 2 // 3, MOST_TRAINED)], order[len(X) * 2 // 3 :]
        h = Classifier(fitted_classifier(X.iloc[train], y.iloc[train]))
        found = discover_relations(X.iloc[train])
        before = Schema.infer(X.iloc[train])
        people = X.iloc[held]
        people = people[~h.accepts(people)].head(most)
        for schema, when in ((before, "before"), (keep_relations(before, found), "after")):
            line = {"table": name, "method": method, "relations": len(found), "when": when}
            line |= measure_schema(method, h, schema, found, X.iloc[train], y.iloc[train], people)
            print(json.dumps(line), flush=True)
            lines.append(line)
    return lines


def measure_schema(
    method: str,
    h: Classifier,
    schema: Schema,
    found: list[Suggestion],
    X: pd.DataFrame,
    y: pd.Series,
    people: pd.DataFrame,
) -> Row:
    started = time.perf_counter()
    model = METHODS[method](h, schema).fit(X, y)
    fit = time.perf_counter() - started
    started = time.perf_counter()
    plans = model.plans(people, n=3)
    seconds = time.perf_counter() - started
    shown = [plan for plan in plans if plan.status == "ok"]
    x_plus = plans.x_plus()
    owner = np.repeat([plan.person for plan in plans], [len(plan.every) for plan in plans])
    broken, by_kind = broken_relations(found, people.loc[owner], x_plus)
    recourse = model.recourse(people)
    return {
        "people": len(people),
        "with_a_plan": len(shown),
        "plans": len(x_plus),
        "plans_that_break_one": int(broken.any(axis=0).sum()) if len(found) else 0,
        "by_kind": by_kind,
        "accepted": int(h.accepts(x_plus).sum()),
        "recourse_that_breaks_one": int(
            broken_relations(found, people, recourse)[0].any(axis=0).sum()
        ),
        "recourse_accepted": int(h.accepts(recourse).sum()),
        "median_changes": float(np.median([len(plan.changes) for plan in shown] or [0])),
        "median_cost": round(float(np.median([plan.cost for plan in shown] or [0])), 3),
        "fit_seconds": round(fit, 1),
        "milliseconds_a_person": round(1000 * seconds / len(people)),
    }


def broken_relations(
    found: list[Suggestion], X: pd.DataFrame, X_plus: pd.DataFrame
) -> tuple[np.ndarray, dict[str, int]]:
    """(relations, n) booleans: a row changes a column of the relation and does not keep it."""
    groups = [each.pattern for each in found if isinstance(each.pattern, OneHot)]
    tables = [_with_categories(table, groups) for table in (X, X_plus)]
    broken, by_kind = [], Counter[str]()
    for each in found:
        names = [name for name in each.pattern.features if name in tables[0]]
        a, b = (table[names].astype(object).to_numpy() for table in tables)
        moved = ((a != b) & ~(pd.isna(a) & pd.isna(b))).any(axis=1)
        broken.append(moved & ~keeps(each, X_plus, tables[1]))
        by_kind[each.kind] += int(broken[-1].sum())
    return np.array(broken, dtype=bool).reshape(len(found), len(X)), dict(by_kind)


def _with_categories(X: pd.DataFrame, groups: list[OneHot]) -> pd.DataFrame:
    more = {}
    for group in groups:
        flags = X[list(group.columns)].to_numpy(float)
        labels = np.array([*group.labels, "none"], dtype=object)
        more[group.name] = labels[np.where(flags.sum(1) == 0, len(group.labels), flags.argmax(1))]
    return pd.concat([X, pd.DataFrame(more, index=X.index)], axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--part", choices=["made", "found", "plans"], help="only this part")
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--method", default="genre")
    parser.add_argument("--table", help="of the third part: measure only this one again")
    options = parser.parse_args()
    parts = {
        "made": lambda: measure_made(SIZES, options.seeds),
        "found": measure_found,
        "plans": lambda: measure_plans(
            options.people, options.method, options.table, known.get("plans", [])
        ),
    }
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, measure in parts.items():
        if options.part in (None, name):
            known[name] = measure()
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
