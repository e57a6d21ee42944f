"""Model files: what comes back is what was saved, to the bit; whatever else lies there is refused
in one sentence, and nothing in it is ever run."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
import safetensors.numpy
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from genrecourse import METHODS, Classifier, GenRe, NearestNeighbour, Schema, UserError, load
from genrecourse.methods.base import Method
from genrecourse.model import artifact as files
from genrecourse.model.classifier import fit_mlp

NAMES = ["genre", "genre-paper", "nnr", "nnr-auto"]
BOTH = [files.JSON_NAME, files.TENSORS_NAME]
pytestmark = pytest.mark.filterwarnings("ignore:.*left out of training")


# ---- people, with every kind of column ----------------------------------------------------------


@cache
def people(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(0)

    def some(values: Any, dtype: Any, missing: bool = False) -> pd.Series:
        cells = pd.Series(values).astype(object)
        gone = rng.random(n) < (0.1 if missing else 0)
        return cells.mask(gone, None).astype(dtype)

    letters = np.array(["a", "b", "c"])
    X = pd.DataFrame(
        {
            "income": rng.uniform(0, 100, n).round(1),
            "age": rng.integers(18, 90, n),  # immutable, with so many values that it has edges
            "loans": some(rng.integers(0, 5, n), "Int64", missing=True),
            "debt": some(rng.uniform(0, 9, n), "float32", missing=True),
            "rate": some(rng.uniform(0, 1, n).round(3), "Float64", missing=True),
            "owner": rng.random(n) < 0.5,
            "member": some(rng.random(n) < 0.5, "boolean", missing=True),
            "town": some(rng.choice(letters, n), "str"),
            "job": some(rng.choice(letters, n), "string", missing=True),
            "old": some(rng.choice(letters, n), object, missing=True),
            "grade": some(rng.choice(letters, n), pd.CategoricalDtype(list("zcba"), ordered=True)),
            "score": some(rng.choice([1, 2, 3], n), pd.CategoricalDtype([3, 2, 1]), missing=True),
            "arrow": some(rng.integers(0, 9, n), pd.ArrowDtype(pyarrow.int32())),
        }
    )
    return X.set_axis([f"p{i}" for i in range(n)])


def outcomes() -> np.ndarray:
    X = people()
    return ((X["income"] + 20 * X["owner"] + 5 * (X["town"] == "a")) > 60).to_numpy().astype(int)


def schema() -> Schema:
    return Schema.infer(people(), immutable=["age", "town"])


def numbers(X: pd.DataFrame) -> np.ndarray:
    """Every cell as text makes a number, so that None, nan and <NA> are not the same to h."""
    text = X.drop(columns="income").astype(object).map(lambda v: sum(map(ord, str(v))) % 97 / 970)
    return np.column_stack([X["income"] / 100, text.to_numpy(dtype=float)])


@cache
def pipeline() -> Pipeline:
    model = make_pipeline(FunctionTransformer(numbers), LogisticRegression(C=10))
    return model.fit(people(), outcomes())


@cache
def own() -> Classifier:
    return fit_mlp(people(), outcomes(), schema())


def fitted(name: str, h: str = "own") -> Method:
    return _fitted(name, h)


@cache
def _fitted(name: str, h: str) -> Method:
    params = GenRe._test_params() if name.startswith("genre") else {}
    if name == "genre-paper":  # a net that would answer otherwise were it still in training
        params["net"] = replace(params["net"], dropout=0.1)
    classifier = own() if h == "own" else pipeline()
    return METHODS[name](classifier, schema(), **params).fit(people(), outcomes())


def again(h: str) -> Any:
    """What load must be given."""
    return pipeline() if h == "pipeline" else None


def answers(method: Any) -> dict[str, str]:
    """All that a method says, to the last bit."""
    X = people()
    found = method.recourse(X)
    said = {"recourse": exact(found), "assess": exact(method.assess(X, found))}
    if isinstance(method, GenRe):
        said["sample"] = exact(method.sample(X.iloc[:20], 3))
        said["log_prob"] = exact(method.log_prob(found, given=X).to_frame())
    return said


def exact(table: pd.DataFrame) -> str:
    cells = {name: table[name].astype(object).tolist() for name in table.columns}
    return repr((table.index.tolist(), [repr(d) for d in table.dtypes], cells))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder to spoil."""
    fitted("genre").save(tmp_path / "model")
    return tmp_path / "model"


