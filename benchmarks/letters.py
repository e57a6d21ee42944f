"""Five letters to look at: a plan, another way, no plan, a table with odd names, and in German.

python -m benchmarks.letters -o docs/letters   # seconds; writes a page and a text for each letter

All models and tables are made from fixed seeds, and the letters have a fixed date, so that the
files change only if the letters do.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from genrecourse import Classifier, NearestNeighbour, Policy, Schema, load_dataset
from genrecourse.planning.letter_form import Letter
from genrecourse.planning.plans import Plan
from genrecourse.table.text_files import write_text

ROOT = Path(__file__).parents[1]
DATE = datetime.date(2026, 11, 18)
BANK = {
    "date": DATE,
    "sender": "Example Bank\n1 Market Street, Exampletown",
    "contact": "Credit office, Monday to Friday, telephone 01 234 567",
}


def letters() -> Iterator[tuple[str, Letter]]:
    """Yield a name and a letter, five times."""
    german = german_plans()
    yield "german", first(german, lambda plan: len(plan.changes) == 2).to_letter(**BANK)
    yield (
        "no-plan",
        first(german, lambda plan: bool(plan.blocking_rules_shown), "no-plan").to_letter(**BANK),
    )
    loan = first(loan_plans(), lambda plan: len(plan.alternatives) == 2)
    yield "loan", loan.to_letter(**BANK, recipient="Ms Sample", reference="L-2026-118")
    messy = first(messy_plans(), lambda plan: _is_rounded(plan) and len(plan.changes) > 1)
    yield "odd-names", messy.to_letter(date=DATE)
    kredit = first(kredit_plans(), lambda plan: len(plan.changes) > 1)
    yield "in-german", kredit.to_letter("de", **kredit_policy().letter, date=DATE)


def first(plans: Any, which: Any, status: str = "ok") -> Plan:
    """Return the first plan of this status for which `which` holds."""
    return next(plan for plan in plans if plan.status == status and which(plan))


def _is_rounded(plan: Plan) -> bool:
    return plan.round_numbers is not None and bool(plan.round_numbers.values)


# ---- plans ----------------------------------------------------------------------------------


def german_plans() -> Any:
    """German credit under its policy."""
    data, policy = load_dataset("german"), Policy.read(ROOT / "policies" / "german.toml")
    y = data.y_train.map({1: data.favourable, 0: "bad"})
    method = NearestNeighbour(policy.classifier(), policy.schema(data.X_train), random_state=0)
    method.fit(data.X_train, y)
    return method.plans(data.X_test, n=2, **policy.request)


def loan_plans() -> Any:
    """The made loans: amounts of money with many digits."""
    data = load_dataset("loan")
    X, y = data.X_train.head(2000), data.y_train.head(2000)
    schema = data.schema.with_feature("savings", direction="increase")
    method = NearestNeighbour(Classifier(), schema, random_state=0).fit(X, y)
    return method.plans(data.X_test.head(200), n=3)


def messy_table(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """Names and numbers as they come out of a data warehouse, without a policy."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "NumInqLast6M": rng.integers(0, 12, n),
            "gross_annual_income_eur": rng.lognormal(10.5, 0.5, n).round(2),
            "debt-to-income.ratio": rng.random(n),
            "home_ownership": rng.choice(["own_house", "rented_flat", "with_parents"], n),
            "credit<b>limit</b>": (rng.random(n) * 40_000).astype("float32"),
        }
    )


def messy_score(X: pd.DataFrame) -> np.ndarray:
    """A scorecard from 300 to 850."""
    points = (
        560
        + 60 * np.log(X["gross_annual_income_eur"].to_numpy(dtype=float) / 36_000)
        - 160 * (X["debt-to-income.ratio"].to_numpy(dtype=float) - 0.5)
        - 9 * X["NumInqLast6M"].to_numpy(dtype=float)
        + 40 * (X["home_ownership"] == "own_house").to_numpy()
        + X["credit<b>limit</b>"].to_numpy(dtype=float) / 1_000
    )
    return np.clip(points, 300, 850)


def messy_plans() -> Any:
    """A scorecard function on a table that nobody prepared."""
    X = messy_table()
    h = Classifier(messy_score, cutoff=580, score_range=(300, 850))
    return NearestNeighbour(h, Schema.infer(X), random_state=0).fit(X).plans(X.head(60), n=2)


def kredit_policy() -> Policy:
    """A policy in German, which says who writes and whom to ask."""
    return Policy.of(
        features={
            "alter": {"role": "advances", "horizon": 1, "unit": "Jahre", "wording": "Alter"},
            "einkommen": {"wording": "Monatseinkommen", "unit": "Euro", "direction": "increase"},
            "kreditbetrag": {"wording": "Kreditbetrag", "unit": "Euro", "direction": "decrease"},
            "laufzeit": {"wording": "Laufzeit", "unit": "Monate"},
            "beschaeftigung": {"wording": "Art der Beschäftigung", "cost_weight": 2},
            "geschlecht": {"role": "protected", "wording": "Geschlecht"},
        },
        letter={
            "sender": "Beispielbank\nMarktplatz 1, Musterstadt",
            "contact": "Kreditabteilung, Telefon 01 234 567",
        },
    )


def kredit_table() -> pd.DataFrame:
    """A table with German names."""
    rng = np.random.default_rng(3)
    n = 600
    return pd.DataFrame(
        {
            "alter": rng.integers(19, 70, n),
            "einkommen": rng.lognormal(7.9, 0.4, n).round(2),
            "kreditbetrag": rng.integers(1_000, 40_000, n),
            "laufzeit": rng.choice([12, 24, 36, 48, 60, 72], n),
            "beschaeftigung": rng.choice(["befristet", "unbefristet", "selbstständig"], n),
            "geschlecht": rng.choice(["w", "m"], n),
        }
    )


def kredit_plans() -> Any:
    """A formula under a policy, both in German."""

    def score(X: pd.DataFrame) -> np.ndarray:
        rate = X["kreditbetrag"] / X["laufzeit"] / X["einkommen"]
        fixed = (X["beschaeftigung"] == "unbefristet").to_numpy(dtype=float)
        return 1 / (1 + np.exp(14 * rate.to_numpy(dtype=float) - 2.6 - fixed))

    policy, X = kredit_policy(), kredit_table()
    method = NearestNeighbour(policy.classifier(score), policy.schema(X), random_state=0).fit(X)
    return method.plans(X.head(60), **policy.request)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "letters")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    for name, letter in letters():
        write_text(letter.to_html(), folder / f"{name}.html")
        write_text(letter.to_text() + "\n", folder / f"{name}.txt")
        print(f"{folder / name}.html and .txt")


if __name__ == "__main__":
    main()
