"""Parameters of methods: checked by name, and as JSON values for model files and comparisons."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from genrecourse.errors import UserError, did_you_mean
from genrecourse.model.artifact import pack, unpack
from genrecourse.model.classifier import Classifier

if TYPE_CHECKING:
    from genrecourse.table.schema import Schema


def check_params(kind: type[Any], params: Mapping[str, Any]) -> None:
    """Raise an error if the method has no such parameter; the error lists those it has."""
    known = list(inspect.signature(kind.__init__).parameters)[1:]
    unknown = [name for name in params if name not in known]
    if unknown:
        close = did_you_mean(unknown[0], known)
        raise UserError(f"{kind.__name__} has no parameter {unknown}{close}; it has {known}")


def pack_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON values, without the schema and the classifier."""
    plain = {name: value for name, value in params.items() if name not in ("schema", "classifier")}
    for name, value in plain.items():
        if is_dataclass(value) and not isinstance(value, type):
            plain[name] = {f.name: getattr(value, f.name) for f in fields(value)}
    return {name: pack(value) for name, value in plain.items()}


def unpack_params(
    packed: dict[str, Any], records: Mapping[str, type[Any]], schema: Schema, h: Classifier
) -> dict[str, Any]:
    params = {name: unpack(value) for name, value in packed.items()}
    params |= {name: kind(**params[name]) for name, kind in records.items()}
    params["schema"] = schema if params["schema"] else None
    if params["classifier"] is not None:
        to_be_trained = Classifier(
            None, favourable=h.favourable, cutoff=h.cutoff, score_range=h.score_range
        )
        params["classifier"] = h if params["classifier"] else to_be_trained
    return params