def seal(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the JSON and make its checksums right again, as a stranger would."""
    content = json.loads((folder / files.JSON_NAME).read_bytes())
    content.pop("sha256")
    data = (folder / files.TENSORS_NAME).read_bytes()
    content["tensors"] = {"bytes": len(data), "sha256": files._sha256(data)}
    change(content)
    content["sha256"] = files._sha256(files._dump(content))
    (folder / files.JSON_NAME).write_bytes(files._dump(content))


def refused(folder: Path | str, *said: str, classifier: Any = None) -> None:
    with pytest.raises(UserError) as caught:
        load(folder, classifier)
    sentence = str(caught.value)
    assert "\n" not in sentence
    for words in said:
        assert words in sentence, sentence


# ---- the way there and back ---------------------------------------------------------------------


@pytest.mark.parametrize("h", ["own", "pipeline"])
@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_method_answers_as_the_saved_one(home: Path, name: str, h: str) -> None:
    method = fitted(name, h)
    method.save(home / f"{name}-{h}")
    loaded = load(home / f"{name}-{h}", again(h))
    assert type(loaded) is type(method)
    assert answers(loaded) == answers(method)
    assert getattr(loaded, "fit_report_", None) == getattr(method, "fit_report_", None)
    Z = method.problem_.encoder.encode(people())
    assert np.array_equal(loaded.problem_.confidence(Z), method.problem_.confidence(Z))
    lent = [m.problem_.like.reset_index(drop=True) for m in (loaded, method)]  # its dtypes are h's
    assert exact(lent[0]) == exact(lent[1])


def test_a_fresh_process_gives_the_same_bytes(home: Path) -> None:
    cases = [(name, h) for name in NAMES for h in ("own", "pipeline")]
    for name, h in cases:
        fitted(name, h).save(home / f"{name}-{h}")
    code = "import sys, tests.model.test_artifact as t; t.write_answers(*sys.argv[1:])"
    out = subprocess.run(
        [sys.executable, "-c", code, *(str(home / f"{name}-{h}") for name, h in cases)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(out.stdout) == [answers(fitted(name, h)) for name, h in cases]


def write_answers(*folders: str) -> None:
    loaded = [load(folder, again(folder.rpartition("-")[2])) for folder in folders]
    sys.stdout.write(json.dumps([answers(method) for method in loaded]))


def test_parameters_come_back_and_can_be_fitted_again(saved: Path) -> None:
    method, loaded = fitted("genre"), load(saved)
    kept = {k: v for k, v in method.get_params(deep=False).items() if k != "classifier"}
    assert {k: v for k, v in loaded.get_params(deep=False).items() if k != "classifier"} == kept
    assert isinstance(loaded.classifier, Classifier)
    fresh = clone(loaded).set_params(gamma=0.5, clean=False, margin=0.5, temperature=1.0)
    fresh.fit(people(), outcomes())  # around the loaded h
    assert fresh.classifier_.model is loaded.classifier.model


@pytest.mark.parametrize("given", [None, Classifier(), Classifier(favourable=1, cutoff=0.4)])
def test_a_classifier_that_fit_trained_is_to_be_trained_again(tmp_path: Path, given: Any) -> None:
    method = NearestNeighbour(given).fit(people(), outcomes())
    method.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.schema is None
    assert exact(loaded.recourse(people())) == exact(method.recourse(people()))
    if given is None:
        assert loaded.classifier is None
    else:
        assert (loaded.classifier.is_fitted, loaded.classifier.cutoff) == (False, given.cutoff)


def test_an_mlp_that_reads_another_encoding_comes_back(tmp_path: Path) -> None:
    """Its encoder was fitted on other rows, so h sees tables in the user's own dtypes."""
    h = fit_mlp(people().iloc[:150], outcomes()[:150], schema())
    method = METHODS["genre-paper"](h, schema(), **GenRe._test_params())
    method.fit(people(), outcomes())
    assert method.problem_.encoder is not h.encoder
    method.save(tmp_path / "m")
    assert answers(load(tmp_path / "m")) == answers(method)


@pytest.mark.parametrize("name", NAMES)
def test_saving_a_loaded_method_gives_the_same_files(tmp_path: Path, name: str) -> None:
    fitted(name).save(tmp_path / "first")
    load(tmp_path / "first").save(tmp_path / "second")
    for file in BOTH:
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


def test_loading_leaves_the_global_random_state_alone(saved: Path) -> None:
    before, before_numpy = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    load(saved)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], before_numpy)  # noqa: NPY002


