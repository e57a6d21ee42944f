"""Theorems 4.1 and 4.2 where the ideal density R is known.

    R(x+ | x)  ∝  exp(-lam * C(x, x+)) * P(x+ | favourable) * V(x+)                          (Eq. 5)

P(x+ | favourable) is a Gaussian of two independent features, C is the L1 distance, and x+ is valid
if its first feature is above a threshold. Everything factors over the features, so every
expectation under R is a product of one-dimensional integrals, and so is every prediction of the
theory of self-normalised importance sampling. They are compared with E_Q, where Q comes from the
library's own Eq. (6) on N+ accepted people drawn from P.

Theorem 4.2 says that the norm of the error falls as 1 / N+. Its proof shows this for the variance,
and so do the numbers: variance and bias fall as 1 / N+, the error as the square root of 1 / N+.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.integrate import quad
from scipy.stats import norm

from genrecourse.genre.pairs import q_weights

Function = Callable[[Any], Any]
SIZES = (30, 100, 300, 1_000, 3_000, 10_000, 30_000)
TOP_K = 1_000


def zero(v: Any) -> Any:
    return 0.0 * v


def squared(f: Function, v: Any) -> Any:
    return f(v) ** 2


@dataclass(frozen=True)
class KnownR:
    """One person x and the distribution of accepted people; features are scaled to [0, 1]."""

    x: tuple[float, float] = (0.2, 0.3)
    mean: tuple[float, float] = (0.7, 0.6)  # of P(x+ | favourable)
    sd: tuple[float, float] = (0.2, 0.2)
    bar: float = 0.4  # x+ is valid if its first feature is above this threshold
    lam: float = 5.0

    @property
    def functions(self) -> dict[str, tuple[Function, Function]]:
        """Return pairs f1, f2 with f(x+) = f1(x+_1) + f2(x+_2), so that the moments factor too."""
        a, b = self.x
        return {
            "first feature": (lambda v: v, zero),
            "second feature": (zero, lambda v: v),
            "cost": (lambda v: abs(v - a), lambda v: abs(v - b)),
        }

    def expectation(self, f1: Function, f2: Function, power: int = 0, square: bool = False) -> Any:
        """Return E[w^power * f] or E[w^power * f^2] over valid people of P; w = exp(-lam * C)."""
        whole = self._integral(0, np.ones_like, 0)
        ones = [self._integral(j, np.ones_like, power) for j in (0, 1)]
        first = [self._integral(j, f, power) for j, f in enumerate((f1, f2))]
        if not square:
            return (first[0] * ones[1] + ones[0] * first[1]) / whole
        second = [self._integral(j, partial(squared, f), power) for j, f in enumerate((f1, f2))]
        return (second[0] * ones[1] + 2 * first[0] * first[1] + ones[0] * second[1]) / whole

    def _integral(self, j: int, f: Function, power: int) -> float:
        """Integrates f * exp(-power * lam * |v - x_j|) * density over the valid v of feature j."""
        low, high = self.mean[j] - 12 * self.sd[j], self.mean[j] + 12 * self.sd[j]
        if j == 0:
            low = self.bar

        def weighted(v: float) -> float:
            price = np.exp(-power * self.lam * abs(v - self.x[j]))
            return float(f(v) * price * norm.pdf(v, self.mean[j], self.sd[j]))

        kinks = [v for v in (self.x[j], self.mean[j]) if low < v < high]
        return float(quad(weighted, low, high, points=kinks, limit=200)[0])

    def truth(self, name: str) -> dict[str, float]:
        """Return E_R[f], and the predictions of importance sampling theory for E_Q, times N+."""
        f1, f2 = self.functions[name]
        weight = self.expectation(np.ones_like, zero, 1)
        mu = self.expectation(f1, f2, 1) / weight

        def centred(v: Any) -> Any:
            return f1(v) - mu

        w2 = self.expectation(np.ones_like, zero, 2)
        variance = self.expectation(centred, f2, 2, square=True) / weight**2
        spread = self.expectation(centred, f2, 1, square=True) / weight
        return {
            "truth": mu,
            "variance": variance,  # the delta method
            "bias": -self.expectation(centred, f2, 2) / weight**2,
            "ess_share": weight**2 / w2,  # effective targets, of N+
            "rule_of_thumb": spread * w2 / weight**2,  # the proof's Var_R[f] (1 + Var_P[w / E w])
        }

    def draw(self, n: int, bar: float, rng: np.random.Generator) -> np.ndarray:
        """Return (n, 2) people from P whom a classifier with this threshold accepts."""
        low = norm.cdf(bar, self.mean[0], self.sd[0])
        u = np.stack([rng.uniform(low, 1, n), rng.random(n)], axis=1)
        return np.asarray(norm.ppf(u, self.mean, self.sd))


def estimate(
    known: KnownR, people: np.ndarray, top_k: int | None = None
) -> tuple[dict[str, float], float]:
    """Return E_Q[f] of each function and the effective number of targets, from N+ people."""
    costs = torch.as_tensor(np.abs(people - np.array(known.x)).sum(axis=1))
    q = q_weights(costs, known.lam).numpy()
    if top_k is not None and top_k < len(q):
        kept = np.argsort(-q, kind="stable")[:top_k]
        q, people = q[kept] / q[kept].sum(), people[kept]
    values = {
        name: float(q @ (f1(people[:, 0]) + f2(people[:, 1])))
        for name, (f1, f2) in known.functions.items()
    }
    return values, float(1 / (q**2).sum())


@dataclass(frozen=True)
class Setting:
    """The threshold of the classifier, and how much of Q is kept."""

    label: str
    h_bar: float | None = None  # None: the threshold of validity
    top_k: int | None = None


SETTINGS = (
    Setting("h agrees with V"),
    Setting("h accepts too many", h_bar=0.2),
    Setting(f"the top {TOP_K:,} of Q", top_k=TOP_K),
)


def run(repeats: int, seed: int = 0, sizes: tuple[int, ...] = SIZES) -> list[dict[str, Any]]:
    """Return a line per setting, N+ and function: bias and variance of E_Q around E_R."""
    known, lines = KnownR(), []
    truth = {name: known.truth(name) for name in known.functions}
    for setting in SETTINGS:
        bar = known.bar if setting.h_bar is None else setting.h_bar
        for n in sizes:
            rng = np.random.default_rng([seed, n])
            found = [
                estimate(known, known.draw(n, bar, rng), setting.top_k) for _ in range(repeats)
            ]
            ess = float(np.mean([e for _, e in found]))
            for name in known.functions:
                values = np.array([v[name] for v, _ in found])
                lines.append(_line(setting, n, name, values, truth[name], ess, seed))
    return lines


def _line(
    setting: Setting,
    n: int,
    name: str,
    values: np.ndarray,
    truth: dict[str, float],
    ess: float,
    seed: int,
) -> dict[str, Any]:
    error = values - truth["truth"]
    return {
        "setting": setting.label,
        "n_plus": n,
        "f": name,
        "repeats": len(values),
        "seed": seed,
        "truth": truth["truth"],
        "mean": float(values.mean()),
        "bias": float(error.mean()),
        "bias_se": float(values.std(ddof=1) / len(values) ** 0.5),
        "variance": float(values.var(ddof=1)),
        "rmse": float(np.sqrt((error**2).mean())),
        "ess": ess,
        "predicted_variance": truth["variance"] / n,
        "predicted_bias": truth["bias"] / n,
        "predicted_ess": truth["ess_share"] * n,
        "rule_of_thumb": truth["rule_of_thumb"] / n,
    }


def slope(lines: list[dict[str, Any]], what: str) -> float:
    """Return the slope of log |what| against log N+: -1 if it falls as 1 / N+."""
    n = np.log([line["n_plus"] for line in lines])
    return float(np.polyfit(n, np.log(np.abs([line[what] for line in lines])), 1)[0])
