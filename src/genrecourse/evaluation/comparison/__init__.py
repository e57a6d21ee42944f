"""Compare methods under the protocol.

In reading order: run, entries, results, bench, isolation, fence and landlock run the methods;
intervals, ranking and rendering make tables from the results.
"""

from genrecourse.evaluation.comparison.entries import Entry
from genrecourse.evaluation.comparison.ranking import difference, estimate, standings
from genrecourse.evaluation.comparison.results import read_results, unpack_people
from genrecourse.evaluation.comparison.run import compare

__all__ = [
    "Entry",
    "compare",
    "difference",
    "estimate",
    "read_results",
    "standings",
    "unpack_people",
]
