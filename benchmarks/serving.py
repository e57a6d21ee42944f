"""The service in a process of its own, on a model of German credit, for benchmarks of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from genrecourse.data.datasets import EMBEDDED, read_whole
from genrecourse.methods import METHODS
from genrecourse.rules.policy import Policy

READY_SECONDS = 120


@dataclass
class Running:
    """A service that runs: its address and its process."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def mistakes(self) -> list[str]:
        """Return the lines of the log about mistakes of the service, without repetition."""
        lines = self.log.read_text().splitlines()
        places = [line.partition('"mistake": ')[2] for line in lines if '"mistake"' in line]
        return sorted(set(places))

    def memory(self) -> float:
        """Return the memory of the process in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(each for each in status.splitlines() if each.startswith("VmRSS"))
        return int(line.split()[1]) / 1024


@contextmanager
def german_model(folder: Path | None = None) -> Iterator[Path]:
    """Give the folder of GenRe on German credit under the policy of the package."""
    if folder is not None:
        yield folder
        return
    policy = Policy.read(EMBEDDED / "german.toml")
    X, y = policy.split(read_whole("german").iloc[300:])
    method = METHODS["genre"](policy.classifier(), policy.schema(X), random_state=0).fit(X, y)
    with tempfile.TemporaryDirectory() as made:
        method.save(Path(made) / "german", policy)
        yield Path(made) / "german"


@contextmanager
def command(*words: str | Path, **limits: float) -> Iterator[Running]:
    """Run the service with these words; limits: other values of `Settings`, by name."""
    code = _WITH_LIMITS.format(limits=limits) if limits else _PLAIN
    with tempfile.NamedTemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", code, "serve", *map(str, words), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if " at http" not in line:
                errors.seek(0)
                raise SystemExit(errors.read().decode())
            running = Running(line.split(" at ")[1].split()[0], process, Path(errors.name))
            _wait_until_ready(running.url)
            yield running
        finally:
            process.terminate()
            process.communicate()


_PLAIN = "from genrecourse.apps.cli import main; main()"
_WITH_LIMITS = """
import dataclasses
from genrecourse.apps.serve import settings
class Limited(settings.Settings):
    def __init__(self, **about):
        super().__init__(**(about | {limits}))
settings.Settings = Limited
from genrecourse.apps.cli import main
main()
"""


def _wait_until_ready(url: str) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{url}/v2/health/ready", timeout=10) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"the service at {url} is not ready after {READY_SECONDS} seconds")
