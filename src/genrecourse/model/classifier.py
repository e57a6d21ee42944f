"""Classifier: wraps any model as h, the score of the favourable outcome, with a cutoff.

The model may be a fitted scikit-learn estimator or Pipeline, an xgboost or lightgbm model, a torch
module or a function of a DataFrame. `Classifier()` without a model is the paper's setting, in which
the decision model is hidden: `fit_mlp` then learns a substitute from examples.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import torch
from torch import nn

from genrecourse.errors import UserError, counted, shown
from genrecourse.model.answers import as_numbers, brief, has
from genrecourse.model.settings import (
    COUNT,
    FLAG,
    RATE,
    SEED,
    STEPS,
    WIDTH,
    Allowed,
    Several,
    check_settings,
    check_values,
    is_number,
)
from genrecourse.model.threads import evaluating, n_weights, seeded, torch_threads
from genrecourse.model.training import TrainingPlan, train
from genrecourse.table.encoding import Array, TableEncoder
from genrecourse.table.form import TableForm, numbered
from genrecourse.table.frames import PANDAS, in_kind, kind_of, rows_of, to_pandas
from genrecourse.table.schema import Schema, plain

SCORE_CHUNK = 65_536  # rows that a model scores at once: limits the memory, changes no result


class Classifier:
    """h(x): returns the score of the favourable outcome. h accepts x if score > cutoff.

    Args:
        model: a fitted scikit-learn, xgboost, lightgbm or torch model, or a function of a
            DataFrame. None: a network is trained when a method is fitted.
        favourable: the label, or a set of labels, of the favourable outcome. None: the 1 of {0, 1}.
        cutoff: the score above which a person is accepted, on the model's own scale.
        score_range: the lowest and highest score, for example (300, 850) for a credit score.
        encoder: for a torch module that reads the Z of a TableEncoder. None: a torch module reads
            the columns of X as floats.

    Examples:
        >>> X = pd.DataFrame({"income": [10.0, 40.0, 80.0]})
        >>> h = Classifier(lambda X: X["income"].to_numpy() / 100, cutoff=0.5)
        >>> h.score(X)
        array([0.1, 0.4, 0.8])
        >>> h.accepts(X)
        array([False, False,  True])
    """

    def __init__(
        self,
        model: Any = None,
        *,
        favourable: Any = None,
        cutoff: float = 0.5,
        score_range: tuple[float, float] = (0.0, 1.0),
        encoder: TableEncoder | None = None,
    ):
        low, high = _ends(score_range)
        if not (is_number(cutoff) and low < cutoff < high):
            raise UserError(
                f"the cutoff {shown(cutoff)} is not inside the score range {score_range}; give the "
                "lowest and highest score of your model, for example score_range=(300, 850) in "
                "Python or --score-range 300,850 on the command line"
            )
        _check_favourable(favourable)
        self.model = model
        self.favourable = favourable
        self.cutoff = cutoff
        self.score_range = (float(low), float(high))
        self.encoder = encoder
        self.form: TableForm | None = None  # of the table that a method was fitted on

    def __sklearn_clone__(self) -> Classifier:
        return self  # scikit-learn's clone would drop what the model learned

    def __repr__(self) -> str:
        model = type(self.model).__name__ if self.model is not None else "to be trained"
        return f"Classifier({model}, favourable={self.favourable!r}, cutoff={self.cutoff})"

    @classmethod
    def wrap(cls, model: Any) -> Classifier:
        """Return a Classifier unchanged; wrap any other model, or None, with default settings."""
        return model if isinstance(model, Classifier) else cls(model)

    def in_form(self, like: pd.DataFrame, kind: str = PANDAS) -> Classifier:
        """Return this classifier so that its model sees every table in the form of `like`.

        kind: of the table that the model is shown, as `frames.kind_of` names it.

        >>> h = Classifier(lambda X: [0.2 if dtype == "int64" else 0.1 for dtype in X.dtypes])
        >>> h.in_form(pd.DataFrame({"age": [30]})).score(pd.DataFrame({"age": [41.0]}))
        array([0.2])
        """
        made = copy.copy(self)
        made.form = TableForm(like, kind)
        return made

    @property
    def is_fitted(self) -> bool:
        """Whether there is a model; if not, a method trains one when it is fitted."""
        return self.model is not None

    # ---- scores -----------------------------------------------------------------------------

    def score(self, X: Any) -> Array:
        """Return (n,) scores of the favourable outcome. Raises UserError if a score is invalid.

        X: a table of any kind. The classifier of a fitted method shows its model the kind that
        `fit` was given, and any other classifier the kind of X. The model is not called if X has no
        rows.
        """
        predict = self._predictor()
        kind_of(X)  # refuses what is no table
        X = self._read(X)
        chunks = [rows_of(X, i, i + SCORE_CHUNK) for i in range(0, len(X), SCORE_CHUNK)]
        scores = [self._asked(predict, self._own(chunk)) for chunk in chunks]
        return np.concatenate([np.zeros(0), *scores])

    def _read(self, X: Any) -> Any:
        """Return a table in pandas, unless a model without a form is asked about another kind."""
        if self.form is not None:
            return to_pandas(X, list(self.form.dtypes))
        if not isinstance(self.model, nn.Module) or kind_of(X) == PANDAS:
            return X
        if self.encoder is not None:
            return to_pandas(X, self.encoder.schema)
        return X if isinstance(X, np.ndarray) else to_pandas(X)

    def _own(self, X: Any) -> Any:
        """Return a copy of X for the model, which may change it, with the rows numbered from 0."""
        if self.form is None:
            return numbered(X) if isinstance(X, pd.DataFrame) else X
        table = self.form.put(X)  # of which a torch module is given the numbers
        return table if isinstance(self.model, nn.Module) else in_kind(table, self.form.kind)

    def score_encoded(self, Z: Array, encoder: TableEncoder, like: pd.DataFrame) -> Array:
        """Return (n,) scores of rows of Z.

        A torch module that reads the Z of this encoder scores Z directly. Any other model scores
        the rows in original units, with the dtypes of `like`, which needs at least one row.
        """
        if self.reads(encoder):
            chunks = [Z[i : i + SCORE_CHUNK] for i in range(0, len(Z), SCORE_CHUNK)]
            run = partial(_run_module, self.model)
            scores = [self._asked(run, each) for each in chunks]
            return np.concatenate([np.zeros(0), *scores])
        return self.score(encoder.table(Z, like))

    def score_each(self, Z: Array, encoder: TableEncoder) -> Array:
        """Return (n,) scores of rows of Z by a module that reads this encoder's Z, each row asked
        about alone: its score then has the same bits, whatever rows stand beside it."""
        with _asking(self.model, rows=1) as ask:
            scores = [self._asked(ask, Z[[i]]) for i in range(len(Z))]
        return np.concatenate([np.zeros(0), *scores])

    def score_rows(self, X: pd.DataFrame, Z: Array, encoder: TableEncoder) -> Array:
        """Return (n,) scores of rows that are known as a table and as Z, without converting X."""
        return self.score_encoded(Z, encoder, X) if self.reads(encoder) else self.score(X)

    def reads(self, encoder: TableEncoder) -> bool:
        """Return whether the model scores rows of this encoder's Z directly."""
        return self.encoder is encoder and isinstance(self.model, nn.Module)

    def confidence(self, scores: Array) -> Array:
        """Return scores on a scale common to all models: 0 at the lower end of the score range, 0.5
        at the cutoff, 1 at the upper end, and linear in between."""
        low, high = self.score_range
        below = 0.5 * (scores - low) / (self.cutoff - low)
        above = 0.5 + 0.5 * (scores - self.cutoff) / (high - self.cutoff)
        return np.where(scores > self.cutoff, above, below)

    def accepts(self, X: Any) -> np.ndarray:
        """Return (n,) booleans: True if the score is above the cutoff."""
        return self.score(X) > self.cutoff

    # ---- labels -----------------------------------------------------------------------------

    def is_favourable(self, y: Any) -> np.ndarray:
        """Return (n,) booleans: True if the outcome is favourable."""
        outcomes = np.asarray(y)
        if outcomes.ndim != 1:
            raise UserError(
                f"y has shape {outcomes.shape}; give one outcome for each row, of shape (n,)"
            )
        labels = pd.Series(outcomes)
        if labels.isna().any():
            gaps = counted(int(labels.isna().sum()), "missing outcome")
            raise UserError(f"y has {gaps}; drop those rows")
        seen = [plain(v) for v in labels.unique()]
        wanted = self._favourable_set(seen, "y")
        return labels.isin(list(wanted)).to_numpy(copy=True)

    def _favourable_set(self, seen: list[Any], where: str) -> set[Any]:
        if self.favourable is None:
            if set(seen) <= {0, 1}:
                return {1}
            raise UserError(
                f"{where} has the outcomes {sorted(seen, key=str)}: name the favourable one, for "
                f"example --favourable {seen[0]} on the command line, favourable={seen[0]!r} in "
                "Python or in a policy"
            )
        several = isinstance(self.favourable, set | frozenset | list | tuple)
        wanted = set(self.favourable) if several else {self.favourable}
        unknown = [v for v in wanted if v not in seen]
        if unknown and len(unknown) == len(wanted):
            raise UserError(
                f"the favourable outcome {self.favourable!r} does not occur in {where}; name one "
                f"of {sorted(seen, key=str)}"
            )
        return wanted

    # ---- how each kind of model is called -----------------------------------------------------

    def _predictor(self) -> Callable[[pd.DataFrame], Any]:
        model = self.model
        if model is None:
            raise UserError(
                "this Classifier has no model yet; fit a method with it, which trains one"
            )
        if isinstance(model, type):
            raise UserError(
                f"{model.__name__} is a class and has learned nothing; give a model that is fitted"
            )
        if has(model, "predict_proba"):
            return self._predict_proba
        if isinstance(model, nn.Module):
            return self._predict_module
        if has(model, "inplace_predict"):  # xgboost.Booster
            return lambda X: model.inplace_predict(X)
        if type(model).__module__.startswith("lightgbm"):  # lightgbm.Booster
            return lambda X: model.predict(X)
        if callable(model):
            return lambda X: model(X)
        raise UserError(
            f"a {type(model).__name__} cannot score people; give a model with predict_proba, a "
            "torch module or a function of a DataFrame"
        )

    def _predict_proba(self, X: pd.DataFrame) -> Array:
        proba = as_numbers(self.model.predict_proba(X), len(X), "predict_proba")
        known = getattr(self.model, "classes_", None)
        labels = range(proba.shape[-1] if proba.ndim else 0) if known is None else known
        classes = _labels(labels)
        if classes is None:
            raise UserError(
                f"classes_ of the classifier is {shown(known)}; it must list the outcomes, in the "
                "order of the columns of predict_proba"
            )
        if proba.ndim != 2 or proba.shape != (len(X), len(classes)):
            raise UserError(
                f"predict_proba returned shape {proba.shape} for {len(X)} rows and {len(classes)} "
                "classes; it should return one column for each class"
            )
        wanted = self._favourable_set(classes, "the classifier")
        return np.asarray(proba[:, [c in wanted for c in classes]].sum(axis=1), dtype=np.float64)

    def _predict_module(self, X: pd.DataFrame | np.ndarray) -> Any:
        if isinstance(X, np.ndarray):
            return _run_module(self.model, X.astype(np.float64))
        if self.encoder is not None:
            return _run_module(self.model, self.encoder.encode(X))
        text = [c for c in X.columns if not pd.api.types.is_numeric_dtype(X[c].dtype)]
        if text:
            raise UserError(
                f"a torch module reads numbers, but the columns {text} hold none; pass "
                "encoder=TableEncoder(...) or wrap the module in a function of a DataFrame"
            )
        return _run_module(self.model, X.to_numpy(dtype=np.float64))

    def _asked(self, ask: Callable[[Any], Any], rows: Any) -> Array:
        """Return (n,) what the model answers about a table or about rows of Z, checked."""
        n = len(rows)
        try:
            return self._checked(as_numbers(ask(rows), n, "the classifier"), n)
        except UserError:
            raise
        except Exception as error:  # a user's model may raise anything
            if type(error).__name__.endswith("NotFittedError"):
                raise UserError(f"the classifier is not fitted; fit it first: {error}") from None
            raise UserError(
                f"the classifier, a {type(self.model).__name__}, raised {type(error).__name__} "
                f"when it was asked about {counted(n, 'row')}: {brief(error)}; it must score every "
                "table that has the columns and dtypes of the one that it was fitted on"
            ) from error

    def _checked(self, scores: Array, n: int) -> Array:
        scores = scores.astype(np.float64)
        if n == 1 and scores.ndim == 0:  # "squeezed", which for one row is clear enough
            scores = scores.reshape(1)
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        if scores.shape != (n,):
            raise UserError(
                f"the classifier returned shape {scores.shape} for {n} rows; it should return "
                f"({n},), one score of the favourable outcome for each row"
            )
        if np.isnan(scores).any():
            raise UserError(
                f"the classifier returned NaN for {int(np.isnan(scores).sum())} of {n} rows; it "
                "must score every row, also rows with missing values"
            )
        low, high = self.score_range
        bad = ~((scores >= low - 1e-6) & (scores <= high + 1e-6))
        if bad.any():
            raise UserError(
                f"the classifier returned the score {scores[bad.argmax()]}, which is outside "
                f"{self.score_range}; apply a sigmoid if scores are logits, or set "
                "score_range=(lowest, highest) if they have another scale"
            )
        return scores


