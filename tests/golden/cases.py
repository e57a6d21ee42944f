"""What fit, recourse, plans, promise and audit give on three tables, as plain JSON values.

Stored by `python -m tests.golden.store NAME` and compared by `test_golden.py`. Numbers are kept in
full; big arrays and tables as the SHA-256 of their bytes.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from genrecourse import METHODS, Classifier, Feature, GenRe, Policy, Schema, load_dataset
from genrecourse.auditing import audit
from genrecourse.methods.genre import Training

FOLDER = Path(__file__).parent
POLICIES = FOLDER.parents[1] / "policies"
# Methods without stored results: siblings of others, which would take long.
LATER = ("genre-q", "nnr-search", "revise-search", "cchvae-search", "tabsyn_q-search")
QUICK = Training(steps=80, batch_size=128)


# ---- as plain values ----------------------------------------------------------------------------


def digest(*parts: bytes) -> str:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part)
    return sha.hexdigest()[:32]


def table_digest(X: pd.DataFrame) -> str:
    """Of every cell, dtype, column and index label."""
    cells = X.to_json(orient="split", double_precision=15, date_format="iso")
    numbers = X.select_dtypes("number").astype("float64").to_numpy(na_value=np.nan)
    about = json.dumps([list(map(str, X.dtypes)), list(map(str, X.index))])
    return digest(cells.encode(), numbers.tobytes(), about.encode())


def net_digest(method: Any) -> str:
    state = method.density_.net.state_dict()
    return digest(*(state[name].numpy().tobytes() for name in sorted(state)))


def plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is pd.NA or (isinstance(value, float) and not np.isfinite(value)):
        return str(value)
    return value


def change(each: Any) -> list[Any]:
    return [each.feature.name, plain(each.before), plain(each.after)]


def one_plan(plan: Any) -> dict[str, Any]:
    return {
        "changes": [change(each) for each in plan.changes],
        "consequences": [change(each) for each in plan.consequences],
        "score_after": plain(plan.score_after),
        "cost": plain(plan.cost),
        "log_likelihood": plain(plan.log_likelihood),
        "retrained": None if plan.retrained is None else [plan.retrained.k, plan.retrained.n],
        "imprecise": None if plan.imprecise is None else [plan.imprecise.k, plan.imprecise.n],
        "cheapest": evidence(plan.cheapest),
    }


def evidence(found: Any) -> Any:
    return None if found is None else [found.proven, found.asked, found.most, found.draws]


def blocking(each: Any) -> list[Any]:
    name = None if each.feature is None else each.feature.name
    changes = [change(one) for one in each.changes]
    return [each.kind, name, changes, plain(each.score_after), plain(each.cost)]


def all_plans(plans: Any) -> list[dict[str, Any]]:
    return [
        {
            "person": plain(plan.person),
            "status": plan.status,
            "reason_code": plan.reason_code,
            "score_before": plain(plan.score_before),
            "evidence": evidence(plan.evidence),
            "blocking": [blocking(each) for each in plan.blocking_rules],
            "plans": [one_plan(each) for each in plan.every],
            "rows": [list(each.row.to_dict().values()) for each in plan.every],
        }
        for plan in plans
    ]


def audited(found: Any) -> list[list[Any]]:
    return [[plain(cell) for cell in row] for row in found.to_frame().itertuples(index=False)]


def fitted(method: GenRe) -> dict[str, Any]:
    training = {k: v for k, v in method.fit_report_["training"].items() if "second" not in k}
    return {
        "net": net_digest(method),
        "gamma": method.gamma_,
        "temperature": method.temperature_,
        "margin": method.margin_,
        "pairs": method.fit_report_["pairs"],
        "targets": method.fit_report_["targets"],
        "training": json.loads(json.dumps(training, default=plain)),
    }


def recoursed(method: Any, X: pd.DataFrame, **request: Any) -> dict[str, Any]:
    found = method.recourse(X, **request)
    about = method.assess(X, found)
    return {
        "table": table_digest(found),
        "status": about["status"].value_counts().sort_index().to_dict(),
        "cost": [plain(v) for v in about["cost"]],
        "score_plus": [plain(v) for v in about["score_plus"]],
    }


# ---- the cases ----------------------------------------------------------------------------------


def rejected(method: Any, X: pd.DataFrame, n: int) -> pd.DataFrame:
    return X[~method.classifier_.accepts(X)].head(n)


def german() -> dict[str, Any]:
    """German credit under its policy, and with rules of a request on top."""
    data = load_dataset("german", seed=7)
    policy = Policy.read(POLICIES / "german.toml")
    schema = policy.schema(data.X_train)
    h = Classifier(favourable=1)
    method = GenRe(h, schema, training=QUICK).fit(data.X_train, data.y_train)
    people = rejected(method, data.X_test, 12)
    rules = {"lock": ["savings"], "max_step": {"duration": 12}}
    found = audit(method, data.X_test, groups=["personal_status_sex"], **in_force(policy))
    return {
        "fit": fitted(method),
        "recourse": recoursed(method, people),
        "plans": all_plans(method.plans(people, n=3, **in_force(policy))),
        "fewest": all_plans(method.plans(people, n=2, fewest_changes=True)),
        "rules": all_plans(method.plans(people, rules=rules, safety=0.9)),
        "sample": table_digest(method.sample(people, 5)),
        "promise": promise(method),
        "audit": audited(found),
    }


def in_force(policy: Policy) -> dict[str, Any]:
    return {"rules" if k == "constraints" else k: v for k, v in policy.request.items()}


def promise(method: Any) -> list[Any]:
    made = method.promise(0.6)
    return [made.holds, plain(made.threshold)]


def compas() -> dict[str, Any]:
    """COMPAS without a policy: few ways to be accepted, many equal rows."""
    data = load_dataset("compas", seed=7)
    h = Classifier(favourable=1)
    method = GenRe(h, data.schema, training=QUICK).fit(data.X_train, data.y_train)
    people = rejected(method, data.X_test, 15)
    near = METHODS["nnr-refined"](method.classifier_, data.schema)
    near.fit(data.X_train, data.y_train)
    rules = {"max_changes": 2, "relations": ["if priors_count > 2 then length_of_stay <= 10"]}
    return {
        "fit": fitted(method),
        "recourse": recoursed(method, people),
        "plans": all_plans(method.plans(people, n=3)),
        "rules": all_plans(method.plans(people, n=2, rules=rules)),
        "audit": audited(audit(method, data.X_test.head(400), groups=["sex"])),
        "nnr": {"gamma": near.gamma_, **recoursed(near, people)},
    }


def messy_table(n: int, stream: int) -> tuple[pd.DataFrame, pd.Series]:
    """Numbers with atoms, gaps and decimals, categories, missing values of both kinds."""
    rng = np.random.default_rng([20, stream])
    income = np.round(rng.lognormal(8, 0.5, n), 2)
    income[rng.random(n) < 0.08] = np.nan
    debt = np.where(rng.random(n) < 0.4, 0.0, np.round(rng.gamma(2.0, 900.0, n), 0))
    limit = np.round(rng.integers(1, 20, n) * 500.0)
    house = rng.choice(np.array(["rent", "own", "with family", None], dtype=object), n)
    X = pd.DataFrame(
        {
            "income": income,
            "debt": debt,
            "limit": limit,
            "used": np.round(debt / limit, 3),
            "late": rng.integers(0, 5, n).astype("int16"),
            "house": house,
            "grade": rng.choice(["low", "middle", "high"], n),
            "age": rng.integers(20, 70, n),
            "sex": rng.choice(["f", "m"], n),
            "member": rng.random(n) < 0.5,
        },
        index=pd.Index(rng.permutation(n) * 3 + 1, name="person"),
    )
    worth = np.nan_to_num(income, nan=2000) / 3000 - X["used"] - 0.4 * X["late"] + X["member"]
    worth = worth + 0.3 * (X["grade"] == "high") + rng.normal(0, 0.4, n)
    return X, pd.Series(np.where(worth > worth.median(), "yes", "no"), X.index)


MESSY = Schema(
    features=(
        Feature(name="income", kind="number", direction="increase", missing=True, decimals=2),
        Feature(name="debt", kind="number", range=(0, 9000), decimals=0),
        Feature(name="limit", kind="number", max_step=3000, decimals=0),
        Feature(name="used", kind="number", role="derived", formula="debt / limit", decimals=3),
        Feature(name="late", kind="number", direction="decrease", decimals=0),
        Feature(
            name="house",
            kind="category",
            categories=("own", "rent", "with family"),
            missing=True,
        ),
        Feature(
            name="grade",
            kind="category",
            categories=("low", "middle", "high"),
            ordered=True,
            direction="increase",
            cost_weight=2.0,
        ),
        Feature(name="age", kind="number", role="advances", horizon=1, decimals=0),
        Feature(name="sex", kind="category", categories=("f", "m"), role="protected"),
        Feature(name="member", kind="category", categories=(False, True)),
    )
)
MESSY_RULES = {
    "default": {"max_changes": 4, "relations": ["debt <= limit"]},
    "people": {},
}


def messy() -> dict[str, Any]:
    """Every role and kind of rule; then every method, quickly, under a plainer schema."""
    (X, y), (X_new, _) = messy_table(420, 0), messy_table(120, 1)
    h = Classifier(favourable="yes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = GenRe(h, MESSY, training=QUICK, n_bins=20).fit(X, y)
    people = rejected(method, X_new, 14)
    first = plain(people.index[0])
    rules = {**MESSY_RULES, "people": {first: {"lock": ["member"], "ranges": {"debt": [0, 2000]}}}}
    found = audit(method, X_new, groups=["sex", "grade"])
    return {
        "fit": fitted(method),
        "recourse": recoursed(method, people),
        "plans": all_plans(method.plans(people, n=4)),
        "rules": all_plans(method.plans(people, n=2, rules=rules)),
        "rules_recourse": recoursed(method, people, rules=rules),
        "draws": table_digest(method.draws(people, 16)),
        "log_prob": [plain(v) for v in method.log_prob(method.recourse(people), given=people)],
        "audit": audited(found),
        "methods": {name: quick(name, X, y, people) for name in METHODS if name not in LATER},
    }


def quick(name: str, X: pd.DataFrame, y: pd.Series, people: pd.DataFrame) -> Any:
    kind = getattr(METHODS[name], "func", METHODS[name])
    small = kind._test_params() if hasattr(kind, "_test_params") else {}
    features = tuple(f for f in MESSY if f.name not in ("used", "income"))
    plainer = Schema(features=features).with_feature("age", role="immutable", horizon=None)
    names = plainer.names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = METHODS[name](Classifier(favourable="yes"), plainer, **small)
        method.fit(X[names], y)
        return recoursed(method, people[names])


CASES = {"german": german, "compas": compas, "messy": messy}


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: how sums are rounded depends on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def run(name: str) -> dict[str, Any]:
    """The results of one case, computed with one thread."""
    with one_thread():
        return {"processor": processor(), **CASES[name]()}


def processor() -> str:
    """A mark of how this torch and processor round: equal marks, equal bits."""
    g = torch.Generator().manual_seed(0)
    a, b = torch.randn(70, 33, generator=g), torch.randn(33, 50, generator=g)
    about = (torch.__version__, torch.backends.cpu.get_cpu_capability())
    more = (a @ b).softmax(-1).exp().numpy().tobytes()
    half = (a.double() @ b.double()).log1p().nan_to_num().numpy().tobytes()
    return digest(repr(about).encode(), more, half)
