"""The wheel works where nothing of this repository is: README's first example, and the commands."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
ENV = {"OMP_NUM_THREADS": "1"}  # and nothing of this process, such as PYTHONPATH


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist as for a release."""
    pytest.importorskip("build", reason="the package 'build' is not installed")
    pytest.importorskip("hatchling", reason="the package 'hatchling' is not installed")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel. What it depends on is taken from this one: no downloads."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    install = ["install", "--no-deps", "--no-index", "--disable-pip-version-check", wheel]
    command = [sys.executable, "-m", "pip", "--python", python, *install]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True)
    # A path in a .pth file comes after the environment's own packages, and the .pth files in that
    # path are not read: the editable install of this repository is not found.
    own = Path(packages.stdout.strip(), "dependencies.pth")
    own.write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return folder / "bin"


def run(*command: object, folder: Path) -> str:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, cwd=folder, env=ENV
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_example_of_readme_runs_in_an_empty_folder(
    environment: Path, tmp_path: Path
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)[0]
    where = "import genrecourse\nprint('from', genrecourse.__file__)\n"
    said = run(environment / "python", "-W", "ignore", "-c", where + example, folder=tmp_path)
    assert str(environment.parent) in said.splitlines()[0]  # and not from this repository
    assert "what would change the model's decision" in said
    assert (tmp_path / "model" / "model.json").exists()


def test_the_command_and_what_it_carries(environment: Path, tmp_path: Path) -> None:
    genrecourse = environment / "genrecourse"
    assert "genrecourse 0." in run(genrecourse, "--version", folder=tmp_path)
    run(genrecourse, "datasets", "german", "-o", "german.csv", folder=tmp_path)
    run(genrecourse, "policies", "german", "-o", "policy.toml", folder=tmp_path)
    said = run(genrecourse, "policy", "policy.toml", "german.csv", folder=tmp_path)
    assert "credit_amount" in said


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        tops = {name.split("/")[0] for name in file.namelist()}
    assert {top.split("-")[0] for top in tops} == {"genrecourse"}
    (sdist,) = wheel.parent.glob("*.tar.gz")
    assert sdist.stat().st_size < 10_000_000