def test_the_file_is_strict_json(saved: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads((saved / files.JSON_NAME).read_text("ascii"), parse_constant=refuse)


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 1, 1.0, -0.0, 0.1, float("inf"), float("-inf"), "yes", "$set", 2**70),
        *([1, "a"], (1, (2.5, None)), {"a", "b"}, frozenset({1}), set()),
        *({"a": {"b": (1,)}}, {1: "x", "y": 2}, {"$set": [1]}, {}),
    ],
)
def test_plain_values_keep_their_types(value: Any) -> None:
    text = json.dumps(files.pack(value), allow_nan=False)
    assert repr(files.unpack(json.loads(text))) == repr(value)


def test_numpy_and_missing_values_are_stored_as_what_they_stand_for() -> None:
    assert files.pack([np.float64(0.5), np.bool_(True), np.str_("a")]) == [0.5, True, "a"]
    assert files.unpack(files.pack([pd.NA]))[0] is pd.NA
    assert np.isnan(files.unpack(files.pack(float("nan"))))
    with pytest.raises(UserError, match="a Timestamp cannot be stored"):
        files.pack({"day": pd.Timestamp("2020-01-01")})


def test_a_table_keeps_its_dtypes_and_its_missing_values() -> None:
    X = people().assign(
        mixed=pd.Series([None, float("nan"), pd.NA, 1, True, "x"] * 40, dtype=object).to_numpy(),
        python=people()["town"].astype(pd.StringDtype("python")).to_numpy(),
        arrow_text=people()["job"].astype(pd.ArrowDtype(pyarrow.string())),
        numbered=pd.Categorical(np.arange(240) % 3 == 0, categories=[True, False]),
    )
    X["python"] = X["python"].astype(pd.StringDtype("python"))
    back = files.unpack_table(json.loads(json.dumps(files.pack_table(X), allow_nan=False)))
    pd.testing.assert_frame_equal(back, X.reset_index(drop=True), check_exact=True)
    assert [repr(d) for d in back.dtypes] == [repr(d) for d in X.dtypes]
    assert back["mixed"].map(str).tolist() == X["mixed"].map(str).tolist()


def test_a_dtype_that_cannot_be_stored_is_refused_at_save(tmp_path: Path) -> None:
    X = people()[["income", "age"]].astype({"age": np.longdouble})
    method = NearestNeighbour(lambda X: X["income"].to_numpy() / 100).fit(X)
    with pytest.raises(UserError, match=r"column 'age' has dtype .*128"):
        method.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_arrays_come_back_whatever_their_layout(tmp_path: Path) -> None:
    table = np.arange(24.0).reshape(4, 6)
    arrays = {
        "columns first": np.asfortranarray(table),
        "backwards": table[::-1, ::2],
        "turned": table.T,
        "none": np.zeros((3, 0)),
        "yes": np.array([True, False]),
        "whole": np.array([2**62], dtype=np.int64),
        "odd": np.array([np.nan, np.inf, -0.0], dtype=np.float32),
    }
    files.write(tmp_path / "m", {}, arrays)
    _, back = files.read(tmp_path / "m")
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array, err_msg=name)


# ---- the classifier -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def around_pipeline(home: Path) -> Path:
    fitted("nnr", "pipeline").save(home / "around")
    return home / "around"


def test_a_users_model_must_be_given_again(around_pipeline: Path) -> None:
    for nothing in (None, Classifier()):
        refused(around_pipeline, "a Pipeline", "load(folder, classifier=", classifier=nothing)


def test_another_model_is_told_by_its_scores(around_pipeline: Path) -> None:
    X, y = people(), outcomes()
    other = clone(pipeline()).set_params(logisticregression__C=0.1).fit(X, y)
    gap = np.abs(other.predict_proba(X) - pipeline().predict_proba(X))[:, 1]
    probes = np.linspace(0, len(X) - 1, 64).astype(int)
    refused(
        around_pipeline,
        f"scores {int((gap[probes] > 1e-6).sum())} of 64 stored rows differently",
        f"by up to {gap[probes].max():.3g}",
        classifier=other,
    )
    refused(around_pipeline, "of 64 stored rows differently", classifier=own())


