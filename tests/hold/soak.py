"""Tries 20,000 cases of bad input: `python -m tests.hold.soak`, a part of `make soak`.

All cases of the generator, and files broken at random until there are as many; `--seed` decides
how they are broken. Prints the outcomes by class and writes them to soak.txt beside this file. Ends
with status 1 if one of them was wrong.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.hold.case import SECONDS, Case, outcome
from tests.hold.cases import every_case

SOAK = Path(__file__).with_name("soak.txt")
CASES = 20_000
SHOWN = 40  # complaints that are printed


def chosen(folder: Path, seed: int) -> list[Case]:
    """Return CASES cases."""
    cases = every_case(folder / "first", n_broken=0)
    lacking = CASES - len(cases)
    # some damage is none: more are asked for than are lacking
    more = every_case(folder / "second", n_broken=lacking + lacking // 50 + 50, seed=seed)
    return cases + [case for case in more if case.kind == "broken"][:lacking]


def report(found: Counter[tuple[str, str]], seed: int) -> str:
    """Return a table of the outcomes of each class."""
    kinds = sorted({kind for kind, _ in found})
    outcomes = ("refused", "answered", "wrong")
    totals = {each: sum(found[kind, each] for kind in kinds) for each in outcomes}
    said = ", ".join(f"{n:,} {each}" for each, n in totals.items())
    lines = [f"{sum(totals.values()):,} cases, seed {seed}: {said}", ""]
    lines += [f"{'class':12}" + "".join(f"{each:>10}" for each in outcomes)]
    lines += [f"{kind:12}" + "".join(f"{found[kind, o]:>10,}" for o in outcomes) for kind in kinds]
    return "\n".join(lines) + "\n"


def main(seed: int) -> int:
    found, wrong = Counter[tuple[str, str]](), []
    with tempfile.TemporaryDirectory() as place:
        for name in ("first", "second"):
            Path(place, name).mkdir()
        for case in chosen(Path(place), seed):
            # a hang inside C is not ended by an alarm
            faulthandler.dump_traceback_later(2 * SECONDS, exit=True)
            how, said = outcome(case)
            found[case.kind, how] += 1
            wrong += [f"{case.kind} {case.label}: {said}"] if said else []
        faulthandler.cancel_dump_traceback_later()
    text = report(found, seed)
    SOAK.write_text(text)
    sys.stdout.write(text + "".join(f"\n{line}" for line in wrong[:SHOWN]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    sys.exit(main(parser.parse_args().seed))
