"""An environment for each peer, under .venv-peers/: never dependencies of the project.

python -m benchmarks.peers.environments   # quick when nothing changed
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-peers"


@dataclass(frozen=True)
class Peer:
    """A package, what has to be installed for it, its script, and what the script may be asked."""

    requirements: tuple[str, ...]
    script: str
    methods: tuple[str, ...]


PEERS = {
    "dice-ml": Peer(("dice-ml==0.12",), "run_dice_ml.py", ("random", "genetic", "kdtree")),
    # scipy: it imports it and does not say so
    "nice": Peer(("NICEx==0.2.3", "scipy"), "run_nice.py", ("none", "sparsity", "proximity")),
}


def python_of(name: str) -> Path:
    return FOLDER / name / "bin" / "python"


def is_installed(name: str) -> bool:
    stamp = FOLDER / name / ".installed"
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == _wanted(name)


def install(name: str) -> None:
    if is_installed(name):
        return
    print(f"{name}: an environment of its own, {' '.join(PEERS[name].requirements)}")
    subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER / name], check=True)
    # the constraints pin torch: should a peer ever ask for it, no CUDA build is pulled
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command = [python_of(name), *pip, "-c", ROOT / "constraints.txt", *PEERS[name].requirements]
    subprocess.run(command, check=True)
    (FOLDER / name / ".installed").write_text(_wanted(name), encoding="utf-8")


def _wanted(name: str) -> str:
    return "\n".join(PEERS[name].requirements) + "\n"


if __name__ == "__main__":
    for peer in PEERS:
        install(peer)
