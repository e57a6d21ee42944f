"""Which methods and data sets there are, with a line about each."""

from __future__ import annotations

from dataclasses import dataclass

from genrecourse.data.datasets import DATASETS, EMBEDDED, is_local, load_dataset
from genrecourse.errors import UserError, did_you_mean
from genrecourse.methods import METHODS
from genrecourse.rules.policy import Policy
from genrecourse.table.text_files import read_text


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
    for name, maker in METHODS.items():
        kind = getattr(maker, "func", maker)  # a maker may be a partial, with settings
        about = (kind.__doc__ or "").strip().splitlines()[0]
        lines[name] = f"{about} {METHODS.words.get(name, '')}".strip()
    return lines


def describe_policies() -> dict[str, str]:
    """Return what each example policy lets a plan change, by its name.

    >>> describe_policies()["compas"]
    'new offence within two years, degree of the charge (F: felony, M: misdemeanour)'
    """
    found = {}
    for path in sorted(EMBEDDED.glob("*.toml")):
        stated = Policy.read(path).stated
        locked = stated.rules.lock
        free = {n: f for n, f in stated.features.items() if f.role == "mutable" and n not in locked}
        found[path.stem] = ", ".join(f.wording or name for name, f in free.items())
    return found


def example_policy(name: str) -> str:
    """Return the text of an example policy in the package.

    >>> "[decision]" in example_policy("german")
    True
    """
    known = [path.stem for path in sorted(EMBEDDED.glob("*.toml"))]
    if name not in known:
        close = did_you_mean(name, known)
        raise UserError(f"no example policy '{name}'{close}; there are {', '.join(known)}")
    return read_text(EMBEDDED / f"{name}.toml")


def describe_datasets() -> list[DatasetSummary]:
    """Return a summary of each data set. Nothing is downloaded.

    >>> [each.name for each in describe_datasets()] == list(DATASETS)
    True
    """
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