# the float64 copies of modules, where scores must not depend on the other rows
_DOUBLES: ContextVar[WeakKeyDictionary[nn.Module, nn.Module] | None] = ContextVar(
    "doubles", default=None
)


@contextmanager
def scores_by_row() -> Iterator[None]:
    """Inside, a torch module's score of a row does not depend on the rows beside it.

    Torch adds up a row in another order if it stands at another place of a table, so that the last
    bit of a float32 depends on it. Inside, modules compute in float64 and the result is rounded to
    float32, where that difference is gone. A module must not be trained inside.

    >>> module, Z = MLP(n_inputs=30, hidden=(10,)), np.random.default_rng(0).random((99, 30))
    >>> with scores_by_row():
    ...     alone = torch.cat([_run_module(module, row[None]) for row in Z])
    ...     bool((alone == _run_module(module, Z)).all())
    True
    """
    token = _DOUBLES.set(WeakKeyDictionary())
    try:
        yield
    finally:
        _DOUBLES.reset(token)


def _run_module(module: nn.Module, Z: Array) -> Any:
    doubles = _DOUBLES.get()
    if doubles is None:
        return _output(module, Z)
    if module not in doubles:
        doubles[module] = copy.deepcopy(module).double()
    found = _output(doubles[module], Z)
    return found.float() if isinstance(found, torch.Tensor) else found


