"""status and frozen: every result is of one source, and what is missing is named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import pytest

from genrecourse.errors import UserError
from genrecourse.evaluation.comparison.entries import SHOWS, code_hash, decisive, hash_of
from genrecourse.methods.params import pack_params
from genrecourse.model.artifact import pack
from paper import __main__ as command
from paper import blocks, frozen, parts, records, runs, status, training
from paper.runs import Scale

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "paper" / "results"


@pytest.fixture
def size(tmp_path: Path) -> Scale:
    return replace(runs.scale("full"), results=tmp_path / "results", images=tmp_path / "images")


def made(size: Scale, needed: Any, config: str) -> Iterator[dict[str, Any]]:
    """The lines that a full run of a config leaves for a table."""
    for dataset, listed in runs.entries(config, size, needed).items():
        for entry in listed:
            rows = runs.rows_of(runs.read(config), runs.read(config)["entries"][entry.label], size)
            for seed in runs.seeds_of(config, entry.label, size):
                for name, ask in entry.asks.items():
                    yield {
                        "label": entry.named(name),
                        "dataset": dataset,
                        "seed": seed,
                        "method": entry.method,
                        "rows": rows,
                        "witnesses": runs.has_witnesses(config, dataset, size),
                        "fresh": True,
                        "data_fraction": entry.data_fraction,
                        "params": pack_params(entry.params),
                        "ask": pack(dict(ask)),
                        "source": frozen.frozen().source,
                        "date": "2026-11-19",
                        "n": 300,
                    }


def write(size: Scale, config: str, lines: list[dict[str, Any]]) -> None:
    for name in dict.fromkeys(line["dataset"] for line in lines):
        records.write_lines(
            size.compared(config, name), [line for line in lines if line["dataset"] == name]
        )


def item(size: Scale, page: str) -> status.Item:
    (found,) = (each for each in status.items(size) if each.page == page)
    return found


# ---- the results in the repository --------------------------------------------------------------


def test_every_result_is_of_the_frozen_source() -> None:
    assert frozen.others(frozen.frozen().source, RESULTS) == {}


def test_one_line_of_another_source_is_found(tmp_path: Path) -> None:
    good, bad = {"source": frozen.frozen().source}, {"source": "another"}
    records.write_lines(tmp_path / "main" / "compas.jsonl", [good, good])
    records.write_lines(tmp_path / "quick" / "main" / "compas.jsonl", [bad])  # not a full result
    assert frozen.others(frozen.frozen().source, tmp_path) == {}
    records.write_lines(tmp_path / "theory.jsonl", [good, bad, {}])
    found = frozen.others(frozen.frozen().source, tmp_path)
    assert found == {"theory.jsonl": ["None", "another"]}


def test_the_frozen_source_is_the_hash_of_the_frozen_commit() -> None:
    commit = frozen.frozen().commit
    listed = _git("ls-tree", "-r", "--name-only", commit, "src/genrecourse")
    if listed is None:
        pytest.skip("this checkout does not have the frozen commit")
    paths = [PurePath(p).relative_to("src/genrecourse") for p in listed.decode().split()]
    chosen = decisive((p for p in paths if p.suffix == ".py"), SHOWS)
    texts = [_git("show", f"{commit}:src/genrecourse/{path}") for path in chosen]
    assert hash_of(text for text in texts if text is not None) == frozen.frozen().source


def _git(*what: str) -> bytes | None:
    done = subprocess.run(["git", *what], cwd=ROOT, capture_output=True)
    return None if done.returncode else done.stdout


# ---- a full run needs the frozen source ---------------------------------------------------------


def say_frozen(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    monkeypatch.setattr(frozen, "frozen", lambda: frozen.Frozen("abc123", source))


def test_a_full_run_refuses_other_code_and_says_what_to_do(
    size: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "git worktree add ../frozen abc123, then PYTHONPATH=../frozen/src python -m paper all"
    say_frozen(monkeypatch, "another")
    with pytest.raises(UserError, match=said):
        runs.run_at("main", size, "compas", 101)
    with pytest.raises(UserError, match=said):
        parts.add_lines(size, size.file("theory"), 0, list)
    monkeypatch.setattr(sys, "argv", ["paper", "theory"])
    with pytest.raises(SystemExit, match=said):
        command.main()
    assert not size.file("theory").is_file()


def test_a_quick_run_may_be_of_any_code_and_forgets_what_other_code_made(
    size: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = replace(runs.scale("quick"), results=size.results)
    path = quick.file("theory")
    say_frozen(monkeypatch, "another")
    records.write_lines(path, [{"seed": 0, "source": "another"}])
    parts.add_lines(quick, path, 1, lambda: [{"seed": 1}])
    assert [(x["seed"], x["source"]) for x in records.read_lines(path)] == [(1, code_hash())]


def test_a_full_run_never_removes_lines_of_another_source(
    size: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    say_frozen(monkeypatch, code_hash())
    records.write_lines(size.file("theory"), [{"seed": 0, "source": "another"}])
    with pytest.raises(UserError, match="results of the source another"):
        parts.add_lines(size, size.file("theory"), 1, lambda: [{"seed": 1}])
    assert len(records.read_lines(size.file("theory"))) == 1


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git checkout that stands for that of the library, with frozen.toml outside it."""
    package, file = tmp_path / "checkout" / "package", tmp_path / "frozen.toml"
    package.mkdir(parents=True)
    (package / "code.py").write_text("x = 1\n")
    for what in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", "-C", str(package), *what], check=True)
    file.write_text('# a comment\n\ncommit = "old"\nsource = "old"\n')
    monkeypatch.setattr(frozen, "PACKAGE", package)
    monkeypatch.setattr(frozen, "FILE", file)
    return package


