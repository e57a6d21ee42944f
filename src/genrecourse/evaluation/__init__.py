"""Metrics, the gold judge, evaluations and comparisons of methods."""
