"""The container file says what the service needs: no Docker is here to build it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from genrecourse.apps.cli import app

ROOT = Path(__file__).parents[3]


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with continued lines joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    joined = re.sub(r"\\\n\s*", " ", text)
    found = []
    for line in filter(None, map(str.strip, joined.splitlines())):
        name, _, rest = line.partition(" ")
        found.append((name, rest.strip()))
    return found


def of(name: str) -> list[str]:
    return [rest for each, rest in instructions() if each == name]


def test_every_instruction_is_known_and_in_order() -> None:
    known = {"FROM", "ENV", "WORKDIR", "COPY", "ARG", "RUN", "USER", "EXPOSE", "STOPSIGNAL"}
    known |= {"HEALTHCHECK", "ENTRYPOINT", "CMD"}
    names = [name for name, _ in instructions()]
    assert set(names) <= known
    assert names[0] == "FROM"
    assert of("FROM") == ["python:3.11-slim"]
    assert names.count("ENTRYPOINT") == names.count("CMD") == names.count("HEALTHCHECK") == 1
    assert names.index("USER") > max(i for i, name in enumerate(names) if name == "RUN")


def test_it_runs_as_nobody_special() -> None:
    user = of("USER")[-1]
    assert user.isdigit()  # Kubernetes checks runAsNonRoot only for numbers
    assert int(user) >= 1000
    assert "SIGTERM" in of("STOPSIGNAL")


def test_what_is_copied_exists_and_is_sent_to_the_build() -> None:
    kept = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    for line in of("COPY"):
        *sources, _ = shlex.split(line)
        for source in sources:
            assert (ROOT / source).exists()
            assert source in kept


def test_pip_installs_the_extra_under_the_constraints() -> None:
    command = next(line for line in of("RUN") if "pip install" in line)
    words = shlex.split(command.split("&&")[0].replace("${", "$").replace("}", ""))
    assert words[words.index("-c") + 1] == "constraints.txt"
    assert words[-1] == ".[serve]"
    assert "://" not in (ROOT / "Dockerfile").read_text().replace("http://127.0.0.1", "")


def test_its_command_is_one_of_ours() -> None:
    entry, words = json.loads(of("ENTRYPOINT")[0]), json.loads(of("CMD")[0])
    assert entry == ["genrecourse"]
    listed = CliRunner().invoke(app, [words[0], "--help"]).output
    for option in (word for word in words if word.startswith("--")):
        assert option in listed
    health = of("HEALTHCHECK")[0]
    check = json.loads(health[health.index("CMD ") + 4 :])
    compile(check[-1], "HEALTHCHECK", "exec")
    assert f":{words[words.index('--port') + 1]}/v2/health/ready" in check[-1]
