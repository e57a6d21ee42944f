"""genrecourse: what to change to be accepted by a model. The public names, and nothing else.

Names are imported when they are first used, so `import genrecourse` loads neither torch nor
scikit-learn.

>>> import genrecourse
>>> genrecourse.Schema.__name__
'Schema'
"""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from genrecourse.advice.reasons import reasons
    from genrecourse.auditing.result import audit
    from genrecourse.data.datasets import load_dataset
    from genrecourse.errors import UserError
    from genrecourse.evaluation.comparison.run import compare
    from genrecourse.evaluation.evaluate import evaluate
    from genrecourse.methods import METHODS, load
    from genrecourse.methods.genre import GenRe
    from genrecourse.methods.nearest import NearestNeighbour
    from genrecourse.model.classifier import Classifier
    from genrecourse.model.target_range import TargetRange
    from genrecourse.planning.plans import Plan, Plans
    from genrecourse.rules.kinds import Rules
    from genrecourse.rules.policy import Policy
    from genrecourse.table.discovery import discover_relations, keep_relations
    from genrecourse.table.schema import Feature, Schema

__version__ = version("genrecourse")

logging.getLogger("genrecourse").addHandler(logging.NullHandler())  # an application decides

# where each public name lives
_MODULES = {
    "METHODS": "methods",
    "Classifier": "model.classifier",
    "Feature": "table.schema",
    "GenRe": "methods.genre",
    "NearestNeighbour": "methods.nearest",
    "Plan": "planning.plans",
    "Plans": "planning.plans",
    "Policy": "rules.policy",
    "Rules": "rules.kinds",
    "Schema": "table.schema",
    "TargetRange": "model.target_range",
    "UserError": "errors",
    "audit": "auditing.result",
    "compare": "evaluation.comparison.run",
    "discover_relations": "table.discovery",
    "evaluate": "evaluation.evaluate",
    "keep_relations": "table.discovery",
    "load": "methods",
    "load_dataset": "data.datasets",
    "reasons": "advice.reasons",
}

__all__ = [
    "METHODS",
    "Classifier",
    "Feature",
    "GenRe",
    "NearestNeighbour",
    "Plan",
    "Plans",
    "Policy",
    "Rules",
    "Schema",
    "TargetRange",
    "UserError",
    "audit",
    "compare",
    "discover_relations",
    "evaluate",
    "keep_relations",
    "load",
    "load_dataset",
    "reasons",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'genrecourse' has no attribute '{name}'")
    value = getattr(import_module(f"genrecourse.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
