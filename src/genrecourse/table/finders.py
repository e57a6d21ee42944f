"""Where to look for patterns in a table: each finder returns what seems to hold in some rows.

A finder only proposes. `discovery` then asks other rows whether it holds there, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from genrecourse.table.patterns import (
    EXACT,
    AtMost,
    IfThen,
    MissingTogether,
    OneHot,
    Rows,
    Term,
    WeightedSum,
)

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

ALLOWED = 0.001  # share of the rows in which a relation may not hold
PROBES = 8  # rows that a sum of two columns is first tried on
SOLVED = 400  # rows that a longer sum is solved for
NEAR_ONE = 0.05  # how far the factors of such a sum may be off before they are rounded
STEPS = 2_000  # of the search for one group of columns of 0 and 1
_JOINT = re.compile(r"[\s_=:.\-|/\[(]+")


# ---- order --------------------------------------------------------------------------------------


def find_orders(rows: Rows) -> Iterator[AtMost]:
    """Yield each pair of numbers of which one is never larger than the other.

    Examples:
        >>> rows = Rows({"a": np.arange(3.0), "b": np.arange(3.0) + 1})
        >>> list(find_orders(rows))
        [AtMost(small='a', large='b')]
    """
    names = [name for name in rows.numbers if name not in rows.flags]
    if not names:
        return
    table = np.array([rows.numbers[name] for name in names])
    for i, name in enumerate(names):
        with np.errstate(invalid="ignore"):
            broken = (table[i] > table).mean(axis=1)
            smaller = (table[i] < table).any(axis=1)
        for k in np.flatnonzero((broken <= ALLOWED) & smaller):
            yield AtMost(name, names[k])


# ---- equality -----------------------------------------------------------------------------------


def find_ratios(rows: Rows, tolerance: Mapping[str, float]) -> Iterator[WeightedSum]:
    """Yield each pair of numbers of which one is a constant times the other.

    tolerance: how far rounding may move each column.

    Examples:
        >>> rows = Rows({"monthly": np.arange(9.0), "yearly": 12 * np.arange(9.0)})
        >>> [each.words for each in find_ratios(rows, {"monthly": 0.5, "yearly": 0.5})]
        ["'yearly' is 12 * 'monthly'"]
    """
    names = list(rows.numbers)
    for k, b in enumerate(names):
        for a in names[k + 1 :]:
            found = _ratio(a, b, rows, tolerance) or _ratio(b, a, rows, tolerance)
            if found is not None:
                yield found


def _ratio(a: str, b: str, rows: Rows, tolerance: Mapping[str, float]) -> WeightedSum | None:
    """Return a = factor * b with the shortest factor that fits, or None.

    It is tried first whether the rounding of a alone explains all differences.
    """
    x, y = rows.numbers[b], rows.numbers[a]
    use = np.isfinite(x) & np.isfinite(y) & (x != 0)
    at_zero = np.isfinite(y) & (x == 0)  # where a has to be 0, too
    stray = np.abs(y[at_zero]) > tolerance[a] + tolerance[b]
    if not use.any() or stray.sum() > ALLOWED * len(x):
        return None
    x, y = np.abs(x[use]), y[use] * np.sign(x[use])
    largest = x.argmax()
    by_b = tolerance[b] * abs(y[largest] / x[largest])
    for off in dict.fromkeys((tolerance[a], tolerance[a] + by_b)):
        factor = _factor(x, y, off)
        if factor is not None:
            return WeightedSum(a, ((b, factor),), off)
    return None


def _factor(x: Array, y: Array, off: float) -> float | None:
    """Return the shortest number f with |y - f * x| <= off in all rows, or in nearly all; x is
    positive."""
    room = (off + EXACT * np.abs(y)) / x
    for skipped in (0, int(ALLOWED * len(x))):  # rows that may be exceptions, at each end
        low = np.partition(y / x - room, len(x) - 1 - skipped)[len(x) - 1 - skipped]
        high = np.partition(y / x + room, skipped)[skipped]
        for digits in range(1, 13) if low <= high else ():
            factor = float(f"{(low + high) / 2:.{digits}g}")
            if low <= factor <= high and factor != 0:
                return factor
    return None


def find_sums(rows: Rows, tolerance: Mapping[str, float]) -> Iterator[WeightedSum]:
    """Yield each number that is the sum of two or more others.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> rent, food = rng.random(50), rng.random(50)
        >>> rows = Rows({"rent": rent, "food": food, "total": rent + food})
        >>> [each.words for each in find_sums(rows, dict.fromkeys(rows.numbers, 0.0))]
        ["'total' is 'rent' + 'food'"]
    """
    names = list(rows.numbers)
    if len(names) < 3:
        return
    table = np.array([rows.numbers[name] for name in names])
    table = table[:, np.isfinite(table).all(axis=0)]
    if table.shape[1] < PROBES:
        return
    near = np.array([tolerance[name] for name in names])
    found = list(_pairs(table, near))
    done = {total for total, _ in found}
    found += [each for j in range(len(names)) if j not in done for each in _many(table, near, j)]
    for total, parts in found:
        terms = tuple((names[k], 1.0) for k in parts)
        yield WeightedSum(names[total], terms, float(near[total] + near[list(parts)].sum()))


def _pairs(table: Array, near: Array) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield (a, (b, c)) with a = b + c in nearly all rows."""
    first, second = np.triu_indices(len(table), 1)
    some = table[:, np.linspace(0, table.shape[1] - 1, PROBES).astype(int)]
    sums, slack = some[first] + some[second], near[first] + near[second]
    for a in range(len(table)):
        room = (slack + near[a])[:, None] + EXACT * np.abs(some[a])
        fits = (np.abs(sums - some[a]) <= room).sum(axis=1) >= PROBES - 1
        for pair in np.flatnonzero(fits & (first != a) & (second != a)):
            parts = int(first[pair]), int(second[pair])
            if _holds(table, near, a, parts):
                yield a, parts


