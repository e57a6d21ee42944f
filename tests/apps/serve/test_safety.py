"""Who may ask, what a request may look like, and what leaves the service."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from genrecourse.advice.service import Service
from genrecourse.apps.cli import app
from genrecourse.apps.serve.keys import Keys, new_key
from genrecourse.apps.serve.settings import Settings
from genrecourse.errors import UserError
from tests.apps.serve.serving import PATIENCE, Served, raw
from tests.apps.serve.test_api import error_of

Person = dict[str, Any]
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def guarded(
    service: Service, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, str]]:
    """A service with keys and small limits, and one of its keys."""
    file = tmp_path_factory.mktemp("keys") / "keys.txt"
    key = new_key("office", file)
    new_key("other-office", file)
    settings = Settings(
        port=0,
        rate=0.001,
        burst=60,
        body_bytes=20_000,
        body_seconds=0.5,
        head_seconds=0.5,
        idle_seconds=1,
    )
    with Served(service, settings, keys=Keys.read(file)) as served:
        yield served, key


# ---- keys ---------------------------------------------------------------------------------------


def test_only_a_key_opens_the_api(guarded: tuple[Served, str]) -> None:
    served, key = guarded
    basic = base64.b64encode(f"office:{key}".encode()).decode()
    with httpx.Client(base_url=served.url) as client:
        for headers in (
            {"X-API-Key": key},
            {"Authorization": f"Bearer {key}"},
            {"Authorization": f"Basic {basic}"},
        ):
            assert client.get("/api/v1/schema", headers=headers).status_code == 200
        for wrong in (
            {},
            {"X-API-Key": key[:-1]},
            {"X-API-Key": ""},
            {"X-API-Key": "ä"},
            {"Authorization": "Basic !"},
            {"Authorization": f"Digest {key}"},
        ):
            for path in ("/api/v1/schema", "/docs", "/metrics", "/openapi.json", "/nothing"):
                answer = client.get(
                    path, headers={k: v.encode("latin-1") for k, v in wrong.items()}
                )
                error_of(answer, 401)
                assert "www-authenticate" in answer.headers
        for path in ("/healthz", "/v2/health/live", "/v2/health/ready"):
            assert client.get(path).status_code == 200


def test_a_key_has_a_rate_of_its_own(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    first, second = new_key("first", file), new_key("second", file)
    settings = Settings(port=0, rate=0.001, burst=3)
    with (
        Served(service, settings, keys=Keys.read(file)) as served,
        httpx.Client(base_url=served.url) as client,
    ):
        asked = [client.get("/v2", headers={"X-API-Key": first}) for _ in range(5)]
        assert [answer.status_code for answer in asked] == [200, 200, 200, 429, 429]
        error_of(asked[-1], 429)
        assert int(asked[-1].headers["retry-after"]) > 0
        assert client.get("/v2", headers={"X-API-Key": second}).status_code == 200


def test_a_file_of_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    key = new_key("office", file)
    assert key not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    assert Keys.read(file).holder_of(key) == "office"
    with pytest.raises(UserError, match="has a key named 'office' already"):
        new_key("office", file)
    with pytest.raises(UserError, match="name of a key"):
        new_key("an office", file)
    file.write_text(file.read_text().rstrip())  # an editor that ends no last line
    other_key = new_key("other", file)
    assert [Keys.read(file).holder_of(each) for each in (key, other_key)] == ["office", "other"]
    for text, said in (
        ("", "holds no keys"),
        ("# nobody\n", "holds no keys"),
        ("office secret\n", "line 1 is no name and hash"),
        (file.read_text() * 2, "a second time"),
    ):
        other = tmp_path / "other.txt"
        other.write_text(text)
        with pytest.raises(UserError, match=said):
            Keys.read(other)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_no_start_without_keys_elsewhere_than_on_loopback(model_folder: Path, host: str) -> None:
    done = CliRunner().invoke(app, ["serve", str(model_folder), "--host", host])
    assert done.exit_code == 2
    assert "--api-keys" in done.stderr
    assert "--insecure" in done.stderr


def test_a_key_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    done = CliRunner().invoke(app, ["serve-key", "office", "--file", str(file)])
    assert done.exit_code == 0
    assert Keys.read(file).holder_of(done.stdout.strip()) == "office"


# ---- other sites --------------------------------------------------------------------------------


def test_another_name_that_leads_here_is_refused(client: httpx.Client, served: Served) -> None:
    for host in ("evil.example", f"evil.example:{served.port}", "", "127.0.0.1.evil.example"):
        error_of(client.get("/api/v1/schema", headers={"Host": host}), 400)
    for host in ("localhost", f"127.0.0.1:{served.port}", "[::1]:80", "LOCALHOST"):
        assert client.get("/api/v1/schema", headers={"Host": host}).status_code == 200


def test_the_page_of_another_site_cannot_ask(client: httpx.Client, people: list[Person]) -> None:
    body = json.dumps({"people": people[:1]})
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        error_of(client.post("/api/v1/decision", content=body, headers=JSON | headers), 403)
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin-1",
        "",
    ):
        answer = client.post("/api/v1/decision", content=body, headers={"Content-Type": kind})
        error_of(answer, 415)
    own = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/v1/decision", content=body, headers=JSON | own).status_code == 200
    preflight = client.options("/api/v1/decision", headers={"Origin": "https://evil.example"})
    assert not [name for name in preflight.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/docs", "/api/v1/schema", "/nothing", "/static/docs.css"])
def test_headers_of_every_answer(client: httpx.Client, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"  # the page posts its own form
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def test_the_page_about_the_api_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/docs").text
    assert re.findall(r'(?:src|href)="((?!#)[^"]*)"', page) == ["/static/docs.css", "/openapi.json"]
    assert "<script" not in page
    assert "style=" not in page
    for path, verbs in client.get("/openapi.json").json()["paths"].items():
        assert path in page
        for about in verbs.values():
            body = about.get("requestBody", {}).get("content", {}).get("application/json")
            for example in (body or {}).get("examples", {}).values():
                sent = client.post(path.replace("{name}", "german"), json=example["value"])
                assert sent.status_code == 200, sent.text
            assert body is None or body["examples"]


def test_request_ids(client: httpx.Client) -> None:
    good = client.get("/v2", headers={"X-Request-Id": "loan-17.a_b"})
    assert good.headers["x-request-id"] == "loan-17.a_b"
    for bad in ("a b", "x" * 65, "<script>", '"}{"'):
        given = client.get("/v2", headers={"X-Request-Id": bad}).headers["x-request-id"]
        assert re.fullmatch("[0-9a-f]{32}", given)


def test_the_log_has_no_value_of_a_person(
    client: httpx.Client,
    people: list[Person],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    served: Served,
) -> None:
    marked = {**people[0], "purpose": "a secret purpose", "age": 987654.0}

    def fail(X: Any) -> Any:
        raise RuntimeError("a secret purpose")

    with caplog.at_level(logging.DEBUG):
        client.post("/api/v1/plans", json={"people": [marked]})
        client.post("/api/v1/plans", json={"people": [people[0]], "a secret purpose": 1})
        client.get("/a secret purpose?age=987654")
        client.get("/v1/models/a secret purpose")
        monkeypatch.setattr(type(served.desk.service), "plans", lambda *given: fail(given))
        error = error_of(client.post("/api/v1/plans", json={"people": people[:1]}), 500)
    assert "secret" not in json.dumps(error)
    lines = [json.loads(each.message) for each in caplog.records if each.name.endswith("serve")]
    assert {"request_id", "route", "status", "ms", "caller", "method"} <= set(lines[0])
    assert any("RuntimeError at" in each.get("mistake", "") for each in lines)
    ours = [each for each in caplog.records if not each.name.startswith("http")]  # not the client's
    text = "".join(f"{each.getMessage()} {each.exc_text}" for each in ours)
    assert "secret" not in text
    assert "987654" not in text


def test_the_log_has_no_address_of_a_person(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    open_to_all = Settings(port=0, host="0.0.0.0", rate=0.001, burst=1)  # as with --insecure
    with Served(service, open_to_all) as served, caplog.at_level(logging.INFO):
        statuses = [httpx.get(f"{served.url}/v2").status_code for _ in range(2)]
    assert statuses == [200, 429]  # the address has a rate
    lines = [each.getMessage() for each in caplog.records if each.name == "genrecourse.serve"]
    assert len(lines) == 2
    assert "127.0.0.1" not in "".join(lines)


# ---- sizes and times ----------------------------------------------------------------------------


def test_no_answer_in_time_is_said_in_the_one_shape(
    service: Service, people: list[Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something after the method takes for ever: here, the record's disk."""
    monkeypatch.setattr("genrecourse.apps.serve.gate.EXTRA_SECONDS", 0.1)

    class Stuck:
        async def add(self, *about: Any) -> None:
            await asyncio.sleep(PATIENCE)

        def close(self) -> None:
            pass

    settings = Settings(port=0, body_seconds=0.1, answer_seconds=1)
    with Served(service, settings, recording=Stuck()) as served:
        answer = httpx.post(f"{served.url}/api/v1/plans", json={"people": people[:1]}, timeout=60)
    error = error_of(answer, 504)
    assert "no answer in time" in error["message"]