def _output(module: nn.Module, Z: Array) -> Any:
    with _asking(module, len(Z)) as ask:
        return ask(Z)


@contextmanager
def _asking(module: nn.Module, rows: int) -> Iterator[Callable[[Array], Any]]:
    """Give the function that asks a module about so many rows of Z at once."""
    numbers = (each.dtype for each in module.parameters() if each.dtype.is_floating_point)
    dtype = next(numbers, torch.float32)
    threads = torch_threads(rows * n_weights(module))
    with evaluating(module), torch.inference_mode(), threads:
        yield lambda Z: module(torch.tensor(Z, dtype=dtype))  # a copy: an array may be read-only


def _labels(found: Any) -> list[Any] | None:
    """Return outcomes as a list, or None if they are none."""
    try:
        labels = [plain(each) for each in found]
        hash(tuple(labels))
    except TypeError:  # no list, or of what cannot be an outcome
        return None
    return labels


def _check_favourable(favourable: Any) -> None:
    several = isinstance(favourable, set | frozenset | list | tuple)
    if not _labels(favourable if several else [favourable]):
        raise UserError(
            f"favourable is {shown(favourable)}; give the label of the favourable outcome, or a "
            "set of labels"
        )


def _ends(score_range: Any) -> tuple[float, float]:
    """Return the lowest and the highest score. Raises UserError if they are none."""
    try:
        low, high = score_range
    except (TypeError, ValueError):
        low = high = None
    if not (is_number(low) and is_number(high)):
        raise UserError(
            f"score_range is {shown(score_range)}; give the lowest and the highest score of your "
            "model as two numbers, for example (300, 850)"
        )
    return float(low), float(high)


