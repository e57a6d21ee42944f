"""Trees: plain arrays that predict as scikit-learn does, before and after a model file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from genrecourse.trust import trees as module
from genrecourse.trust.trees import Trees


@pytest.fixture(scope="module")
def forest() -> tuple[Trees, np.ndarray]:
    rng = np.random.default_rng(0)
    Z = rng.random((400, 3))
    fitted = RandomForestClassifier(8, random_state=0).fit(Z, Z[:, 0] + 0.3 * rng.random(400) > 0.6)
    return Trees.of(fitted.estimators_, column=1), Z


def test_loaded_trees_predict_bit_for_bit_as_fitted_ones(
    forest: tuple[Trees, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted, Z = forest
    loaded = Trees.from_arrays(fitted.arrays(), n_columns=3)
    assert len(loaded._fitted) == 8  # in scikit-learn's form
    np.testing.assert_array_equal(loaded(Z), fitted(Z))
    np.testing.assert_array_equal(replace(loaded, _fitted=[])(Z), fitted(Z))  # walked

    def other_version(*_: object) -> None:
        raise ValueError("the nodes have other fields")

    monkeypatch.setattr(module, "_tree", other_version)
    walked = Trees.from_arrays(fitted.arrays(), n_columns=3)
    assert walked._fitted == []
    np.testing.assert_array_equal(walked(Z), fitted(Z))


def test_nodes_that_lead_back_are_never_given_to_scikit_learn(
    forest: tuple[Trees, np.ndarray],
) -> None:
    fitted, Z = forest
    arrays = {name: part.copy() for name, part in fitted.arrays().items()}
    inner = int(np.flatnonzero(arrays["left"] != np.arange(len(arrays["left"])))[1])
    arrays["left"][inner] = 0  # round in circles; a walk ends after `depth` steps
    damaged = Trees.from_arrays(arrays, n_columns=3)
    assert damaged._fitted == []
    assert np.isfinite(damaged(Z)).all()