def _many(table: Array, near: Array, a: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield (a, parts) if column a is the sum of three or more others.

    Factors that are not negative are solved for, which leaves most of them at zero.
    """
    n = max(SOLVED, 3 * len(table))
    some = table[:, np.linspace(0, table.shape[1] - 1, min(n, table.shape[1])).astype(int)]
    some = some - some.mean(axis=1, keepdims=True)
    size = np.sqrt((some**2).mean(axis=1))
    usable = np.array([k for k in range(len(table)) if k != a and size[k] > 0])
    if size[a] == 0 or len(usable) < 3:
        return
    scaled = some[usable] / size[usable, None]
    factors = not_negative(scaled, some[a] / size[a]) * size[a] / size[usable]
    parts = tuple(int(k) for k in usable[np.abs(factors - 1) <= NEAR_ONE])
    others = factors * size[usable] > NEAR_ONE * size[a]
    clean = set(usable[others].tolist()) <= set(parts)
    if len(parts) >= 3 and clean and _holds(table, near, a, parts):
        yield a, parts


def not_negative(columns: Array, y: Array) -> Array:
    """Return factors (k,) >= 0 whose sum of factor times column (k, n) is nearest to y (n,).

    The active-set algorithm of Lawson and Hanson (1974). scipy 1.17.1 has it too, as `nnls`, but
    that one corrupts memory on some of our tables ("double free").

    Examples:
        >>> columns = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
        >>> not_negative(columns, np.array([2.0, -1.0, 1.0])).round(3)
        array([1.5, 0. ])
    """
    gram, wanted = columns @ columns.T, columns @ y
    factors, used = np.zeros(len(columns)), np.zeros(len(columns), dtype=bool)
    for _ in range(3 * len(columns)):
        slope = np.where(used, -np.inf, wanted - gram @ factors)
        if slope.max() <= EXACT * np.abs(wanted).max():
            break
        used[slope.argmax()] = True
        while used.any():
            best = np.zeros(len(columns))
            best[used] = np.linalg.lstsq(gram[np.ix_(used, used)], wanted[used], rcond=None)[0]
            if best[used].min() > 0:
                factors = best
                break
            # go as far as no factor becomes negative, and leave out those that reach zero
            low = used & (best <= 0)
            step = (factors[low] / np.maximum(factors[low] - best[low], EXACT)).min()
            factors = factors + step * (best - factors)
            used &= factors > EXACT
            factors[~used] = 0.0
    return factors


def _holds(table: Array, near: Array, a: int, parts: tuple[int, ...]) -> bool:
    room = near[a] + near[list(parts)].sum() + EXACT * np.abs(table[a])
    off = np.abs(table[a] - table[list(parts)].sum(axis=0))
    return bool((off > room).mean() <= ALLOWED)


# ---- groups of 0 and 1 --------------------------------------------------------------------------


def find_groups(rows: Rows) -> Iterator[OneHot]:
    """Yield groups of columns of 0 and 1 of which exactly one is 1 in each row, or at most one.

    Columns whose names start alike are tried first; of other columns, exactly one must be 1.

    Examples:
        >>> red, blue = np.array([1.0, 0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])
        >>> rows = Rows({}, {"colour_red": red, "colour_blue": blue})
        >>> [(each.name, each.labels) for each in find_groups(rows)]
        [('colour', ('red', 'blue'))]
    """
    flags, used = rows.flags, set[str]()
    for start, names in _by_start(list(flags)).items():
        if used & set(names) or len(names) < 2:
            continue
        ones = np.sum([flags[name] for name in names], axis=0)
        or_none = bool((ones == 0).any())
        if ones.max() <= 1 and (not or_none or len(names) > 2):
            used |= set(names)
            yield OneHot(_name(start, names), tuple(names), _labels(start, names), or_none)
    left = [name for name in flags if name not in used]
    while left:
        first, *others = left
        cover = _exact_cover(flags, first, others)
        if len(cover) > 1:
            start = _common_start(cover)
            yield OneHot(_name(start, cover), tuple(cover), _labels(start, cover), False)
        left = [name for name in others if name not in cover or len(cover) == 1]


def _by_start(names: list[str]) -> dict[str, list[str]]:
    """Return names by each way in which they start, up to a joint such as "_"; long starts
    first."""
    found: dict[str, list[str]] = {}
    for name in names:
        for joint in _JOINT.finditer(name):
            if joint.start() > 0 and joint.end() < len(name):
                found.setdefault(name[: joint.end()], []).append(name)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), -len(item[0]))))


def _common_start(names: list[str]) -> str:
    starts = [start for start, those in _by_start(names).items() if len(those) == len(names)]
    return max(starts, key=len, default="")


def _name(start: str, names: list[str]) -> str:
    return _JOINT.sub(" ", start).strip().replace(" ", "_") or " or ".join(names)


def _labels(start: str, names: list[str]) -> tuple[str, ...]:
    return tuple(name.removeprefix(start).rstrip(")]") for name in names)


def _exact_cover(flags: Mapping[str, Array], first: str, others: list[str]) -> list[str]:
    """Return columns, `first` among them, of which exactly one is 1 in each row; [] if none are
    found within `STEPS`."""
    steps = STEPS

    def complete(chosen: list[str], ones: Array) -> list[str]:
        nonlocal steps
        empty = np.flatnonzero(ones == 0)
        if len(empty) == 0:
            return chosen
        for name in others:
            steps -= 1
            if steps < 0:
                return []
            if flags[name][empty[0]] == 1 and not (ones * flags[name]).any():
                found = complete([*chosen, name], ones + flags[name])
                if found:
                    return found
        return []

    return complete([first], flags[first].copy())


# ---- missing together ---------------------------------------------------------------------------


def find_missing(rows: Rows) -> Iterator[MissingTogether]:
    """Yield groups of columns that are missing in the same rows.

    Examples:
        >>> gone = np.array([True, False, True])
        >>> rows = Rows({}, missing={"rent": gone, "landlord": gone, "age": ~gone})
        >>> [each.names for each in find_missing(rows)]
        [('rent', 'landlord')]
    """
    left = list(rows.missing)
    while left:
        first, *others = left
        gone = rows.missing[first]
        alike = [name for name in others if (gone != rows.missing[name]).mean() <= ALLOWED]
        if alike and gone.any():
            yield MissingTogether((first, *alike))
        left = [name for name in others if name not in alike]


# ---- if-then ------------------------------------------------------------------------------------


def find_implications(
    rows: Rows, names: Mapping[str, tuple[str, ...]], is_number: Mapping[str, bool]
) -> Iterator[IfThen]:
    """Yield rules "if a is x then b is y, or one of a few".

    names: the values of each column of `rows.levels`, by place. Of a number, place 1 is its most
    common value and place 0 any other.

    Examples:
        >>> rows = Rows({}, levels={"a": np.array([0, 0, 1, 1]), "b": np.array([0, 0, 1, 0])})
        >>> names = {"a": ("x", "y"), "b": ("u", "v")}
        >>> [each.words for each in find_implications(rows, names, dict.fromkeys("ab", False))]
        ["if 'a' is x then 'b' is u", "if 'b' is v then 'a' is y"]
    """
    columns = list(rows.levels)
    for a in columns:
        for b in columns:
            if a != b:
                counts = _crossed(rows.levels[a], rows.levels[b], len(names[a]), len(names[b]))
                for x, row in enumerate(counts):
                    places = _nearly_all(row)
                    if 0 < len(places) < len(names[b]):
                        ends = ((a, (x,)), (b, places))
                        terms = [_term(c, p, names[c], is_number[c]) for c, p in ends]
                        yield IfThen(*terms)


def _crossed(a: np.ndarray, b: np.ndarray, n_a: int, n_b: int) -> np.ndarray:
    """Return (n_a, n_b) the number of rows with each pair of values."""
    known = (a >= 0) & (b >= 0)
    counts = np.bincount(a[known] * n_b + b[known], minlength=n_a * n_b)
    return np.asarray(counts.reshape(n_a, n_b))


def _nearly_all(counts: np.ndarray) -> tuple[int, ...]:
    """Return the fewest places that hold all of the rows but a share of `ALLOWED`."""
    total = counts.sum()
    if total == 0:
        return ()
    order = np.argsort(-counts, kind="stable")
    kept = int(np.searchsorted(counts[order].cumsum(), (1 - ALLOWED) * total)) + 1
    return tuple(sorted(int(k) for k in order[:kept]))


def _term(name: str, places: tuple[int, ...], values: tuple[str, ...], is_number: bool) -> Term:
    if is_number:
        return Term(name, places, values[1:], is_not=places == (0,), is_number=True)
    return Term(name, places, tuple(values[k] for k in places))
