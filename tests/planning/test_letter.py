"""Letters: plain words, round numbers that hold, and nothing that is the library's own business."""

from __future__ import annotations

import datetime
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks import letters
from genrecourse import NearestNeighbour, Policy, UserError, load_dataset
from genrecourse.data.loan import true_probability
from genrecourse.model.classifier import Classifier
from genrecourse.planning.letter import FOLDER, LetterDetails
from genrecourse.planning.letter_form import Letter
from genrecourse.planning.plans import BlockingRule, Change, Evidence, Plan, Plans
from genrecourse.planning.wording import readable
from genrecourse.table.schema import Feature, Schema

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted(FOLDER.glob("*.toml"))
NUMBER = re.compile(r"\d[\d.,]*")
INCOME = Feature(name="monthly_income", kind="number", decimals=0, unit="€")
DOLLARS = 1.0937
AGE = Feature(name="age", kind="number", decimals=0, unit="years", role="advances", horizon=2)


# ---- many letters ---------------------------------------------------------------------------


def in_euros(X: pd.DataFrame) -> pd.DataFrame:
    return X.assign(savings=X["savings"] / DOLLARS, amount=X["amount"] / DOLLARS)


@cache
def made(table: str) -> tuple[Schema, Plans]:
    """A schema, and plans for people under it."""
    if table == "german":
        data, policy = load_dataset("german"), Policy.read(ROOT / "policies" / "german.toml")
        y = data.y_train.map({1: data.favourable, 0: "bad"})
        schema = policy.schema(data.X_train)
        method = NearestNeighbour(policy.classifier(), schema).fit(data.X_train, y)
        return schema, method.plans(data.X_test.head(80), n=2, **policy.request)
    if table == "loan":
        data = load_dataset("loan")
        X = data.X_train.head(600)
        # in dollars, amounts have many digits
        X = X.assign(savings=X["savings"] * DOLLARS, amount=X["amount"] * DOLLARS)
        schema = Schema.infer(X).with_feature("savings", unit="$").with_feature("amount", unit="$")
        h = Classifier(lambda X: true_probability(in_euros(X)), cutoff=0.7)
        return schema, NearestNeighbour(h, schema).fit(X).plans(X.head(150), n=3)
    plans = letters.messy_plans() if table == "messy" else letters.kredit_plans()
    schema = Schema.infer(letters.messy_table() if table == "messy" else letters.kredit_table())
    return schema, plans


TABLES = ("german", "loan", "messy", "kredit")


def every_letter(table: str) -> list[tuple[Plan, Letter]]:
    _, plans = made(table)
    found = [(plan, plan.to_letter()) for plan in plans if plan.status != "already-accepted"]
    assert len(found) > 15
    return found


def digits(number: str) -> int:
    """Significant digits of a number with English marks."""
    plain = number.strip(".,").replace(",", "")
    whole, _, rest = plain.partition(".")
    return len((whole + rest).lstrip("0")) if rest else len(whole.strip("0"))


@pytest.mark.parametrize(
    ("number", "expected"), [("0.02864", 4), ("24,137.19", 7), ("1,200", 2), ("0", 0), ("3.50", 3)]
)
def test_how_digits_are_counted(number: str, expected: int) -> None:
    assert digits(number) == expected


@pytest.mark.parametrize("table", TABLES)
def test_no_letter_shows_what_is_not_for_people(table: str) -> None:
    """No likelihood or score, no name of a column, no number of more than four digits."""
    schema, _ = made(table)
    internal = [f.name for f in schema if re.search(r"[_.]|[a-z][A-Z]|ae", f.name)]
    assert internal
    for _, letter in every_letter(table):
        text, page = letter.to_text(), letter.to_html()
        for word in ("likelihood", "score", "retrained", "cost", "e-0", "e+", "nan", "{"):
            assert word not in text, (word, text)
        body = page.split("<main>")[1]
        for name in internal:
            assert name not in " ".join(text.split())
            assert name not in body
        for number in NUMBER.findall(text):
            assert digits(number) <= 4, (number, text)


@pytest.mark.parametrize("table", ["loan", "messy"])
def test_the_model_accepts_what_a_letter_says(table: str) -> None:
    """Read back from the text, put into the person's row, and scored by the model itself."""
    schema, _ = made(table)
    named = {(f.wording or readable(f.name)).lower(): f for f in schema}
    read = 0
    for plan, letter in every_letter(table):
        if plan.status != "ok" or "exact amounts" in letter.to_text():
            continue
        row = plan.row.table.iloc[[plan.row.place]].copy() if plan.row else pd.DataFrame()
        for title, said in next(block.items for block in letter.blocks if block.kind == "list"):
            feature, after = named[title.lower()], _new_value(said)
            value: Any = {str(c).replace("_", " "): c for c in feature.categories}.get(after)
            if not feature.is_category:
                value = float(re.sub(r"[^\d.e-]", "", after))
            row[feature.name] = pd.Series([value], index=row.index)
            read += not feature.is_category
        if table == "messy":
            assert letters.messy_score(row)[0] > 580
        else:
            assert true_probability(in_euros(row))[0] > 0.7
    assert read > 20


