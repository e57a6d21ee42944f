"""Saves a fitted method as a folder of JSON and safetensors, without code (docs/decisions/0006).

    folder/model.json           format, versions, everything that is not an array, checksums
    folder/tensors.safetensors  the arrays

`write` and `read` move a dict and arrays to a folder and back, completely or not at all, also if
a save is killed or others save and read at the same time (`folder`). The other functions turn the
parts of a method into such dicts: plain values, tables, the encoder and h.
Files of an older format are migrated when they are read (`migrations`).
"""

from __future__ import annotations

import hashlib
import json
import os
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
from genrecourse.model.folder import (
    JSON_NAME,
    STAGED,
    TENSORS_NAME,
    read_whole,
    replace_files,
    tensors_path,
)
from genrecourse.model.migrations import Arrays, migrate
from genrecourse.table.encoding import Array, Block, TableEncoder
from genrecourse.table.frames import PANDAS
from genrecourse.table.quantiles import Quantiles
from genrecourse.table.schema import Schema, plain
from genrecourse.table.text_files import path_of

FORMAT = "genrecourse-model"
FORMAT_VERSION = 2
MAX_JSON, MAX_TENSORS = 64 * 2**20, 8 * 2**30  # bytes; no larger file is read into memory
KEYS = {"format", "version", "library", "tensors", "meta", "sha256"}
SAME_SCORE = 1e-6  # share of the score range by which two scores of the same model may differ

AGAIN = "copy the folder again, or save the method again"


# ---- writing ----------------------------------------------------------------------------------


def write(folder: str | os.PathLike[str], meta: dict[str, Any], arrays: Arrays) -> None:
    """Write both files to a folder. If that fails, nothing is changed. `meta` must be strict JSON.

    Examples:
        >>> write("my-model", {"method": "nnr"}, {"rows": np.zeros((2, 3))})
        >>> meta, arrays = read("my-model")
        >>> meta, arrays["rows"].shape
        ({'method': 'nnr'}, (2, 3))
    """
    folder = Path(os.path.realpath(path_of(folder, "the model")))
    files = to_bytes(meta, arrays)
    if os.path.lexists(folder) and not folder.is_dir():
        raise UserError(f"{folder} is a file; give a folder to save the model in")
    try:
        replace_files(folder, files, lambda: _check_target(folder))
    except OSError as error:
        raise UserError(
            f"cannot write the model {folder}: {error.strerror or error}; nothing was changed"
        ) from None


def to_bytes(meta: dict[str, Any], arrays: Arrays) -> dict[str, bytes]:
    """Return what `write` writes: the content of each file, by its name.

    Examples:
        >>> files = to_bytes({"method": "nnr"}, {"rows": np.zeros((2, 3))})
        >>> from_bytes(files)[0]
        {'method': 'nnr'}
    """
    # safetensors writes the bytes of an array in memory order, so it must be row by row
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
            f"the model is too large to store: {len(text):,} bytes of JSON (at most {MAX_JSON:,}) "
            f"and {len(tensors):,} bytes of arrays (at most {MAX_TENSORS:,}); fit it on fewer rows"
        )
    return {JSON_NAME: text, TENSORS_NAME: tensors}


def _check_target(folder: Path) -> None:
    """Raise UserError unless the folder is empty, or holds a model and nothing else."""
    held = sorted(os.listdir(folder))
    usual = [name for name in held if not STAGED.fullmatch(name)]  # the others: of a killed save
    if usual and not (set(usual) <= {JSON_NAME, TENSORS_NAME} and _is_ours(folder / JSON_NAME)):
        raise UserError(
            f"{folder} is not a genrecourse model (it holds {_some(held)}), so it is not "
            "overwritten; give another folder, or empty this one"
        )


