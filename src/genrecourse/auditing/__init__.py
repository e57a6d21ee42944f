"""Audit recourse by group: who is rejected, who gets a plan, and what the plan asks for.

    found = audit(method, X, groups=["sex", "race"])
    found.to_frame()  # group, metric, value, low, high, n
    found.to_html()  # one file that opens in every browser

One step per file, in reading order:

    measures.py    one number per person and metric
    groups.py      who belongs to which group
    discretion.py  which numbers are hidden to protect small groups
    resampling.py  the bootstrap: intervals of means over people
    result.py      Audit: the numbers and differences, as text, JSON and table
    page.py        the same as one HTML file
"""

from genrecourse.auditing.result import Audit, Difference, Number, audit

__all__ = ["Audit", "Difference", "Number", "audit"]
