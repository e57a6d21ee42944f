"""The tables about the protocol: counts of the data, quality of the gold classifier and of h."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from genrecourse.data.datasets import Dataset, load_dataset
from genrecourse.evaluation.comparison.bench import last
from genrecourse.evaluation.evaluate import Case, split_rows


def describe(name: str, seed: int) -> dict[str, Any]:
    """Return one result line: the numbers of the published tables for a data set and seed."""
    case, data = last.case(name, seed, "fresh"), load_dataset(name, seed=seed)
    X, y, X_test, y_test = split_rows(data, seed, fresh=True)
    Z_train, Z_test = case.encoder.encode(X), case.encoder.encode(X_test)
    gold_train, gold_test = case.judge.probability(Z_train), case.judge.probability(Z_test)
    drawn = _drawn_test_labels(case, gold_train, gold_test)
    scores = case.h.score(X_test)
    h = _quality(drawn, scores, case.h.accepts(X_test))
    return {
        "dataset": name,
        "seed": seed,
        "data": _counts(data, y) | {"h_accuracy_pct": h["accuracy_pct"]},
        # on the test rows, against their real outcomes; as in the paper, it was also fitted on them
        "gold_classifier": _quality(y_test, gold_test, gold_test > 0.5),
        "classifier_h": h,
        "drawn_positive": int(case.y.sum()),
    }


def _counts(data: Dataset, y: np.ndarray) -> dict[str, float]:
    return {
        "features": len(data.schema),
        "categorical": sum(f.is_category for f in data.schema),
        "immutable": sum(f.role == "immutable" for f in data.schema),
        "positive": int(y.sum()),
        "negative": int((1 - y).sum()),
        "train_rows": len(data.X_train),
        "test_rows": len(data.X_test),
    }


def _quality(y: np.ndarray, scores: np.ndarray, decision: np.ndarray) -> dict[str, float]:
    macro: dict[str, Any] = {"average": "macro", "zero_division": 0}
    return {
        "accuracy_pct": 100 * float(accuracy_score(y, decision)),
        "roc_auc": float(roc_auc_score(y, scores)),
        "precision_macro": float(precision_score(y, decision, **macro)),
        "recall_macro": float(recall_score(y, decision, **macro)),
        "f1_macro": float(f1_score(y, decision, **macro)),
        "brier": float(brier_score_loss(y, np.clip(scores, 0, 1))),
    }


def _drawn_test_labels(case: Case, gold_train: np.ndarray, gold_test: np.ndarray) -> np.ndarray:
    """Return the labels that `make_case` drew for the test rows; the case does not keep them.

    They are drawn again from the same random stream. The assertion checks that the training labels
    are the same.
    """
    rng = np.random.default_rng([case.seed, 1])
    train = (rng.random(len(gold_train)) < gold_train).astype(int)
    assert np.array_equal(train, case.y), (
        "evaluation.make_case draws its labels in another order; draw them here in the same order"
    )
    return (rng.random(len(gold_test)) < gold_test).astype(int)
