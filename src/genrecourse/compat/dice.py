"""Dice: the calls that users of DiCE (dice-ml) know, answered by a fitted method of ours.

A call means what it means in DiCE, or it is refused in one sentence. docs/from_dice.md shows both
side by side.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd

from genrecourse.errors import UserError, counted, did_you_mean, shown
from genrecourse.model.settings import is_number
from genrecourse.planning.dice_format import (
    FAVOURABLE,
    VERSION,
    DiceAnswer,
    dice_answers,
    dice_json,
    summary_importance,
)
from genrecourse.planning.planner import ASKED
from genrecourse.planning.plans import Plan, Plans
from genrecourse.planning.proposer import Proposer
from genrecourse.rules.kinds import Rules
from genrecourse.rules.stated import read_rules
from genrecourse.table.frames import to_pandas
from genrecourse.table.schema import plain
from genrecourse.table.validation import validated

if TYPE_CHECKING:
    from genrecourse.rules.stated import PersonalRules
    from genrecourse.table.schema import Schema

# DiCE's own arguments that mean nothing here: their default is accepted, and any other value is
# refused with what to do instead
DICE_ONLY: dict[str, tuple[Any, str]] = {
    "desired_range": (None, "it is for regressors; give a model that scores the favourable range"),
    "stopping_threshold": (0.5, "the cutoff decides; fit with Classifier(model, cutoff=...)"),
    "posthoc_sparsity_param": (
        0.1,
        "the model or safety needs every change of a plan; ask for fewest_changes=True",
    ),
    "posthoc_sparsity_algorithm": (
        "linear",
        "the model or safety needs every change of a plan; ask for fewest_changes=True",
    ),
    "verbose": (False, "nothing is printed; give progress=True to the method"),
}
DICE_NEVER = {
    "proximity_weight": "fit GenRe with lam='any' and give lam at the request",
    "sparsity_weight": "ask for fewest_changes=True",
    "diversity_weight": "plans of one person always differ in the features that they change",
    "categorical_penalty": "a category always has exactly one level",
    "feature_weights": "set cost_weight in the schema",
    "sample_size": "fit GenRe with another n_draws",
    "random_seed": "the same person gets the same plans; set random_state when you fit",
    "limit_steps_ls": "there is no such search",
    "initialization": "there is no such search",
    "maxiterations": "there is no such search",
    "thresh": "there is no such search",
}
OURS = (*(name for name in ASKED if name != "n"), "rules", "language")


class Fitted(Proposer, Protocol):
    """A fitted method, as `Dice` sees it.

    >>> from genrecourse import NearestNeighbour
    >>> X = pd.DataFrame({"income": range(80)})
    >>> method: Fitted = NearestNeighbour(lambda X: X["income"].to_numpy() / 80).fit(X)
    >>> method.schema_.names
    ['income']
    """

    schema_: Schema

    def plans(self, X: pd.DataFrame, n: int = 1, rules: Any = None, **options: Any) -> Plans:
        """As `Plannable.plans`."""


# ---- what is returned ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CounterfactualExamples:
    """One person's row and plans, under the names that DiCE gives them.

    >>> row = pd.DataFrame({"income": [20], "outcome": [0]})
    >>> plan = Plan("Ada", "no-plan", 0.3, 0.5, reason_code="not-accepted")
    >>> examples = CounterfactualExamples(plan, DiceAnswer(row, None, "outcome"))
    >>> examples.final_cfs_df is None, examples.test_pred, examples.new_outcome
    (True, 0, 1)
    """

    plan: Plan  # ours: the changes in words, or the reason why there is no plan
    answer: DiceAnswer

    model_type = "classifier"
    desired_class = new_outcome = FAVOURABLE
    desired_range = None

    @property
    def test_instance_df(self) -> pd.DataFrame:
        """The person's row, with the outcome."""
        return self.answer.query

    @property
    def final_cfs_df(self) -> pd.DataFrame | None:
        """One row for each plan, with the outcome; None if there is no plan."""
        return self.answer.found

    @property
    def final_cfs_df_sparse(self) -> pd.DataFrame | None:
        """The same as `final_cfs_df`: a plan has no change that can be left out."""
        return self.answer.found

    @property
    def final_cfs_list(self) -> list[list[Any]] | None:
        """The rows of `final_cfs_df` as lists."""
        return None if self.final_cfs_df is None else self.final_cfs_df.to_numpy().tolist()

    @property
    def test_pred(self) -> int:
        """The outcome of the person's row: 1 if the model accepts it."""
        return int(self.answer.query[self.answer.outcome_name].iloc[0])

    def visualize_as_dataframe(
        self, display_sparse_df: bool = True, show_only_changes: bool = False
    ) -> None:
        """Show the row and the plans as tables, in a notebook or on the standard output.

        display_sparse_df has no effect: both tables of DiCE are the same here.
        """
        self._show(_show_table, show_only_changes)

    def visualize_as_list(
        self, display_sparse_df: bool = True, show_only_changes: bool = False
    ) -> None:
        """Show the row and the plans as lists."""
        self._show(_show_lists, show_only_changes)

    def _show(self, show: Any, show_only_changes: bool) -> None:
        _write(f"Query instance (original outcome : {self.test_pred})")
        show(self.test_instance_df)
        found = self.final_cfs_df
        if found is None:
            _write(f"\nNo counterfactuals found! {self.plan.reason}")
            return
        _write(f"\nDiverse Counterfactual set (new outcome: {self.new_outcome})")
        show(_only_changes(self.answer) if show_only_changes else found)


