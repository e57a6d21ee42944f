"""Answer: what is recorded about one request, and how it is made from a table and its outputs.

Personal, and therefore committed to and erasable: the values of a person's row with their types,
the label of the row, the rules that bind the person, and what the person was told. Not personal,
and therefore in the chain: the id of the request, what was asked, options that are the same for
everybody, how many people there are, the status, and what the answer was made by.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from genrecourse.advice.record.lines import canonical
from genrecourse.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from genrecourse.advice.request import PlanRequest
    from genrecourse.advice.service import Service
    from genrecourse.planning.plans import Plans

INPUT = "input."  # before the name of a column


@dataclass(frozen=True)
class Answer:
    """One answer of a service, as `Record.append` takes it. All values must be strict JSON.

    request: the id of the request. It stays in the record for ever, so it names no person.
    verb: what was asked, such as "plans" or "decision".
    people: the personal values of each person by name: "input.age", "rules", "output", ... Each
        value becomes a commitment of its own, and can be erased with its person.
    asked: options that are about nobody, such as how many plans each person gets.
    status: of the HTTP response.

    >>> Answer("7f3a", "decision", [{"input.age": 41, "output": {"accepted": False}}]).status
    200
    """

    request: str
    verb: str
    people: Sequence[Mapping[str, Any]]
    asked: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


def plans_answer(request_id: str, X: pd.DataFrame, request: PlanRequest, plans: Plans) -> Answer:
    """Return what is recorded about plans: X and `request` are those that the plans were made of.

    `replay` computes such an answer again, byte for byte.

    >>> import pandas as pd
    >>> from genrecourse import NearestNeighbour, Schema
    >>> from genrecourse.advice.request import PlanRequest
    >>> from genrecourse.advice.service import Service
    >>> X = pd.DataFrame({"income": range(80)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> service = Service(NearestNeighbour(h, Schema.infer(X)).fit(X))
    >>> plans = service.plans(X.head(2), PlanRequest())
    >>> answer = plans_answer("a1", X.head(2), PlanRequest(), plans)
    >>> answer.verb, answer.asked["n"], sorted(answer.people[0])
    ('plans', 1, ['input.income', 'label', 'output', 'rules'])
    """
    return answer_about(request_id, "plans", X, request, [plan.to_dict() for plan in plans])


def answer_about(
    request_id: str,
    verb: str,
    X: pd.DataFrame,
    request: PlanRequest,
    outputs: Iterable[Any],
) -> Answer:
    """Return what is recorded about any answer that has one output for each row of X.

    >>> import pandas as pd
    >>> from genrecourse.advice.request import PlanRequest
    >>> X = pd.DataFrame({"age": [41]})
    >>> answer_about("a1", "decision", X, PlanRequest(), [{"accepted": False}]).people[0]["label"]
    0
    """
    from genrecourse.model.artifact import pack

    personal = [
        {**row, "label": pack(label), "rules": _rules_of(request, label), "output": output}
        for row, label, output in zip(_rows(X), X.index, outputs, strict=True)
    ]
    return Answer(request_id, verb, personal, asked=_options(request))


def made_by(
    service: Service, folder: str | os.PathLike[str], *, by_row: bool = False
) -> dict[str, Any]:
    """Return what answers of a service are made by: all that decides them besides their input.

    folder: of the model. Its hash is that of the files in it.
    by_row: the answers are computed inside `scores_by_row`, as the web service does, so that
        replaying them gives the same bytes whoever else asked at the time.

    >>> import pandas as pd
    >>> from genrecourse import NearestNeighbour, Schema
    >>> from genrecourse.advice.service import Service
    >>> X = pd.DataFrame({"income": range(80)})
    >>> h = lambda X: X["income"].to_numpy() / 80
    >>> service = Service(NearestNeighbour(h, Schema.infer(X)).fit(X))
    >>> service.save("model")
    >>> made_by(service, "model")["method"]
    'NearestNeighbour'
    """
    policy = service.policy
    from genrecourse.model.artifact import checksum  # brings torch: slow to import

    return {
        "model": checksum(folder),
        "method": type(service.method).__name__,
        "policy": None if policy is None else _hash(canonical(policy.pack())),
        "random_state": service.method.random_state,
        "code": version("genrecourse"),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "torch": version("torch"),
        "machine": platform.machine(),
        **({"scores": "by row"} if by_row else {}),
    }


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ---- there --------------------------------------------------------------------------------------


def _rows(X: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the values of each row by name. Each has its dtype, without which a value that is read
    again may be another one to the model."""
    from genrecourse.model.artifact import pack_table

    packed = pack_table(X).items()
    return [
        {
            f"{INPUT}{name}": {**column, "cells": column["cells"][i : i + 1]}
            for name, column in packed
        }
        for i in range(len(X))
    ]


def _rules_of(request: PlanRequest, label: Any) -> dict[str, Any]:
    """Return the rules that bind one person: everybody's, which say something about a person who
    asks alone, and their own."""
    if request.rules is None:
        return {}
    bound = request.rules.only([label])
    stated = {"everybody": bound.default}
    if bound.people:  # one entry: a label that came through JSON is text, and only(...) knows it
        stated["own"] = next(iter(bound.people.values()))
    return {
        who: rules.model_dump(mode="json", exclude_defaults=True) for who, rules in stated.items()
    }


def _options(request: PlanRequest) -> dict[str, Any]:
    from genrecourse.model.artifact import pack

    if not isinstance(request.language, str | os.PathLike):
        raise UserError("the record keeps the name or the file of a language, not a Wording")
    asked = {each.name: getattr(request, each.name) for each in fields(request)}
    asked |= {"language": os.fspath(request.language), "options": dict(request.options)}
    del asked["rules"]
    return {name: pack(value) for name, value in asked.items()}


# ---- and back -----------------------------------------------------------------------------------


def request_of(asked: Mapping[str, Any], people: Sequence[Mapping[str, Any]]) -> PlanRequest:
    """Return the request that an answer was recorded with, for these of its people.

    >>> request_of({"n": 2}, [{"label": 7, "rules": {"own": {"lock": ["job"]}}}]).rules.people
    {7: Rules(lock=('job',), ...)}
    """
    from genrecourse.advice.request import PlanRequest
    from genrecourse.model.artifact import unpack
    from genrecourse.rules.kinds import Rules
    from genrecourse.rules.stated import PersonalRules

    request = PlanRequest(**{name: unpack(value) for name, value in asked.items()})
    if not any(person["rules"] for person in people):
        return request
    everybody = next(person["rules"].get("everybody", {}) for person in people)
    own = {
        unpack(person["label"]): Rules(**person["rules"]["own"])
        for person in people
        if "own" in person["rules"]
    }
    return replace(request, rules=PersonalRules(people=own, default=Rules(**everybody)))


def table_of(people: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows of some people, with the labels and dtypes that they were recorded with.

    >>> table_of([{"label": 7, "input.age": {"dtype": "int64", "cells": [41]}}])
       age
    7   41
    """
    import pandas as pd

    from genrecourse.model.artifact import unpack, unpack_table

    columns: dict[str, Any] = {
        name.removeprefix(INPUT): {**value, "cells": [each[name]["cells"][0] for each in people]}
        for name, value in people[0].items()
        if name.startswith(INPUT)
    }
    X = unpack_table(columns)
    X.index = pd.Index([unpack(person["label"]) for person in people])
    return X
