"""The API answers as the library does, and says in one shape what is wrong with a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any

import httpx
import pandas as pd
import pytest

from genrecourse.advice.request import PlanRequest
from genrecourse.advice.service import Service
from genrecourse.apps.serve.answers import plan_data
from genrecourse.apps.serve.desk import Waiting, _answer
from genrecourse.apps.serve.settings import Settings, limits_of
from genrecourse.model.classifier import scores_by_row
from tests.apps.serve.serving import Served, run_apart, wait_for

Person = dict[str, Any]
SHAPE = {"status", "field", "wrong", "seen", "do", "message", "request_id"}


def error_of(answer: httpx.Response, status: int) -> dict[str, Any]:
    """Return the error of an answer, which has the one shape."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) == {"error"}
    error = answer.json()["error"]
    assert set(error) == SHAPE
    assert error["status"] == status
    assert error["request_id"] == answer.headers["x-request-id"]
    assert error["wrong"]
    assert error["do"]
    assert "Traceback" not in answer.text
    return dict(error)


# ---- what the library says --------------------------------------------------------------------


def test_plans_are_those_of_the_library(
    client: httpx.Client, service: Service, rejected: pd.DataFrame, people: list[Person]
) -> None:
    rules = {"default": {"lock": ["duration"]}, "people": {"2": {"max_changes": 1}}}
    for asked in ({"n": 2}, {"n": 2, "rules": rules, "safety": 0.2}, {"fewest_changes": True}):
        answer = client.post("/api/v1/plans", json={"people": people[:6], **asked})
        assert answer.status_code == 200
        with scores_by_row():
            plans = service.plans(rejected.head(6), PlanRequest.read(asked))
        assert answer.json()["plans"] == json.loads(json.dumps([plan_data(p) for p in plans]))
    ok = [plan for plan in answer.json()["plans"] if plan["status"] == "ok"]
    assert ok  # or nothing was compared


def test_decisions_are_the_models(
    client: httpx.Client, service: Service, rejected: pd.DataFrame, people: list[Person]
) -> None:
    accepted = client.get("/api/v1/schema").json()["example"]
    answer = client.post("/api/v1/decision", json={"people": [*people[:3], accepted]}).json()
    h = service.method.classifier_
    with scores_by_row():
        scores = h.score(rejected.head(3))
    assert [each["score"] for each in answer["decisions"][:3]] == scores.tolist()
    assert answer["cutoff"] == h.cutoff
    assert [each["favourable"] for each in answer["decisions"]] == [False, False, False, True]


def test_plans_are_checked_again(client: httpx.Client, people: list[Person]) -> None:
    plans = client.post("/api/v1/plans", json={"people": people[:6], "n": 2}).json()["plans"]
    answer = client.post("/api/v1/recheck", json={"plans": plans}).json()
    shown = sum(1 + len(plan["alternatives"]) for plan in plans if plan["status"] == "ok")
    assert len(answer["plans"]) == answer["holding"] == shown > 0
    ok = next(plan for plan in plans if plan["status"] == "ok")
    as_before = {**ok, "x_plus": people[plans.index(ok)], "alternatives": []}
    answer = client.post("/api/v1/recheck", json={"plans": [as_before]}).json()
    assert [each["holds"] for each in answer["plans"]] == [False]


def test_reasons_are_the_librarys(
    client: httpx.Client, service: Service, rejected: pd.DataFrame, people: list[Person]
) -> None:
    answer = client.post("/api/v1/reasons", json={"people": people[:2]})
    assert answer.status_code == 200
    with scores_by_row():
        expected = [service.reasons(rejected.head(2), row).to_dict() for row in range(2)]
    assert answer.json() == {"reasons": json.loads(json.dumps(expected))}
    error_of(client.post("/api/v1/reasons", json={"people": people[:1] * 11}), 422)


def test_the_schema_describes_a_person(client: httpx.Client, service: Service) -> None:
    found = client.get("/api/v1/schema").json()
    assert [each["name"] for each in found["features"]] == service.schema.names
    assert list(found["person"]["properties"]) == service.schema.columns
    assert set(found["example"]) == set(service.schema.columns)
    assert found["limits"] == {name: value for name, value, _ in limits_of(Settings())}
    assert client.post("/api/v1/decision", json={"people": [found["example"]]}).status_code == 200


def test_the_example_is_no_training_row(client: httpx.Client, service: Service) -> None:
    example = client.get("/api/v1/schema").json()["example"]
    rows = service.method.problem_.probe.to_dict("records")
    assert example not in rows


