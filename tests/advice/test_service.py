"""The service, verb by verb, as a front end uses it: with a policy and without one.

What it returns is compared with what the method returns when it gets the same options directly.
"""

from __future__ import annotations

import copy
import json
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse import METHODS, Classifier, Policy, Schema, UserError, load
from genrecourse.advice.catalogue import describe_datasets, describe_methods
from genrecourse.advice.learning import prepare
from genrecourse.advice.output import write_audit, write_plans
from genrecourse.advice.own_model import import_model
from genrecourse.advice.policy_check import check_policy
from genrecourse.advice.recheck import read_plans
from genrecourse.advice.request import PlanRequest
from genrecourse.advice.rule_files import read_rules_file
from genrecourse.advice.service import Service
from genrecourse.auditing import audit
from genrecourse.data.datasets import DATASETS
from genrecourse.genre.fit import Training
from genrecourse.planning.plans import Plans

POLICY = """
[decision]
target = "verdict"
favourable = "good"
cutoff = 0.4

[features]
income = { direction = "increase" }
age = { role = "immutable" }

[rules]
max_changes = 1
"""


def loans(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "id": [f"L{i}" for i in range(n)],
            "income": rng.integers(10, 100, n) * 1.0,
            "debt": rng.integers(1, 60, n) * 1.0,
            "age": rng.integers(20, 25, n),
            "home": rng.choice(["rent", "own"], n),
        }
    )
    return table.assign(verdict=np.where(table["debt"] / table["income"] < 0.6, "good", "bad"))


def h(X: pd.DataFrame) -> np.ndarray:
    ratio = X["debt"].to_numpy(dtype=float) / X["income"].to_numpy(dtype=float)
    return np.asarray(1 / (1 + np.exp(4 * (ratio - 0.7))))


TABLE = loans()
PEOPLE = loans(40, seed=1)
FIT: dict[str, Any] = {"drop": ["id"], "classifier": h, "method": "nnr"}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    file = tmp_path_factory.mktemp("policy") / "bank.toml"
    file.write_text(POLICY)
    return Policy.read(file)


@pytest.fixture(scope="module")
def free() -> Service:
    """Without a policy."""
    return prepare(TABLE, target="verdict", favourable="good", **FIT).learn().service


