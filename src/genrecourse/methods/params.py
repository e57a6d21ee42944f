"""Parameters of methods: checked by name, and as JSON values for model files and comparisons."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from genrecourse.errors import UserError, did_you_mean, shown
from genrecourse.model.artifact import pack, unpack
from genrecourse.model.classifier import Classifier

if TYPE_CHECKING:
    from genrecourse.table.schema import Schema


def check_params(kind: type[Any], params: Mapping[str, Any]) -> None:
    """Raise an error if the method has no such parameter; the error lists its parameters.

    >>> from genrecourse.methods.nearest import NearestNeighbour
    >>> check_params(NearestNeighbour, {"gama": 0.7})
    Traceback (most recent call last):
    ...
    genrecourse.errors.UserError: NearestNeighbour has no parameter ['gama'] (did you mean ...
    """
    taken = list(inspect.signature(kind.__init__).parameters.values())[1:]
    known = [each.name for each in taken]
    unknown = [name for name in params if name not in known]
    takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken)
    if unknown and not takes_any:
        close = did_you_mean(unknown[0], known)
        raise UserError(f"{kind.__name__} has no parameter {shown(unknown)}{close}; it has {known}")


def pack_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON values, without the schema and the classifier.

    >>> pack_params({"gamma": 0.7, "schema": None, "classifier": None})
    {'gamma': 0.7}
    """
    plain = {name: value for name, value in params.items() if name not in ("schema", "classifier")}
    for name, value in plain.items():
        if is_dataclass(value) and not isinstance(value, type):
            plain[name] = {f.name: getattr(value, f.name) for f in fields(value)}
    return {name: pack(value) for name, value in plain.items()}


def unpack_params(
    packed: dict[str, Any], records: Mapping[str, type[Any]], schema: Schema, h: Classifier
) -> dict[str, Any]:
    """Return the parameters that `pack_params` packed, with the schema and the classifier.

    records: the parameters that are dataclasses (or None), by name.

    >>> from genrecourse.table.schema import Schema
    >>> import pandas as pd
    >>> packed = {"gamma": 0.7, "schema": False, "classifier": None}
    >>> schema = Schema.infer(pd.DataFrame({"income": [1, 2]}))
    >>> unpack_params(packed, {}, schema, Classifier(None))
    {'gamma': 0.7, 'schema': None, 'classifier': None}
    """
    params = {name: unpack(value) for name, value in packed.items()}
    given = {name: kind for name, kind in records.items() if params[name] is not None}
    params |= {name: kind(**params[name]) for name, kind in given.items()}
    params["schema"] = schema if params["schema"] else None
    if params["classifier"] is not None:
        to_be_trained = Classifier(
            None, favourable=h.favourable, cutoff=h.cutoff, score_range=h.score_range
        )
        params["classifier"] = h if params["classifier"] else to_be_trained
    return params