def test_a_request_has_the_fields_of_plan_request(client: httpx.Client) -> None:
    body = client.get("/openapi.json").json()["components"]["schemas"]["PlansBody"]
    assert set(body["properties"]) == {"people", *(each.name for each in fields(PlanRequest))}
    assert all(each["description"] for each in body["properties"].values())


def test_a_missing_value_is_null(client: httpx.Client, people: list[Person]) -> None:
    person = {**people[0], "age": None}
    asked = {"people": [person, people[0]]}
    lost, found = client.post("/api/v1/plans", json=asked).json()["plans"]
    assert lost["status"] == "unreadable"
    assert "age" in lost["reason"]
    assert found["status"] == "ok"
    error = error_of(client.post("/api/v1/plans", json=asked | {"errors": "raise"}), 422)
    assert "age" in error["message"]


# ---- requests together ----------------------------------------------------------------------


def test_answers_are_the_same_byte_for_byte_alone_and_together(
    service: Service, served: Served, people: list[Person]
) -> None:
    """Requests of several options, sizes and verbs arrive while the worker is kept busy."""
    asked: list[dict[str, Any]] = [{"people": [each], "n": 2} for each in people[:12]]
    asked += [{"people": people[k : k + 3]} for k in range(4)]
    asked += [{"people": [each], "rules": {"max_changes": 1}} for each in people[:4]]
    asked += [{"people": [{**people[0], "age": "old"}]}, {"people": [people[1] | {"age": 40.0}]}]
    sizes: list[int] = []
    counted = served.desk.batches

    def count(questions: int, n_people: int) -> None:
        sizes.append(questions)
        counted(questions, n_people)

    async def ask_all(together: bool) -> list[bytes]:
        async with httpx.AsyncClient(base_url=served.url, timeout=60) as client:
            posts = [client.post("/api/v1/plans", json=body) for body in asked]
            if together:
                answers = await asyncio.gather(*posts)
            else:
                answers = [await post for post in posts]
            return [_without_id(answer) for answer in answers]

    served.desk.batches = count
    try:
        alone = run_apart(ask_all(together=False))
        assert set(sizes) == {1}
        sizes.clear()
        with _kept_busy(served):
            together = run_apart(ask_all(together=True))
    finally:
        served.desk.batches = counted
    assert max(sizes) > 8
    assert together == alone


def _without_id(answer: httpx.Response) -> bytes:
    return answer.content.replace(answer.headers["x-request-id"].encode(), b"")


class _kept_busy:  # noqa: N801 - reads as a function
    """Keep the worker from answering until all requests of the block wait."""

    def __init__(self, served: Served):
        self.desk = served.desk

    def __enter__(self) -> None:
        import threading

        lock = self.desk._changed
        self.thread = threading.Thread(target=self._hold, args=(lock,))
        self.begun = threading.Event()
        self.held = threading.Event()
        self.thread.start()
        self.held.wait(60)

    def _hold(self, lock: Any) -> None:
        """Put a question in front that ends when no further one has come for a while."""

        def until_quiet(questions: Any) -> list[None]:
            self.held.set()
            before = -1
            while len(self.desk._queue) != before or before == 0:
                before = len(self.desk._queue)
                self.begun.wait(0.3)
            return [None]

        with lock:
            self.desk._queue.append(Waiting(None, None, until_quiet, 0))
            lock.notify()

    def __exit__(self, *about: object) -> None:
        self.thread.join()


def test_a_full_queue_is_told_at_once_and_a_slow_answer_is_no_plan(
    service: Service, people: list[Person]
) -> None:
    settings = Settings(port=0, waiting=2, answer_seconds=0.6)
    with Served(service, settings) as served:

        async def ask() -> list[httpx.Response]:
            async with httpx.AsyncClient(base_url=served.url, timeout=60) as client:
                posts = [
                    client.post("/api/v1/plans", json={"people": [people[0]], "n": 1 + k})
                    for k in range(6)
                ]
                return list(await asyncio.gather(*posts))

        with _kept_waiting(served):
            answers = run_apart(ask())
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses == [503, 503, 503, 503, 504, 504]
        for answer in answers:
            error = error_of(answer, answer.status_code)
            assert ("no answer in time" in error["message"]) == (answer.status_code == 504)
            assert "no-plan" not in answer.text
            assert ("retry-after" in answer.headers) == (answer.status_code == 503)
        with httpx.Client(base_url=served.url, timeout=60) as client:  # it goes on
            wait_for(lambda: served.desk.n_waiting == 0)
            assert client.get("/v2/health/ready").status_code == 200