# ---- the paper's classifier -----------------------------------------------------------------


@dataclass(frozen=True)
class MLPConfig:
    """Settings of the network that `fit_mlp` trains. The defaults are the paper's.

    Examples:
        >>> MLPConfig(epochs=20).hidden
        (10, 10, 10)
    """

    hidden: tuple[int, ...] = (10, 10, 10)
    lr: float = 1e-3
    epochs: int = 100
    batch_size: int = 64
    balanced: bool = True  # give both classes the same total weight

    allowed: ClassVar[dict[str, Allowed]] = {
        "hidden": Several(WIDTH),
        "lr": RATE,
        "epochs": STEPS,
        "batch_size": COUNT,
        "balanced": FLAG,
    }


class MLP(nn.Module):
    """A network with ReLU layers: (n, D) -> (n,) probabilities of the favourable outcome.

    Examples:
        >>> h = MLP(n_inputs=3, hidden=(4,))
        >>> h(torch.zeros(5, 3)).shape
        torch.Size([5])
    """

    def __init__(self, n_inputs: int, hidden: tuple[int, ...]):
        super().__init__()
        layers: list[nn.Module] = []
        for size in hidden:
            layers += [nn.Linear(n_inputs, size), nn.ReLU()]
            n_inputs = size
        self.layers = nn.Sequential(*layers, nn.Linear(n_inputs, 1), nn.Flatten(0))

    def logits(self, Z: torch.Tensor) -> torch.Tensor:
        """Return (n,) log odds of the favourable outcome."""
        return self.layers(Z)

    def forward(self, Z: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.logits(Z))


