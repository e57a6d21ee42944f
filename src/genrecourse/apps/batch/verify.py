"""Every plan of an output, checked again: accepted by h, within the rules, and about its person.

It reads the answers as anybody would, from the files, and asks h anew. Rules of the schema are
checked in original units by `evaluation.checks.broken_rules`, which shares no code with the
library's own rule book; the rules of the request and of the policy by the rule book.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from genrecourse.advice.cells import as_fitted, read_cells
from genrecourse.apps.batch.inputs import open_input
from genrecourse.apps.batch.output import check_parts, part_path, read_manifest
from genrecourse.errors import UserError
from genrecourse.evaluation.checks import broken_rules
from genrecourse.rules.policy import efforts_in_force, rules_in_force

if TYPE_CHECKING:
    from genrecourse.advice.batch import BatchPlanner
    from genrecourse.apps.batch.inputs import Input, Part

MOST = 20  # findings that are kept


@dataclass
class Verified:
    """How much was checked, and what was found to be wrong, in sentences."""

    rows: int = 0
    plans: int = 0
    wrong: int = 0
    findings: list[str] = field(default_factory=list)

    def add(self, rows: Iterable[Any], what: str) -> None:
        """Note what is wrong with these rows of the input."""
        for row in rows:
            self.wrong += 1
            if len(self.findings) < MOST:
                self.findings.append(f"row {row}: {what}")


def verify(planner: BatchPlanner, source: Path, folder: Path) -> Verified:
    """Return what is wrong with the answers in a folder to the people in `source`."""
    manifest = read_manifest(folder)
    if not manifest["complete"]:
        raise UserError(f"{folder} holds a run that is not complete; start it again to finish it")
    people = open_input(source, int(manifest["rows_per_part"]))
    found = Verified()
    if people.facts() != manifest["input"] or planner.model_hash != manifest["model"]:
        raise UserError(f"{folder} holds the answers to another input, or of another model")
    asked = json.loads(json.dumps(planner.facts()))
    if any(manifest.get(name) != asked[name] for name in asked):
        raise UserError(f"{folder} holds the answers to another request; ask as it was made")
    check_parts(folder, people.parts)
    for part in people.parts:
        _verify_part(planner, people, part, folder, found)
    return found


def _verify_part(
    planner: BatchPlanner, people: Input, part: Part, folder: Path, found: Verified
) -> None:
    answers = pd.read_parquet(part_path(folder, part.number))
    X, _ = people.read(part, planner.columns, planner.levels)
    found.rows += len(answers)
    if answers["row"].tolist() != list(X.index):
        found.add([part.first], "the answers are not those to the rows of this part")
        return
    problem = planner.service.method.problem_
    table, _ = read_cells(X[problem.schema.columns], problem.schema, problem.like)
    if planner.key is not None:
        table.index = pd.Index(answers["key"], dtype=object)
    is_ok = (answers["status"] == "ok").to_numpy()
    found.add(answers["row"][is_ok != (answers["n_plans"] > 0)], "status and plans do not agree")
    for i in range(1, planner.request.n + 1):
        has = np.flatnonzero((answers["n_plans"] >= i).to_numpy())
        found.plans += len(has)
        mine = answers[[f"plan_{i}_{name}" for name in problem.schema.columns]]
        plans, _ = read_cells(
            mine.set_axis(problem.schema.columns, axis=1), problem.schema, problem.like
        )
        for places, before in as_fitted(table, problem.like, has):
            for some, after in as_fitted(plans, problem.like, places):
                kept = before.iloc[np.searchsorted(places, some)]
                _verify_plans(planner, kept, after, answers.iloc[some], i, found)


def _verify_plans(
    planner: BatchPlanner,
    before: pd.DataFrame,
    after: pd.DataFrame,
    answers: pd.DataFrame,
    i: int,
    found: Verified,
) -> None:
    problem, row = planner.service.method.problem_, answers["row"].to_numpy()
    after = after.set_axis(before.index)
    h = problem.classifier
    found.add(row[h.accepts(before)], "the model accepts the person without a plan")
    found.add(row[~h.accepts(after)], f"the model does not accept plan {i}")
    for kind, cells in broken_rules(problem.schema, before, after).items():
        found.add(
            row[cells.to_numpy().any(axis=1)], f"plan {i} breaks a rule of the schema: {kind}"
        )
    rules = rules_in_force(planner.service.policy, planner.request.rules)
    people, changed = problem.read(before), problem.read(after)
    if rules is not None and hasattr(rules, "only"):
        rules = rules.only(before.index)
    efforts = efforts_in_force(planner.service.policy, problem.encoder)
    book = problem.compile(rules, people, efforts) or problem.rules
    found.add(row[~book.feasible(people.F, changed.F)], f"plan {i} breaks a rule of the request")
