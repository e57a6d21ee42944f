"""genrecourse: what to change to be accepted. The public names, and nothing else."""

from importlib.metadata import version

from genrecourse.data.datasets import load_dataset
from genrecourse.errors import UserError
from genrecourse.methods import METHODS, load
from genrecourse.methods.genre import GenRe
from genrecourse.methods.nearest import NearestNeighbour
from genrecourse.model.classifier import Classifier
from genrecourse.rules.kinds import Rules
from genrecourse.rules.policy import Policy
from genrecourse.table.schema import Feature, Schema

__version__ = version("genrecourse")

__all__ = [
    "METHODS",
    "Classifier",
    "Feature",
    "GenRe",
    "NearestNeighbour",
    "Policy",
    "Rules",
    "Schema",
    "UserError",
    "load",
    "load_dataset",
]