class CounterfactualExplanations:
    """What a call returns: an entry for each person, the importances, and our plans.

    >>> CounterfactualExplanations(Plans(()), [], "outcome").cf_examples_list
    []
    """

    def __init__(
        self,
        plans: Plans,
        answers: Sequence[DiceAnswer],
        outcome_name: str,
        *,
        local: bool = False,
        summary: bool = False,
    ):
        self.plans = plans  # ours: words, reasons, evidence, `asked_to_change`
        self.cf_examples_list = [
            CounterfactualExamples(plan, answer)
            for plan, answer in zip(plans, answers, strict=True)
        ]
        self.outcome_name = outcome_name
        self.metadata = {"version": VERSION}
        self.local_importance = [_sorted(each.importance) for each in answers] if local else None
        self.summary_importance = _sorted(summary_importance(answers)) if summary else None

    def to_json(self) -> str:
        """Return the JSON text of DiCE's format, which `Plans.to_dice_json` describes."""
        answers = [each.answer for each in self.cf_examples_list]
        return dice_json(answers, self.outcome_name, self.local_importance, self.summary_importance)

    def visualize_as_dataframe(
        self, display_sparse_df: bool = True, show_only_changes: bool = False
    ) -> None:
        """Show each person's row and plans as tables."""
        for each in self.cf_examples_list:
            each.visualize_as_dataframe(display_sparse_df, show_only_changes)

    def visualize_as_list(
        self, display_sparse_df: bool = True, show_only_changes: bool = False
    ) -> None:
        """Show each person's row and plans as lists."""
        for each in self.cf_examples_list:
            each.visualize_as_list(display_sparse_df, show_only_changes)


def _sorted(importance: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(importance.items(), key=lambda item: item[1], reverse=True))


# ---- the explainer ------------------------------------------------------------------------------


