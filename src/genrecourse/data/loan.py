"""A loan table from a known mechanism: true probabilities can be computed, not only estimated.

Each column is drawn from columns before it and from its own noise (a structural causal model):

    age, sex      from noise alone
    education     from age                    a degree only from age 22
    job_years     from age                    at most since age 18
    dependants    from age
    income        from education, job_years, sex
    housing       from age, income
    savings       from income, age, dependants
    debt          from income, housing
    purpose       from age
    amount        from income, purpose
    duration      from amount, income

Whether a loan is repaid is random, with a probability that a formula computes from the row
(`true_probability`). The formula uses neither age nor sex: they act only through other columns.

Recourse treats each column as changeable by itself, as everywhere in this library. In the
mechanism columns are not independent: a degree raises the income, and the income changes savings
and debt. So the true probability is about the row x_plus itself ("would a person like this
repay?"), not about what happens to a person x who tries to reach it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

TARGET, REPAID, NOT_REPAID = "repaid", "yes", "no"
N_TRAIN, N_TEST = 8000, 2000

EDUCATION = ("none", "school", "vocational", "degree")
HOUSING = ("with family", "renting", "mortgage", "owner")
PURPOSE = ("car", "home", "business", "study", "other")

IMMUTABLE = ("sex", "dependants")
FEATURES: dict[str, dict[str, Any]] = {
    "age": {"unit": "years", "direction": "increase"},
    "education": {"categories": EDUCATION, "ordered": True, "direction": "increase"},
    "job_years": {"wording": "time in the job", "unit": "years", "direction": "increase"},
    "dependants": {"wording": "number of dependants"},
    "income": {"wording": "monthly income", "unit": "€"},
    "housing": {"categories": HOUSING},
    "savings": {"unit": "€"},
    "debt": {"wording": "other debts", "unit": "€"},
    "purpose": {"wording": "purpose of the loan", "categories": PURPOSE},
    "amount": {"wording": "amount of the loan", "unit": "€"},
    "duration": {"wording": "duration of the loan", "unit": "months"},
}


def read(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training and test rows, with the outcome of each loan as a column.

    Examples:
        >>> train, test = read(seed=0)
        >>> len(train), len(test), sorted(train["repaid"].unique())
        (8000, 2000, ['no', 'yes'])
    """
    rng = np.random.default_rng([seed, 20])
    table = draw(N_TRAIN + N_TEST, rng)
    repaid = rng.random(len(table)) < true_probability(table)
    table[TARGET] = np.where(repaid, REPAID, NOT_REPAID)
    return table.iloc[:N_TRAIN], table.iloc[N_TRAIN:]


# ---- the mechanism ---------------------------------------------------------------------------


