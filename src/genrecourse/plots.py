"""Every picture. Each function draws on matplotlib axes that it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from genrecourse.classifier import Classifier

ACCEPTED, REJECTED, ARROW = "#4878cf", "#d65f5f", "#333333"


def arrows(
    ax: Axes,
    X: pd.DataFrame,
    y: Any,
    people: pd.DataFrame,
    X_plus: pd.DataFrame,
    h: Classifier | None = None,
) -> None:
    """Two features: the training rows, h's boundary, and an arrow from each x to its x_plus."""
    a, b = X.columns
    favourable = np.asarray(y).astype(bool)
    for rows, colour in ((~favourable, REJECTED), (favourable, ACCEPTED)):
        ax.scatter(X[a][rows], X[b][rows], s=5, c=colour, alpha=0.25, linewidths=0)
    if h is not None:
        _boundary(ax, X, h)
    ax.quiver(
        people[a],
        people[b],
        X_plus[a] - people[a],
        X_plus[b] - people[b],
        angles="xy",
        scale_units="xy",
        scale=1,
        width=0.003,
        color=ARROW,
        alpha=0.7,
    )
    ax.scatter(people[a], people[b], s=14, c="#8b0000", label="x", zorder=3)
    ax.scatter(X_plus[a], X_plus[b], s=14, c="#003c8f", label="x_plus", zorder=3)
    ax.set_xlabel(a)
    ax.set_ylabel(b)


def _boundary(ax: Axes, X: pd.DataFrame, h: Classifier) -> None:
    a, b = X.columns
    xs = np.linspace(X[a].min(), X[a].max(), 120)
    ys = np.linspace(X[b].min(), X[b].max(), 120)
    grid = pd.DataFrame({a: np.tile(xs, len(ys)), b: np.repeat(ys, len(xs))})
    scores = h.score(grid).reshape(len(ys), len(xs))
    ax.contour(xs, ys, scores, levels=[h.cutoff], colors="grey", linewidths=1, linestyles="--")