def test_a_model_that_differs_in_one_row_by_a_little_is_another(around_pipeline: Path) -> None:
    last = people().index[-1]

    def off_by(amount: float) -> Callable[[pd.DataFrame], np.ndarray]:
        def h(X: pd.DataFrame) -> np.ndarray:
            scores = pipeline().predict_proba(X)[:, 1]
            scores[X["income"] == people().loc[last, "income"]] += amount
            return np.clip(scores, 0, 1)

        return h

    assert load(around_pipeline, off_by(5e-7)).classifier_.cutoff == 0.5
    refused(around_pipeline, "1 of 64", "up to 5e-06", classifier=off_by(5e-6))


def test_a_model_that_cannot_score_the_probe_rows_is_refused(around_pipeline: Path) -> None:
    stranger = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    refused(
        around_pipeline, "LogisticRegression, cannot score the stored rows", classifier=stranger
    )
    refused(around_pipeline, "a str cannot score people", classifier="model.pkl")


def test_an_own_mlp_may_be_given_again_but_no_other(saved: Path) -> None:
    assert answers(load(saved, own())) == answers(fitted("genre"))
    refused(saved, "of 64 stored rows differently", classifier=pipeline())


def test_settings_of_the_classifier_are_stored(tmp_path: Path) -> None:
    y = np.where(outcomes() == 1, "yes", "no")
    model = clone(pipeline()).fit(people(), y)
    h = Classifier(model, favourable={"yes"}, cutoff=np.float64(0.4), score_range=(0, 1.5))
    method = NearestNeighbour(h, schema()).fit(people(), y)
    method.save(tmp_path / "m")
    for given in (model, h):
        loaded = load(tmp_path / "m", given)
        assert loaded.classifier_.favourable == {"yes"}
        assert (loaded.classifier_.cutoff, loaded.classifier_.score_range) == (0.4, (0.0, 1.5))
        assert exact(loaded.recourse(people())) == exact(method.recourse(people()))
    other = Classifier(model, favourable="yes", score_range=(0, 1.5))
    refused(tmp_path / "m", "cutoff 0.4", "cutoff 0.5", classifier=other)
    other = Classifier(model, favourable="yes", cutoff=0.4)
    refused(tmp_path / "m", "score_range (0.0, 1.5)", "(0.0, 1.0)", classifier=other)
    other = Classifier(model, favourable="no", cutoff=0.4, score_range=(0, 1.5))
    refused(tmp_path / "m", "of 64 stored rows", classifier=other)


def test_a_score_that_is_no_probability_comes_back(tmp_path: Path) -> None:
    def points(X: pd.DataFrame) -> np.ndarray:
        return np.clip(300 + 6 * X["income"].to_numpy(dtype=float), 300, 850)

    h = Classifier(points, cutoff=640, score_range=(300, 850))
    method = NearestNeighbour(h, schema()).fit(people(), outcomes())
    method.save(tmp_path / "m")
    loaded = load(tmp_path / "m", h)
    assert loaded.policy_ is None
    assert exact(loaded.recourse(people())) == exact(method.recourse(people()))


def test_a_small_table_has_fewer_probes(tmp_path: Path) -> None:
    X = people()[["income", "owner"]].iloc[:7]
    NearestNeighbour(lambda X: X["income"].to_numpy() / 100).fit(X).save(tmp_path / "m")
    refused(tmp_path / "m", "7 of 7 stored rows", classifier=lambda X: np.full(len(X), 0.123))