def head(key: str, *lines: str, path: str = "/api/v1/decision") -> bytes:
    start = [f"POST {path} HTTP/1.1", "Host: localhost", f"X-API-Key: {key}"]
    return "\r\n".join([*start, "Content-Type: application/json", *lines, "", ""]).encode()


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_ten_megabytes_are_not_read(client: httpx.Client) -> None:
    body = b'{"people": "' + b"x" * 10_000_000 + b'"}'
    error = error_of(client.post("/api/v1/plans", content=body, headers=JSON), 413)
    assert error["seen"] == len(body)

    def chunks() -> Iterator[bytes]:
        for _ in range(1_000):
            yield b" " * 10_000

    error = error_of(client.post("/api/v1/plans", content=chunks(), headers=JSON), 413)
    assert "more than 4,000,000 bytes" in error["wrong"]


def test_a_body_is_refused_by_its_stated_size_before_it_is_sent(
    guarded: tuple[Served, str],
) -> None:
    served, key = guarded
    answer = raw(served.port, head(key, "Content-Length: 10000000000"))
    assert status_of(answer) == 413
    assert b"connection: close" in answer.lower()


def test_a_request_that_does_not_end(guarded: tuple[Served, str]) -> None:
    served, key = guarded
    half_body = raw(served.port, head(key, "Content-Length: 100") + b'{"people":')
    assert status_of(half_body) == 408
    chunked = raw(served.port, head(key, "Transfer-Encoding: chunked") + b"5\r\n{    \r\n")
    assert status_of(chunked) == 408
    assert raw(served.port, b"GET /docs HTTP/1.1\r\nHost: local") == b""
    assert raw(served.port, b"") == b""
    health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    after_one = raw(served.port, health + b"GET /docs HTTP/1.1\r\nHost: lo")
    assert after_one.count(b"HTTP/1.1 200") == 1


def test_bytes_that_are_no_http(guarded: tuple[Served, str]) -> None:
    served, key = guarded
    for data in (b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"\x00" * 100):
        answer = raw(served.port, data)
        assert answer == b"" or status_of(answer) == 400
    wrong = raw(served.port, head(key, "Content-Length: -1"))
    assert status_of(wrong) == 400
    assert status_of(raw(served.port, head(key, f"X-Long: {'x' * 100_000}")[:-4])) == 400
    assert httpx.get(f"{served.url}/healthz").status_code == 200


def test_too_many_connections(service: Service) -> None:
    import socket

    with Served(service, Settings(port=0, connections=3)) as served:
        open_ones = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(3)]
        health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        for each in open_ones[:1]:  # the server knows all three once it has answered one
            each.sendall(health.replace(b"Connection: close\r\n", b""))
            assert each.recv(100).startswith(b"HTTP/1.1 200")
        assert raw(served.port, health) == b""  # one more than may be open
        for each in open_ones:
            each.close()
        answers = [raw(served.port, health) for _ in range(2)]
        assert status_of(answers[-1]) == 200
