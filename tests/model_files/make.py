"""Save models in the current file format, with their answers: `python -m tests.model_files.make`.

Writes `format-N/` beside this file. It refuses to replace files that are already there, because
these show that a newer version still reads what an older one wrote.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from genrecourse import METHODS, Classifier, GenRe
from genrecourse.model.artifact import FORMAT_VERSION
from tests.golden.cases import MESSY, messy_table, one_thread, plain, processor, rejected

FOLDER = Path(__file__).parent
PEOPLE = 6
NAMES = ("genre", "nnr-refined", "wachter")


def as_json(X: pd.DataFrame) -> dict[str, Any]:
    """A table as plain values. A missing value is None."""
    rows = X.astype(object).itertuples(index=False)
    data = [[None if pd.isna(cell) else plain(cell) for cell in row] for row in rows]
    return {"columns": list(X.columns), "index": [plain(label) for label in X.index], "data": data}


def write(folder: Path) -> None:
    """Fit each method on the messy table and save it with the recourse it gives to some people."""
    (X, y), (X_new, _) = messy_table(160, 0), messy_table(30, 1)
    answers: dict[str, Any] = {"processor": processor()}
    for name in NAMES:
        small = GenRe._test_params() if name == "genre" else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            method = METHODS[name](Classifier(favourable="yes"), MESSY, **small).fit(X, y)
        people = rejected(method, X_new, PEOPLE)
        method.save(folder / name)
        answers[name] = {"people": as_json(people), "recourse": as_json(method.recourse(people))}
    text = json.dumps(answers, indent=1, allow_nan=False)
    (folder / "answers.json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    folder = FOLDER / f"format-{FORMAT_VERSION}"
    if folder.exists():
        sys.exit(f"{folder} exists: files of a released format are kept as they are")
    with one_thread():
        write(folder)
    print(f"wrote {folder}")


if __name__ == "__main__":
    main()
