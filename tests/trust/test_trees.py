"""Trees: plain arrays that predict as scikit-learn does, before and after a model file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeRegressor

from genrecourse.trust import trees as module
from genrecourse.trust.trees import Trees


@pytest.fixture(scope="module")
def forest() -> tuple[Trees, np.ndarray]:
    rng = np.random.default_rng(0)
    Z = rng.random((400, 3))
    fitted = RandomForestClassifier(8, random_state=0).fit(Z, Z[:, 0] + 0.3 * rng.random(400) > 0.6)
    return Trees.of(fitted.estimators_, column=1), Z


def test_loaded_trees_predict_bit_for_bit_as_filled_ones(
    forest: tuple[Trees, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted, Z = forest
    loaded = Trees.from_arrays(fitted.arrays(), n_columns=3)
    assert len(loaded._filled) == 8  # in scikit-learn's form
    np.testing.assert_array_equal(loaded(Z), fitted(Z))
    np.testing.assert_array_equal(replace(loaded, _filled=[])(Z), fitted(Z))  # walked

    def other_version(*_: object) -> None:
        raise ValueError("the nodes have other fields")

    monkeypatch.setattr(module, "_tree", other_version)
    walked = Trees.from_arrays(fitted.arrays(), n_columns=3)
    assert walked._filled == []
    np.testing.assert_array_equal(walked(Z), fitted(Z))


def test_nodes_that_lead_back_are_never_given_to_scikit_learn(
    forest: tuple[Trees, np.ndarray],
) -> None:
    fitted, Z = forest
    arrays = {name: part.copy() for name, part in fitted.arrays().items()}
    inner = int(np.flatnonzero(arrays["left"] != np.arange(len(arrays["left"])))[1])
    arrays["left"][inner] = 0  # round in circles; a walk ends after `depth` steps
    damaged = Trees.from_arrays(arrays, n_columns=3)
    assert damaged._filled == []
    assert np.isfinite(damaged(Z)).all()


def test_all_ways_to_ask_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows in one call, many rows in threads, and a scikit-learn without that call."""
    rng = np.random.default_rng(0)
    Z, y = rng.uniform(size=(600, 3)), rng.normal(size=600)
    fitted = [DecisionTreeRegressor(random_state=i, max_features=1).fit(Z, y) for i in range(20)]
    forest = Trees.of(fitted, column=0)
    monkeypatch.setattr(module, "THREADS_FROM", 600 * 20 * forest.depth)
    monkeypatch.setattr(module, "n_threads", lambda: 1)
    with monkeypatch.context() as patch:  # a process with one thread starts no other
        patch.setattr(module, "ThreadPoolExecutor", None)
        alone = forest(Z)
    monkeypatch.setattr(module, "n_threads", lambda: 2)
    in_threads = forest(Z)
    np.testing.assert_array_equal(alone, in_threads)
    parts = [forest(Z[i : i + 7]) for i in range(0, len(Z), 7)]
    np.testing.assert_array_equal(np.concatenate(parts), in_threads)
    monkeypatch.setattr(module, "predict_stages", None)
    np.testing.assert_array_equal(forest(Z[:7]), in_threads[:7])
    np.testing.assert_allclose(in_threads, np.mean([tree.predict(Z) for tree in fitted], axis=0))
