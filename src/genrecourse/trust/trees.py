"""Trees: fitted decision trees as plain arrays, which predict without scikit-learn.

A model file holds data and no code (docs/decisions/0006), so the trees of a verifier must be arrays
that can be stored and checked, and that give exactly the same predictions after loading.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.tree._tree import Tree

try:  # asks all trees in one call; not public, so another version may lack it
    from sklearn.ensemble._gradient_boosting import predict_stages
except ImportError:  # pragma: no cover
    predict_stages = None

from genrecourse.errors import UserError
from genrecourse.model.threads import n_threads

if TYPE_CHECKING:
    from genrecourse.table.encoding import Array

THREADS_FROM = 2_500_000  # steps down the trees, from which on several threads are quicker
LEAF, UNDEFINED = -1, -2  # scikit-learn's marks of a leaf: no child, no column
PARTS = ("root", "feature", "threshold", "left", "right", "value")


@dataclass(frozen=True)
class Trees:
    """The nodes of all trees in one table. A leaf is its own child, so a walk can stay there.

    Examples:
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> Z = np.array([[0.0], [1.0]])
        >>> trees = Trees.of([DecisionTreeRegressor().fit(Z, [10.0, 20.0])], column=0)
        >>> trees(Z)
        array([10., 20.])
        >>> Trees.from_arrays(trees.arrays(), n_columns=1)(Z)
        array([10., 20.])
    """

    root: np.ndarray  # (t,) the first node of each tree
    feature: np.ndarray  # (m,) the column that a node tests
    threshold: np.ndarray  # (m,) a row goes left if its value is at most this
    left: np.ndarray  # (m,)
    right: np.ndarray  # (m,)
    value: np.ndarray  # (m,) the prediction of a leaf
    depth: int  # the largest number of steps from a root to a leaf
    # the same trees in scikit-learn's form, which predicts the same, and faster; may be empty
    _filled: list[_Filled] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, estimators: list[Any], column: int) -> Trees:
        """Return fitted scikit-learn trees as arrays; `column` is the output (class) to predict."""
        trees = [estimator.tree_ for estimator in estimators]
        root = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]
        own = [np.arange(tree.node_count) for tree in trees]

        def children(name: str) -> np.ndarray:
            found = [getattr(tree, name) for tree in trees]
            parts = [
                np.where(child < 0, self, child) + r
                for child, self, r in zip(found, own, root, strict=True)
            ]
            return np.concatenate(parts).astype(np.int32)

        made = cls(
            root=root.astype(np.int32),
            feature=np.concatenate([np.maximum(tree.feature, 0) for tree in trees]).astype(
                np.int32
            ),
            threshold=np.concatenate([tree.threshold for tree in trees]),
            left=children("children_left"),
            right=children("children_right"),
            value=np.concatenate([tree.value[:, 0, column] for tree in trees]),
            depth=max(tree.max_depth for tree in trees),
        )
        return replace(made, _filled=_filled(made, trees[0].n_features))

    def __call__(self, Z: Array) -> Array:
        """Return (n,) the mean prediction of the trees for rows (n, D)."""
        rows = np.ascontiguousarray(Z, dtype=np.float32)  # scikit-learn compares in float32
        if len(rows) == 0:
            return np.zeros(0)
        total = self._asked(rows) if self._filled else self._walk(rows)
        return np.asarray(total / len(self.root))

    def _asked(self, rows: np.ndarray) -> Array:
        """Return (n,) the sum of the predictions of scikit-learn's trees for rows (n, D).

        The trees are added in their order, whoever asks them, so that the sum is the same.
        """
        steps = len(rows) * len(self.root) * self.depth
        threads = n_threads() if steps >= THREADS_FROM else 1
        if threads == 1 and predict_stages is not None:
            total = np.zeros((len(rows), 1))
            predict_stages(np.array(self._filled, dtype=object)[:, None], rows, 1.0, total)
            return np.asarray(total[:, 0])
        with ThreadPoolExecutor(threads) as pool:
            parts = pool.map(lambda each: each.tree_.predict(rows).reshape(-1), self._filled)
            return np.asarray(sum(parts, np.zeros(len(rows))))

    def _walk(self, rows: np.ndarray) -> Array:
        """Return (n,) the sum of the trees' predictions for rows (n, D)."""
        flat, row = rows.reshape(-1), np.arange(len(rows)) * rows.shape[1]
        total = np.zeros(len(rows))
        for root in self.root:  # one tree at a time: its nodes fit in the processor's cache
            total += self.value[self._leaves(flat, row, root)]
        return total

    def _leaves(self, flat: np.ndarray, row: np.ndarray, root: int) -> np.ndarray:
        """Return (n,) the leaf of one tree that each row ends in."""
        node = np.full(len(row), root)
        under_way = np.arange(len(row))
        for _ in range(self.depth):
            here = node[under_way]
            goes_left = flat[row[under_way] + self.feature[here]] <= self.threshold[here]
            there = np.where(goes_left, self.left[here], self.right[here])
            node[under_way] = there
            under_way = under_way[self.left[there] != there]
        return node

    # ---- as arrays ----------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the trees as arrays by name, for a model file."""
        return {name: getattr(self, name) for name in PARTS} | {"depth": np.array([self.depth])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_columns: int) -> Trees:
        """Return the trees in `arrays`. Raises UserError if a walk could leave the arrays."""
        depth = int(arrays["depth"][0])
        root, feature, threshold, left, right, value = (arrays[name] for name in PARTS)
        trees = cls(root, feature, threshold, left, right, value, depth)
        nodes = len(trees.value)
        places = (trees.root, trees.left, trees.right)
        fits = all(((p >= 0) & (p < nodes)).all() for p in places)
        fits &= bool(((trees.feature >= 0) & (trees.feature < n_columns)).all())
        same = {len(a) for a in (trees.feature, trees.threshold, trees.left, trees.right)}
        if not fits or same != {nodes} or not 0 <= depth <= nodes:
            raise UserError(
                "the decision trees in the model file are inconsistent; save the method again"
            )
        return replace(trees, _filled=_filled(trees, n_columns))