def test_a_users_module_gets_its_encoder_back(tmp_path: Path) -> None:
    class Mine(torch.nn.Linear):
        def forward(self, Z: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(super().forward(Z))[:, 0]

    encoder = own().encoder
    assert encoder is not None
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = Mine(encoder.width, 1)
    method = NearestNeighbour(Classifier(module, encoder=encoder), schema())
    method.fit(people(), outcomes()).save(tmp_path / "m")
    refused(tmp_path / "m", "a Mine")
    loaded = load(tmp_path / "m", module)
    assert loaded.problem_.encoder is loaded.classifier_.encoder  # as at fit: h reads Z directly
    assert answers(loaded) == answers(method)


# ---- methods ------------------------------------------------------------------------------------


class Bare(NearestNeighbour):
    _state, _restore = Method._state, Method._restore


class Mine(NearestNeighbour):
    pass


def test_a_method_without_hooks_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Bare\.save: Bare has no _state and _restore"):
        Bare(pipeline()).fit(people()).save(tmp_path / "m")
    with pytest.raises(UserError, match=r"GenRe\.save: call fit"):
        GenRe().save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_class_is_looked_up_in_the_table_of_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Mine(pipeline()).fit(people()).save(tmp_path / "m")
    refused(tmp_path / "m", "'Mine'", "NearestNeighbour", classifier=pipeline())
    monkeypatch.setitem(METHODS, "mine", Mine)
    assert type(load(tmp_path / "m", pipeline())) is Mine


# ---- what is no model ---------------------------------------------------------------------------


def test_no_folder_and_a_file_instead(tmp_path: Path) -> None:
    refused(tmp_path / "gone", "gone does not exist", "save()")
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "file is a file", "save()")
    refused(tmp_path / "file" / "in", "does not exist")
    refused(str(tmp_path), "model.json is missing")


@pytest.mark.parametrize("name", BOTH)
def test_a_missing_file(saved: Path, name: str) -> None:
    (saved / name).unlink()
    refused(saved, f"{name} is missing")
    (saved / name).mkdir()
    refused(saved, f"{name} is not a file")
    (saved / name).rmdir()
    os.mkfifo(saved / name)  # reading it would wait for ever
    refused(saved, f"{name} is not a file")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is not the JSON of a model"),
        (b"\x00\xff\xfe", "is not the JSON of a model"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"format": ' * 200_000, "nested too deeply"),
        (b'{"format": NaN}', "is not the JSON of a model"),
        (b'{"format": 1e999}', "is not the JSON of a model"),
        (b"1" * 10_000, "is not the JSON of a model"),
        (b"[1, 2]", "its format is 'list', not 'genrecourse-model'"),
        (b'{"model": "cat"}', "its format is None, not 'genrecourse-model'"),
        (b'{"format": "onnx\\n\\n"}', "not 'genrecourse-model'"),
        (b'{"format": "genrecourse-model", "version": "1"}', "format version '1'"),
        (b'{"format": "genrecourse-model", "version": 0}', "format version 0"),
        (b'{"format": "genrecourse-model", "version": true}', "format version True"),
        (b'{"format": "genrecourse-model", "version": 1}', "and the entries format, version"),
    ],
    ids=lambda value: repr(value[:24]) if isinstance(value, bytes) else None,
)
def test_foreign_json(saved: Path, text: bytes, said: str) -> None:
    (saved / files.JSON_NAME).write_bytes(text)
    refused(saved, files.JSON_NAME, said)


def test_a_newer_version(saved: Path) -> None:
    newer = files.FORMAT_VERSION + 1
    seal(saved, lambda content: content.update(version=newer, more="things"))
    known = f"this version reads formats up to {files.FORMAT_VERSION}"
    refused(saved, f"newer genrecourse (format {newer}; {known})", "upgrade genrecourse")


