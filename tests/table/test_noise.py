"""KeyedNoise: a row's numbers depend on the seed and the row alone, and look like noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from genrecourse.table import noise as noise_module
from genrecourse.table.noise import KeyedNoise

ROWS = np.random.default_rng(0).normal(size=(50, 7))


def draw(rows: np.ndarray, shape: tuple[int, ...] = (3, 4), seed: int = 0) -> np.ndarray:
    noise = KeyedNoise(seed)
    return noise.uniform(noise.keys(rows), shape)


def test_same_key_same_number() -> None:
    np.testing.assert_array_equal(draw(ROWS), draw(ROWS.copy()))
    assert draw(ROWS).shape == (50, 3, 4)
    np.testing.assert_array_equal(draw(ROWS[[4, 4, 4]])[0], draw(ROWS[[4, 4, 4]])[2])


def test_reference_values() -> None:
    """SplitMix64 in plain integers: what a plan rests on must not change unnoticed."""
    mask = 2**64 - 1

    def mix(word: int) -> int:
        word = (word + 0x9E3779B97F4A7C15) & mask
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
        return word ^ (word >> 31)

    assert mix(0) == 0xE220A8397B1DCDAF  # the first output of the published generator, seed 0
    rows = np.array([[1.0, -2.5], [0.0, 1e300]])
    for seed in (0, 7, -1, 2**70 + 3):
        for row, found in zip(rows, draw(rows, (2, 3), seed), strict=True):
            key = mix(seed % 2**64)
            for word in row.view(np.uint64).tolist():
                key = mix(key ^ word)
            words = [mix(key ^ mix(counter)) for counter in range(6)]
            expected = [((word >> 12) + 0.5) / 2**52 for word in words]
            assert found.ravel().tolist() == expected


def test_neither_order_nor_company_matters() -> None:
    whole = draw(ROWS)
    order = np.random.default_rng(1).permutation(50)
    np.testing.assert_array_equal(draw(ROWS[order]), whole[order])
    np.testing.assert_array_equal(draw(ROWS[10:13]), whole[10:13])
    np.testing.assert_array_equal(draw(ROWS[[7]]), whole[[7]])


def test_memory_layout_and_float_width_do_not_matter() -> None:
    whole = draw(ROWS)
    np.testing.assert_array_equal(draw(np.asfortranarray(ROWS)), whole)
    wide = np.zeros((50, 14))
    wide[:, ::2] = ROWS
    np.testing.assert_array_equal(draw(wide[:, ::2]), whole)
    single = ROWS.astype(np.float32)
    np.testing.assert_array_equal(draw(single), draw(single.astype(np.float64)))


def test_both_zeros_are_one_value() -> None:
    np.testing.assert_array_equal(draw(np.array([[0.0, 1.0]])), draw(np.array([[-0.0, 1.0]])))


def test_every_nan_is_one_value() -> None:
    words = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000123], dtype=np.uint64)
    rows = np.column_stack([np.ones(3), words.view(np.float64)])
    assert np.isnan(rows[:, 1]).all()
    assert len(set(KeyedNoise(0).keys(rows).tolist())) == 1
    assert KeyedNoise(0).keys(rows)[0] != KeyedNoise(0).keys(np.ones((1, 2)))[0]


def test_the_rows_are_left_alone() -> None:
    rows = np.array([[-0.0, np.nan]])
    KeyedNoise(0).keys(rows)
    assert np.signbit(rows[0, 0])


def test_any_change_of_a_row_changes_its_key() -> None:
    keys = KeyedNoise(0).keys
    base = np.arange(6.0)
    variants = [base, base[::-1], np.roll(base, 1)]
    variants += [np.where(np.arange(6) == j, np.nextafter(base, 99), base) for j in range(6)]
    assert len(set(keys(np.array(variants)).tolist())) == len(variants)


def test_seed_changes_everything() -> None:
    for other in (1, -1, 2**40):
        assert not np.any(draw(ROWS, seed=0) == draw(ROWS, seed=other))


def test_offset_continues_the_stream() -> None:
    noise = KeyedNoise(3)
    keys = noise.keys(ROWS)
    whole = noise.uniform(keys, (10,))
    np.testing.assert_array_equal(noise.uniform(keys, (6,), offset=4), whole[:, 4:])
    np.testing.assert_array_equal(noise.uniform(keys, (2, 5)).reshape(50, 10), whole)
    np.testing.assert_array_equal(
        noise.normal(keys, (6,), offset=4), noise.normal(keys, (10,))[:, 4:]
    )


def test_uniform() -> None:
    u = draw(np.random.default_rng(2).normal(size=(500, 5)), (20, 10))
    assert stats.kstest(u.ravel(), "uniform").pvalue > 0.01
    # each (draw, slot) over the rows, and each row over its draws
    by_slot = [stats.kstest(column, "uniform").pvalue for column in u.reshape(500, -1).T]
    by_row = [stats.kstest(row.ravel(), "uniform").pvalue for row in u]
    assert stats.kstest(by_slot, "uniform").pvalue > 0.001
    assert stats.kstest(by_row, "uniform").pvalue > 0.001


@pytest.mark.parametrize("rows", ["random", "counting", "one bit apart"])
def test_draws_slots_and_rows_are_uncorrelated(rows: str) -> None:
    n, m = 2000, 24
    content = {
        "random": np.random.default_rng(4).normal(size=(n, 3)),
        "counting": np.column_stack([np.arange(float(n)), np.zeros(n)]),
        "one bit apart": (np.float64(1).view(np.uint64) + np.arange(n, dtype=np.uint64)).view(
            np.float64
        )[:, None],
    }[rows]
    z = stats.norm.ppf(draw(content, (4, 6)).reshape(n, m))
    between = np.corrcoef(z.T)[np.triu_indices(m, 1)]
    # under independence each is about normal with deviation n**-0.5; 276 of them
    assert np.abs(between).max() < 4.5 / np.sqrt(n)
    assert stats.kstest(between * np.sqrt(n), "norm").pvalue > 0.001
    neighbours = np.mean(z[1:] * z[:-1])  # one row and the next
    assert abs(neighbours) < 4.5 / np.sqrt((n - 1) * m)
    seeds = np.mean(stats.norm.ppf(draw(content, (4, 6), seed=1).reshape(n, m)) * z)
    assert abs(seeds) < 4.5 / np.sqrt(n * m)


def test_normal() -> None:
    noise = KeyedNoise(0)
    keys = noise.keys(ROWS)
    z = noise.normal(keys, (40, 10))
    assert z.shape == (50, 40, 10)
    assert stats.kstest(z.ravel(), "norm").pvalue > 0.01
    np.testing.assert_allclose(stats.norm.cdf(z), noise.uniform(keys, (40, 10)), atol=1e-12)


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_the_interval_is_open(monkeypatch: pytest.MonkeyPatch, word: int) -> None:
    """The lowest and the highest word that a hash can give, which no test would wait for."""
    noise = KeyedNoise(0)
    keys = noise.keys(ROWS[:2])
    monkeypatch.setattr(
        noise_module, "_mix", lambda words: np.full(words.shape, word, dtype=np.uint64)
    )
    u = noise.uniform(keys, (3,))
    assert ((u > 0) & (u < 1)).all()
    assert np.isfinite(noise.normal(keys, (3,))).all()


def test_no_rows() -> None:
    assert draw(np.empty((0, 7))).shape == (0, 3, 4)
