"""The paper, one step a file, in reading order: pairs, bins, model, density, sample, select.

`any_lam` is the first step of a model for every lam.
"""
