"""Recourse by group: who is turned down, who gets a plan, and what it asks of them.

    found = audit(method, X, groups=["sex", "race"])
    found.to_frame()  # group, metric, value, low, high, n
    found.to_html()  # one file that opens anywhere

One step a file, in reading order:

    measures.py    one number a person and metric, from plans that hold
    groups.py      who belongs to which group
    discretion.py  what is kept back, so that nothing follows about a few people
    resampling.py  the bootstrap: intervals of means of people
    result.py      Audit: the numbers, the differences that are called, as text, JSON and frame
    page.py        the same as one HTML file
"""

from genrecourse.auditing.result import Audit, Difference, Number, audit

__all__ = ["Audit", "Difference", "Number", "audit"]
