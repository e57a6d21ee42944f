"""The frozen source: every full result is made by the code of one commit, which configs/ names.

A full run takes days, and the library moves on meanwhile. So a full run imports `genrecourse` from
a checkout of the frozen commit, while pages and pictures may be written by newer code. A quick run
uses whatever code there is.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from genrecourse.errors import UserError
from genrecourse.evaluation.comparison.entries import PACKAGE, code_hash

HERE = Path(__file__).parent
FILE = HERE / "configs" / "frozen.toml"


@dataclass(frozen=True)
class Frozen:
    """A commit, and the `source` hash of its decisive modules."""

    commit: str
    source: str


def frozen() -> Frozen:
    """Return the frozen source."""
    return Frozen(**tomllib.loads(FILE.read_text(encoding="utf-8")))


def commands() -> list[str]:
    """Return the commands that run everything with the frozen source."""
    return [
        f"git worktree add ../frozen {frozen().commit}",
        "PYTHONPATH=../frozen/src python -m paper all",
    ]


def require() -> None:
    """Raise unless the imported genrecourse is the frozen source."""
    wanted = frozen().source
    if code_hash() != wanted:
        raise UserError(
            f"a full run needs the frozen source {wanted}, and the imported genrecourse "
            f"({PACKAGE}) is {code_hash()}; run {', then '.join(commands())} (only --quick runs "
            "other code)"
        )


# ---- results of another source ------------------------------------------------------------------


def others(source: str, results: Path) -> dict[str, list[str]]:
    """Return the sources of the full results that are not this one, by file."""
    found: dict[str, list[str]] = {}
    for path in files(results):
        wrong = {str(each) for each in sources(path)} - {source}
        if wrong:
            found[path.relative_to(results).as_posix()] = sorted(wrong)
    return found


def files(results: Path) -> list[Path]:
    """Return the files of full results."""
    return [p for p in sorted(results.rglob("*.jsonl")) if not p.is_relative_to(results / "quick")]


def sources(path: Path) -> Iterator[str | None]:
    """Yield the source of each line of a file."""
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line).get("source")


# ---- a new one ----------------------------------------------------------------------------------


def record(results: Path) -> Frozen:
    """Write the commit and the hash of the imported genrecourse as the frozen ones."""
    kept = others(code_hash(), results)
    if kept:
        raise UserError(
            f"{len(kept)} files of results are of another source than {code_hash()}, for example "
            f"{next(iter(kept))} ({', '.join(next(iter(kept.values())))}); remove them first"
        )
    if _git("status", "--porcelain", "--", "."):
        raise UserError(f"{PACKAGE} has changes that no commit has; commit them first")
    made = Frozen(_git("rev-parse", "HEAD"), code_hash())
    comment = [x for x in FILE.read_text(encoding="utf-8").splitlines() if x.startswith("#")]
    values = [f'commit = "{made.commit}"', f'source = "{made.source}"']
    FILE.write_text("\n".join([*comment, "", *values, ""]), encoding="utf-8")
    return made


def _git(*what: str) -> str:
    """Return what git says about the checkout of the imported genrecourse."""
    done = subprocess.run(["git", "-C", str(PACKAGE), *what], capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{PACKAGE} is not part of a git checkout: {done.stderr.strip()}")
    return done.stdout.strip()
