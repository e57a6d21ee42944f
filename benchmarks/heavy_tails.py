"""Which numbers of the data sets have heavy tails, by the rule of `Schema.lint`.

    python -m benchmarks.heavy_tails

Prints each mutable number of the training rows (seed 0): the median difference between two people
who differ in it, and the width of the middle half of the people, both as shares of the range. A
star marks what `lint` warns of. Data sets that are not there are left out.
"""

from __future__ import annotations

import numpy as np

from genrecourse.data.datasets import is_local, load_dataset
from genrecourse.table.schema import usual_gap

NAMES = ("german", "adult-carla", "compas", "heloc", "loan")


def main() -> None:
    for name in NAMES:
        if not is_local(name):
            print(f"{name}: not there")
            continue
        data = load_dataset(name, seed=0)
        X, warned, numbers = data.X_train, 0, 0
        for feature in data.schema:
            if feature.is_category or feature.role != "mutable":
                continue
            values = X[feature.name].dropna().to_numpy(dtype=float)
            width = np.ptp(values)
            half = np.subtract(*np.quantile(values, [0.75, 0.25])) / width
            remarks = data.schema.lint(X[data.schema.names])
            heavy = any(f"'{feature.name}' has a heavy tail" in remark for remark in remarks)
            numbers, warned = numbers + 1, warned + heavy
            print(
                f"{name:12} {feature.name:36} {'*' if heavy else ' '} "
                f"differ by {usual_gap(values) / width:6.1%}   middle half {half:6.1%}"
            )
        print(f"{name}: {warned} of {numbers} mutable numbers in {len(X):,} rows\n")


if __name__ == "__main__":
    main()