def test_a_file_of_another_size(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_JSON", 100)
    refused(saved, "model.json has", "but a model has at most 100")
    with pytest.raises(UserError, match="too large to store"):
        fitted("genre").save(saved)
    monkeypatch.undo()
    monkeypatch.setattr(files, "MAX_TENSORS", 100)
    refused(saved, "tensors.safetensors has", "but a model has at most 100")


# ---- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_every_flipped_byte_is_found(saved: Path, name: str) -> None:
    whole = (saved / name).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(500):
        data = bytearray(whole)
        data[rng.integers(len(data))] ^= int(rng.integers(1, 256))
        (saved / name).write_bytes(data)
        refused(saved, name)
    (saved / name).write_bytes(whole)
    assert answers(load(saved)) == answers(fitted("genre"))


@pytest.mark.parametrize("name", BOTH)
def test_truncation_and_more_bytes_are_found(saved: Path, name: str) -> None:
    whole = (saved / name).read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little") if name == files.TENSORS_NAME else 100
    lengths = [0, 1, 7, 8, 9, header - 1, header, header + 1, len(whole) // 2, len(whole) - 1]
    # the tensors' size is known before they are read
    said = f"bytes, but {len(whole)} were saved" if name == files.TENSORS_NAME else name
    for length in lengths:
        (saved / name).write_bytes(whole[:length])
        refused(saved, said)
    for more in (b" ", b"\n", b"\0", whole):
        (saved / name).write_bytes(whole + more)
        refused(saved, said)


def test_json_written_another_way_is_found(saved: Path) -> None:
    path = saved / files.JSON_NAME
    content, text = json.loads(path.read_bytes()), path.read_bytes()
    path.write_text(json.dumps(content, indent=2))
    refused(saved, "was damaged or edited after it was saved")
    path.write_bytes(text[:-1] + b',"version":1}')  # a name twice
    refused(saved, "was damaged or edited after it was saved")


# ---- malice: the checksums are right ------------------------------------------------------------


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("dump", [pickle.dump, torch.save])
def test_a_pickle_is_not_run(saved: Path, dump: Callable[..., None]) -> None:
    proof = saved.parent / "run"
    for name in reversed(BOTH):
        with open(saved / name, "wb") as file:
            dump(Payload(proof), file)
        if name == files.TENSORS_NAME:
            refused(saved, name)
            seal(saved, lambda content: None)
        refused(saved, name)
    assert not proof.exists()
    if dump is pickle.dump:  # it would have been, had anything unpickled it
        pickle.loads((saved / files.JSON_NAME).read_bytes()).close()
        assert proof.exists()


@pytest.mark.parametrize("claim", [2**60, 2**31, 2**63 + 1, 2**64 - 1, 0])
def test_a_header_that_claims_a_giant_size(saved: Path, claim: int) -> None:
    path = saved / files.TENSORS_NAME
    path.write_bytes(claim.to_bytes(8, "little") + path.read_bytes()[8:])
    refused(saved, "was damaged or edited after it was saved")
    seal(saved, lambda content: None)
    refused(saved, "header of" if claim else "not a safetensors file")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b'{"a":{"dtype":"F64","shape":[1000000000000],"data_offsets":[0,8000000000000]}}',
        b'{"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,8]}}',
        b'{"a":{"dtype":"F64","shape":[1],"data_offsets":[8,0]}}',
        b'{"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}}',
        b'{"a":{"dtype":"__import__","shape":[1],"data_offsets":[0,8]}}',
    ],
)
def test_a_header_that_lies(saved: Path, header: bytes) -> None:
    data = len(header).to_bytes(8, "little") + header + b"\0" * 8
    (saved / files.TENSORS_NAME).write_bytes(data)
    seal(saved, lambda content: None)
    refused(saved)


def test_no_file_outside_the_folder_is_read(saved: Path) -> None:
    shutil.copy(saved / files.TENSORS_NAME, saved.parent / "outside")
    for name in ("../outside", str(saved.parent / "outside")):
        seal(saved, lambda content, name=name: content["tensors"].update(file=name))
        refused(saved, "of the tensors")
        seal(saved, lambda content, name=name: content.update(file=name))
        refused(saved, "and the entries")
        seal(saved, lambda content: content.pop("file"))
    assert load(saved)


@pytest.mark.parametrize("name", BOTH)
def test_a_symbolic_link_is_not_followed(saved: Path, name: str) -> None:
    (saved / name).rename(saved.parent / "outside")
    (saved / name).symlink_to(saved.parent / "outside")
    refused(saved, f"{name} is a symbolic link")
    (saved / name).unlink()
    (saved / name).symlink_to("nowhere")
    refused(saved, f"{name} is a symbolic link")


@pytest.mark.parametrize("name", ["os.system", "subprocess.Popen", "Method", "genre", None, [], {}])
def test_a_class_that_is_no_method_is_refused(saved: Path, name: Any) -> None:
    seal(saved, lambda content: content["meta"].update(method=name))
    refused(saved, "which is none of [", "'GenRe'", "'NearestNeighbour'")


