"""A fitted method as a folder of JSON and safetensors: data, never code (docs/decisions/0006).

    folder/model.json           format, versions, what is not an array, and checksums
    folder/tensors.safetensors  the arrays

`write` and `read` move a dict and arrays to a folder and back, whole or not at all. What follows
them turns the parts that every method has into such dicts: plain values, tables, the encoder, h.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import safetensors.numpy
import torch
from safetensors import SafetensorError
from torch import nn

from genrecourse.errors import UserError
from genrecourse.model.classifier import MLP, Classifier
from genrecourse.model.migrations import Arrays, migrate
from genrecourse.table.encoding import Array, Block, TableEncoder
from genrecourse.table.schema import Schema, plain

FORMAT = "genrecourse-model"
FORMAT_VERSION = 2
JSON_NAME, TENSORS_NAME = "model.json", "tensors.safetensors"  # never taken from a file
MAX_JSON, MAX_TENSORS = 64 * 2**20, 8 * 2**30  # bytes; nothing larger is read into memory
KEYS = {"format", "version", "library", "tensors", "meta", "sha256"}
SAME_SCORE = 1e-6  # of the score range: closer scores are the same model's

AGAIN = "copy the folder again, or save the method again"


# ---- writing ----------------------------------------------------------------------------------


def write(folder: str | os.PathLike[str], meta: dict[str, Any], arrays: Arrays) -> None:
    """Write both files, or leave everything as it was. `meta` is strict JSON."""
    folder = Path(os.path.realpath(folder))
    # safetensors writes the bytes of an array as they lie, so rows must come first
    tensors = safetensors.numpy.save({k: np.ascontiguousarray(a) for k, a in arrays.items()})
    body = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "library": version("genrecourse"),
        "tensors": {"bytes": len(tensors), "sha256": _sha256(tensors)},
        "meta": meta,
    }
    text = _dump({**body, "sha256": _sha256(_dump(body))})
    if len(text) > MAX_JSON or len(tensors) > MAX_TENSORS:
        raise UserError(
            f"the model is too large to store: {len(text):,} bytes of JSON (at most {MAX_JSON:,}), "
            f"{len(tensors):,} of arrays (at most {MAX_TENSORS:,}); fit it on fewer rows"
        )
    try:
        _check_target(folder)
        _write_whole(folder, {JSON_NAME: text, TENSORS_NAME: tensors})
    except OSError as error:
        raise UserError(
            f"cannot write the model {folder}: {error.strerror or error}; nothing was changed"
        ) from None


def _check_target(folder: Path) -> None:
    """Only an empty folder, or one that holds a model and nothing else, is written over."""
    if not os.path.lexists(folder):
        return
    if not folder.is_dir():
        raise UserError(f"{folder} is a file; give a folder to save the model to")
    held = sorted(os.listdir(folder))
    if held and not (set(held) <= {JSON_NAME, TENSORS_NAME} and _is_ours(folder / JSON_NAME)):
        raise UserError(
            f"{folder} is no genrecourse model (it holds {_some(held)}), so it is not written "
            "over; give another folder, or empty this one"
        )


def _is_ours(path: Path) -> bool:
    try:
        content = json.loads(_read_file(path, MAX_JSON))
    except (UserError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT


def _write_whole(folder: Path, files: dict[str, bytes]) -> None:
    """Into a new folder beside the old one, on the disk before it takes the old one's name."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    mark = uuid.uuid4().hex[:12]
    new, old = (folder.with_name(f".{folder.name}.{mark}.{age}") for age in ("new", "old"))
    try:
        new.mkdir()
        for name, data in files.items():
            with open(new / name, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        _sync(new)
        _swap(new, folder, old)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    _sync(folder.parent)


def _swap(new: Path, folder: Path, old: Path) -> None:
    if not folder.exists():
        os.rename(new, folder)
        return
    try:
        os.rename(folder, old)
        os.rename(new, folder)
    except BaseException:
        if old.exists():
            os.rename(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sync(folder: Path) -> None:
    """A new name is safe only when its folder is on the disk; not every system has such a call."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---- reading ----------------------------------------------------------------------------------


def read(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """What `write` was given. Sizes and checksums are verified before anything is made of it."""
    folder = Path(folder)
    if not os.path.isdir(folder):  # which, unlike Path.is_dir, has an answer for every path
        what = "is a file" if os.path.exists(folder) else "does not exist"
        raise UserError(
            f"the model folder {folder} {what}; give the one that 'genrecourse fit' or save() wrote"
        )
    content = _parse(folder / JSON_NAME)
    path, claim = folder / TENSORS_NAME, content["tensors"]
    data = _read_file(path, MAX_TENSORS, claim["bytes"])
    _check_sum(path, _sha256(data), claim["sha256"])
    return migrate(content["meta"], _arrays(path, data), content["version"])


def _parse(path: Path) -> dict[str, Any]:
    """The JSON's content, once it is ours, of a version we know, and as it was written."""
    data = _read_file(path, MAX_JSON)
    try:
        content = json.loads(data.decode("ascii"))
        canonical = _dump(content)
    except (ValueError, RecursionError) as error:
        said = "nested too deeply" if isinstance(error, RecursionError) else short(error)
        raise UserError(f"{path} is not a model's JSON ({said}); {AGAIN}") from None
    seen = content.get("format") if isinstance(content, dict) else type(content).__name__
    if seen != FORMAT:
        raise UserError(
            f"{path} is no genrecourse model: its format is {short(repr(seen))}, not '{FORMAT}'"
        )
    number = content.get("version")
    is_number = type(number) is int  # True == 1, but is no version
    if is_number and number > FORMAT_VERSION:
        raise UserError(
            f"{path} was written by a newer genrecourse (format {short(number)}; this version "
            f"reads formats up to {FORMAT_VERSION}); upgrade genrecourse"
        )
    if not (is_number and number >= 1) or set(content) != KEYS:
        raise UserError(
            f"{path} is no genrecourse model: format version {short(repr(number))} with the "
            f"entries {_some(content)}; {AGAIN}"
        )
    recorded = content.pop("sha256")
    _check_sum(path, _sha256(_dump(content)), recorded)
    _check_sum(path, _sha256(data), _sha256(canonical))  # not even a space was added
    claim = content["tensors"]
    if not (isinstance(claim, dict) and set(claim) == {"bytes", "sha256"}):
        raise UserError(f"{path} says {short(repr(claim))} of the tensors, not their size and sum")
    return dict(content)


def _read_file(path: Path, most: int, exactly: Any = None) -> bytes:
    """A plain file of a model, its size known to be sane before it is read."""
    try:
        if path.is_symlink():
            raise UserError(f"{path} is a symbolic link; copy the file itself into the folder")
        if not path.is_file():
            what = "is not a file" if path.exists() else "is missing"
            raise UserError(f"{path} {what}, so this is no whole genrecourse model; {AGAIN}")
        size = path.stat().st_size
        if exactly is not None and size != exactly:
            raise UserError(f"{path} has {size:,} bytes, but {short(exactly)} were saved; {AGAIN}")
        if size > most:
            raise UserError(f"{path} has {size:,} bytes, more than a model's {most:,}; {AGAIN}")
        with open(path, "rb") as file:
            return file.read(size)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


def _arrays(path: Path, data: bytes) -> Arrays:
    # the header's length comes first, 8 bytes: a claim to be checked like any other
    header = int.from_bytes(data[:8], "little")
    if len(data) < 8 or header > len(data) - 8:
        raise UserError(
            f"{path} claims a header of {header:,} bytes in a file of {len(data):,}; {AGAIN}"
        )
    try:
        # copied to memory of their own, since where an array starts can change a sum's last bit
        return {k: np.array(a) for k, a in safetensors.numpy.load(data).items()}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is not a safetensors file ({short(error)}); {AGAIN}") from None


def _check_sum(path: Path, seen: str, recorded: Any) -> None:
    if seen != recorded:
        raise UserError(
            f"{path} is not as it was saved (sha256 {seen[:12]}..., recorded "
            f"{short(recorded)[:12]}...): it was damaged or edited; {AGAIN}"
        )


def _dump(content: Any) -> bytes:
    """The one way in which some content is written, so that every other byte is an error."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def short(value: object) -> str:
    """A stranger's value, fit for one sentence."""
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def _some(names: Any) -> str:
    names = list(map(str, names))
    return short(", ".join(names[:4]) + (", ..." if len(names) > 4 else ""))


# ---- plain values -----------------------------------------------------------------------------


def pack(value: Any) -> Any:
    """A Python value as strict JSON; what JSON lacks is a dict with one key that starts with $."""
    value = plain(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"$float": repr(value)}
    if value is pd.NA:
        return {"$NA": None}
    if isinstance(value, list):
        return [pack(v) for v in value]
    if isinstance(value, tuple):
        return {"$tuple": [pack(v) for v in value]}
    if isinstance(value, set | frozenset):
        mark = "$set" if isinstance(value, set) else "$frozenset"
        return {mark: [pack(v) for v in sorted(value, key=repr)]}
    if isinstance(value, dict):
        if all(isinstance(k, str) and not k.startswith("$") for k in value):
            return {k: pack(v) for k, v in value.items()}
        return {"$dict": [[pack(k), pack(v)] for k, v in value.items()]}
    raise UserError(f"a {type(value).__name__} cannot be stored in a model file: {short(value)}")


def unpack(value: Any) -> Any:
    """The inverse of `pack`."""
    if isinstance(value, list):
        return [unpack(v) for v in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1 or not next(iter(value)).startswith("$"):
        return {k: unpack(v) for k, v in value.items()}
    ((mark, inner),) = value.items()
    if mark == "$NA":
        return pd.NA
    return _MARKS[mark](unpack(inner))


_MARKS: dict[str, Callable[[Any], Any]] = {
    "$float": float,
    "$tuple": tuple,
    "$set": set,
    "$frozenset": frozenset,
    "$dict": dict,
}


def under(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays, each name begun with the prefix."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def within(prefix: str, arrays: Arrays) -> Arrays:
    """The inverse of `under`: those whose names begin so, without it."""
    start = f"{prefix}."
    return {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}


def weights(module: nn.Module) -> Arrays:
    return {name: tensor.cpu().numpy() for name, tensor in module.state_dict().items()}


def fill(module: nn.Module, arrays: Arrays) -> None:
    """Give a module its weights. Made under `torch.device("meta")` it costs no random numbers, and
    no memory but that of the weights in the file."""
    module.load_state_dict({k: torch.tensor(a) for k, a in arrays.items()}, assign=True)
    module.eval()


# ---- tables -----------------------------------------------------------------------------------

_WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_NULLABLE = [name.replace("int", "Int").replace("uI", "UI") for name in _WHOLE]
_PANDAS = {"object", "bool", "boolean", "float16", "float32", "float64", "Float32", "Float64"}
_PANDAS |= {*_WHOLE, *_NULLABLE}
_ARROW = {"bool", "halffloat", "float", "double", "string", "large_string", *_WHOLE}
_STRING = {"python/NA", "python/nan", "pyarrow/NA", "pyarrow/nan"}


def pack_table(X: pd.DataFrame) -> dict[str, Any]:
    """A small table with its dtypes; the index is left out."""
    return {name: _pack_column(X[name]) for name in X.columns}


def unpack_table(packed: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame({name: _unpack_column(column) for name, column in packed.items()})


def _pack_column(column: pd.Series) -> dict[str, Any]:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        levels = _pack_column(pd.Series(dtype.categories, name=column.name))
        cells = column.cat.codes.tolist()
        return {"dtype": "category", "ordered": bool(dtype.ordered), "of": levels, "cells": cells}
    return {"dtype": _dtype_name(column), "cells": pack(column.astype(object).tolist())}


def _unpack_column(packed: dict[str, Any]) -> pd.Series:
    if packed["dtype"] == "category":
        levels = pd.Index(_unpack_column(packed["of"]))
        dtype = pd.CategoricalDtype(levels, ordered=packed["ordered"])
        return pd.Series(pd.Categorical.from_codes(packed["cells"], dtype=dtype))
    return pd.Series(unpack(packed["cells"]), dtype=_dtype(packed["dtype"]))


def _dtype_name(column: pd.Series) -> str:
    """pandas' own name, unless two dtypes share it (a text's) or it is pyarrow's."""
    dtype = column.dtype
    if isinstance(dtype, pd.StringDtype):
        return f"string/{dtype.storage}/{'NA' if dtype.na_value is pd.NA else 'nan'}"
    if isinstance(dtype, pd.ArrowDtype) and str(dtype.pyarrow_dtype) in _ARROW:
        return f"arrow/{dtype.pyarrow_dtype}"
    if str(dtype) not in _PANDAS:
        raise UserError(
            f"column '{column.name}' has dtype {dtype}, which a model file cannot hold; convert it "
            "(to float64, for example) and fit again"
        )
    return str(dtype)


def _dtype(name: str) -> Any:
    """Looked up among the dtypes that `_dtype_name` gives: a file cannot name any other."""
    kind, _, rest = name.partition("/")
    if kind == "string" and rest in _STRING:
        return _string_dtype(*rest.split("/"))
    if kind == "arrow" and rest in _ARROW:
        return _arrow_dtype(rest)
    if name in _PANDAS:
        return pd.api.types.pandas_dtype(name)
    raise UserError(f"the model file names the dtype {short(repr(name))}, which it cannot hold")


def _string_dtype(storage: str, missing: str) -> Any:
    kept = {} if missing == "NA" else {"na_value": np.nan}
    try:
        return pd.StringDtype(storage, **kept)
    except ImportError:  # the same texts, without the pyarrow of the machine that saved them
        return pd.StringDtype("python", **kept)


def _arrow_dtype(name: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise UserError(
            f"the model was fitted on columns of pyarrow's type '{name}': install pyarrow to load "
            "it"
        ) from None
    return pd.ArrowDtype(pyarrow.type_for_alias(name))


# ---- the schema, the encoder and h --------------------------------------------------------------


def pack_schema(schema: Schema) -> Any:
    return pack(schema.model_dump(exclude_defaults=True))


def unpack_schema(packed: Any) -> Schema:
    return Schema.model_validate(unpack(packed))


def pack_encoder(encoder: TableEncoder) -> dict[str, Any]:
    blocks = [pack(asdict(block)) for block in encoder.blocks]
    return {"schema": pack_schema(encoder.schema), "blocks": blocks}


def unpack_encoder(packed: dict[str, Any]) -> TableEncoder:
    blocks = [Block(**unpack(block)) for block in packed["blocks"]]
    return TableEncoder.from_blocks(unpack_schema(packed["schema"]), blocks)


def pack_classifier(h: Classifier) -> tuple[dict[str, Any], Arrays]:
    """h's settings; its weights too if it is an MLP of ours. Any other model is never stored."""
    ours = type(h.model) is MLP and h.encoder is not None
    packed = {
        "kind": type(h.model).__name__,
        "hidden": _hidden(h.model) if ours else None,
        "favourable": pack(h.favourable),
        "cutoff": pack(h.cutoff),
        "score_range": pack(h.score_range),
        "encoder": None if h.encoder is None else pack_encoder(h.encoder),
    }
    return packed, weights(h.model) if ours else {}


def _hidden(model: MLP) -> list[int]:
    return [layer.out_features for layer in model.layers if isinstance(layer, nn.Linear)][:-1]


def unpack_classifier(
    packed: dict[str, Any], arrays: Arrays, given: Any, rows: pd.DataFrame, scores: Array
) -> Classifier:
    """h: the one stored, or the one given again, which must score the probe rows as it did."""
    settings = {name: unpack(packed[name]) for name in ("favourable", "cutoff", "score_range")}
    encoder = None if packed["encoder"] is None else unpack_encoder(packed["encoder"])
    if given is None or (isinstance(given, Classifier) and not given.is_fitted):
        if packed["hidden"] is None or encoder is None:
            raise UserError(
                f"the method was fitted around a {short(packed['kind'])}, which a model file does "
                "not hold: give it again, --classifier MODULE:NAME on the command line, "
                "load(folder, classifier=model) in Python"
            )
        with torch.device("meta"):
            model = MLP(encoder.width, tuple(packed["hidden"]))
        fill(model, arrays)
        return Classifier(model, **settings, encoder=encoder)
    if not isinstance(given, Classifier):
        given = Classifier(given, **settings, encoder=encoder)
    for name in ("cutoff", "score_range"):
        if getattr(given, name) != settings[name]:
            raise UserError(
                f"the method was fitted around a classifier with {name} {settings[name]}, but the "
                f"one given has {name} {getattr(given, name)}; give {name}={settings[name]}, or "
                "fit the method again"
            )
    _recognise(given, packed["kind"], rows, scores)
    return given


def _recognise(h: Classifier, kind: str, rows: pd.DataFrame, scores: Array) -> None:
    """Refuse a model that is not the one the method was fitted around."""
    try:
        seen = h.score(rows)
    except Exception as error:  # whatever a stranger's model may raise
        raise UserError(
            f"the classifier given, a {type(h.model).__name__}, cannot score the rows that the "
            f"method's own, a {short(kind)}, was fitted on: {short(error)}"
        ) from None
    low, high = h.score_range
    gap = np.abs(seen - scores)
    differ = gap > SAME_SCORE * (high - low)
    if differ.any():
        raise UserError(
            "the classifier given is not the one that the method was fitted around: it scores "
            f"{int(differ.sum())} of {len(rows)} stored rows differently, by up to "
            f"{gap.max():.3g}; give the same model, or fit the method again"
        )
