"""Every plan shown, looked at from outside: by the user's own h and by rules kept by hand.

Nothing here asks the library whether a plan holds. The rows of `Plans.x_plus`, in original units
and dtypes, are scored by h itself; the schema's rules are read by `checks.broken_rules`, which is
written from the schema's words alone, and the request's by `rules_by_hand`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from genrecourse.evaluation import checks
from genrecourse.planning.plans import Plan, Plans, cell_value
from tests.support.random_rules import Asked
from tests.support.rules_by_hand import KINDS, OF_ONE, ByHand, rows_of
from tests.support.sentences import Row

# reasons for no plan (docs/tutorial.md), where a single rule stands in the way and where none does
BLOCKED = ("rules-block", "nothing-may-change")
UNBLOCKED = ("nothing-may-change", "rule-broken", "not-accepted", "no-feasible-target")
# an opening's rule, as this side calls what it would break
BLOCKS = {"max_changes": "changes", "max_cost": "cost"}
NOTHING = Asked()


@dataclass
class Tally:
    """Counts, so that "nothing is wrong" says something."""

    counts: Counter[str] = field(default_factory=Counter)
    bound: Counter[str] = field(default_factory=Counter)  # plans that a rule of a kind spoke of
    n_plans: Counter[str] = field(default_factory=Counter)  # people with so many plans
    reasons: Counter[str] = field(default_factory=Counter)  # for no plan
    wrong: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)  # of what is wrong

    def add(self, other: Tally) -> None:
        for name, value in vars(other).items():
            mine = getattr(self, name)
            mine.update(value) if isinstance(mine, Counter) else mine.extend(value)

    def __str__(self) -> str:
        count = self.counts
        lines = [
            f"plans checked: {count['plans']:,} of {count['ok']:,} people, of them "
            f"{count['ruled plans']:,} under random rules of {count['ruled people']:,} people",
            f"schemas, tables and classifiers: {count['tables']:,}; people without a plan: "
            f"{count['no-plan']:,} ({count['proven']:,} proven, {count['searched']:,} searched), "
            f"already accepted: {count['already-accepted']:,}",
            f"rules that nobody could meet, refused by name: {count['refused']:,}; rules that "
            f"alone stand in the way, tried out: {count['blocking_rules']:,}",
            f"turned down by h in original units: {self.wrong['h']:,}; anything else that is wrong "
            f"with a plan: {sum(n for k, n in self.wrong.items() if k != 'h'):,}",
            f"{'rule':<22}{'plans under it':>16}{'violations':>12}",
        ]
        kinds = [f"schema's {k}" for k in checks.KINDS] + [f"request's {k}" for k in KINDS]
        lines += [f"{k:<22}{self.bound[k]:>16,}{self.wrong[k]:>12,}" for k in kinds]
        return "\n".join(lines)

    def _wrong(self, kind: str, said: str) -> None:
        self.wrong[kind] += 1
        if len(self.examples) < 20:
            self.examples.append(f"{kind}: {said}")

    # ---- looking -------------------------------------------------------------------------------

    def look(
        self,
        plans: Plans,
        people: pd.DataFrame,
        h: Callable[[pd.DataFrame], Any],
        hand: ByHand,
        asked: Mapping[Any, Asked],
        n: int,
    ) -> None:
        """plans: n asked for each of the people, under what each of them asked for; h: of a table,
        above 0.5 where it accepts."""
        if [plan.person for plan in plans] != people.index.tolist():
            self._wrong("people", f"plans of {[plan.person for plan in plans]}")
        accepts = np.asarray(h(people)) > 0.5
        for plan, accepted in zip(plans, accepts, strict=True):
            self._status(plan, bool(accepted), n)
        x = dict(zip(people.index, rows_of(people), strict=True))
        if plans.shown:
            self._shown(plans, people, x, h, hand, asked)
        for plan in plans:
            if plan.blocking_rules and not any(f.follows for f in hand.schema):
                own = people.loc[[plan.person]]
                self._opening(plan, own, h, hand, asked.get(plan.person, NOTHING))

    def refusal(
        self, hand: ByHand, X: pd.DataFrame, own: pd.DataFrame, asked: Asked, rule: str
    ) -> None:
        """A rule was refused: x does not meet it, and with no value of a training row could."""
        self.counts["refused"] += 1
        subject, meets = hand.named(asked, rule)
        if any(hand.schema[name].follows for name in subject):
            return
        (x,) = rows_of(own)
        trial = _trials(own, X, subject)
        broken = checks.broken_rules(hand.schema, _again(own, len(trial)), trial)
        ill = np.any([cells.to_numpy().any(axis=1) for cells in broken.values()], axis=0)
        for row, bad in zip(rows_of(trial), ill, strict=True):
            verdicts = hand.verdicts(asked, x, row)
            open_ = not bad and all(kept for kind, kept in verdicts if kind in OF_ONE)
            if meets(x) or (open_ and meets(row)):
                self._wrong("refusal", f"{rule} of {asked.stated()}: {x} may become {row}")
                break

    def unbound(self, free: Plan, beside: Plan) -> None:
        """Whom no rule binds gets the same plans, whoever asks beside them."""
        if told_by(free) != told_by(beside):
            self._wrong("unbound", f"{told_by(free)} became {told_by(beside)}")

    def _status(self, plan: Plan, accepted: bool, n: int) -> None:
        self.counts.update([plan.status, "people"])
        if (plan.status == "already-accepted") != accepted:
            self._wrong("status", f"{plan.status}, and h accepts x: {accepted}")
        if (plan.status == "ok") != bool(plan.every) or len(plan.every) > n:
            self._wrong("status", f"{plan.status} with {len(plan.every)} plans")
        if plan.status == "no-plan":
            self.reasons[plan.reason_code] += 1
            if plan.reason_code not in (BLOCKED if plan.blocking_rules else UNBLOCKED):
                self._wrong(
                    "status", f"{plan.reason_code}, {len(plan.blocking_rules)} blocking_rules"
                )
            if plan.evidence is None or not plan.reason:
                self._wrong("status", f"{plan.reason_code} says not what it rests on")
            else:
                self.counts["proven" if plan.evidence.proven else "searched"] += 1
        if not accepted:
            self.n_plans[str(len(plan.every))] += 1

    def _shown(
        self,
        plans: Plans,
        people: pd.DataFrame,
        x: Mapping[Any, Row],
        h: Callable[[pd.DataFrame], Any],
        hand: ByHand,
        asked: Mapping[Any, Asked],
    ) -> None:
        X_plus, shown = plans.x_plus(), plans.shown
        if not X_plus.dtypes.equals(people.dtypes):
            self._wrong("dtypes", f"{dict(people.dtypes)} became {dict(X_plus.dtypes)}")
        score, rows = np.asarray(h(X_plus)), rows_of(X_plus)
        before = people.loc[[plan.person for plan in shown]]
        self._schema(hand, before, X_plus)
        for plan, x_plus, value in zip(shown, rows, score, strict=True):
            self.counts["plans"] += 1
            if not value > 0.5:
                self._wrong("h", f"{value} for {x_plus}, from {x[plan.person]}")
            self._told(plan, x[plan.person], x_plus, float(value), hand)
            self._asked(asked.get(plan.person, NOTHING), x[plan.person], x_plus, hand)
        left = iter(rows)
        for plan in plans:
            kinds = [hand.changed(x[plan.person], next(left)) for _ in plan.every]
            self._distinct(kinds)

    def _schema(self, hand: ByHand, before: pd.DataFrame, X_plus: pd.DataFrame) -> None:
        moved = {f.name: checks.changed(before[f.name], X_plus[f.name]) for f in hand.schema}
        for f in hand.schema:
            n, rows = int(moved[f.name].sum()), len(before)
            self.bound["schema's immutable"] += rows * (f.role in ("immutable", "protected"))
            self.bound["schema's follows"] += rows * f.follows
            self.bound["schema's missing"] += int(before[f.name].isna().sum())
            self.bound["schema's direction"] += n * (f.direction != "any")
            self.bound["schema's range"] += n * (f.range is not None)
            self.bound["schema's step"] += n * (f.max_step is not None)
            self.bound["schema's decimals"] += n * (f.decimals is not None)
            self.bound["schema's category"] += n * f.is_category
        for kind, cells in checks.broken_rules(hand.schema, before, X_plus).items():
            for i, j in np.argwhere(cells.to_numpy()):
                f = hand.schema.features[j]
                a, b = before[f.name].iloc[i], X_plus[f.name].iloc[i]
                self._wrong(f"schema's {kind}", f"{f!r}: {a!r} became {b!r}")

    def _asked(self, asked: Asked, x: Row, x_plus: Row, hand: ByHand) -> None:
        self.counts["ruled plans"] += bool(asked.stated())
        for kind, kept in hand.verdicts(asked, x, x_plus):
            self.bound[f"request's {kind}"] += 1
            if not kept:
                self._wrong(f"request's {kind}", f"{asked.stated()}: {x} became {x_plus}")

    def _told(self, plan: Plan, x: Row, x_plus: Row, score: float, hand: ByHand) -> None:
        """What the plan says of itself is so."""
        for follows, said in ((False, plan.changes), (True, plan.consequences)):
            told = {change.feature.name: (change.before, change.after) for change in said}
            seen = {
                f.name: (x[f.name], x_plus[f.name])
                for f in hand.schema
                if f.follows == follows and x[f.name] != x_plus[f.name]
            }
            if told != seen:
                self._wrong("changes told", f"{told}, and it is {seen}")
        self.counts["changes"] += len(plan.changes)
        cost = hand.cost(x, x_plus)
        if plan.cost is None or abs(plan.cost - cost) > 1e-6 * (1 + cost):
            self._wrong("cost told", f"{plan.cost}, and it is {cost}")
        if plan.score_after is None or abs(plan.score_after - score) > 1e-6:
            self._wrong("score told", f"{plan.score_after}, and it is {score}")

    def _distinct(self, kinds: list[set[str]]) -> None:
        """No plan changes nothing, or all that one before it changes."""
        for k, kind in enumerate(kinds):
            if not kind or any(earlier <= kind for earlier in kinds[:k]):
                self._wrong("distinct", f"{kind} after {kinds[:k]}")

    def _opening(
        self,
        plan: Plan,
        own: pd.DataFrame,
        h: Callable[[pd.DataFrame], Any],
        hand: ByHand,
        asked: Asked,
    ) -> None:
        """What a rule alone keeps from being a plan: h accepts it, and it breaks no other rule."""
        opening = plan.blocking_rules[0]
        self.counts["blocking_rules"] += 1
        row = own.copy()
        for change in opening.changes:
            name = change.feature.name
            row[name] = pd.Series([change.after], row.index).astype(row[name].dtype)
        (x,), (x_plus,) = rows_of(own), rows_of(row)
        cells = checks.broken_rules(hand.schema, own, row)
        broken = {kind for kind, found in cells.items() if found.to_numpy().any()}
        broken |= {kind for kind, kept in hand.verdicts(asked, x, x_plus) if not kept}
        if broken != {BLOCKS.get(opening.kind, opening.kind)}:
            self._wrong("opening", f"'{opening.rule}' alone, and it breaks {broken}: {x_plus}")
        if not np.asarray(h(row))[0] > 0.5:
            self._wrong("opening", f"'{opening.rule}': h turns down {x_plus}")


def _trials(own: pd.DataFrame, X: pd.DataFrame, names: set[str]) -> pd.DataFrame:
    """A person with each of some training values of each of these features, all combined."""
    options = [
        pd.concat([own[name], X[name].dropna().drop_duplicates()[:6]]).tolist() for name in names
    ]
    ways = list(product(*options))
    trial = _again(own, len(ways))
    for name, values in zip(names, zip(*ways, strict=True), strict=True):
        trial[name] = pd.Series(values, trial.index).astype(own[name].dtype)
    return trial


def _again(own: pd.DataFrame, n: int) -> pd.DataFrame:
    return own.iloc[np.zeros(n, dtype=int)].reset_index(drop=True)


def told_by(plan: Plan) -> list[dict[str, Any]]:
    """The changes of each plan of a person, to compare two answers."""
    return [
        {change.feature.name: cell_value(change.after) for change in each.changes}
        for each in plan.every
    ]