@dataclass(frozen=True)
class _Filled:
    """A tree as `predict_stages` asks for it."""

    tree_: Any


def _filled(trees: Trees, n_columns: int) -> list[_Filled]:
    """Return the trees in scikit-learn's form.

    scikit-learn has no public way to fill a tree, so its pickle format is used. If this version has
    another one, return no tree: the arrays are then walked, more slowly. A child must come after
    its parent, as scikit-learn writes them, so that a damaged file cannot make a walk go round in
    circles.
    """
    ends = [*trees.root[1:].tolist(), len(trees.value)]
    places = np.arange(len(trees.value))
    is_leaf = trees.left == places
    inside = np.repeat(ends, np.diff([*trees.root.tolist(), len(trees.value)]))
    forward = (trees.left > places) & (trees.right > places)
    forward &= (trees.left < inside) & (trees.right < inside)
    if not (is_leaf | forward).all():
        return []
    try:
        spans = zip(trees.root, ends, strict=True)
        return [_Filled(_tree(trees, a, b, n_columns)) for a, b in spans]
    except (TypeError, ValueError, KeyError):
        return []


def _tree(trees: Trees, start: int, end: int, n_columns: int) -> Any:
    """Return one tree, the nodes from start to end, as a scikit-learn tree with one output."""
    own = slice(int(start), int(end))
    tree = Tree(n_columns, np.array([1], dtype=np.intp), 1)
    state = tree.__getstate__()
    nodes = np.zeros(own.stop - own.start, dtype=state["nodes"].dtype)
    is_leaf = trees.left[own] == np.arange(own.start, own.stop)
    nodes["left_child"] = np.where(is_leaf, LEAF, trees.left[own] - own.start)
    nodes["right_child"] = np.where(is_leaf, LEAF, trees.right[own] - own.start)
    nodes["feature"] = np.where(is_leaf, UNDEFINED, trees.feature[own])
    nodes["threshold"] = trees.threshold[own]
    state |= {"max_depth": trees.depth, "node_count": len(nodes), "nodes": nodes}
    tree.__setstate__({**state, "values": trees.value[own].reshape(-1, 1, 1).astype(np.float64)})
    return tree
