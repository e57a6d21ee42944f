"""A tiny outcome and a tiny case for the examples in docstrings: no training, known answers.

A table has the columns age (immutable), income and job. h accepts an income of 60 or more. The
judge calls a row valid above an income of 50, and an inlier unless the job is "pilot". Three people
are rejected:

    Ada, 30, income 20, cook   ->  income 70: a good plan
    Ben, 40, income 50, nurse  ->  income 55 and pilot: h still rejects it
    Cem, 50, income 10, cook   ->  no answer
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from genrecourse.evaluation.evaluate import Case
from genrecourse.evaluation.gold import Witnesses
from genrecourse.evaluation.metrics import Outcome, PlanSets
from genrecourse.model.classifier import Classifier, MLPConfig
from genrecourse.table.cost import Cost
from genrecourse.table.encoding import Array, TableEncoder
from genrecourse.table.schema import Schema
from genrecourse.trust.judge import Judge
from genrecourse.trust.neighbours import Neighbours

COLUMNS = ["age", "income", "job"]
TRAINING = pd.DataFrame(
    [
        (30, 20.0, "cook"),
        (30, 70.0, "cook"),
        (40, 0.0, "pilot"),
        (40, 80.0, "nurse"),
        (50, 90.0, "cook"),
        (60, 100.0, "nurse"),
    ],
    columns=COLUMNS,
)
PEOPLE = pd.DataFrame(
    [(30, 20.0, "cook"), (40, 50.0, "nurse"), (50, 10.0, "cook")],
    columns=COLUMNS,
    index=["Ada", "Ben", "Cem"],
)
ANSWERS = pd.DataFrame(
    [(30, 70.0, "cook"), (40, 55.0, "pilot"), (np.nan, np.nan, None)],
    columns=COLUMNS,
    index=PEOPLE.index,
)
INCOME, PILOT = 1, 4  # columns of Z


class ExampleJudge(Judge):
    """A judge that is not trained: it reads the income and the job.

    >>> judge = ExampleJudge()
    >>> judge.valid(np.array([[0.0, 0.7, 1.0, 0.0, 0.0]]))
    array([ True])
    """

    def probability(self, Z: Array) -> Array:
        """Return (n,) the income on the [0, 1] scale."""
        return np.asarray(Z[:, INCOME].clip(0, 1))

    def inlier(self, Z: Array) -> np.ndarray:
        """Return (n,) booleans: the job is not "pilot"."""
        return np.asarray(Z[:, PILOT] < 0.5)

    def predict(self, Z: Array) -> np.ndarray:
        """Return (n,) 1 for an inlier, -1 otherwise, as a LocalOutlierFactor does."""
        return np.where(self.inlier(Z), 1, -1)


def example_encoder() -> TableEncoder:
    """Return the encoder of the example.

    >>> example_encoder().schema.names
    ['age', 'income', 'job']
    """
    return TableEncoder(Schema.infer(TRAINING, immutable=("age",))).fit(TRAINING)


def example_h() -> Classifier:
    """Return the model of the example: it accepts an income of 60 or more.

    >>> example_h().accepts(TRAINING.head(2))
    array([False,  True])
    """
    return Classifier(lambda X: (X["income"] >= 60).to_numpy(dtype=float))


def example_witnesses() -> Witnesses:
    """Return witnesses of the example that are not trained.

    >>> sorted(example_witnesses().retrained)
    ['architecture', 'bootstrap', 'seed']
    """
    encoder, judge = example_encoder(), ExampleJudge()
    training = Neighbours(encoder.encode(TRAINING), Cost(encoder))
    out_of_fold: Any = lambda Z: (judge.probability(Z), judge.inlier(Z))  # noqa: E731
    return Witnesses(
        retrained={
            "seed": lambda Z: Z[:, INCOME] >= 0.65,
            "bootstrap": lambda Z: Z[:, INCOME] >= 0.5,
            "architecture": lambda Z: Z[:, INCOME] >= 0.75,
        },
        out_of_fold=out_of_fold,
        accepted=Neighbours(training.Z[judge.valid(training.Z)], Cost(encoder)),
        lof=judge,
        training=training,
        favourable=TRAINING["income"].to_numpy() >= 60,
    )


def example_outcome() -> Outcome:
    """Return what a method did for Ada, Ben and Cem.

    >>> example_outcome().accepted
    array([ True, False, False])
    """
    encoder, h = example_encoder(), example_h()
    answered = encoder.features(ANSWERS.head(2).astype({"age": int}))
    nothing = np.full((1, len(COLUMNS)), np.nan)
    return Outcome(
        encoder.features(PEOPLE),
        np.concatenate([answered, nothing]),
        lambda Z: h.score_encoded(Z, encoder, TRAINING.head(1)) > h.cutoff,
        encoder,
        ExampleJudge(),
        example_witnesses(),
        log_prob=np.array([-1.5, -4.0, np.nan]),
    )


def example_sets() -> PlanSets:
    """Return two plans for each of two people; the second plan of the second person is invalid.

    >>> example_sets().valid.tolist()
    [[True, True], [True, False]]
    """
    encoder = example_encoder()
    rows = [(30, 70.0, "cook"), (30, 60.0, "nurse"), (40, 60.0, "nurse"), (40, 50.0, "cook")]
    F_plus = encoder.features(pd.DataFrame(rows, columns=COLUMNS)).reshape(2, 2, 3)
    valid = np.array([[True, True], [True, False]])
    return PlanSets(encoder.features(PEOPLE.head(2)), F_plus, valid, encoder)


def example_case() -> Case:
    """Return a case with the training rows, the people, h and the judge of the example.

    >>> example_case().people.index.tolist()
    ['Ada', 'Ben', 'Cem']
    """
    encoder = example_encoder()
    Z, favourable = encoder.encode(TRAINING), (TRAINING["income"] >= 60).to_numpy(dtype=int)
    return Case(
        name="example",
        seed=0,
        schema=encoder.schema,
        X=TRAINING,
        y=favourable,
        h=example_h(),
        people=PEOPLE,
        judge=ExampleJudge(),
        encoder=encoder,
        h_accuracy=1.0,
        h_config=MLPConfig(),
        judge_rows=Z,
        judge_labels=favourable,
    )
