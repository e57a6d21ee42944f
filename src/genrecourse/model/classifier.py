"""Classifier: any model as h, the score of the favourable outcome, with its cutoff.

h may be a fitted scikit-learn estimator or Pipeline, an xgboost or lightgbm model, a torch module
or a plain function of a DataFrame. `Classifier()` with no model stands for the paper's own setting,
where the decision model is hidden: `fit_mlp` learns its stand-in from examples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from genrecourse.errors import UserError, counted
from genrecourse.model.training import TrainingPlan, train
from genrecourse.table.encoding import Array, TableEncoder
from genrecourse.table.schema import Schema, plain

SCORE_CHUNK = 65_536  # rows a model scores at once: bounds memory, not results


class Classifier:
    """h(x): the score of the favourable outcome. Accepted means score > cutoff.

    Parameters
    ----------
    model: anything of the kinds named above, already fitted; None: trained when a method is fitted.
    favourable: the label, or a set of labels, of the favourable outcome; None: 1 of {0, 1}.
    cutoff: the score above which a person is accepted, in the model's own scale.
    score_range: the ends of that scale, (300, 850) for a credit score; confidence is relative to
        it: 0 at the lower end, 0.5 at the cutoff, 1 at the upper end.
    encoder: for a torch module that reads a TableEncoder's Z; None: it reads X's columns as floats.
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
        low, high = score_range
        if not low < cutoff < high:
            raise UserError(
                f"the cutoff {cutoff} lies outside the score range {score_range}; "
                "say the lowest and highest of your model's scores: score_range=(300, 850), or "
                "--score-range 300,850"
            )
        self.model = model
        self.favourable = favourable
        self.cutoff = cutoff
        self.score_range = (float(low), float(high))
        self.encoder = encoder

    def __sklearn_clone__(self) -> Classifier:
        return self  # a fitted model stays fitted

    def __repr__(self) -> str:
        model = type(self.model).__name__ if self.model is not None else "to be trained"
        return f"Classifier({model}, favourable={self.favourable!r}, cutoff={self.cutoff})"

    @classmethod
    def wrap(cls, model: Any) -> Classifier:
        """A Classifier as it is; any other model, or None, with the default cutoff."""
        return model if isinstance(model, Classifier) else cls(model)

    @property
    def is_fitted(self) -> bool:
        return self.model is not None

    # ---- scores -----------------------------------------------------------------------------

    def score(self, X: pd.DataFrame) -> Array:
        """(n,) scores of the favourable outcome, checked; a model is never asked about no rows."""
        predict = self._predictor()
        chunks = [X.iloc[i : i + SCORE_CHUNK] for i in range(0, len(X), SCORE_CHUNK)]
        scores = [self._checked(predict(chunk), len(chunk)) for chunk in chunks]
        return np.concatenate([np.zeros(0), *scores])

    def score_encoded(self, Z: Array, encoder: TableEncoder, like: pd.DataFrame) -> Array:
        """Scores of rows of Z; `like` is any table with the user's dtypes, one row at least.

        A module that reads this encoder's Z is asked directly; any other model sees the rows in
        original units, as it was trained.
        """
        if self.encoder is encoder and isinstance(self.model, nn.Module):
            chunks = [Z[i : i + SCORE_CHUNK] for i in range(0, len(Z), SCORE_CHUNK)]
            scores = [self._checked(_run_module(self.model, each), len(each)) for each in chunks]
            return np.concatenate([np.zeros(0), *scores])
        return self.score(encoder.table(Z, like))

    def confidence(self, scores: Array) -> Array:
        """Scores on one scale for every model: 0.5 at the cutoff, linear to 0 and 1 at the ends."""
        low, high = self.score_range
        below = 0.5 * (scores - low) / (self.cutoff - low)
        above = 0.5 + 0.5 * (scores - self.cutoff) / (high - self.cutoff)
        return np.where(scores > self.cutoff, above, below)

    def accepts(self, X: pd.DataFrame) -> np.ndarray:
        return self.score(X) > self.cutoff

    # ---- labels -----------------------------------------------------------------------------

    def is_favourable(self, y: Any) -> np.ndarray:
        """Outcomes as booleans; the favourable one is named, or is the 1 of {0, 1}."""
        outcomes = np.asarray(y)
        if outcomes.ndim != 1:
            raise UserError(f"y has shape {outcomes.shape}; expected one outcome a row")
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
                f"{where} has the outcomes {sorted(seen, key=str)}: say which is favourable, "
                f"for example --favourable {seen[0]} on the command line, favourable={seen[0]!r} "
                "in Python or in a policy"
            )
        several = isinstance(self.favourable, set | frozenset | list | tuple)
        wanted = set(self.favourable) if several else {self.favourable}
        unknown = [v for v in wanted if v not in seen]
        if unknown and len(unknown) == len(wanted):
            raise UserError(
                f"the favourable outcome {self.favourable!r} is none of those in {where}: "
                f"{sorted(seen, key=str)}"
            )
        return wanted

    # ---- one way in for each kind of model ----------------------------------------------------

    def _predictor(self) -> Callable[[pd.DataFrame], Array]:
        model = self.model
        if model is None:
            raise UserError("this Classifier has no model yet; fit a method with it first")
        if hasattr(model, "predict_proba"):
            return self._predict_proba
        if isinstance(model, nn.Module):
            return self._predict_module
        if hasattr(model, "inplace_predict"):  # xgboost.Booster
            return lambda X: np.asarray(model.inplace_predict(X))
        if type(model).__module__.startswith("lightgbm"):  # lightgbm.Booster
            return lambda X: np.asarray(model.predict(X))
        if callable(model):
            return lambda X: np.asarray(model(X))
        raise UserError(
            f"a {type(model).__name__} cannot score people: it needs predict_proba, or be a torch "
            "module, or a function of a DataFrame"
        )

    def _predict_proba(self, X: pd.DataFrame) -> Array:
        try:
            proba = np.asarray(self.model.predict_proba(X))
        except Exception as error:
            if type(error).__name__ == "NotFittedError":
                raise UserError(f"the classifier is not fitted yet: {error}") from None
            raise
        classes = [plain(c) for c in getattr(self.model, "classes_", range(proba.shape[-1]))]
        if proba.ndim != 2 or proba.shape != (len(X), len(classes)):
            raise UserError(
                f"predict_proba gave shape {proba.shape} for {len(X)} rows and {len(classes)} "
                "classes; expected one column a class"
            )
        wanted = self._favourable_set(classes, "the classifier")
        return np.asarray(proba[:, [c in wanted for c in classes]].sum(axis=1), dtype=np.float64)

    def _predict_module(self, X: pd.DataFrame) -> Array:
        if self.encoder is not None:
            return _run_module(self.model, self.encoder.encode(X))
        text = [c for c in X.columns if not pd.api.types.is_numeric_dtype(X[c].dtype)]
        if text:
            raise UserError(
                f"a torch module reads numbers, but {text} are not; pass encoder=TableEncoder(...) "
                "or wrap the module in a function of a DataFrame"
            )
        return _run_module(self.model, X.to_numpy(dtype=np.float64))

    def _checked(self, scores: np.ndarray, n: int) -> Array:
        try:
            scores = np.asarray(scores, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise UserError(f"the classifier gave no numbers: {error}; it must score") from None
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        if scores.shape != (n,):
            raise UserError(
                f"the classifier gave shape {scores.shape} for {n} rows; expected ({n},): one "
                "score of the favourable outcome a row"
            )
        if np.isnan(scores).any():
            raise UserError(
                f"the classifier gave NaN for {int(np.isnan(scores).sum())} of {n} rows; it must "
                "score every row, those with missing values too"
            )
        low, high = self.score_range
        bad = ~((scores >= low - 1e-6) & (scores <= high + 1e-6))
        if bad.any():
            raise UserError(
                f"the classifier gave the score {scores[bad.argmax()]} outside {self.score_range}; "
                "logits need a sigmoid, and another scale score_range=(lowest, highest)"
            )
        return scores


def _run_module(module: nn.Module, Z: Array) -> Array:
    was_training = module.training
    module.eval()
    parameter = next(module.parameters(), None)
    dtype = parameter.dtype if parameter is not None else torch.float32
    with torch.inference_mode():
        scores = module(torch.tensor(Z, dtype=dtype))  # a copy: a table's array may be read-only
    module.train(was_training)
    return np.asarray(scores.double().numpy())


# ---- the paper's classifier -----------------------------------------------------------------


@dataclass(frozen=True)
class MLPConfig:
    """The paper's h: ReLU, 10-10-10, Adam 1e-3, 100 epochs, batch 64."""

    hidden: tuple[int, ...] = (10, 10, 10)
    lr: float = 1e-3
    epochs: int = 100
    batch_size: int = 64
    balanced: bool = True  # weigh the classes equally


class MLP(nn.Module):
    """(n, D) -> (n,) probabilities of the favourable outcome."""

    def __init__(self, n_inputs: int, hidden: tuple[int, ...]):
        super().__init__()
        layers: list[nn.Module] = []
        for size in hidden:
            layers += [nn.Linear(n_inputs, size), nn.ReLU()]
            n_inputs = size
        self.layers = nn.Sequential(*layers, nn.Linear(n_inputs, 1), nn.Flatten(0))

    def logits(self, Z: torch.Tensor) -> torch.Tensor:
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
    progress: bool = False,
) -> Classifier:
    """Learn h from examples: binary cross-entropy on the outcomes seen.

    Protected features are not read: nothing comes in from their columns.
    """
    config = config or MLPConfig()
    label = Classifier(favourable=favourable).is_favourable(y)
    if label.all() or not label.any():
        raise UserError(
            f"y has {counted(int(label.sum()), 'favourable outcome')} in "
            f"{counted(len(label), 'row')}; a classifier needs both outcomes to learn from"
        )
    if len(label) != len(X):
        raise UserError(f"X has {len(X)} rows but y has {len(label)}")
    encoder = TableEncoder(schema).fit(X)
    Z = torch.as_tensor(encoder.encode(X), dtype=torch.float32)
    target = torch.as_tensor(label, dtype=torch.float32)
    share = float(label.mean())
    weight = torch.where(target > 0, 0.5 / share, 0.5 / (1 - share)) if config.balanced else None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MLP(encoder.width, config.hidden)
    first = next(layer for layer in model.layers if isinstance(layer, nn.Linear))
    for feature, block in zip(schema, encoder.blocks, strict=True):
        if feature.role == "protected":
            Z[:, block.columns] = 0.0  # so that the weights stay as they are set here
            first.weight.data[:, block.columns] = 0.0

    def loss(rows: torch.Tensor) -> torch.Tensor:
        w = weight[rows] if weight is not None else None
        logits = model.logits(Z[rows])
        return nn.functional.binary_cross_entropy_with_logits(logits, target[rows], weight=w)

    n_batches = -(-len(Z) // config.batch_size)
    plan = TrainingPlan(
        steps=config.epochs * n_batches, lr=config.lr, schedule="constant", eval_every=0
    )
    train(model, loss, _epochs(len(Z), config.batch_size, seed), plan, label="h", progress=progress)
    return Classifier(model, favourable=favourable, cutoff=cutoff, encoder=encoder)


def _epochs(n: int, batch_size: int, seed: int) -> Any:
    """Shuffled row numbers, one epoch after the other, without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield from torch.randperm(n, generator=generator).split(batch_size)
