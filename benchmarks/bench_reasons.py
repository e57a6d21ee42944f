"""What reasons for one applicant of German credit cost: rows that h scores, processor seconds.

python -m benchmarks.bench_reasons   # under a minute, one core
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from genrecourse import Classifier, NearestNeighbour, load_dataset, reasons

PEOPLE = 10


def models() -> dict[str, Any]:
    numbers = make_column_selector(dtype_include="number")
    columns = make_column_transformer(
        ("passthrough", numbers),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    return {
        "the library's network": None,
        "forest of 100 trees": make_pipeline(columns, RandomForestClassifier(random_state=0)),
        "logistic regression": make_pipeline(columns, LogisticRegression(max_iter=5000)),
    }


def main() -> None:
    data = load_dataset("german")
    for name, model in models().items():
        h = Classifier(None if model is None else model.fit(data.X_train, data.y_train))
        method = NearestNeighbour(h, data.schema, gamma=0.6).fit(data.X_train, data.y_train)
        people = data.X_test[~method.classifier_.accepts(data.X_test)].head(PEOPLE)
        asked, seconds, half = [], [], []
        for i in range(len(people)):
            start = time.process_time()
            (found,) = reasons(method, people.iloc[[i]])
            seconds.append(time.process_time() - start)
            asked.append(found.asked)
            half.append(max((each.high - each.low) / 2 for each in found.every))
        print(
            f"{name}: {len(people)} people, {np.median(asked):,.0f} rows (up to {max(asked):,}), "
            f"{np.median(seconds):.2f} s (up to {max(seconds):.2f} s), "
            f"the longest interval +-{max(half):.3f}"
        )


if __name__ == "__main__":
    main()