def _new_value(said: str) -> str:
    return said.replace("\u00a0", " ").split(" (for safety")[0].split(" to ")[-1]


def test_a_change_for_safety_is_said_to_be_and_a_fragile_plan_too() -> None:
    seen = {True: 0, False: 0}
    for table in TABLES:
        for plan, letter in every_letter(table):
            if plan.status != "ok" or "exact amounts" in letter.to_text():
                continue
            items = next(block.items for block in letter.blocks if block.kind == "list")
            for change, (_, said) in zip(plan.changes, items, strict=True):
                assert ("for safety" in said) == (change.safety is not None)
                seen[change.safety is not None] += 1
            text = " ".join(letter.to_text().split())
            assert ("This is a close case" in text) == plan.is_fragile
    assert all(seen.values())


def test_levels_that_compare_are_words() -> None:
    texts = " ".join(letter.to_text() for _, letter in every_letter("german"))
    words = " ".join(texts.replace("\u00a0", " ").split())
    assert "from less than 100 DM to" in words
    assert not re.search(r"[<>]", words)


def test_alternatives_are_other_ways() -> None:
    texts = [
        letter.to_text() for plan, letter in every_letter("loan") if len(plan.alternatives) == 2
    ]
    assert any("Another way" in text and "A third way" in text for text in texts)
    alone = [letter.to_text() for plan, letter in every_letter("kredit") if not plan.alternatives]
    assert alone
    assert not any("Another way" in text for text in alone)


def test_the_page_escapes_and_loads_nothing() -> None:
    pages = [letter.to_html() for _, letter in every_letter("messy")]
    assert any("Credit&lt;b&gt;limit&lt;/b&gt;" in page.replace(" ", "") for page in pages)
    for page in pages:
        assert "<b>limit" not in page
        assert not re.search(r"<script|src=|href=|url\(|https?:", page)


# ---- one letter -----------------------------------------------------------------------------


def a_plan(**more: Any) -> Plan:
    change = Change(INCOME, 1800, 2100)
    return Plan("Ada", "ok", 0.31, 0.5, (change,), score_after=0.72, cost=0.4, **more)


def test_the_details_are_in_it() -> None:
    text = a_plan().to_letter(
        date=datetime.date(2026, 11, 18),
        valid_days=30,
        sender="A Bank\nA Street",
        recipient="Ms Li",
        reference="X-17",
        contact="Mr Oh, room 4",
    )
    said = text.to_text()
    for part in ("A Bank\nA Street", "18 November 2026", "Dear Ms Li,", "Your reference: X-17"):
        assert part in said
    assert "valid until 18 December 2026" in said
    assert said.endswith("Mr Oh, room 4")


def test_a_letter_without_details_has_no_gaps() -> None:
    said = a_plan().to_letter().to_text()
    assert said.startswith("What would change the result of your application")
    assert "It is valid for 90 days." in said
    assert "\n\n\n" not in said


def test_it_is_valid_as_long_as_the_plan_takes() -> None:
    follows = (Change(AGE, 35, 37),)
    said = a_plan(consequences=follows).to_letter(date="2026-01-01").to_text()
    assert "Age: from 35 years to 37 years, as time passes, within 2 years" in said
    assert "valid until 3 January 2028" in said
    said = a_plan(consequences=follows).to_letter(date="2026-01-01", valid_days=10).to_text()
    assert "valid until 11 January 2026" in said


def test_an_accepted_person_gets_no_letter() -> None:
    with pytest.raises(UserError, match=r"already accepts person 'Ada'.* no letter to write"):
        Plan("Ada", "already-accepted", 0.7, 0.5).to_letter()


RANGED = INCOME.model_copy(update={"range": (0.0, 5000.0)})
EXACT = INCOME.model_copy(update={"range": (0.0, 51_237.0)})


