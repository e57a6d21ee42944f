"""The command in a process of its own: it starts, answers, and stops when it is told to."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import httpx

from genrecourse.advice.record.check import CHAIN, check
from genrecourse.advice.record.replay import entry, replay
from genrecourse.advice.service import Service
from tests.apps.serve.serving import PATIENCE, command, wait_for

Person = dict[str, Any]


def test_it_answers_what_it_accepted_and_ends_with_0(
    model_folder: Path, people: list[Person], tmp_path: Path
) -> None:
    """Forty requests wait when SIGTERM comes: each is answered, and no new one is accepted."""
    answers: list[httpx.Response] = []
    with command(model_folder, "--name", "german", cwd=tmp_path) as (process, url):
        wait_for(lambda: httpx.get(f"{url}/v2/health/ready").status_code == 200)
        assert httpx.get(f"{url}/v1/models").json() == {"models": ["german"]}

        def ask(k: int) -> None:
            body = {"people": people[: 1 + k % 3], "n": 1 + k % 7}
            answers.append(httpx.post(f"{url}/api/v1/plans", json=body, timeout=PATIENCE))

        threads = [threading.Thread(target=ask, args=(k,)) for k in range(40)]
        for each in threads:
            each.start()
        wait_for(lambda: answers and _waiting(url) > 3)
        process.send_signal(signal.SIGTERM)
        for each in threads:
            each.join(PATIENCE)
        assert process.wait(PATIENCE) == 0
        assert [answer.status_code for answer in answers] == [200] * 40
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert sum(line.get("route") == "/api/v1/plans" for line in lines) == 40


def _waiting(url: str) -> float:
    text = httpx.get(f"{url}/metrics", timeout=PATIENCE).text
    line = next(x for x in text.splitlines() if x.startswith("genrecourse_waiting_requests "))
    return float(line.split()[1])


def test_every_answer_is_in_the_record_and_can_be_computed_again(
    model_folder: Path, service: Service, people: list[Person], tmp_path: Path
) -> None:
    words = (model_folder, "--record", tmp_path / "record")
    with command(*words, cwd=tmp_path) as (process, url):
        body = {"people": people[:2], "n": 2, "rules": {"lock": ["duration"]}}
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            given = [
                client.post(f"/api/v1/{verb}", json=asked)
                for verb, asked in (("plans", body), ("decision", {"people": people[:2]}))
            ]
            given.append(client.post("/api/v1/reasons", json={"people": people[:1]}))
            given.append(client.post("/api/v1/recheck", json={"plans": given[0].json()["plans"]}))
            assert [each.status_code for each in given] == [200] * 4
            ids = [each.headers["x-request-id"] for each in given]
            rechecked = given[-1].json()["plans"]
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    chain = (tmp_path / "record" / CHAIN).read_text()
    assert all(each in chain for each in ids)
    check(tmp_path / "record")
    line, held = entry(tmp_path / "record", 3)
    assert line["verb"] == "recheck"
    assert [each["values"]["output"] for each in held] == rechecked != []
    for number in (0, 1):
        again = replay(tmp_path / "record", number, service, model_folder)
        assert again.is_same, str(again)
        assert again.made_by == []


def test_it_runs_where_nothing_can_be_written(model_folder: Path, tmp_path: Path) -> None:
    """As in the container: the folder is read-only and there is no home."""
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o500)
    before = {name: os.environ.pop(name, None) for name in ("HOME", "MPLCONFIGDIR")}
    os.environ["HOME"] = str(closed)
    try:
        with command(model_folder, cwd=closed) as (process, url):
            assert httpx.get(f"{url}/healthz").status_code == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
    finally:
        os.environ.pop("HOME")
        os.environ.update({name: value for name, value in before.items() if value is not None})
