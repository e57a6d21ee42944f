"""Where rows cannot answer: GenRe beside equal opponents under rules, policies and with few rows.

    python -m benchmarks.settings --settings rules,policy --seeds 71,72,73
    python -m benchmarks.settings --show

Five settings, each with fresh people (all rows are pooled and split again by the seed):

    rules    every person has random rules of their own: locks, a range, a step, at most k changes
    policy   the data set's example policy (policies/)
    rare     people with whose immutables fewer than 50 accepted training rows agree
    small    500, 1,000 and 2,000 training rows of adult
    german and loan, as they are

The opponents have GenRe's verifier, refining and number of candidates. `recourse` of those that
refuse rules is left out of the first two settings. A person who gets no answer that h accepts and
that keeps the rules counts with a Score of 0, for every method. Lines go to
benchmarks/results/settings.jsonl; what is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from genrecourse import METHODS, Policy, Rules
from genrecourse.errors import rejections_expected
from genrecourse.evaluation.evaluate import Case, make_case, measure, with_schema
from genrecourse.genre.targets import make_targets, match_codes
from genrecourse.methods.base import Method
from genrecourse.rules.problem import Problem

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "settings.jsonl"
POLICIES = {"german": "german", "adult-carla": "adult", "compas": "compas", "heloc": "heloc"}
RULED = ("genre", "genre/search", "nnr-search")  # methods whose `recourse` takes rules
METHOD_NAMES = (*RULED, "tabsyn_q-search", "cchvae-search", "revise-search")
RARE = 50  # accepted training rows that share a person's immutables
SMALL = (500, 1000, 2000)


@dataclass(frozen=True)
class Question:
    """People to be asked about, under rules."""

    setting: str
    case: Case
    request: dict[str, Any]
    takes_rules: bool  # whether a method must take rules


# ---- the settings -------------------------------------------------------------------------------


def questions(setting: str, seed: int, rows: int) -> Iterator[Question]:
    if setting == "rules":
        for name in ("german", "compas", "adult-carla"):
            case = make_case(name, seed, rows=rows, fresh=True)
            yield Question(f"rules {name}", case, {"rules": random_rules(case)}, True)
    elif setting == "policy":
        for name, file in POLICIES.items():
            case = make_case(name, seed, rows=rows, fresh=True)
            policy = Policy.read(HERE.parent / "policies" / f"{file}.toml")
            strict = with_schema(case, policy.schema(case.X, base=case.schema))
            yield Question(f"policy {name}", strict, dict(policy.request), True)
    elif setting == "rare":
        for name in ("german", "compas", "adult-carla"):
            case = make_case(name, seed, rows=None, fresh=True)
            rare = replace(case, people=case.people[is_rare(case)].head(rows))
            if len(rare.people):
                yield Question(f"rare {name}", rare, {}, False)
    elif setting == "small":
        case = make_case("adult-carla", seed, rows=rows, fresh=True)
        for n in SMALL:
            some = np.random.default_rng([seed, n]).permutation(len(case.X))[:n]
            yield Question(
                f"small {n}", replace(case, X=case.X.iloc[some], y=case.y[some]), {}, False
            )
    else:
        yield Question(setting, make_case(setting, seed, rows=rows, fresh=True), {}, False)


def random_rules(case: Case) -> dict[Any, Rules]:
    """Rules for each person: one or two locks, and a range, a step or at most k changes."""
    free = [f for f in case.schema if f.role != "immutable"]
    numbers = [f.name for f in free if not f.is_category]
    found = {}
    for i, label in enumerate(case.people.index):
        rng = np.random.default_rng([case.seed, i])
        locked = rng.choice([f.name for f in free], size=rng.integers(1, 3), replace=False).tolist()
        stated: dict[str, Any] = {"lock": locked}
        open_ = [name for name in numbers if name not in locked]
        name = str(rng.choice(open_)) if open_ else None
        kind = rng.integers(3)
        if kind == 0 and name:
            low, high = np.quantile(case.X[name], [0.1, 0.9])
            stated["ranges"] = {name: [float(low), float(high)]}
        elif kind == 1 and name:
            stated["max_step"] = {name: float(0.2 * (case.X[name].max() - case.X[name].min()))}
        else:
            stated["max_changes"] = int(rng.integers(2, 5))
        found[label] = Rules(**stated)
    return found


def is_rare(case: Case) -> np.ndarray:
    """(N,) whether fewer than RARE accepted training rows share the person's immutables."""
    problem = Problem.of(case.encoder, case.h, case.X.head(1))
    F, own = case.encoder.features(case.X), case.encoder.features(case.people)
    accepted = F[case.h.accepts(case.X) & (case.y == 1)]
    targets = make_targets(case.encoder.from_features(accepted), accepted, problem.rules, 50)
    codes = match_codes(own, problem.rules, targets.edges)
    same = (targets.codes[None] == codes[:, None]).all(axis=2)
    return same.sum(axis=1) < RARE