def _is_ours(path: Path) -> bool:
    try:
        content = json.loads(_read_file(path, MAX_JSON))
    except (UserError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT


# ---- reading ----------------------------------------------------------------------------------


def read(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Return the dict and the arrays that `write` was given, in the current format.

    Sizes and checksums are checked before the content is used. Raises UserError if the folder holds
    no model, a damaged one, or one of a newer format.

    Examples:
        >>> write("my-model", {"method": "nnr"}, {})
        >>> read("my-model")
        ({'method': 'nnr'}, {})
        >>> read("nowhere")
        Traceback (most recent call last):
        ...
        genrecourse.errors.UserError: the model folder nowhere does not exist; ...
    """
    folder = path_of(folder, "the model")
    if not os.path.isdir(folder):  # Path.is_dir raises for some paths
        what = "is a file" if os.path.exists(folder) else "does not exist"
        raise UserError(
            f"the model folder {folder} {what}; give the folder that 'genrecourse fit' or save() "
            "wrote"
        )
    return read_whole(folder, lambda: _read(folder))


def _read(folder: Path) -> tuple[dict[str, Any], Arrays]:
    path = folder / JSON_NAME
    content = _parse(path, _read_file(path, MAX_JSON))
    claim = content["tensors"]
    path = tensors_path(folder, claim["sha256"])
    return _content(content, path, _read_file(path, MAX_TENSORS, claim["bytes"]))


def from_bytes(files: dict[str, bytes]) -> tuple[dict[str, Any], Arrays]:
    """Return the dict and the arrays that `to_bytes` was given, in the current format.

    Examples:
        >>> from_bytes(to_bytes({}, {"rows": np.zeros((2, 3))}))[1]["rows"].shape
        (2, 3)
    """
    content = _parse(Path(JSON_NAME), files[JSON_NAME])
    return _content(content, Path(TENSORS_NAME), files[TENSORS_NAME])


def _content(content: dict[str, Any], path: Path, data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the dict and the arrays, of which `data` are the bytes."""
    _check_sum(path, _sha256(data), content["tensors"]["sha256"])
    return migrate(content["meta"], _arrays(path, data), content["version"])


def checksum(folder: str | os.PathLike[str]) -> str:
    """Return a checksum that tells one saved model from another.

    It is that of the JSON file, which holds the checksum of the arrays.

    Examples:
        >>> write("my-model", {"method": "nnr"}, {})
        >>> len(checksum("my-model"))
        64
    """
    return _sha256(_read_file(path_of(folder, "the model") / JSON_NAME, MAX_JSON))


def _parse(path: Path, data: bytes) -> dict[str, Any]:
    """Return the content of model.json. Raises UserError if it is not one, is of an unknown
    version, or was changed."""
    try:
        content = json.loads(data.decode("ascii"))
        canonical = _dump(content)
    except (ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else short(error)
        raise UserError(f"{path} is not the JSON of a model ({problem}); {AGAIN}") from None
    seen = content.get("format") if isinstance(content, dict) else type(content).__name__
    if seen != FORMAT:
        raise UserError(
            f"{path} is not a genrecourse model: its format is {short(repr(seen))}, not "
            f"'{FORMAT}'; give a folder that save() wrote"
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
            f"{path} is not a genrecourse model: it has the format version {short(repr(number))} "
            f"and the entries {_some(content)}; {AGAIN}"
        )
    recorded = content.pop("sha256")
    _check_sum(path, _sha256(_dump(content)), recorded)
    _check_sum(path, _sha256(data), _sha256(canonical))  # an added space counts as a change
    claim = content["tensors"]
    if not (isinstance(claim, dict) and set(claim) == {"bytes", "sha256"}):
        raise UserError(
            f"{path} should hold the size and checksum of the tensors, but holds "
            f"{short(repr(claim))}; {AGAIN}"
        )
    return dict(content)


def _read_file(path: Path, most: int, exactly: Any = None) -> bytes:
    """Return the content of a regular file of at most `most` bytes; the size is checked first."""
    try:
        if path.is_symlink():
            raise UserError(f"{path} is a symbolic link; copy the file itself into the folder")
        if not path.is_file():
            what = "is not a file" if path.exists() else "is missing"
            raise UserError(f"{path} {what}, so the model is incomplete; {AGAIN}")
        size = path.stat().st_size
        if exactly is not None and size != exactly:
            raise UserError(f"{path} has {size:,} bytes, but {short(exactly)} were saved; {AGAIN}")
        if size > most:
            raise UserError(f"{path} has {size:,} bytes, but a model has at most {most:,}; {AGAIN}")
        with open(path, "rb") as file:
            return file.read(size)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


def _arrays(path: Path, data: bytes) -> Arrays:
    # the first 8 bytes hold the length of the header, which may be wrong
    header = int.from_bytes(data[:8], "little")
    if len(data) < 8 or header > len(data) - 8:
        raise UserError(
            f"{path} claims a header of {header:,} bytes in a file of {len(data):,}; {AGAIN}"
        )
    try:
        # copy each array to its own memory: its alignment can change the last bit of a sum
        return {k: np.array(a) for k, a in safetensors.numpy.load(data).items()}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is not a safetensors file ({short(error)}); {AGAIN}") from None


def _check_sum(path: Path, seen: str, recorded: Any) -> None:
    if seen != recorded:
        raise UserError(
            f"{path} was damaged or edited after it was saved (its sha256 is {seen[:12]}..., "
            f"recorded was {short(recorded)[:12]}...); {AGAIN}"
        )


def _dump(content: Any) -> bytes:
    """Return content as JSON, always in the same bytes, so that every changed byte is found."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def short(value: object) -> str:
    """Return an unknown value as text on one line, of at most 80 characters, for a message.

    Examples:
        >>> short("two\\nlines")
        'two lines'
        >>> len(short("x" * 1000))
        80
    """
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def _some(names: Any) -> str:
    names = list(map(str, names))
    return short(", ".join(names[:4]) + (", ..." if len(names) > 4 else ""))


# ---- plain values -----------------------------------------------------------------------------


def pack(value: Any) -> Any:
    """Return a Python value as strict JSON.

    A type that JSON lacks becomes a dict with one key that starts with $. Raises UserError if a
    value cannot be stored.

    Examples:
        >>> pack({"range": (0.0, float("inf")), "n": np.int64(3)})
        {'range': {'$tuple': [0.0, {'$float': 'inf'}]}, 'n': 3}
    """
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
    """Return the Python value that `pack` turned into JSON.

    Examples:
        >>> unpack({"range": {"$tuple": [0.0, {"$float": "inf"}]}})
        {'range': (0.0, inf)}
    """
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
    """Return the arrays with a prefix before each name.

    Examples:
        >>> under("state", {"rows": np.zeros(2)})
        {'state.rows': array([0., 0.])}
    """
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def within(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names have the prefix, without the prefix: the inverse of `under`.

    Examples:
        >>> within("state", {"state.rows": np.zeros(2), "other.rows": np.ones(2)})
        {'rows': array([0., 0.])}
    """
    start = f"{prefix}."
    return {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}


def weights(module: nn.Module) -> Arrays:
    """Return the weights of a torch module as arrays by name.

    Examples:
        >>> {name: array.shape for name, array in weights(nn.Linear(3, 1)).items()}
        {'weight': (1, 3), 'bias': (1,)}
    """
    return {name: tensor.cpu().numpy() for name, tensor in module.state_dict().items()}


def fill(module: nn.Module, arrays: Arrays) -> None:
    """Set the weights of a module and switch it to evaluation.

    Make the module under `torch.device("meta")`: then it draws no random numbers, and needs no
    memory besides that of the arrays.

    Examples:
        >>> with torch.device("meta"):
        ...     line = nn.Linear(1, 1)
        >>> fill(line, {"weight": np.array([[2.0]]), "bias": np.array([1.0])})
        >>> line(torch.tensor([3.0], dtype=torch.float64)).item()
        7.0
    """
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
    """Return a small table with its dtypes as strict JSON, without its index.

    Examples:
        >>> pack_table(pd.DataFrame({"age": [30, 41]}))
        {'age': {'dtype': 'int64', 'cells': [30, 41]}}
    """
    return {name: _pack_column(X[name]) for name in X.columns}


def unpack_table(packed: dict[str, Any]) -> pd.DataFrame:
    """Return the table that `pack_table` turned into JSON.

    Examples:
        >>> unpack_table({"age": {"dtype": "Int16", "cells": [30, None]}})
            age
        0    30
        1  <NA>
    """
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
    """Return a name for the dtype: pandas' own, except for texts and pyarrow's dtypes, whose names
    are not unique."""
    dtype = column.dtype
    if isinstance(dtype, pd.StringDtype):
        return f"string/{dtype.storage}/{'NA' if dtype.na_value is pd.NA else 'nan'}"
    if isinstance(dtype, pd.ArrowDtype) and str(dtype.pyarrow_dtype) in _ARROW:
        return f"arrow/{dtype.pyarrow_dtype}"
    if str(dtype) not in _PANDAS:
        raise UserError(
            f"column '{column.name}' has dtype {dtype}, which a model file cannot store; convert "
            "it (to float64, for example) and fit again"
        )
    return str(dtype)


def _dtype(name: str) -> Any:
    """Return the dtype that `_dtype_name` gave this name. A file cannot name any other dtype."""
    kind, _, rest = name.partition("/")
    if kind == "string" and rest in _STRING:
        return _string_dtype(*rest.split("/"))
    if kind == "arrow" and rest in _ARROW:
        return _arrow_dtype(rest)
    if name in _PANDAS:
        return pd.api.types.pandas_dtype(name)
    raise UserError(
        f"the model file names the dtype {short(repr(name))}, which no model file stores; {AGAIN}"
    )


def _string_dtype(storage: str, missing: str) -> Any:
    kept = {} if missing == "NA" else {"na_value": np.nan}
    try:
        return pd.StringDtype(storage, **kept)
    except ImportError:  # pyarrow is missing here; this dtype holds the same texts without it
        return pd.StringDtype("python", **kept)


def _arrow_dtype(name: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise UserError(
            f"the model was fitted on columns of pyarrow's type '{name}'; install pyarrow to load "
            "it"
        ) from None
    return pd.ArrowDtype(pyarrow.type_for_alias(name))


# ---- the schema, the encoder and h --------------------------------------------------------------


def pack_schema(schema: Schema) -> Any:
    """Return a schema as strict JSON, without the fields that have their default value.

    Examples:
        >>> schema = Schema(features=[{"name": "age", "kind": "number"}])
        >>> pack_schema(schema)
        {'features': {'$tuple': [{'name': 'age', 'kind': 'number'}]}}
    """
    return pack(schema.model_dump(exclude_defaults=True))


def unpack_schema(packed: Any) -> Schema:
    """Return the schema that `pack_schema` turned into JSON.

    Examples:
        >>> unpack_schema({"features": [{"name": "age", "kind": "number"}]}).names
        ['age']
    """
    return Schema.model_validate(unpack(packed))


def pack_encoder(encoder: TableEncoder) -> dict[str, Any]:
    """Return a fitted encoder as strict JSON: its schema and its blocks.

    Examples:
        >>> X = pd.DataFrame({"age": [30, 41]})
        >>> packed = pack_encoder(TableEncoder(Schema.infer(X)).fit(X))
        >>> packed["blocks"][0]["low"], packed["blocks"][0]["span"]
        (30.0, 11.0)
    """
    blocks = [pack(_block_fields(block)) for block in encoder.blocks]
    return {"schema": pack_schema(encoder.schema), "blocks": blocks}


def unpack_encoder(packed: dict[str, Any]) -> TableEncoder:
    """Return the encoder that `pack_encoder` turned into JSON.

    Examples:
        >>> X = pd.DataFrame({"age": [30, 41]})
        >>> encoder = unpack_encoder(pack_encoder(TableEncoder(Schema.infer(X)).fit(X)))
        >>> encoder.encode(X)
        array([[0.],
               [1.]])
    """
    blocks = [_block(**unpack(block)) for block in packed["blocks"]]
    return TableEncoder.from_blocks(unpack_schema(packed["schema"]), blocks)


def _block_fields(block: Block) -> dict[str, Any]:
    """Return a block's fields; without quantiles, if its cost needs none, as older files."""
    fields = asdict(block)
    return fields if block.quantiles else {k: v for k, v in fields.items() if k != "quantiles"}


def _block(*, quantiles: dict[str, Any] | None = None, **fields: Any) -> Block:
    return Block(**fields, quantiles=None if quantiles is None else Quantiles(**quantiles))


def pack_classifier(h: Classifier) -> tuple[dict[str, Any], Arrays]:
    """Return h's settings and its weights. Only the weights of the library's MLP are stored.

    Examples:
        >>> packed, arrays = pack_classifier(Classifier(lambda X: X["age"] / 100, cutoff=0.4))
        >>> packed["kind"], packed["cutoff"], arrays
        ('function', 0.4, {})
    """
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
    packed: dict[str, Any],
    arrays: Arrays,
    given: Any,
    rows: pd.DataFrame,
    scores: Array | None,
    kind: str = PANDAS,
) -> Classifier:
    """Return h: the stored one, or the given one if it scores the stored rows as the old one did.

    Args:
        packed: h's settings, from `pack_classifier`.
        arrays: h's weights, from `pack_classifier`.
        given: the user's model; None: the stored one.
        rows: some training rows.
        scores: h's scores of these rows when the method was fitted; None: `given` is h, for sure.
        kind: of the table that the model is shown.

    Examples:
        >>> def h(X):
        ...     return X["age"].to_numpy() / 100
        >>> packed, arrays = pack_classifier(Classifier(h, cutoff=0.4))
        >>> rows = pd.DataFrame({"age": [30, 41]})
        >>> unpack_classifier(packed, arrays, h, rows, np.array([0.3, 0.41])).accepts(rows)
        array([False,  True])
    """
    settings = {name: unpack(packed[name]) for name in ("favourable", "cutoff", "score_range")}
    encoder = None if packed["encoder"] is None else unpack_encoder(packed["encoder"])
    if given is None or (isinstance(given, Classifier) and not given.is_fitted):
        if packed["hidden"] is None or encoder is None:
            raise UserError(
                f"the method was fitted with a {short(packed['kind'])}, which a model file does "
                "not store; give it again with --classifier MODULE:NAME on the command line, or "
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
                f"the method was fitted with a classifier with {name} {settings[name]}, but the "
                f"given one has {name} {getattr(given, name)}; give {name}={settings[name]}, or "
                "fit the method again"
            )
    if scores is not None:
        _recognise(given.in_form(rows, kind), packed["kind"], rows, scores)
    return given


def _recognise(h: Classifier, kind: str, rows: pd.DataFrame, scores: Array) -> None:
    """Raise UserError unless h gives the stored rows the scores that the method was fitted with."""
    try:
        seen = h.score(rows)
    except Exception as error:  # a user's model may raise anything
        raise UserError(
            f"the given classifier, a {type(h.model).__name__}, cannot score the stored rows, "
            f"which a {short(kind)} scored when the method was fitted ({short(error)}); give the "
            "same model"
        ) from None
    low, high = h.score_range
    gap = np.abs(seen - scores)
    differ = gap > SAME_SCORE * (high - low)
    if differ.any():
        raise UserError(
            "the given classifier is not the one that the method was fitted with: it scores "
            f"{int(differ.sum())} of {len(rows)} stored rows differently, by up to "
            f"{gap.max():.3g}; give the same model, or fit the method again"
        )