class Dice:
    """A fitted method of ours behind the calls of `dice_ml.Dice`.

    method: a fitted GenRe, or any other fitted method. It stands for DiCE's data, model and method.
    outcome_name: the name of the outcome column in what is returned.

    >>> from genrecourse import NearestNeighbour
    >>> X = pd.DataFrame({"income": range(80), "debt": range(80, 0, -1)})
    >>> h = lambda X: (X["income"] - X["debt"] + 80).to_numpy() / 160
    >>> exp = Dice(NearestNeighbour(h).fit(X))
    >>> found = exp.generate_counterfactuals(X.head(1), total_CFs=1, features_to_vary=["income"])
    >>> found.plans[0].status
    'no-plan'
    >>> found = exp.generate_counterfactuals(X.head(1), total_CFs=1)
    >>> found.cf_examples_list[0].final_cfs_df.values.tolist()
    [[41, 39, 1]]
    """

    def __init__(self, method: Fitted, *, outcome_name: str = "outcome"):
        if not hasattr(method, "check_ready"):
            raise UserError(
                f"Dice takes a fitted method of genrecourse, such as Dice(GenRe(model).fit(X, y)), "
                f"and got a {type(method).__name__}"
            )
        method.check_ready("plans", {})
        self.method, self.outcome_name = method, outcome_name

    def generate_counterfactuals(
        self,
        query_instances: Any,
        total_CFs: int,
        desired_class: int | str = "opposite",
        *,
        permitted_range: Mapping[str, Sequence[Any]] | None = None,
        features_to_vary: Sequence[str] | str = "all",
        **options: Any,
    ) -> CounterfactualExplanations:
        """Return up to `total_CFs` plans for each person; fewer if no more are worth showing.

        desired_class: 1 or "opposite". A person whom the model accepts has no plan with 1, and is
        refused with "opposite".
        permitted_range: [lowest, highest] of a number, or the values of a category. A value that
        stays as it is need not lie in it.
        features_to_vary: "all" that the schema lets change, or a list of these.
        options: `rules` and the other options of `plans`, such as `fewest_changes`. What only DiCE
        has is refused unless it is DiCE's default.
        """
        X = self._people(query_instances)
        _check_total(total_CFs)
        _check_class(desired_class)
        own = self._own_options(options)
        stated = rules_of(self.method.schema_, permitted_range, features_to_vary)
        rules = _both(stated, own.pop("rules", None))
        if desired_class == "opposite":
            self._check_rejected(X)
        plans = self.method.plans(X, n=int(total_CFs), rules=rules, **own)
        return CounterfactualExplanations(
            plans, dice_answers(plans, X, self.outcome_name), self.outcome_name
        )

    def local_feature_importance(
        self,
        query_instances: Any,
        cf_examples_list: Sequence[CounterfactualExamples] | None = None,
        total_CFs: int = 10,
        **asked: Any,
    ) -> CounterfactualExplanations:
        """Return plans, and for each person the share of the plans that change each column.

        cf_examples_list: plans that were made before; then all other arguments are ignored, as in
        DiCE. A share is of the plans that there are, also if they are fewer than DiCE's ten.
        """
        return self._importance(query_instances, cf_examples_list, total_CFs, asked, True, False)

    def global_feature_importance(
        self,
        query_instances: Any,
        cf_examples_list: Sequence[CounterfactualExamples] | None = None,
        total_CFs: int = 10,
        local_importance: bool = True,
        **asked: Any,
    ) -> CounterfactualExplanations:
        """Return plans, and the share of all plans that change each column.

        The other arguments are those of `local_feature_importance`.
        """
        return self._importance(
            query_instances, cf_examples_list, total_CFs, asked, local_importance, True
        )

    def _importance(
        self,
        query_instances: Any,
        made: Sequence[CounterfactualExamples] | None,
        total: int,
        asked: dict[str, Any],
        local: bool,
        summary: bool,
    ) -> CounterfactualExplanations:
        if made is None:
            if query_instances is None:
                raise UserError("give query_instances, or a cf_examples_list made before")
            made = self.generate_counterfactuals(query_instances, total, **asked).cf_examples_list
        plans = Plans(tuple(each.plan for each in made))
        answers = [each.answer for each in made]
        name = answers[0].outcome_name if answers else self.outcome_name
        return CounterfactualExplanations(plans, answers, name, local=local, summary=summary)

    # ---- what is asked for ----------------------------------------------------------------------

    def _people(self, query_instances: Any) -> pd.DataFrame:
        """Return the people's columns that the method knows."""
        query_instances = to_pandas(query_instances, self.method.schema_)
        if self.outcome_name in query_instances.columns:
            raise UserError(
                f"query_instances has the outcome column '{self.outcome_name}'; drop it, or give "
                "Dice another outcome_name"
            )
        schema = self.method.schema_
        schema.check_columns(query_instances, "query_instances")
        return query_instances[schema.columns]

    def _check_rejected(self, X: pd.DataFrame) -> None:
        accepted = X.index[~self.method.problem_.read(X).rejected]
        if len(accepted):
            raise UserError(
                f"the model accepts {counted(len(accepted), 'row')} already (first: "
                f"{plain(accepted[0])!r}), so 'opposite' is a rejection, which genrecourse does "
                "not look for; leave such rows out, or give desired_class=1"
            )

    def _own_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of `plans`; raise a UserError for what only DiCE has."""
        known = {*OURS, *self.method.options}
        for name, value in options.items():
            if name in known:
                continue
            if name in DICE_NEVER:
                raise UserError(f"genrecourse has no '{name}': {DICE_NEVER[name]}")
            if name not in DICE_ONLY:
                close = did_you_mean(name, [*known, *DICE_ONLY])
                raise UserError(f"no option '{name}'{close}; the options are {sorted(known)}")
            default, instead = DICE_ONLY[name]
            if value != default:
                raise UserError(f"genrecourse has no '{name}' (it is {shown(value)}): {instead}")
        return {name: value for name, value in options.items() if name in known}


def _check_total(total: Any) -> None:
    if not is_number(total) or total < 1 or int(total) != total:
        raise UserError(f"total_CFs is {shown(total)}; it must be a whole number from 1")


def _check_class(desired_class: Any) -> None:
    if isinstance(desired_class, str) and desired_class == "opposite":
        return
    if is_number(desired_class) and desired_class == FAVOURABLE:
        return
    if is_number(desired_class) and desired_class == 0:
        raise UserError(
            "desired_class is 0, the outcome that is not favourable; genrecourse looks only for "
            "the favourable one, so give 1, or name the other outcome with "
            "Classifier(model, favourable=...)"
        )
    raise UserError(f"desired_class is {shown(desired_class)}; it must be 1 or 'opposite'")


def rules_of(
    schema: Schema,
    permitted_range: Mapping[str, Sequence[Any]] | None = None,
    features_to_vary: Sequence[str] | str = "all",
) -> Rules:
    """Return DiCE's two limits as rules of ours.

    >>> from genrecourse.table.schema import Schema
    >>> schema = Schema.infer(pd.DataFrame({"income": [10, 20], "job": ["cook", "nurse"]}))
    >>> rules = rules_of(schema, {"income": [0, 15], "job": ["cook"]}, ["income", "job"])
    >>> rules.ranges, rules.allowed, rules_of(schema, None, ["income"]).lock
    ({'income': (0.0, 15.0)}, {'job': ('cook',)}, ('job',))
    """
    permitted = _permitted(schema, permitted_range)
    stated = {"lock": _locked(schema, features_to_vary), **permitted}
    return validated(Rules, stated, "permitted_range")


def _permitted(schema: Schema, permitted_range: Any) -> dict[str, Any]:
    if permitted_range is None:
        return {}
    if not isinstance(permitted_range, Mapping):
        raise UserError(
            f"permitted_range is {shown(permitted_range)}; give a mapping such as "
            "{'age': [20, 30], 'job': ['cook', 'nurse']}"
        )
    ranges: dict[str, tuple[float, float]] = {}
    allowed: dict[str, tuple[Any, ...]] = {}
    for name, values in permitted_range.items():
        feature = schema[name]
        listed = isinstance(values, Sequence | np.ndarray) and not isinstance(values, str)
        several = tuple(plain(value) for value in values) if listed else ()
        if feature.is_category and several:
            allowed[name] = several
        elif not feature.is_category and len(several) == 2 and all(map(is_number, several)):
            ranges[name] = (several[0], several[1])
        else:
            wanted = "a list of its values" if feature.is_category else "[lowest, highest]"
            raise UserError(f"permitted_range of '{name}' is {shown(values)}; give {wanted}")
    return {"ranges": ranges, "allowed": allowed}


def _locked(schema: Schema, features_to_vary: Any) -> tuple[str, ...]:
    if isinstance(features_to_vary, str) and features_to_vary == "all":
        return ()
    if not isinstance(features_to_vary, list | tuple | set | np.ndarray | pd.Index):
        raise UserError(
            f"features_to_vary is {shown(features_to_vary)}; give 'all' or a list of features"
        )
    wanted = list(features_to_vary)
    if not wanted:
        raise UserError("features_to_vary is empty; name at least one feature, or give 'all'")
    for name in wanted:
        role = schema[name].role
        if role in ("immutable", "protected", "advances"):
            raise UserError(
                f"features_to_vary names '{name}', which nobody can change: its role is '{role}'; "
                "leave it out, or change the schema and fit again"
            )
    # what else cannot change needs no lock, and time cannot be locked
    able = [feature.name for feature in schema if feature.role in ("mutable", "derived")]
    return tuple(name for name in able if name not in wanted)


def _both(stated: Rules, asked: Any) -> PersonalRules | Rules | None:
    """Return the rules of DiCE's arguments and those of the option `rules` together."""
    if asked is not None:
        return read_rules(stated).also(read_rules(asked))
    return None if stated == Rules() else stated


# ---- to look at ---------------------------------------------------------------------------------


def _only_changes(answer: DiceAnswer) -> pd.DataFrame:
    """Return the plans with "-" wherever they have the person's own value."""
    assert answer.found is not None
    found = answer.found.astype(object)
    for name in answer.columns:
        own = answer.query[name].iloc[0]
        same = found[name].isna() if pd.isna(own) else found[name] == own
        found[name] = found[name].where(~same, "-")
    return found


def _show_table(table: pd.DataFrame) -> None:
    notebook = sys.modules.get("IPython.display")
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if notebook is not None and shell is not None:
        notebook.display(table)
    else:
        _write(table.to_string())


def _show_lists(table: pd.DataFrame) -> None:
    for row in table.astype(object).to_numpy().tolist():
        _write(str(row))


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
