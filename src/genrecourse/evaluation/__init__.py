"""Evaluate methods: metrics, the gold judge, one run, comparisons, and the contract of a method.

metrics.py     one function per metric, and METRICS
gold.py        the gold judge and further witnesses, which no method may see
evaluate.py    make_case, evaluate: the protocol on one case
comparison/    compare: methods x data sets x seeds, each method in its own process
checks.py      check_method: the contract that every method must pass
examples.py    the tiny table of the docstring examples
"""

from genrecourse.evaluation.comparison import compare
from genrecourse.evaluation.evaluate import evaluate, make_case

__all__ = ["compare", "evaluate", "make_case"]
