"""The page as a browser asks for it, without a browser: what is refused, kept and escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import httpx
import numpy as np
import pytest

from genrecourse.advice.service import Service
from genrecourse.apps.serve.example import example_person
from genrecourse.apps.serve.form import PersonForm

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
Fields = dict[str, list[str]]


@pytest.fixture(scope="module")
def sent(service: Service) -> Fields:
    """The form, filled in with somebody whom the model turns down."""
    row = example_person(service.method.problem_)
    return dict(PersonForm(service).filled_with(row).sent)  # type: ignore[arg-type]


def post(client: httpx.Client, path: str, fields: Fields, **headers: str) -> httpx.Response:
    return client.post(path, content=urlencode(fields, doseq=True), headers=FORM | headers)


class Inline(HTMLParser):
    """Collects what a strict content security policy forbids, and addresses outside."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        wrong = [name for name in named if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and not named.get("src")) or wrong:
            self.found.append(f"{tag} {wrong}")
        for name in ("src", "href", "action", "formaction"):
            if re.match(r"[a-z]+:|//", named.get(name) or ""):
                self.found.append(f"{tag} {named[name]}")


def test_every_page_keeps_the_policy_and_stays_in_no_cache(
    client: httpx.Client, sent: Fields
) -> None:
    answers = [
        client.get("/"),
        client.get("/?example=0"),
        post(client, "/", {}),
        post(client, "/", sent),
        post(client, "/answer", sent),
        post(client, "/reasons", sent),
        post(client, "/plan", {**sent, "print": ["1"]}),
    ]
    for answer in answers:
        inline = Inline()
        inline.feed(answer.text)
        assert inline.found == []
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-type"].startswith("text/html")
        assert "'unsafe" not in answer.headers["content-security-policy"]
    assert [each.status_code for each in answers] == [200, 200, 422, 200, 200, 200, 200]


@pytest.mark.parametrize(
    ("path", "content", "headers", "status"),
    [
        ("/", b"{}", {"Content-Type": "application/json"}, 415),
        ("/answer", b"f0=1", {"Content-Type": "text/plain"}, 415),
        ("/answer", b"f0=%ff", FORM, 400),
        ("/answer", b"\xff", FORM, 400),
        ("/answer", b"&".join([b"a=1"] * 5000), FORM, 400),
        ("/answer", b"f0=1", FORM | {"Origin": "https://elsewhere.example"}, 403),
        ("/answer", b"f0=1", FORM | {"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_what_is_no_form_of_this_page_is_refused(
    client: httpx.Client, path: str, content: bytes, headers: dict[str, str], status: int
) -> None:
    answer = client.post(path, content=content, headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"]["status"] == status


def test_a_plan_that_is_not_there(client: httpx.Client, sent: Fields) -> None:
    for number in ("9", "0", "x", "<b>"):
        answer = post(client, "/plan", {**sent, "print": [number]})
        assert answer.status_code == 404
        assert "go back to the page" in answer.json()["error"]["do"]


def test_an_example_that_is_no_number_is_no_example(client: httpx.Client) -> None:
    for number in ("-1", "1e9", "9999", "x", "%00", "²"):
        page = client.get("/", params={"example": number})
        assert page.status_code == 200
        assert "no real person" not in page.text
    assert "no real person" in client.get("/?example=7").text


def test_the_example_is_no_row_that_the_model_keeps(service: Service) -> None:
    problem = service.method.problem_
    kept = problem.read(problem.probe).F
    for number in range(20):
        example = problem.read(example_person(problem, number)).F
        assert not np.isclose(kept, example, atol=1e-9).all(axis=1).any()


def test_a_limit_is_taken_back_by_its_button(client: httpx.Client, sent: Fields) -> None:
    limits = {"most": ["1"], "lock": ["1"], "low1": ["12"]}
    kept = post(client, "/", {**sent, **limits, "release": ["most"]}).text
    assert re.search(r'<option value="1" selected>at most 1', kept) is None
    assert re.search(r'name="lock" value="1"[^>]* checked', kept)
    kept = post(client, "/", {**sent, **limits, "release": ["range1"]}).text
    assert re.search(r'name="low1"[^>]*value=""', kept)
    assert re.search(r'<option value="1" selected>at most 1', kept)


def test_what_the_library_refuses_is_said_on_the_page(client: httpx.Client, sent: Fields) -> None:
    """A person reads a sentence on the page, whatever is wrong, and never JSON or a traceback."""
    answer = post(client, "/", {**sent, "f1": ["1e99"]})
    assert answer.headers["content-type"].startswith("text/html")
    assert "Traceback" not in answer.text


def test_what_a_person_types_comes_back_as_text(client: httpx.Client, sent: Fields) -> None:
    evil = "\"><script>alert(1)</script>'"
    answer = post(client, "/", {**sent, "f1": [evil], "low1": [evil], "f0": [evil]})
    assert answer.status_code == 422
    assert "<script>alert" not in answer.text
    assert "&lt;script&gt;alert" in answer.text


def test_the_saved_page_needs_nothing_else(client: httpx.Client, sent: Fields) -> None:
    answer = post(client, "/plan", {**sent, "save": ["1"]})
    assert answer.headers["content-disposition"] == 'attachment; filename="plan-1.html"'
    assert "<link" not in answer.text
    assert "<script" not in answer.text
    css = Path(__file__).parents[3] / "src/genrecourse/apps/serve/static/page.css"
    assert css.read_text("utf-8") in answer.text


def test_the_style_sheet_and_scripts_ask_for_nothing_outside() -> None:
    static = Path(__file__).parents[3] / "src/genrecourse/apps/serve/static"
    for file in (static / "page.css", static / "page.js", static / "print.js"):
        text = file.read_text("utf-8")
        assert not re.search(r"https?:|@import|url\(", text)
        assert not re.search(r"\beval\b|localStorage|sessionStorage|document\.cookie", text)
