"""OwnCopies: the user's own estimator, trained again on bootstraps of its training rows.

They show whether a plan would hold if this model were trained again. Stand-in networks
(`retrained`) learn the same rows, but other models make other mistakes.

A model file holds no estimator. It holds training rows with their outcomes, so whoever gives the
estimator at load gets the same copies: their rows and seeds depend on `seed` alone. Copies are
therefore trained from the rows that a file keeps, also before the method is saved.

Not every model can be trained again. `fit` tries it once (`decide`). What it found is stored in the
model file and not tried again, since a clock takes part.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from genrecourse.errors import stacklevel_of_caller
from genrecourse.model.classifier import Classifier
from genrecourse.model.locks import Lock, without_warnings
from genrecourse.table.frames import in_kind
from genrecourse.table.schema import plain
from genrecourse.trust.retrained import N_RETRAINED

if TYPE_CHECKING:
    from genrecourse.rules.problem import Problem
    from genrecourse.table.encoding import Array

SECONDS = 3.0  # to train one copy and ask it about its rows; a slower model gets stand-ins
# With few rows, copies differ much: with more of them, a plan that many accept is less often one
# that just these accept.
FEW_ROWS, MANY_COPIES = 500, 32
SAME = 1e-9  # largest difference of scores between two copies that were trained alike
AGREE = 0.05  # by how much less the model may agree with its copies than these do with each other
STREAM = 9  # of the random numbers
FIXED = ("random_state", "random_seed")  # parameters that decide what is random in training
TRAINING = Lock()  # copies are trained once, and not by several threads


class CannotRetrainError(Exception):
    """The model cannot be trained again; the text says why.

    >>> str(CannotRetrainError("a part of it is frozen"))
    'a part of it is frozen'
    """


class OwnCopies:
    """Copies of the problem's classifier, trained at first use; none if it cannot be trained again.

    Z: (n, D) training rows, as a model file keeps them. numbers: (n,) the outcome of each, as a
    place in the estimator's `classes_`.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from genrecourse.rules.problem import Problem
    >>> from genrecourse.table.encoding import TableEncoder
    >>> from genrecourse.table.schema import Schema
    >>> X = pd.DataFrame({"income": range(80)})
    >>> h = Classifier(LogisticRegression().fit(X, X["income"] >= 40))
    >>> encoder = TableEncoder(Schema.infer(X)).fit(X)
    >>> problem = Problem.of(encoder, h, X)
    >>> copies = OwnCopies(problem, encoder.encode(X), (X["income"] >= 40).to_numpy(int), seed=0)
    >>> copies.decide()  # nothing speaks against them
    ''
    >>> (copies.votes(pd.DataFrame({"income": [10, 70]})) / copies.n).tolist()
    [0.0, 1.0]
    """

    def __init__(self, problem: Problem, Z: Array, numbers: np.ndarray, seed: int):
        self.problem, self.Z, self.numbers, self.seed = problem, Z, numbers, seed
        self.n = MANY_COPIES if len(Z) <= FEW_ROWS else N_RETRAINED
        self._trained: tuple[Classifier, ...] | None = None

    @property
    def trained(self) -> tuple[Classifier, ...]:
        """The copies; empty if the model that was given at load cannot be trained again."""
        if self._trained is None:
            with TRAINING:
                if self._trained is None:  # no other thread was quicker
                    self._trained = self._train_again()
        return self._trained

    def votes(self, X: pd.DataFrame) -> np.ndarray:
        """Return (n,) how many copies accept each row of a table."""
        return np.sum([_accepts(copy, X) for copy in self.trained], axis=0, dtype=int)

    def decide(self) -> str:
        """Train the copies; return why they do not show how the model would decide, or ""."""
        X, h = self._table(), self.problem.classifier
        try:
            with TRAINING:
                started = time.perf_counter()
                first = self._copy(X, 0)
                scores = _scores(first, X)
                if time.perf_counter() - started > SECONDS:
                    return (
                        f"training it and asking it about {len(X):,} rows takes more than "
                        f"{SECONDS:g} seconds"
                    )
                if np.abs(_scores(self._copy(X, 0), X) - scores).max() > SAME:
                    return "training it twice on the same rows gives two models"
                copies = (first, *(self._copy(X, i) for i in range(1, self.n)))
                self._trained = copies
        except CannotRetrainError as error:
            return str(error)
        accepts = np.stack([_scores(copy, X) > h.cutoff for copy in copies])
        return _unlike(accepts, h.accepts(X))

    def _train_again(self) -> tuple[Classifier, ...]:
        """Return the copies that `decide` trained when the method was fitted."""
        try:
            X = self._table()
            return tuple(self._copy(X, i) for i in range(self.n))
        except CannotRetrainError as error:
            warnings.warn(
                "stand-ins for the model judge whether plans are sturdy, and not retrained copies "
                f"of it, as when the method was fitted: {error}",
                stacklevel=stacklevel_of_caller(),
            )
            return ()

    def _table(self) -> pd.DataFrame:
        return self.problem.encoder.table(self.Z, self.problem.like)

    def _copy(self, X: pd.DataFrame, i: int) -> Classifier:
        """Return copy i, trained on its own bootstrap of X."""
        h, rng = self.problem.classifier, np.random.default_rng([self.seed, STREAM, i])
        rows, state = rng.integers(len(X), size=len(X)), int(rng.integers(2**31 - 1))
        classes = np.asarray(getattr(h.model, "classes_", []))
        why = untrainable(h.model)
        if why:
            raise CannotRetrainError(why)
        try:
            with without_warnings():  # the same that its owner has seen
                copy = fixed(clone(h.model), state)
                seen = in_kind(X.iloc[rows].reset_index(drop=True), self.problem.kind)
                copy.fit(seen, classes[self.numbers[rows]])
        except Exception as error:  # a user's model may raise anything
            raise CannotRetrainError(
                f"training it again fails with {type(error).__name__}"
            ) from error
        made = Classifier(copy, favourable=h.favourable, cutoff=h.cutoff, score_range=h.score_range)
        return made.in_form(self.problem.probe, self.problem.kind)


# ---- what can be trained again ------------------------------------------------------------------


def untrainable(model: Any) -> str:
    """Return why a model cannot be trained again, as far as that is known beforehand, or "".

    >>> from sklearn.linear_model import LogisticRegression
    >>> untrainable(LogisticRegression()), untrainable(len)
    ('', 'it is no estimator that scikit-learn can clone')
    """
    needed = ("fit", "predict_proba", "get_params", "set_params")
    if isinstance(model, type) or not all(hasattr(model, name) for name in needed):
        return "it is no estimator that scikit-learn can clone"
    parts = [model, *model.get_params().values()]
    if any(type(part).__name__ == "FrozenEstimator" for part in parts):
        return "a part of it is frozen"
    return ""


def fixed(model: Any, state: int) -> Any:
    """Return an unfitted estimator with every seed in it set, and with one thread.

    A forest that starts threads for each question is slow for few rows.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> model = fixed(RandomForestClassifier(n_jobs=-1), state=7)
    >>> model.random_state, model.n_jobs
    (7, 1)
    """
    settings = {}
    for name in model.get_params():
        last = name.rpartition("__")[2]
        if last in FIXED:
            settings[name] = state
        elif last == "n_jobs":
            settings[name] = 1
    return model.set_params(**settings)


def class_numbers(h: Classifier, y: Any, favourable: np.ndarray) -> np.ndarray | None:
    """Return (n,) the place of each outcome in the estimator's `classes_`; None: it has none there.

    An estimator of two classes may be fitted around other outcomes: they only need to be known as
    favourable or not.

    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0], [1], [2]], ["bad", "good", "soso"])
    >>> y = ["soso", "good"]
    >>> class_numbers(Classifier(model, favourable="good"), y, np.array([False, True]))
    array([2, 1])
    """
    classes = [plain(each) for each in getattr(h.model, "classes_", [])]
    if len(classes) == 2:
        wanted = np.flatnonzero(h.is_favourable(np.asarray(classes)))
        if len(wanted) == 1:
            return np.where(favourable, wanted[0], 1 - wanted[0])
    place = {each: k for k, each in enumerate(classes)}
    found = [place.get(plain(each)) for each in pd.Series(np.asarray(y))]
    return None if None in found else np.array(found, dtype=int)


# ---- checks -------------------------------------------------------------------------------------


def _scores(copy: Classifier, X: pd.DataFrame) -> Array:
    try:
        return copy.score(X)
    except Exception as error:  # a level that is not in the bootstrap, for example
        raise CannotRetrainError(
            f"a copy of it cannot score all training rows ({type(error).__name__})"
        ) from error


def _accepts(copy: Classifier, X: pd.DataFrame) -> np.ndarray:
    """Return (n,) booleans: the copy accepts the row. It rejects rows that it cannot read."""
    try:
        return copy.accepts(X)
    except Exception:
        if len(X) <= 1:
            return np.zeros(len(X), dtype=bool)
        halves = (X.iloc[: len(X) // 2], X.iloc[len(X) // 2 :])
        return np.concatenate([_accepts(copy, half) for half in halves])


def _unlike(accepts: np.ndarray, own: np.ndarray) -> str:
    """Return why the model is unlike its copies, or "".

    accepts: (copies, n) booleans. own: (n,) the model's decisions. It may have been trained with
    weights, on other rows or on other outcomes; then its copies say nothing about it.
    """
    n, yes = len(accepts), accepts.sum(axis=0)
    with_each_other = np.mean((yes * (yes - 1) + (n - yes) * (n - yes - 1)) / (n * (n - 1)))
    with_model = np.mean(accepts == own)
    if with_model >= with_each_other - AGREE:
        return ""
    return (
        f"it agrees with copies that are trained on these rows on {with_model:.1%} of them, and "
        f"the copies with each other on {with_each_other:.1%}, so it was trained in another way"
    )
