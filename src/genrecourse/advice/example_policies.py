"""The example policies in the package, to start from. Reading them imports nothing that is slow."""

from __future__ import annotations

import tomllib
from pathlib import Path

from genrecourse.errors import UserError, did_you_mean

FOLDER = Path(__file__).parents[1] / "data" / "embedded"


def describe_policies() -> dict[str, str]:
    """Return what each example policy lets a plan change, by its name.

    >>> describe_policies()["compas"]
    'new offence within two years, degree of the charge (F: felony, M: misdemeanour)'
    """
    found = {}
    for path in _files():
        stated = tomllib.loads(path.read_text(encoding="utf-8"))
        locked = stated.get("rules", {}).get("lock", ())
        free = {
            name: feature.get("wording", name)
            for name, feature in stated["features"].items()
            if feature.get("role", "mutable") == "mutable" and name not in locked
        }
        found[path.stem] = ", ".join(free.values())
    return found


def example_policy(name: str) -> str:
    """Return the text of an example policy in the package.

    >>> "[decision]" in example_policy("german")
    True
    """
    known = {path.stem: path for path in _files()}
    if name not in known:
        close = did_you_mean(name, known)
        raise UserError(f"no example policy '{name}'{close}; there are {', '.join(known)}")
    return known[name].read_text(encoding="utf-8")


def _files() -> list[Path]:
    return sorted(FOLDER.glob("*.toml"))
