"""Model files of every format load, and give the recourse that they gave when they were saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from genrecourse import load
from genrecourse.model.artifact import FORMAT_VERSION
from tests.golden.cases import one_thread, processor
from tests.model_files.make import FOLDER, as_json

FORMATS = sorted(FOLDER.glob("format-*"))
MODELS = sorted(path.parent for path in FOLDER.glob("format-*/*/model.json"))


def stored(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "answers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("model", MODELS, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.filterwarnings("ignore")
def test_an_old_file_gives_the_same_recourse(model: Path) -> None:
    answers = stored(model.parent)
    people, recourse = (pd.DataFrame(**answers[model.name][key]) for key in ("people", "recourse"))
    method = load(model)
    with one_thread():
        found = method.recourse(people)
    if processor() == answers["processor"]:
        assert as_json(found) == answers[model.name]["recourse"]
    else:  # other processors and versions of torch round differently
        status = method.assess(people, found)["status"]
        assert status.tolist() == method.assess(people, recourse)["status"].tolist()


@pytest.mark.parametrize("folder", FORMATS, ids=lambda path: path.name)
def test_every_answer_has_its_model_and_every_model_its_format(folder: Path) -> None:
    held = [model for model in MODELS if model.parent == folder]
    assert {model.name for model in held} == set(stored(folder)) - {"processor"}
    assert held
    for model in held:
        content = json.loads((model / "model.json").read_text(encoding="utf-8"))
        assert f"format-{content['version']}" == folder.name


def test_files_of_the_current_format_are_kept() -> None:
    assert (FOLDER / f"format-{FORMAT_VERSION}").is_dir(), "run python -m tests.model_files.make"