@pytest.fixture(scope="module")
def folder(policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder that keeps its policy."""
    place = tmp_path_factory.mktemp("saved") / "model"
    prepare(TABLE, policy=policy, **FIT).learn().service.save(place)
    return place


@pytest.fixture(scope="module")
def ruled(folder: Path) -> Service:
    return Service.open(folder, h)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def n_changes(plans: Plans) -> list[int]:
    return [len(each.changes) for plan in plans for each in plan.every]


# ---- learning -----------------------------------------------------------------------------------


def test_a_file_and_a_table_give_the_same_model(free: Service) -> None:
    TABLE.to_csv("loans.csv", index=False)
    task = prepare("loans.csv", target="verdict", favourable=["good"], **FIT)
    learned = task.learn()
    X = free.read_people(PEOPLE)
    assert learned.service.plans(X).to_json() == free.plans(X).to_json()
    accepted = h(TABLE) > 0.5
    assert (learned.n_rows, learned.n_accepted) == (200, accepted.sum())
    assert learned.interrupted_at is None
    assert any("'age'" in each for each in task.warnings)  # only time changes it


def test_the_cost_of_a_task_is_that_of_all_numbers() -> None:
    about = {"target": "verdict", "favourable": "good", **FIT}
    schema = prepare(TABLE, cost="quantile", **about).method.schema
    assert schema is not None
    assert {f.cost for f in schema if not f.is_category} == {"quantile"}
    again = prepare(TABLE, schema=schema, **about).method.schema
    assert again == schema
    with pytest.raises(UserError, match="must be 'range' or 'quantile'"):
        prepare(TABLE, cost="people", **about)
    with pytest.raises(UserError, match="with a policy, leave out cost"):
        prepare(TABLE, policy=Policy.of(decision={"target": "verdict"}), cost="range", **FIT)


def test_a_schema_that_is_given_is_kept_and_not_warned_about() -> None:
    schema = Schema.infer(TABLE[["income", "debt", "age", "home"]], immutable=["age"])
    schema.save("schema.json")
    for given in (schema, "schema.json"):
        task = prepare(TABLE, target="verdict", favourable="good", schema=given, **FIT)
        assert task.warnings == ()
        assert task.learn().service.schema == schema


def test_own_scale_and_immutable_columns_reach_the_method() -> None:
    def points(X: pd.DataFrame) -> np.ndarray:
        return 300 + 550 * h(X)

    service = (
        prepare(
            TABLE.assign(verdict=(TABLE["verdict"] == "good").astype(int)),
            target="verdict",
            favourable=1,
            immutable="age",
            drop="id",
            classifier=points,
            cutoff=600,
            score_range=(300, 850),
            method="nnr",
        )
        .learn()
        .service
    )
    assert service.schema["age"].role == "immutable"
    assert service.method.classifier_.score_range == (300, 850)
    shown = service.plan_table(service.plans(service.read_people(PEOPLE)), PEOPLE)
    assert (shown.loc[shown["status"] == "ok", "score_after"] > 600).all()


def test_warnings_during_the_fit_are_returned() -> None:
    """They are data, for any front end to show."""
    protected = Policy.of(
        decision={"target": "verdict", "favourable": "good"},
        features={"age": {"role": "protected"}},
    )

    def reads_age(X: pd.DataFrame) -> np.ndarray:
        return np.asarray(h(X) * np.where(X["age"] > 22, 1.0, 0.9))

    learned = prepare(TABLE, policy=protected, **FIT | {"classifier": reads_age}).learn()
    assert any("'age'" in note for note in learned.notes)


GIVEN = {"target": "verdict", "favourable": "good", **FIT}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no target": ({"target": None}, "no column is named as the target"),
    "another target": ({"target": "verdit"}, "no target column 'verdit' (did you mean 'verdict'?)"),
    "another outcome": ({"favourable": "goood"}, "'goood' (did you mean 'good'?) does not occur"),
    "another column": ({"drop": ["idd"]}, "no column ['idd'] (did you mean 'id'?)"),
    "another method": ({"method": "nn"}, "no method 'nn' (did you mean 'nnr'?)"),
    "nothing left": ({"drop": list(TABLE.columns[:-1])}, "no column is left besides"),
    "said twice": (
        {"classifier": Classifier(h, favourable="good"), "cutoff": 0.3},
        "leave out favourable, cutoff and score_range",
    ),
    "no such file": ({"table": "none.csv"}, "there is no file none.csv"),
    "gaps": (
        {"table": TABLE.assign(verdict=TABLE["verdict"].where(TABLE.index != 7))},
        "missing in 1 of 200 rows (first: row 7)",
    ),
    "one outcome": ({"table": TABLE.assign(verdict="good")}, "'good' in all 200 rows"),
    "policy and favourable": (
        {"policy": Policy.of(decision={"target": "verdict"})},
        "with a policy, leave out favourable: the policy states it",
    ),
    "policy and much else": (
        {
            "policy": Policy.of(),
            "favourable": (),
            "cutoff": 0.3,
            "immutable": "age",
            "schema": "schema.json",
        },
        "leave out schema, immutable, cutoff",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_found_before_anything_is_learned(mistake: str) -> None:
    changed, message = WRONG[mistake]
    options = {"table": TABLE, **GIVEN, **changed}
    with pytest.raises(UserError) as caught:
        prepare(options.pop("table"), **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- the policy is in force ---------------------------------------------------------------------


def test_the_policy_of_a_folder_is_in_force(ruled: Service, policy: Policy) -> None:
    assert ruled.policy is not None
    assert ruled.policy.stated == policy.stated
    X = ruled.read_people(PEOPLE)
    plans = ruled.plans(X, PlanRequest(n=2))
    direct = ruled.method.plans(X, n=2, **policy.request)
    assert plans.to_json() == direct.to_json()
    assert set(n_changes(plans)) == {1}


def test_without_a_policy_plans_are_the_methods_own(free: Service) -> None:
    X = free.read_people(PEOPLE)
    assert free.policy is None
    plans = free.plans(X)
    assert plans.to_json() == free.method.plans(X).to_json()
    assert max(n_changes(plans)) > 1  # so that a policy with one change does something


def test_another_policy_replaces_the_rules_of_the_first(ruled: Service, folder: Path) -> None:
    X = ruled.read_people(PEOPLE)
    before = ruled.plans(X).to_json()
    looser = POLICY.replace("max_changes = 1", "max_changes = 3")
    Path("looser.toml").write_text(looser)
    opened = Service.open(folder, h, "looser.toml")
    assert opened.policy is not None
    assert opened.policy.name == "looser.toml"
    assert max(n_changes(opened.plans(X))) > 1
    assert ruled.under(opened.policy).plans(X).to_json() == opened.plans(X).to_json()
    assert ruled.plans(X).to_json() == before  # `under` leaves this service alone
    opened.save("again")
    again = Service.open("again", h)
    assert again.plans(X).to_json() == opened.plans(X).to_json()


def test_a_policy_with_other_features_is_refused(folder: Path) -> None:
    Path("other.toml").write_text(POLICY.replace('"increase"', '"decrease"'))
    with pytest.raises(UserError, match="fit it again with this policy"):
        Service.open(folder, h, "other.toml")
    with pytest.raises(UserError, match=r"cannot read the policy none\.toml"):
        Service.open(folder, h, "none.toml")


def test_no_request_gets_rid_of_a_rule_of_the_policy(ruled: Service) -> None:
    X = ruled.read_people(PEOPLE)
    more = ruled.plans(X, PlanRequest(rules={"max_changes": 4}))
    assert more.to_json() == ruled.plans(X).to_json()
    locked = ruled.plans(X, PlanRequest(rules={"lock": ["income"]}))
    assert set(n_changes(locked)) == {1}
    changed = {change.feature.name for plan in locked for change in plan.changes}
    assert changed
    assert "income" not in changed


# decision 0016: the model itself applies the policy, so no front end can forget it
REQUESTS: dict[str, Any] = {
    "no rules": None,
    "empty rules": {},
    "a looser rule": {"max_changes": 4},
    "a rule beside it": {"lock": ["income"]},
    "looser rules of one person": {"people": {3: {"max_changes": 4}}},
}


@pytest.mark.parametrize("asked", REQUESTS)
def test_a_loaded_model_and_the_service_show_the_same_plans_under_the_policy(
    ruled: Service, folder: Path, asked: str
) -> None:
    X, rules = ruled.read_people(PEOPLE), REQUESTS[asked]
    plans = load(folder, h).plans(X, 2, rules=rules)
    assert plans.to_json() == ruled.plans(X, PlanRequest(n=2, rules=rules)).to_json()
    assert set(n_changes(plans)) == {1}


@pytest.mark.parametrize("asked", REQUESTS)
def test_no_call_of_a_loaded_model_gets_rid_of_a_rule(
    ruled: Service, folder: Path, asked: str
) -> None:
    method, rules = load(folder, h), REQUESTS[asked]
    X = ruled.read_people(PEOPLE)
    X = X[~method.classifier_.accepts(X)]
    if asked == "looser rules of one person":
        rules = {"people": {X.index[0]: {"max_changes": 4}}}
    changes = method.assess(X, method.recourse(X, rules=rules))["changes"]
    assert changes.max() <= 1
    two = X.assign(income=X["income"] + 90.0, debt=1.0)
    assert set(method.assess(X, two, rules=rules)["status"]) == {"rule-broken"}


def test_draws_of_a_loaded_genre_keep_the_policy(policy: Policy) -> None:
    training = Training(steps=2, batch_size=16)
    X, y = policy.split(TABLE.drop(columns="id"))
    genre = METHODS["genre-paper"](policy.classifier(h), policy.schema(X), training=training)
    genre.fit(X, y).save("genre", policy)
    method = load("genre", h)
    people = X[~method.classifier_.accepts(X)].head(3)
    for rules in (None, {"max_changes": 4}):
        drawn = method.sample(people, 8, rules=rules)
        before = people.loc[drawn.index.get_level_values("row")]
        assert (drawn.to_numpy() != before.to_numpy()).sum(axis=1).max() == 1
        assert "effective_sample_size" in method.draws(people, rules=rules)  # of draws under rules


def test_the_promise_of_a_policy_is_in_force(ruled: Service) -> None:
    assert ruled.policy is not None
    promising = ruled.policy.stated.model_dump(by_alias=True, exclude_unset=True)
    promising["decision"]["promise"] = 0.9
    service = ruled.under(Policy.of(**promising))
    assert PlanRequest(delta=0.2).keywords(service.policy)["promise"] == 0.9
    X = service.read_people(PEOPLE)
    made = service.plans(X)
    assert {plan.promise.share for plan in made if plan.promise is not None} == {0.9}
    weaker = service.plans(X, PlanRequest(promise=0.8))
    assert weaker.to_json() == made.to_json()
    assert service.method.promise(0.8).share == 0.9
    stricter = service.plans(X, PlanRequest(promise=0.95))
    assert {plan.promise.share for plan in stricter if plan.promise is not None} == {0.95}


@pytest.mark.parametrize("share", [-0.1, 1.5, "most"])
def test_a_promise_that_is_no_share_is_refused_also_under_a_promising_policy(
    ruled: Service, share: Any
) -> None:
    policy = Policy.of(decision={"promise": 0.9})
    with pytest.raises(UserError, match="promise"):
        PlanRequest(promise=share).keywords(policy)
    method = copy.copy(ruled.method)
    method.policy_ = policy
    with pytest.raises(UserError, match="promise"):
        method.plans(ruled.read_people(PEOPLE), promise=share)


# ---- people -------------------------------------------------------------------------------------


def test_people_from_a_file_or_a_table(free: Service) -> None:
    PEOPLE.to_csv("people.csv", index=False)
    X = free.read_people("people.csv")
    pd.testing.assert_frame_equal(X, PEOPLE[free.schema.names])
    pd.testing.assert_frame_equal(free.read_people(PEOPLE), X)
    everything = free.read_people(Path("people.csv"), all_columns=True)
    assert list(everything.columns) == list(PEOPLE.columns)
    named = PEOPLE.set_index("id", drop=False)
    assert list(free.read_people(named).index) == list(named.index)  # a table keeps its labels


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (PEOPLE.rename(columns={"income": "Income"}), "lacks the column(s) ['income'] (did you"),
        (PEOPLE[[]], "the table is empty"),
        ("none.csv", "there is no file none.csv"),
        ("people.xlsx", "should end in .csv or .parquet"),
    ],
    ids=["column", "no columns", "no file", "kind"],
)
def test_people_that_cannot_be_read(free: Service, source: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        free.read_people(source)
    assert message in str(caught.value)


def test_explain_is_the_persons_plan(ruled: Service) -> None:
    X = ruled.read_people(PEOPLE)
    free = ruled.plans(X, PlanRequest(n=2))
    row, other = [i for i, plan in enumerate(free) if plan.status == "ok"][:2]
    changed = free[row].changes[0].feature.name
    rules = {"default": {}, "people": {str(row): {"lock": [changed]}}}
    request = PlanRequest(n=2, rules=rules)
    plans = ruled.plans(X, request)
    assert plans[row].to_dict() != free[row].to_dict()  # so that the rule does something
    for each in (row, other):  # a rule of one person is no mistake when the other is explained
        assert ruled.explain(X, each, request).to_dict() == plans[each].to_dict()


def test_a_row_or_a_person_who_is_not_there(ruled: Service) -> None:
    X = ruled.read_people(PEOPLE)
    for row in (-1, 40):
        with pytest.raises(UserError, match=f"the rows 0 to 39; there is no row {row}"):
            ruled.explain(X, row)
    request = PlanRequest(rules={"people": {"99": {"lock": ["debt"]}}})
    for act in (lambda: ruled.plans(X, request), lambda: ruled.explain(X, 0, request)):
        with pytest.raises(UserError, match="rules for the row '99', but the table has the rows 0"):
            act()


def test_one_line_for_each_plan(ruled: Service) -> None:
    X = ruled.read_people(PEOPLE)
    plans = ruled.plans(X, PlanRequest(n=2))
    lines = ruled.plan_table(plans, X)
    assert len(lines) == sum(max(1, len(plan.every)) for plan in plans)
    assert lines["row"].drop_duplicates().tolist() == list(range(40))
    ok = lines[lines["status"] == "ok"]
    assert (h(ok.rename(columns=lambda name: name.removeprefix("new "))) > 0.4).all()


def test_plans_and_audits_as_files(ruled: Service) -> None:
    X, request = ruled.read_people(PEOPLE), PlanRequest(n=2)
    plans = ruled.plans(X, request)
    for name in ("plans.csv", "plans.json", "plans.html"):
        write_plans(Path(name), ruled, X, plans, request)
    assert len(pd.read_csv("plans.csv")) == len(ruled.plan_table(plans, X))
    assert json.loads(Path("plans.json").read_text()) == json.loads(plans.to_json())
    assert "<html" in Path("plans.html").read_text(encoding="utf-8")
    found = ruled.audit(PEOPLE, ["home"], least=5)
    for name in ("audit.csv", "audit.json", "audit.html"):
        write_audit(Path(name), found)
    assert len(pd.read_csv("audit.csv")) == len(
        json.loads(Path("audit.json").read_text())["numbers"]
    )
    assert "home = own" in Path("audit.html").read_text(encoding="utf-8")


def test_an_audit_keeps_the_policy(ruled: Service, policy: Policy) -> None:
    found = ruled.audit(PEOPLE, ["home"], least=5, seed=3)
    direct = audit(ruled.method, PEOPLE, ["home"], least=5, seed=3, **policy.request)
    pd.testing.assert_frame_equal(found.to_frame(), direct.to_frame())
    numbers = found.to_frame().set_index(["group", "metric"])["value"]
    assert numbers["everyone", "changes"] == 1.0
    with pytest.raises(UserError, match="no column 'house'"):
        ruled.audit(PEOPLE, ["house"])


def test_recheck_reads_its_own_plans(ruled: Service, free: Service) -> None:
    X = ruled.read_people(PEOPLE)
    plans = ruled.plans(X)
    Path("plans.json").write_text(plans.to_json())
    found = ruled.recheck("plans.json")
    assert len(found) == len(n_changes(plans))
    assert found["holds"].all()
    pd.testing.assert_frame_equal(found, ruled.recheck(plans))
    stricter = free.recheck(plans)  # a cutoff of 0.5 instead of 0.4
    assert stricter["holds"].tolist() == (stricter["score"] > 0.5).tolist()
    with pytest.raises(UserError, match=r"plans.csv holds no plans that can be read again"):
        ruled.recheck("plans.csv")
    with pytest.raises(UserError, match=r"cannot read none\.json"):
        read_plans("none.json")


def test_plans_of_another_table_are_not_rechecked(ruled: Service) -> None:
    other = TABLE.rename(columns={"home": "house"})
    service = prepare(other, target="verdict", favourable="good", **FIT).learn().service
    plans = service.plans(service.read_people(PEOPLE.rename(columns={"home": "house"})))
    with pytest.raises(UserError, match=r"have the columns \['house'\] .* lack \['home'\]"):
        ruled.recheck(plans)


def test_the_summary_names_the_rules(ruled: Service, free: Service) -> None:
    found = ruled.summary()
    assert found.facts["method"] == "NearestNeighbour"
    assert found.facts["policy"] == "bank.toml"
    ways = {each.name: each.may_change for each in found.rules.features}
    assert ways["age"] == "no"
    assert ways["income"].startswith("increase")
    assert found.rules.rules == ("at most 1 change",)
    assert "policy" not in free.summary().facts
    assert free.summary().rules.rules == ()


# ---- what a request may ask ---------------------------------------------------------------------


def test_a_request_from_plain_data() -> None:
    data = {"n": 2, "rules": {"lock": ["debt"]}, "promise": 0.9, "delta": 0.2, "safety": 0.3}
    request = PlanRequest.read(data)
    keywords = request.keywords()
    assert {name: keywords[name] for name in ("n", "promise", "delta", "safety")} == {
        "n": 2,
        "promise": 0.9,
        "delta": 0.2,
        "safety": 0.3,
    }
    assert request == PlanRequest(**data)
    assert "promise" not in PlanRequest().keywords()
    with pytest.raises(FrozenInstanceError):
        request.n = 3  # type: ignore[misc]


REFUSED: dict[str, tuple[Any, str]] = {
    "no mapping": (["n"], "a request is list; give a mapping of"),
    "unknown": ({"promised": 0.9}, "no option 'promised' (did you mean 'promise'?)"),
    "rules": ({"rules": {"locks": ["debt"]}}, "'locks' (did you mean 'lock'?)"),
    "rules of another kind": ({"rules": 3}, "int"),
    "a feature": ({"rules": {"lock": ["dept"]}}, "'dept'"),
    "n": ({"n": 0}, "n is 0; it must be a whole number from 1 to 100"),
    "delta alone": ({"delta": 0.2}, "delta is 0.2, but no promise is asked for"),
    "promise": ({"promise": 1.5}, "1.5"),
    "language": ({"language": "xx"}, "no wording 'xx'"),
    "safety": ({"safety": 7}, "7"),
    "an option of another method": ({"options": {"lam": 2.0}}, "no option ['lam']"),
    "an option that is a field": ({"options": {"n": 2}}, "'n' is a field of the request"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_request_that_cannot_be_met(free: Service, mistake: str) -> None:
    data, message = REFUSED[mistake]
    with pytest.raises(UserError) as caught:
        free.plans(free.read_people(PEOPLE), PlanRequest.read(data))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rules_from_files() -> None:
    Path("rules.toml").write_text('[default]\nlock = ["debt"]\n[people.3]\nmax_changes = 1\n')
    Path("rules.json").write_text(
        '{"default": {"lock": "debt"}, "people": {"3": {"max_changes": 1}}}'
    )
    assert read_rules_file("rules.toml") == read_rules_file(Path("rules.json"))
    for name, text, message in (
        ("rules.yaml", "", "should end in .json or .toml"),
        ("bad.json", "{", "bad.json is not JSON"),
        ("bad.toml", "[", "bad.toml is not TOML"),
        ("odd.toml", 'locks = ["debt"]', "odd.toml: "),
    ):
        Path(name).write_text(text)
        with pytest.raises(UserError, match=message):
            read_rules_file(name)
    with pytest.raises(UserError, match=r"cannot read none.json: No such file"):
        read_rules_file("none.json")
    Path("latin.json").write_bytes("{'ä'}".encode("latin-1"))
    with pytest.raises(UserError, match="save it as UTF-8"):
        read_rules_file("latin.json")


# ---- policies, own models, lists ----------------------------------------------------------------


def test_what_a_policy_means_for_a_table(ruled: Service, policy: Policy) -> None:
    table = TABLE.drop(columns="id")
    found = check_policy(policy, table)
    assert found.refused == ()
    assert found.summary == ruled.summary().rules
    with_model = check_policy(policy, table, ruled)
    assert set(found.warnings) <= set(with_model.warnings)
    wrong = Policy.of(decision={"target": "verdict", "favourable": "yes"})
    refused = check_policy(wrong, table)
    assert any("'decision.favourable' will be refused" in each for each in refused.refused)
    assert not set(refused.refused) & set(refused.warnings)


def test_a_policy_is_checked_without_the_rules_of_the_models_own(ruled: Service) -> None:
    """The model's own policy leaves people without a plan; the one that is checked does not."""
    strict = Policy.of(**_stated(ruled, max_cost=1e-9))
    free = Policy.of(**_stated(ruled))
    table = TABLE.drop(columns="id")
    under_strict = ruled.under(strict)
    alone = check_policy(strict, table, under_strict).warnings
    assert any("100% of" in each and "have no plan" in each for each in alone)
    found = check_policy(free, table, under_strict).warnings
    assert not any("100% of" in each and "have no plan" in each for each in found)


def _stated(service: Service, **rules: Any) -> dict[str, Any]:
    """Return the data of the service's policy with other rules."""
    assert service.policy is not None
    data = service.policy.stated.model_dump(by_alias=True, exclude_unset=True)
    return data | {"rules": rules}


def test_an_own_model_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path().absolute()))
    Path("bank_of_tests.py").write_text("def score(X):\n    return X['debt'] * 0\n")
    for where in ("bank_of_tests:score", "bank_of_tests.py:score"):
        assert import_model(where).__name__ == "score"
    for where, message in (
        ("bank_of_tests", "should be MODULE:NAME"),
        ("bank_of_tests:scor", r"has no 'scor' \(did you mean 'score'\?\)"),
        ("nowhere:score", "No module named 'nowhere'; is it in this folder"),
    ):
        with pytest.raises(UserError, match=message):
            import_model(where)


def test_every_method_and_data_set_is_listed() -> None:
    assert list(describe_methods()) == list(METHODS)
    assert describe_methods()["nnr-0.7"].endswith("Its score is above 0.7.")
    assert len(set(describe_methods().values())) == len(METHODS)  # each says what is its own
    for line in describe_methods().values():
        assert line.endswith("."), line
        assert not set("=*∝~|_(") & set(line.replace("tabsyn_q", "").replace("(TabSyn)", "")), line
    listed = {each.name: each for each in describe_datasets()}
    assert list(listed) == list(DATASETS)
    assert listed["german"].n_rows == 1000


def test_the_service_prints_nothing(ruled: Service, capsys: pytest.CaptureFixture[str]) -> None:
    X = ruled.read_people(PEOPLE)
    plans = ruled.plans(X)
    ruled.explain(X, 0)
    ruled.recheck(plans)
    ruled.summary()
    assert capsys.readouterr() == ("", "")
