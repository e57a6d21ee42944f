"""Which methods and data sets there are, with a line about each."""

from __future__ import annotations

from dataclasses import dataclass

from genrecourse.methods import METHODS


@dataclass(frozen=True)
class DatasetSummary:
    """One data set. n_rows, n_features: None if it is not on this machine yet.

    >>> DatasetSummary("loans", "repaid = yes (gets a loan)", "CC BY 4.0", 1000, 20).n_rows
    1000
    """

    name: str
    favourable: str
    licence: str
    n_rows: int | None
    n_features: int | None


def describe_methods() -> dict[str, str]:
    """Return a line about each method, by its name in METHODS.

    >>> sorted(describe_methods()) == sorted(METHODS)
    True
    """
    lines = {}
    for name in METHODS:
        about = METHODS.docstring(name).strip().splitlines()[0]
        lines[name] = f"{about} {METHODS.words.get(name, '')}".strip()
    return lines


def describe_datasets() -> list[DatasetSummary]:
    """Return a summary of each data set. Nothing is downloaded.

    >>> [each.name for each in describe_datasets()][:2]
    ['german', 'adult']
    """
    from genrecourse.data.datasets import DATASETS, is_local, load_dataset  # slow to import

    found = []
    for name, entry in DATASETS.items():
        data = load_dataset(name) if is_local(name) else None
        found.append(
            DatasetSummary(
                name,
                f"{entry.target} = {entry.label} ({entry.favourable})",
                entry.licence,
                None if data is None else len(data.X_train) + len(data.X_test),
                None if data is None else len(data.schema),
            )
        )
    return found