@pytest.mark.filterwarnings("ignore")
def test_content_that_makes_no_sense_is_refused_or_harmless(saved: Path) -> None:
    """Each value of the JSON replaced by each of a few others: a UserError, or a method."""
    whole = json.loads((saved / files.JSON_NAME).read_bytes())["meta"]
    places = [(a,) for a in whole] + [(a, b) for a in whole if a != "method" for b in whole[a]]
    places += [("encoder", "blocks", 0), ("probe", "rows", "age", "dtype"), ("state", "report", 0)]
    said = []
    for value in (None, "x", -1, [], {"$set": [[]]}, {"$x": 1}):
        for place in places:

            def change(content: dict[str, Any], place: Any = place, value: Any = value) -> None:
                content["meta"] = inner = json.loads(json.dumps(whole))
                for key in place[:-1]:
                    inner = inner[key]
                inner[place[-1]] = value

            seal(saved, change)
            try:
                load(saved)
            except UserError as error:
                said.append(str(error))
    assert len(said) > 100
    assert not [sentence for sentence in said if "\n" in sentence or len(sentence) > 500]
    seal(saved, lambda content: content.update(meta=[]))
    refused(saved, "holds the method '?'")


def test_arrays_that_do_not_fit_are_refused(saved: Path) -> None:
    arrays = safetensors.numpy.load((saved / files.TENSORS_NAME).read_bytes())
    for name in ("state.net.head", "state.bins.value", "classifier.layers.0.weight", "state.codes"):
        rest = {k: a for k, a in arrays.items() if k != name}
        (saved / files.TENSORS_NAME).write_bytes(safetensors.numpy.save(rest))
        seal(saved, lambda content: None)
        refused(saved, "does not hold what a GenRe of this version needs")


# ---- writing ------------------------------------------------------------------------------------


def test_a_folder_that_is_no_model_is_not_written_over(saved: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    fitted("nnr").save(mine)  # an empty one is
    assert type(load(mine)) is NearestNeighbour
    (mine / "notes.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / files.JSON_NAME).write_text('{"my": "model"}')
    (tmp_path / "tensors").mkdir()
    (tmp_path / "tensors" / files.TENSORS_NAME).write_text("precious")
    before = everything(tmp_path)
    for name in ("mine", "file", "json", "tensors"):
        with pytest.raises(UserError, match=f"{name} is (a file|not a genrecourse model)"):
            fitted("nnr").save(tmp_path / name)
    with pytest.raises(UserError, match="cannot write the model"):
        fitted("nnr").save(tmp_path / "file" / "deeper")
    assert everything(tmp_path) == before


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_model_is_replaced_and_parents_are_made(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "deep" / "model"
    fitted("nnr").save(folder)
    fitted("genre").save(str(folder))
    assert type(load(folder)) is GenRe
    assert [p.name for p in folder.parent.iterdir()] == ["model"]
    (tmp_path / "link").symlink_to(folder)
    fitted("nnr").save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert type(load(folder)) is type(load(tmp_path / "link")) is NearestNeighbour


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize(
    ("call", "nth"), [("mkdir", 1), ("fsync", 1), ("fsync", 2), ("replace", 1), ("replace", 2)]
)
def test_a_failure_while_writing_changes_nothing(
    saved: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, call: str, nth: int
) -> None:
    before, calls = everything(saved.parent), []
    real = getattr(os, call)

    def fail(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == nth:
            raise error
        return real(*args, **kwargs)

    def attempt(folder: Path) -> None:
        calls.clear()
        with monkeypatch.context() as patch:
            patch.setattr(os, call, fail)
            if isinstance(error, OSError):
                with pytest.raises(UserError, match="No space left on device"):
                    fitted("nnr").save(folder)
            else:
                with pytest.raises(KeyboardInterrupt):
                    fitted("nnr").save(folder)

    if call != "mkdir":  # the folder is there
        attempt(saved)
    attempt(saved.parent / "other")
    assert everything(saved.parent) == before
    assert [p.name for p in saved.parent.iterdir()] == ["model"]
    assert answers(load(saved)) == answers(fitted("genre"))


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
@pytest.mark.parametrize(("call", "nth"), [("fsync", 4), ("replace", 3)])
def test_after_the_new_json_has_its_name_the_new_model_counts(
    saved: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, call: str, nth: int
) -> None:
    calls, real = [], getattr(os, call)

    def fail(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == nth:
            raise error
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        try:
            fitted("nnr").save(saved)
        except KeyboardInterrupt:
            assert not isinstance(error, OSError)
    assert answers(load(saved)) == answers(fitted("nnr"))
    fitted("genre").save(saved)  # and the next save leaves nothing behind
    assert sorted(os.listdir(saved)) == BOTH
    assert answers(load(saved)) == answers(fitted("genre"))