def test_a_full_queue_is_told_before_the_people_are_read(service: Service) -> None:
    with Served(service, Settings(port=0, waiting=2)) as served, _kept_waiting(served):
        others = [Waiting("others", None, lambda asked: asked, 1) for _ in range(2)]
        served.desk._queue.extend(others)
        with httpx.Client(base_url=served.url, timeout=60) as client:
            answer = client.post("/api/v1/plans", json={"people": [{"no such": "person"}]})
            error_of(answer, 503)
            for each in others:
                each.done.cancel()
            answer = client.post("/api/v1/plans", json={"people": [{"no such": "person"}]})
            error_of(answer, 422)


class _kept_waiting:  # noqa: N801
    """The worker is busy with something else until the block ends."""

    def __init__(self, served: Served):
        self.desk = served.desk

    def __enter__(self) -> None:
        import threading

        self.over, held = threading.Event(), threading.Event()

        def wait(questions: Any) -> list[None]:
            held.set()
            self.over.wait(60)
            return [None]

        with self.desk._changed:
            self.desk._queue.append(Waiting(None, None, wait, 0))
            self.desk._changed.notify()
        held.wait(60)

    def __exit__(self, *about: object) -> None:
        self.over.set()


def test_a_client_that_left_is_not_computed_for(
    served: Served, people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[int] = []
    monkeypatch.setattr(served.desk, "batches", lambda questions, n: computed.append(n))

    async def ask_and_leave() -> None:
        async with httpx.AsyncClient(base_url=served.url) as client:
            body = {"people": people[:7]}
            with pytest.raises(httpx.ReadTimeout):
                await client.post("/api/v1/plans", json=body, timeout=0.5)

    with _kept_waiting(served):
        run_apart(ask_and_leave())
        wait_for(lambda: all(each.is_given_up for each in served.desk._queue))
    wait_for(lambda: served.desk.n_waiting == 0)
    with httpx.Client(base_url=served.url, timeout=60) as client:
        client.post("/api/v1/decision", json={"people": people[:2]})
    assert computed == [0, 2]  # the worker's other work and the decision; no 7


def test_those_who_left_take_no_place_in_the_queue(service: Service, people: list[Person]) -> None:
    body = {"people": people[:1]}

    async def ask_and_leave(url: str) -> None:
        async with httpx.AsyncClient(base_url=url) as client:
            asked = [client.post("/api/v1/plans", json=body, timeout=0.5) for _ in range(2)]
            assert {
                type(each) for each in await asyncio.gather(*asked, return_exceptions=True)
            } == {httpx.ReadTimeout}

    with Served(service, Settings(port=0, waiting=2)) as served, ThreadPoolExecutor(1) as pool:
        with _kept_waiting(served):
            run_apart(ask_and_leave(served.url))
            wait_for(lambda: all(each.is_given_up for each in served.desk._queue))
            assert served.desk.n_waiting == 2
            late = pool.submit(httpx.post, f"{served.url}/api/v1/plans", json=body, timeout=60)
            wait_for(lambda: late.done() or served.desk.n_waiting == 1)
        assert late.result().status_code == 200


def test_a_question_that_breaks_the_method_breaks_no_other() -> None:

    def answer(questions: Sequence[Any]) -> list[Any]:
        return [1 / each for each in questions]

    batch = [Waiting("same", each, answer, 1) for each in (1, 0, 2)]
    _answer(batch)
    assert [each.done.exception() is None for each in batch] == [True, False, True]
    assert (batch[0].done.result(), batch[2].done.result()) == (1, 0.5)


# ---- mistakes -------------------------------------------------------------------------------

BIG = "9" * 5_000
BODIES: dict[str, tuple[bytes | str, str | None, str]] = {
    "nothing": ("", None, "not JSON"),
    "no JSON": ("{", None, "not JSON"),
    "not UTF-8": (b'{"people": "\xff"}', None, "not UTF-8"),
    "UTF-16": ('{"people": []}'.encode("utf-16"), None, "not UTF-8"),
    "NaN": ('{"people": [{"age": NaN}]}', None, "NaN"),
    "infinite": ('{"people": [{"age": -Infinity}]}', None, "-Infinity"),
    "NUL": ('{"people": [{"a\\u0000": 1}]}', None, "NUL"),
    "half a character": ('{"people": [{"a": "\\ud800"}]}', None, "surrogate"),
    "deep": ("[" * 100_000, None, "nested"),
    "deep objects": ('{"people":' * 30 + "1" + "}" * 30, None, "nested"),
    "thousands of digits": (f'{{"n": {BIG}}}', None, "digits"),
    "a list": ("[]", None, "the body"),
    "a number": ("3", None, "the body"),
    "no people": ("{}", "people", "missing"),
    "nobody": ('{"people": []}', "people", "people"),
    "people are text": ('{"people": "all"}', "people", "all"),
    "a person is text": ('{"people": ["me"]}', "people[0]", "me"),
    "an unknown field": ('{"people": [{}], "nn": 1}', "nn", "did you mean 'n'"),
}


@pytest.mark.parametrize("kind", BODIES)
def test_bodies_that_cannot_be_read(client: httpx.Client, kind: str) -> None:
    body, field, said = BODIES[kind]
    headers = {"Content-Type": "application/json"}
    error = error_of(client.post("/api/v1/plans", content=body, headers=headers), 422)
    assert error["field"] == field
    assert said in error["message"]


def test_a_body_of_a_million_mistakes_costs_no_more_than_one() -> None:
    """The time of reading is not measured: what would make it long is."""
    from pydantic import BaseModel, ValidationError

    from genrecourse.apps.serve.messages import InferBody, PeopleBody, RecheckBody
    from genrecourse.apps.serve.strict_json import MARKS

    many = [""] * 10_000
    tensor = {"name": "age", "shape": many, "datatype": "INT64", "data": [1]}
    fields = dict.fromkeys(map(str, range(10_000)), 1)
    wrong: list[tuple[type[BaseModel], dict[str, Any], int]] = [
        (PeopleBody, {"people": many}, 1),
        (RecheckBody, {"plans": many}, 1),
        (InferBody, {"inputs": many}, 1),
        (InferBody, {"inputs": [tensor]}, 1),
        (PeopleBody, {"people": [{}], **fields}, 101),
    ]
    for kind, body, most in wrong:
        with pytest.raises(ValidationError) as found:
            kind.model_validate(body)
        assert 0 < found.value.error_count() <= most
    endless = '"' + '\\"' * 10_000  # a text that does not end is read once
    assert [each.span() for each in MARKS.finditer(endless)] == [(0, len(endless))]


def test_rules_of_too_many_values(client: httpx.Client, people: list[Person]) -> None:
    many = ["age"] * 50_001
    for asked in ({"rules": {"lock": many}}, {"options": {"n_draws": many}}):
        error = error_of(client.post("/api/v1/plans", json={"people": people[:1], **asked}), 422)
        assert (error["field"], "50,000" in error["wrong"]) == (next(iter(asked)), True)


CELLS: dict[str, tuple[Any, Any]] = {
    "text": ("old", "old"),
    "true": (True, True),
    "a list": ([1], "[1]"),
    "an object": ({"a": 1}, "{'a': 1}"),
    "huge": (10**400, "a whole number of 401 digits"),
    "too large": (1e301, 1e301),
}


@pytest.mark.parametrize("kind", CELLS)
def test_values_that_are_no_number(client: httpx.Client, people: list[Person], kind: str) -> None:
    value, seen = CELLS[kind]
    bad = [people[0], {**people[1], "age": value}]
    for path in ("/api/v1/plans", "/api/v1/decision"):
        error = error_of(client.post(path, json={"people": bad}), 422)
        assert (error["field"], error["seen"]) == ("people[1].age", seen)
    infinite = json.dumps({"people": bad}).replace(json.dumps(value), "1e999")
    headers = {"Content-Type": "application/json"}
    error = error_of(client.post("/api/v1/plans", content=infinite, headers=headers), 422)
    assert error["field"] == "people[1].age"


def test_columns_that_do_not_fit(client: httpx.Client, people: list[Person]) -> None:
    more = {**people[0], "agee": 1}
    less = {name: value for name, value in people[0].items() if name != "age"}
    error = error_of(client.post("/api/v1/decision", json={"people": [more]}), 422)
    assert "did you mean 'age'" in error["wrong"]
    error = error_of(client.post("/api/v1/decision", json={"people": [less]}), 422)
    assert error["field"] == "people[0].age"


MISTAKES: dict[str, tuple[dict[str, Any], str, Any]] = {
    "n": ({"n": 0}, "n", "from 1"),
    "n is text": ({"n": "2"}, "n", "'2'"),
    "n is too large": ({"n": 11}, "n", "at most 10"),
    "n_draws": ({"options": {"n_draws": 10**9}}, "options.n_draws", "at most 1,000"),
    "promise": ({"promise": 7}, "promise", "7"),
    "delta alone": ({"delta": 0.2}, None, "delta"),
    "safety": ({"safety": 3}, None, "3"),
    "language": ({"language": "/etc/passwd"}, "language", "/etc/passwd"),
    "rules": ({"rules": {"locks": ["age"]}}, "rules", "did you mean 'lock'"),
    "rules of nobody": ({"rules": {"people": {"9": {}}}}, None, "9"),
    "a feature": ({"rules": {"lock": ["agee"]}}, "rules", "agee"),
    "a relation": ({"rules": {"relations": ["age <"]}}, None, "age <"),
    "an option": ({"options": {"lamb": 1}}, None, "lamb"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_requests_that_cannot_be_met(client: httpx.Client, people: list[Person], kind: str) -> None:
    asked, field, said = MISTAKES[kind]
    error = error_of(client.post("/api/v1/plans", json={"people": people[:1], **asked}), 422)
    assert said in error["message"]
    if field is not None:
        assert error["field"] == field


def test_too_many_people(client: httpx.Client, people: list[Person]) -> None:
    error = error_of(client.post("/api/v1/decision", json={"people": people[:1] * 1001}), 422)
    assert (error["field"], error["seen"]) == ("people", 1001)
    error = error_of(client.post("/api/v1/plans", json={"people": people[:1] * 400, "n": 6}), 422)
    assert error["field"] == "n"


RECHECKS: dict[str, Any] = {
    "no plans": [{}],
    "no row": [{"x_plus": 3}],
    "odd alternatives": [{"alternatives": 3}],
    "odd changes": [{"status": "ok", "changes": 3, "alternatives": []}],
    "a row of another table": [{"x_plus": {"income": 3}, "alternatives": []}],
}


@pytest.mark.parametrize("kind", RECHECKS)
def test_plans_that_are_none(client: httpx.Client, kind: str) -> None:
    error_of(client.post("/api/v1/recheck", json={"plans": RECHECKS[kind]}), 422)


def test_addresses_and_verbs_that_do_not_exist(client: httpx.Client) -> None:
    for path in ("/nothing", "/api/v1/nothing", "/v1/models/other", "/static/../settings.py"):
        error_of(client.get(path), 404)
    answer = client.get("/api/v1/plans")
    error_of(answer, 405)
    assert answer.headers["allow"] == "POST"
    for verb in ("DELETE", "PUT"):
        assert error_of(client.request(verb, "/api/v1/plans"), 405)["do"] != ""


# ---- what platforms speak -----------------------------------------------------------------------


def test_kserve(client: httpx.Client, people: list[Person]) -> None:
    assert client.get("/v1/models").json() == {"models": ["german"]}
    assert client.get("/v1/models/german").json() == {"name": "german", "ready": True}
    plans = client.post("/api/v1/plans", json={"people": people[:2]}).json()["plans"]
    decided = client.post("/api/v1/decision", json={"people": people[:2]}).json()["decisions"]
    for instances in (people[:2], [list(person.values()) for person in people[:2]]):
        explained = client.post("/v1/models/german:explain", json={"instances": instances})
        assert explained.json() == {"explanations": plans}
        predicted = client.post("/v1/models/german:predict", json={"instances": instances})
        assert predicted.json()["predictions"] == [each["score"] for each in decided]
    for instances in ([[1, 2]], ["me"], [people[0], 3]):
        error_of(client.post("/v1/models/german:explain", json={"instances": instances}), 422)
    error_of(client.post("/v1/models/other:explain", json={"instances": people[:1]}), 404)


def test_open_inference(client: httpx.Client, people: list[Person]) -> None:
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    inputs = client.get("/v2/models/german").json()["inputs"]
    assert [each["name"] for each in inputs] == list(people[0])
    tensors = [
        {**each, "shape": [2], "data": [person[each["name"]] for person in people[:2]]}
        for each in inputs
    ]
    answer = client.post("/v2/models/german/infer", json={"inputs": tensors, "id": "a"}).json()
    decided = client.post("/api/v1/decision", json={"people": people[:2]}).json()["decisions"]
    assert answer["id"] == "a"
    assert [each["data"] for each in answer["outputs"]] == [
        [each["score"] for each in decided],
        [each["favourable"] for each in decided],
    ]
    for bad in ({"shape": [3]}, {"datatype": "TEXT"}, {"data": []}, {"name": "duration"}):
        wrong = [{**tensors[0], **bad}, *tensors[1:]]
        error_of(client.post("/v2/models/german/infer", json={"inputs": wrong}), 422)


def test_metrics(client: httpx.Client, people: list[Person]) -> None:
    client.post("/api/v1/plans", json={"people": people[:2]})
    text = client.get("/metrics").text
    assert 'route="/api/v1/plans",status="200"' in text
    assert 'genrecourse_plans_total{status="ok"}' in text
    assert "genrecourse_batch_requests_count" in text
    for value in people[0].values():  # no value of a person
        assert not isinstance(value, str) or value not in text
