"""scripts/: README.md and docs/ say what the results files say."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from genrecourse import METHODS, GenRe
from genrecourse.planning.binomial import Share
from genrecourse.planning.plans import Plan
from genrecourse.planning.wording import english
from scripts import write_readme_plan, write_results


def test_a_block_is_replaced_and_the_rest_of_the_page_stays() -> None:
    page = "before\n<!-- demo: written by `a command` -->\nold\n<!-- /demo -->\nafter\n"
    written = write_results.filled(page, "demo", "new")
    assert written == page.replace("old", "new")
    for wrong in (page + page, "no block"):
        with pytest.raises(SystemExit, match="exactly one block <!-- demo:"):
            write_results.filled(wrong, "demo", "new")


def test_a_page_that_disagrees_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_results, "pages", lambda: {tmp_path / "results.md": "1.94"})
    (tmp_path / "results.md").write_text("1.93", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"disagree with the results: results\.md;"):
        write_results.check()
    write_results.write()
    write_results.check()


def plan(person: int, accepted: int | None) -> Plan:
    """A plan that so many of 10 retrained copies accept; None: no plan."""
    if accepted is None:
        return Plan(person, "no-plan", 0.3, 0.5, reason_code="rejected")
    return Plan(person, "ok", 0.3, 0.5, score_after=0.6, retrained=Share(accepted, 10))


def test_the_plan_of_the_readme_is_the_first_of_the_most_robust() -> None:
    plans = [plan(1, None), plan(2, 7), plan(3, 9), plan(4, 9), plan(5, 8)]
    assert write_readme_plan.most_robust(plans).person == 3


@pytest.mark.filterwarnings("ignore:.*rejected rows have no accepted row")
def test_the_plan_of_the_readme_keeps_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = partial(GenRe, **GenRe._test_params())
    monkeypatch.setitem(METHODS, "genre", quick)  # type: ignore[arg-type]
    found = write_readme_plan.make_plan()
    assert 0 < found["with_a_plan"] <= found["rejected"]
    assert str(found["person"]) in found["text"]
    assert "→" in found["text"]
    # the policy locks both and words the features
    assert "credit_history" not in found["text"]
    assert "personal_status_sex" not in found["text"]
    json.dumps(found)


@pytest.mark.parametrize("sentence", ["plan.purpose", "plan.retrained", "plan.imprecise"])
def test_the_plan_of_the_readme_has_the_wording_of_the_library(sentence: str) -> None:
    """If this fails, the wording has changed: run python -m scripts.write_readme_plan."""
    text = json.loads(write_results.PLAN.read_text(encoding="utf-8"))["text"]
    words = english()(sentence, **dict.fromkeys(("k", "n", "low", "high"), "|"))
    assert [part for part in words.split("|") if part not in text] == []