def fit_mlp(
    X: pd.DataFrame,
    y: Any,
    schema: Schema,
    *,
    config: MLPConfig | None = None,
    favourable: Any = None,
    cutoff: float = 0.5,
    seed: int = 0,
    progress: bool | None = False,
) -> Classifier:
    """Train h on examples, with the binary cross-entropy of the outcomes as the loss.

    The network cannot read protected features: the weights of their columns are zero.

    Args:
        X: the training table.
        y: the outcome of each row.
        schema: the features of X.
        config: the settings of the network; None: the paper's.
        favourable: the favourable label, as in `Classifier`.
        cutoff: the cutoff of the classifier.
        seed: decides the first weights and the order of the rows.
        progress: whether to show a progress bar; None: where somebody watches.

    Examples:
        >>> X = pd.DataFrame({"income": range(40)})
        >>> config = MLPConfig(epochs=100, lr=0.02, batch_size=8)
        >>> h = fit_mlp(X, X["income"] >= 20, Schema.infer(X), config=config)
        >>> h.accepts(X.iloc[[0, 39]])
        array([False,  True])
    """
    config = config or MLPConfig()
    check_settings("fit_mlp", config)
    check_values("fit_mlp", {"seed": seed}, {"seed": SEED})
    label = Classifier(favourable=favourable).is_favourable(y)
    if label.all() or not label.any():
        raise UserError(
            f"y has {counted(int(label.sum()), 'favourable outcome')} in "
            f"{counted(len(label), 'row')}; a classifier needs rows of both outcomes"
        )
    if len(label) != len(X):
        raise UserError(
            f"X has {len(X)} rows but y has {len(label)}; give one outcome for each row"
        )
    encoder = TableEncoder(schema).fit(X)
    Z = torch.as_tensor(encoder.encode(X), dtype=torch.float32)
    target = torch.as_tensor(label, dtype=torch.float32)
    share = float(label.mean())
    weight = torch.where(target > 0, 0.5 / share, 0.5 / (1 - share)) if config.balanced else None
    with seeded(seed):
        model = MLP(encoder.width, config.hidden)
    first = next(layer for layer in model.layers if isinstance(layer, nn.Linear))
    for feature, block in zip(schema, encoder.blocks, strict=True):
        if feature.role == "protected":
            Z[:, block.columns] = 0.0  # without input the weights get no gradient and stay zero
            first.weight.data[:, block.columns] = 0.0

    def loss(rows: torch.Tensor) -> torch.Tensor:
        w = weight[rows] if weight is not None else None
        logits = model.logits(Z[rows])
        return nn.functional.binary_cross_entropy_with_logits(logits, target[rows], weight=w)

    n_batches = -(-len(Z) // config.batch_size)
    plan = TrainingPlan(
        steps=config.epochs * n_batches, lr=config.lr, schedule="constant", eval_every=0
    )
    batches = _epochs(len(Z), config.batch_size, seed)
    with torch_threads(config.batch_size * n_weights(model)):
        name = "training the model"
        train(model, loss, batches, plan, label=name, progress=progress, shared=True)
    return Classifier(model, favourable=favourable, cutoff=cutoff, encoder=encoder)


def _epochs(n: int, batch_size: int, seed: int) -> Any:
    """Yield batches of shuffled row numbers, epoch after epoch, without end."""
    generator = torch.Generator().manual_seed(int(seed))
    while True:
        yield from torch.randperm(n, generator=generator).split(int(batch_size))