def test_a_new_source_is_recorded(checkout: Path, tmp_path: Path) -> None:
    assert frozen.frozen().commit == "old"
    made = frozen.record(tmp_path / "results")
    head = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    assert frozen.frozen() == made == frozen.Frozen(head, code_hash())
    assert frozen.FILE.read_text().startswith("# a comment\n")


def test_a_new_source_needs_a_commit(checkout: Path, tmp_path: Path) -> None:
    (checkout / "code.py").write_text("x = 2\n")
    with pytest.raises(UserError, match="changes that no commit has"):
        frozen.record(tmp_path / "results")
    assert frozen.frozen().commit == "old"


def test_a_new_source_does_not_orphan_results(checkout: Path, tmp_path: Path) -> None:
    records.write_lines(tmp_path / "results" / "theory.jsonl", [{"source": "another"}])
    with pytest.raises(UserError, match=r"theory\.jsonl"):
        frozen.record(tmp_path / "results")
    assert frozen.frozen().commit == "old"


# ---- status -------------------------------------------------------------------------------------


def test_a_complete_table_has_no_gap(size: Scale) -> None:
    lines = list(made(size, "fraction", "settings"))
    write(size, "settings", lines)
    found = item(size, "fraction")
    assert (found.missing, found.seeds) == ([], (5, 5))
    assert (found.sources, found.dates) == ([frozen.frozen().source], ["2026-11-19"])
    assert found.people == {"compas": 1500, "heloc": 1500, "adult-carla": 1500}
    assert item(size, "temperature").missing == []  # the same entries
    assert item(size, "table1").done == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"failed": "no memory"}, "failed: no memory"),
        ({"rows": 200}, "made with other settings: rows"),
        ({"params": {"vae": {"max_steps": 800, "width": 9}}}, "made with other settings: params"),
        ({"params": {}}, "made with other settings: params"),
        ({"ask": {"lam": 9}}, "made with other settings: ask"),
        ({"witnesses": True}, "made with other settings: witnesses"),
        ({"fresh": None}, "made with other settings: fresh"),
    ],
)
def test_a_line_counts_only_with_the_settings_of_the_configs(
    size: Scale, change: dict[str, Any], why: str
) -> None:
    lines = list(made(size, "lambda", "settings"))
    (place,) = [
        i
        for i, x in enumerate(lines)
        if (x["label"], x["dataset"], x["seed"]) == ("cruds/1.0", "heloc", 103)
    ]
    lines[place] |= change
    write(size, "settings", lines)
    (gap,) = item(size, "lambda").missing
    assert (gap.label, gap.dataset, gap.seed, gap.gap) == ("cruds/1.0", "heloc", 103, why)
    assert item(size, "lambda").seeds == (4, 5)


def test_a_record_with_a_field_that_newer_code_added_still_counts(size: Scale) -> None:
    lines = list(made(size, "lambda", "settings"))
    for each in lines:
        if "vae" in each["params"]:
            del each["params"]["vae"]["batch_size"]
    write(size, "settings", lines)
    assert item(size, "lambda").missing == []


def test_what_is_missing_is_said_in_few_words(size: Scale) -> None:
    lines = [
        x
        for x in made(size, "lambda", "settings")
        if x["dataset"] != "adult-carla"
        and not (x["label"].startswith("cruds/") and x["dataset"] == "heloc" and x["seed"] > 103)
    ]
    write(size, "settings", lines)
    said = status.gaps_in_words(item(size, "lambda"))
    gone = "cruds/0.5 104, 105, cruds/1.0 104, 105, cruds/2.5 104, 105 and 2 more labels"
    assert said == f"heloc: {gone}; adult-carla: everything"


