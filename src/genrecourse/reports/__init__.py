"""Write results for people: pages, pictures and console output.

plan_report.py  one HTML file about plans
html.py         the parts of every page
plots.py        every picture, drawn on axes
pictures.py     pictures of plans as figures, for notebooks
console.py      tables and panels in a terminal
"""