@pytest.mark.parametrize(
    ("kind", "feature", "expected"),
    [
        ("lock", INCOME, "“monthly income” must stay as it is"),
        ("range", RANGED, "“monthly income” must stay between €0 and €5,000"),
        ("range", EXACT, "“monthly income” may change within limits only"),
        ("relation", None, "a limit on what may be suggested"),
        ("immutable", INCOME, "something that you cannot change"),
    ],
)
def test_who_has_no_plan_reads_which_rule_blocks(
    kind: str, feature: Feature | None, expected: str
) -> None:
    rule = BlockingRule(kind, feature, (Change(INCOME, 10, 99),), 0.7, 0.4, "a <= monthly_income")
    if feature is not None:
        rule = BlockingRule(kind, feature, (Change(INCOME, 10, 99),), 0.7, 0.4)
    plan = Plan(
        "Ada",
        "no-plan",
        0.3,
        0.5,
        reason_code="rules-block",
        evidence=Evidence(True, 12_345, 30),
        blocking_rules=(rule,),
    )
    said = " ".join(plan.to_letter().to_text().split())
    assert expected in said
    assert "99" not in said  # what would do without the rule is no advice
    assert "about 12,000 changes" in said


def test_every_reason_has_a_sentence() -> None:
    codes = ["not-accepted", "no-feasible-target", "nothing-may-change", "cannot-promise", "new"]
    for code in codes:
        for template in ("en", "de"):
            plan = Plan("Ada", "no-plan", 0.3, 0.5, reason_code=code)
            assert code not in plan.to_letter(template).to_text()


@pytest.mark.parametrize(
    ("details", "complaint"),
    [
        ({"dat": "2026-11-18"}, r"no 'dat' \(did you mean 'date'\?\)"),
        ({"date": "18.11.2026"}, "'18.11.2026'; write it as year, month and day: 2026-11-18"),
        ({"valid_days": 0}, "valid_days is 0; it must be a whole number of days from 1"),
    ],
)
def test_wrong_details_are_refused(details: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        LetterDetails.of(details)


# ---- templates ------------------------------------------------------------------------------


def edited(path: Path, old: str, new: str) -> Path:
    text = (FOLDER / "en.toml").read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


def test_an_own_template_is_followed(tmp_path: Path) -> None:
    path = edited(tmp_path / "own.toml", "## Whom to ask\n", "## Call us before {date}\n")
    said = a_plan().to_letter(path, date="2026-11-18").to_text()
    assert "Call us before 18 November 2026" in said
    assert "Whom to ask" not in said


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("{changes}", "{change}", r"'letter.plan' has the placeholders \['change'\]"),
        ("\n\n{changes}\n", "\nDo: {changes}\n", r"\{changes\} is a list; put an empty line"),
        ('yes = "yes"\n', "", "lacks the sentences value.yes"),
    ],
)
def test_a_template_that_does_not_fit_is_refused(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint):
        a_plan().to_letter(edited(tmp_path / "own.toml", old, new))


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(UserError, match=r"no letter 'tlh': .*\['de', 'en'\]"):
        a_plan().to_letter("tlh")


def test_no_value_becomes_a_heading_or_a_field(tmp_path: Path) -> None:
    odd = Feature(name="x", kind="category", categories=("a", "# {date}\n\n## b"), wording="# y")
    letter = Plan("A", "ok", 0.3, 0.5, (Change(odd, "a", "# {date}\n\n## b"),), 0.7).to_letter()
    assert "change it from a to # {date} ## b" in letter.to_text()
    assert [b.text for b in letter.blocks if b.kind != "text" and b.kind != "list"].count("b") == 0


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_no_letter_promises_or_explains_the_decision(path: Path) -> None:
    text = str(tomllib.loads(path.read_text(encoding="utf-8"))).lower()
    for word in ("approv", "guarantee", "will be accepted", "you will get", "entitled", "ensure"):
        assert word not in text
    for word in ("because", "you were rejected", "due to", "garant", "wird bewilligt", "abgelehnt"):
        assert word not in text
    assert ("no promise" in text) or ("keine zusage" in text)


def test_a_policy_says_who_writes() -> None:
    policy = Policy.of(letter={"sender": "A Bank", "valid_days": 10})
    assert Policy.unpack(policy.pack()).letter == {"sender": "A Bank", "valid_days": 10}
    assert "for 10 days" in a_plan().to_letter(**policy.letter).to_text()
    with pytest.raises(UserError, match=r"'letter\.valid_days' is 0"):
        Policy.of(letter={"valid_days": 0})


def test_the_stored_letters_are_those_of_the_library() -> None:
    """docs/letters shows what `python -m benchmarks.letters` writes."""
    kredit = letters.first(letters.kredit_plans(), lambda plan: len(plan.changes) > 1)
    letter = kredit.to_letter("de", **letters.kredit_policy().letter, date=letters.DATE)
    stored = (ROOT / "docs" / "letters" / "in-german.txt").read_text(encoding="utf-8")
    assert stored == letter.to_text() + "\n"
