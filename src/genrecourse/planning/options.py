"""The options of a request, by name, so that editors complete them and mypy refuses other names."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class Options(TypedDict, total=False):
    """What methods can take at each request; each method says which (`options`). None: as fitted.

    >>> asked: Options = {"safety": 0.8}
    >>> sorted(Options.__annotations__)
    ['effort', 'lam', 'n_draws', 'safety', 'sigma', 'temperature']
    """

    lam: float | None  # how much a unit of cost weighs, if the method learned lam="any"
    temperature: float | None  # of the draws
    sigma: float | None  # noise added to drawn numbers
    n_draws: int | None  # how many samples the selection chooses from
    safety: float | None  # from 0, as cheap as possible, to 1, as safe as possible; see min_robust
    effort: Literal["sample", "search"] | None


class AskedOfPlans(Options, total=False):
    """What `plans` can be asked, for functions that call it (`audit`, `report_html`).

    >>> asked: AskedOfPlans = {"n": 3, "rules": {"lock": ["age"]}}
    >>> set(Options.__annotations__) < set(AskedOfPlans.__annotations__)
    True
    """

    n: int
    rules: Any
    fewest_changes: bool
    min_robust: float
    most_changes: int | None
    most_months: float | None
    most_money: float | None
    sort: str | None
    promise: float | None
    delta: float