# ---- the measures -------------------------------------------------------------------------------


def scores(question: Question, method: Method, effort: str | None) -> np.ndarray:
    """(N,) the Score of each person's recourse; 0 without one that h accepts within the rules."""
    case, request = question.case, dict(question.request)
    if effort:
        request["effort"] = effort
    with rejections_expected():
        X_plus = method.recourse(case.people, **request)
    rules = {"rules": request["rules"]} if "rules" in request else {}
    ok = (method.assess(case.people, X_plus, **rules)["status"] == "ok").to_numpy()
    return np.where(ok, np.nan_to_num(measure(case, X_plus)["score"]), 0.0)


def ask(
    question: Question, seed: int, names: list[str], done: set[Any]
) -> Iterator[dict[str, Any]]:
    """Yield a line for each method; one fit serves both efforts."""
    fitted: dict[str, Method] = {}
    for label in names:
        if (question.setting, seed, label) in done or (question.takes_rules and label not in RULED):
            continue
        name, _, effort = label.partition("/")
        started = time.perf_counter()
        if name not in fitted:
            case = question.case
            fitted = {name: METHODS[name](case.h, case.schema, random_state=seed)}
            fitted[name].fit(case.X, case.y)
        score = scores(question, fitted[name], effort or None)
        yield {
            "setting": question.setting,
            "seed": seed,
            "label": label,
            "n": len(score),
            "score": np.round(score, 5).tolist(),
            "seconds": round(time.perf_counter() - started, 1),
        }


def show(path: Path) -> None:
    """Print the mean Scores, and GenRe's difference from each opponent with its 95% interval."""
    found: dict[str, dict[str, dict[int, np.ndarray]]] = defaultdict(lambda: defaultdict(dict))
    for text in path.read_text().splitlines():
        line = json.loads(text)
        found[line["setting"]][line["label"]][line["seed"]] = np.array(line["score"])
    table = Table(title="Score, and GenRe less the opponent (95% interval over people)")
    for column in ("setting", "method", "people", "Score", "genre less it", "genre/search less it"):
        table.add_column(column, justify="left" if column in ("setting", "method") else "right")
    for setting, by_label in found.items():
        for label, by_seed in by_label.items():
            every = np.concatenate(list(by_seed.values()))
            cells = [_less(by_label.get(ours, {}), by_seed) for ours in ("genre", "genre/search")]
            table.add_row(setting, label, str(len(every)), f"{every.mean():.4f}", *cells)
    Console(width=120).print(table)


def _less(ours: dict[int, np.ndarray], theirs: dict[int, np.ndarray]) -> str:
    both = [seed for seed in ours if seed in theirs]
    if not both or ours is theirs:
        return ""
    gap = np.concatenate([ours[seed] - theirs[seed] for seed in both])
    return f"{gap.mean():+.4f} ± {1.96 * gap.std(ddof=1) / len(gap) ** 0.5:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--settings", default="rules,policy,rare,small,german,loan")
    parser.add_argument("--seeds", default="71")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--methods", default=",".join(METHOD_NAMES))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        known = options.output.read_text().splitlines() if options.output.exists() else []
        done = {(e["setting"], e["seed"], e["label"]) for e in map(json.loads, known)}
        warnings.simplefilter("ignore")
        for seed in map(int, options.seeds.split(",")):
            for setting in options.settings.split(","):
                for question in questions(setting, seed, options.rows):
                    for line in ask(question, seed, options.methods.split(","), done):
                        with options.output.open("a") as file:
                            file.write(json.dumps(line) + "\n")
                        print(
                            line["setting"],
                            seed,
                            line["label"],
                            np.mean(line["score"]).round(4),
                            flush=True,
                        )
    show(options.output)


if __name__ == "__main__":
    main()