def test_status_fails_while_something_is_missing_or_of_two_sources(
    size: Scale, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert status.show(size) == 1
    assert "runs are missing" in capsys.readouterr().out
    few = {"fraction": ("Share", status.compared("fraction"))}
    monkeypatch.setattr(status, "PAPER", few)
    lines = list(made(size, "fraction", "settings"))
    write(size, "settings", lines)
    assert status.show(size) == 0
    assert "nothing is missing" in capsys.readouterr().out
    lines[3]["source"] = "another"
    write(size, "settings", lines)
    assert status.show(size, as_json=True) == 1
    said = json.loads(capsys.readouterr().out)
    assert "2 sources" in said["problems"][0]
    assert said["items"][0]["sources"] == sorted(["another", frozen.frozen().source])


def test_results_of_one_source_that_is_not_the_frozen_one_are_a_problem(size: Scale) -> None:
    records.write_lines(size.file("theory"), [{"seed": 0, "setting": "s", "source": "another"}])
    assert "not all results are of the frozen source" in status.problems(size, [])[0]


def test_every_table_of_the_pages_has_its_runs_listed() -> None:
    missing = set(blocks.PLANNED) - set(status.PAPER)
    assert missing == set()
    tags = {
        tag
        for config in (*runs.COMPARED, "preset")
        for spec in runs.read(config)["entries"].values()
        for tag in spec["for"]
    }
    assert tags <= set(status.PAPER)


# ---- the order of a long run --------------------------------------------------------------------


def test_table_1_comes_first_for_every_seed_and_then_the_rest(
    size: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(parts, "run_case", lambda size, name, seed: None)
    monkeypatch.setattr(parts, "run_pinned_at", lambda size, name, seed: None)
    monkeypatch.setattr(
        runs,
        "run_at",
        lambda config, size, name, seed, tag=None: asked.append((tag, seed, config, name)),
    )
    for each in parts.rounds(size, ["compas"]):
        for step in each.values():
            step(size)
    last_seed = size.seeds[-1]
    for each in parts.rounds(size, ["compas"], [last_seed]):
        assert all(step.keywords["seeds"] == [last_seed] for step in each.values())  # type: ignore[attr-defined]
    tags = [tag for tag, *_ in asked]
    seeds = [seed for tag, seed, config, _ in asked if config == "main"]
    assert tags == sorted(tags, key=lambda tag: tag is None)
    assert seeds == [*size.seeds, *size.seeds]
    assert {name for *_, name in asked} == {"compas"}


def test_a_quick_run_makes_each_case_in_one_part() -> None:
    (only,) = parts.rounds(runs.scale("quick"))
    assert {"compas", "german", "theory"} <= set(only)
    first, rest = parts.rounds(runs.scale("full"))
    assert "Table 1 on compas" in first
    assert "theory" in first
    assert "the rest on german" in rest


def test_the_command_takes_data_sets(monkeypatch: pytest.MonkeyPatch, size: Scale) -> None:
    asked = {}
    monkeypatch.setattr(frozen, "require", lambda: None)
    monkeypatch.setattr(runs, "scale", lambda name: size)
    monkeypatch.setattr(
        command,
        "run_all",
        lambda size, names, seeds, jobs: asked.update(n=names, s=seeds, j=jobs),
    )
    monkeypatch.setattr(command, "draw", lambda size: None)
    monkeypatch.setattr(command.readme, "write", lambda size: None)
    words = "all --datasets compas,heloc --seeds 101 --jobs 1"
    monkeypatch.setattr(sys, "argv", ["paper", *words.split()])
    with pytest.raises(SystemExit) as done:
        command.main()
    assert (done.value.code, asked) == (0, {"n": ["compas", "heloc"], "s": [101], "j": 1})


@pytest.mark.parametrize(
    "wrong",
    [
        ["all", "--datasets", "compass"],
        ["all", "--seeds", "1"],
        ["table1", "--seeds", "101"],
        ["table1", "--datasets", "compas"],
        ["readme", "--new"],
        ["preset", "--quick"],
    ],
)
def test_a_command_that_makes_no_sense_is_refused(
    wrong: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["paper", *wrong])
    with pytest.raises(SystemExit) as refused:
        command.main()
    assert refused.value.code == 2


def test_the_ceiling_of_all_people_stands_beside_those_who_answered_all() -> None:
    both = [
        {"label": label, "dataset": "d", "seed": 1, "n": n, "metrics": {}}
        for n in (900, 500)
        for label in ("ceiling", "nnr")
    ]
    found = records.Results(both)
    assert [line["n"] for line in found.of("ceiling", "d")] == [900]
    assert [line["n"] for line in found.of("nnr", "d")] == [500]  # the last one


# ---- training for less than published -----------------------------------------------------------


def test_table_1_names_the_baselines_that_train_for_less(size: Scale) -> None:
    said = dict(
        text.removeprefix("- `").split("`: ") for text in training.shorter(size).splitlines()
    )
    assert set(said) == {"tap", "cchvae", "cruds"}
    # 2,000 epochs over 36,624 and 7,403 rows in batches of 128; compas has 4,629 rows: 74,000
    assert "adult 80,000 batches of 128 (2,000 epochs, as published, are 574,000" in said["tap"]
    assert "heloc 80,000 batches of 128 (2,000 epochs, as published, are 116,000" in said["tap"]
    assert "compas" not in said["tap"]
    # the same 100 epochs, but batches of 128 where the paper has 32
    assert "compas 3,700 batches of 128 (100 epochs, as published, are 14,500" in said["cruds"]
    assert training.shorter(size) in blocks.Report(size).blocks()["table1"]()


def test_a_longer_training_is_not_named(size: Scale, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "ours", lambda entry: training.Length(2000, 32))
    assert training.shorter(size) == ""