def draw(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return n people who ask for a loan. The columns are drawn in causal order.

    Examples:
        >>> people = draw(100, np.random.default_rng(0))
        >>> bool(possible(people).all())
        True
    """
    age = 20 + (50 * rng.beta(1.7, 2.6, n)).astype(np.int64)
    sex = rng.choice(["female", "male"], n)
    level = _education(age, rng)
    job_years = ((age - 17) * rng.beta(1.0, 2.2, n)).astype(np.int64)
    dependants = rng.binomial(3, 0.08 + 0.42 * np.exp(-(((age - 40) / 11) ** 2)))
    log_income = 7.1 + 0.17 * level + 0.14 * np.log1p(job_years) + 0.09 * (sex == "male")
    income = _rounded(np.exp(log_income + rng.normal(0, 0.28, n)), 10)
    housing = _housing(age, income, rng)
    spare = np.exp(0.9 + 0.03 * (age - 40) - 0.2 * dependants + rng.normal(0, 0.9, n))
    savings = _rounded(np.maximum(0.0, spare - 1.0) * income, 100)  # a quarter have none
    owing = np.maximum(0.0, rng.gamma(0.9, 3.0, n) - 0.8 - 0.7 * (housing == "with family"))
    debt = _rounded(owing * income, 100)
    purpose = _purpose(age, rng)
    wish = 1.6 + np.array([0.0, 0.5, 0.6, -0.3, -0.6])[_place(purpose, PURPOSE)]
    amount = _rounded(np.exp(wish + rng.normal(0, 0.5, n)) * income, 100)
    months = 14 * np.sqrt(amount / income) * np.exp(rng.normal(0, 0.35, n))
    duration = np.clip(_rounded(months, 6), 6, 96)
    return pd.DataFrame(
        {
            "age": age,
            "sex": sex,
            "education": np.array(EDUCATION)[level],
            "job_years": job_years,
            "dependants": dependants,
            "income": income,
            "housing": housing,
            "savings": savings,
            "debt": debt,
            "purpose": purpose,
            "amount": amount,
            "duration": duration,
        }
    )


def _education(age: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return levels 0 to 3: younger people went to school longer; a degree needs age 22."""
    school = rng.normal(0.012 * (45 - age), 1.0)
    level = np.searchsorted([-1.2, -0.1, 0.9], school)
    return np.where((level == 3) & (age < 22), 1, level)


def _housing(age: np.ndarray, income: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    older, richer = (age - 35) / 10, np.log(income / 1800)
    taste = np.stack([-1.2 * older, 0.8 + 0 * older, 0.5 * older + 1.5 * richer, 1.1 * older], 1)
    return np.array(HOUSING)[(taste + rng.gumbel(0, 1, taste.shape)).argmax(axis=1)]


def _purpose(age: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    older = (age - 35) / 10
    taste = np.stack([0.6 + 0 * older, 0.3 + 0.3 * older, 0 * older, -1.0 * older, 0.2 + 0 * age])
    return np.array(PURPOSE)[(taste.T + rng.gumbel(0, 1, taste.T.shape)).argmax(axis=1)]


def _rounded(values: np.ndarray, unit: int) -> np.ndarray:
    return np.asarray(unit * np.round(values / unit)).astype(np.int64)


def _place(column: Any, levels: tuple[str, ...]) -> np.ndarray:
    """Return the index of each cell in `levels`."""
    return np.asarray(pd.Categorical(column, categories=list(levels)).codes)


# ---- the truth -------------------------------------------------------------------------------


def true_probability(X: pd.DataFrame) -> np.ndarray:
    """Return (n,) probabilities that the loans are repaid.

        logit = 2 log(income a head / 1500) - 10 (burden - 0.25) + 2.5 (cushion - 0.3)
                + 0.6 (log(1 + job_years) - 1.5) + housing + purpose - 1.2 [business, job < 2 years]

    Income a head counts a dependant as 0.35 of a person. The burden is the share of the income that
    goes into instalments, if other debts are paid back in five years. The cushion is
    savings / (savings + amount). A number below its smallest possible value, which noise can
    produce, counts as that value.

    Examples:
        >>> people = draw(2, np.random.default_rng(0))
        >>> richer = people.assign(income=2 * people["income"])
        >>> true_probability(richer) > true_probability(people)
        array([ True,  True])
    """
    least = {"income": 1, "job_years": 0, "amount": 1, "debt": 0, "savings": 0, "duration": 1}
    income, job_years, amount, debt, savings, duration = (
        X[name].to_numpy(dtype=float).clip(min=low) for name, low in least.items()
    )
    a_head = income / (1 + 0.35 * X["dependants"].to_numpy(dtype=float).clip(min=0))
    burden = (amount / duration + debt / 60) / income
    cushion = savings / (savings + amount)
    purpose = _place(X["purpose"], PURPOSE)
    new_business = (purpose == PURPOSE.index("business")) & (job_years < 2)
    logit = (
        2.0 * np.log(a_head / 1500)
        - 10.0 * (burden - 0.25)
        + 2.5 * (cushion - 0.3)
        + 0.6 * (np.log1p(job_years) - 1.5)
        + np.array([0.2, -0.5, 0.3, 0.6])[_place(X["housing"], HOUSING)]
        + np.array([0.1, 0.3, -0.4, 0.0, -0.2])[purpose]
        - 1.2 * new_business
    )
    return np.asarray(expit(logit))


def possible(X: pd.DataFrame) -> np.ndarray:
    """Return (n,) booleans: True if the mechanism can produce such a person.

    There are two hard limits: a job starts at age 18 or later, and a degree needs age 22.

    Examples:
        >>> people = draw(1, np.random.default_rng(0)).assign(age=19, job_years=5)
        >>> possible(people)
        array([False])
    """
    age, job_years = X["age"].to_numpy(), X["job_years"].to_numpy()
    degree = (X["education"] == "degree").to_numpy()
    return np.asarray((job_years <= age - 18) & (~degree | (age >= 22)))
