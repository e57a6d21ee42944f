"""The Merkle tree of RFC 6962 (section 2.1) over the lines of a record.

A leaf is SHA-256(0x00, line), a node SHA-256(0x01, left, right); a tree of n leaves is split at the
largest power of two below n. Proofs are lists of node hashes, of about log2(n) entries:

- inclusion: a line is in the tree that has this root;
- consistency: the tree of a later root begins with the tree of an earlier one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def leaf_hash(line: bytes) -> bytes:
    """Return the hash of a leaf.

    >>> leaf_hash(b"").hex()[:16]
    '6e340b9cffb37a98'
    """
    return hashlib.sha256(b"\x00" + line).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node; its first byte keeps it apart from every leaf.

    >>> node_hash(b"a", b"b") == leaf_hash(b"ab")
    False
    """
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """A tree that grows by one leaf at a time and keeps only the log2(n) hashes that it needs.

    >>> tree = Tree()
    >>> for line in (b"a", b"b", b"c"):
    ...     tree.add(leaf_hash(line))
    >>> tree.size, tree.root() == root([leaf_hash(line) for line in (b"a", b"b", b"c")])
    (3, True)
    """

    def __init__(self, size: int = 0, complete: Sequence[bytes] = ()):
        self.size = size
        self.complete = list(complete)  # roots of complete subtrees, the largest first

    def copy(self) -> Tree:
        return Tree(self.size, self.complete)

    def add(self, leaf: bytes) -> None:
        """Add a leaf, and join subtrees of the same size: as many as `size` ends in binary ones."""
        size, top = self.size, leaf
        while size & 1:
            top = node_hash(self.complete.pop(), top)
            size >>= 1
        self.complete.append(top)
        self.size += 1

    def root(self) -> bytes:
        if not self.complete:
            return hashlib.sha256(b"").digest()
        *rest, top = self.complete
        for left in reversed(rest):
            top = node_hash(left, top)
        return top


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the root of the tree over leaf hashes (MTH in the RFC).

    >>> a, b, c = map(leaf_hash, (b"a", b"b", b"c"))
    >>> root([a, b, c]) == node_hash(node_hash(a, b), c)
    True
    """
    tree = Tree()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root()


def _split(n: int) -> int:
    """Return the largest power of two below n, for n > 1."""
    return 1 << (n - 1).bit_length() - 1


# ---- one line is in the tree --------------------------------------------------------------------


def inclusion(leaves: Sequence[bytes], place: int) -> list[bytes]:
    """Return the proof that the leaf at `place` is in the tree (PATH in the RFC), lowest first.

    >>> a, b, c = map(leaf_hash, (b"a", b"b", b"c"))
    >>> inclusion([a, b, c], 1) == [a, c]
    True
    """
    proof: list[bytes] = []
    start, stop = 0, len(leaves)
    while stop - start > 1:
        middle = start + _split(stop - start)
        if place < middle:
            proof.append(root(leaves[middle:stop]))
            stop = middle
        else:
            proof.append(root(leaves[start:middle]))
            start = middle
    return proof[::-1]


def includes(top: bytes, size: int, place: int, leaf: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether a proof shows that the leaf at `place` is in the tree with this root.

    >>> leaves = [leaf_hash(line) for line in (b"a", b"b", b"c")]
    >>> includes(root(leaves), 3, 1, leaves[1], inclusion(leaves, 1))
    True
    """
    if not 0 <= place < size:
        return False
    sides: list[bool] = []  # from the root down: is our leaf in the left part?
    start, stop = 0, size
    while stop - start > 1:
        middle = start + _split(stop - start)
        is_left = place < middle
        sides.append(is_left)
        start, stop = (start, middle) if is_left else (middle, stop)
    if len(proof) != len(sides):
        return False
    for is_left, other in zip(reversed(sides), proof, strict=True):
        leaf = node_hash(leaf, other) if is_left else node_hash(other, leaf)
    return leaf == top


# ---- a later tree begins with an earlier one ----------------------------------------------------


def consistency(leaves: Sequence[bytes], earlier: int) -> list[bytes]:
    """Return the proof that the tree begins with its first `earlier` leaves (PROOF in the RFC).

    >>> a, b, c = map(leaf_hash, (b"a", b"b", b"c"))
    >>> consistency([a, b, c], 2) == [c]
    True
    """
    if not 0 < earlier < len(leaves):
        return []
    proof: list[bytes] = []
    start, stop, is_whole = 0, len(leaves), True
    while earlier < stop:
        middle = start + _split(stop - start)
        if earlier <= middle:
            proof.append(root(leaves[middle:stop]))
            stop = middle
        else:
            proof.append(root(leaves[start:middle]))
            start, is_whole = middle, False
    if not is_whole:  # the verifier knows the root of the whole earlier tree, but not of a part
        proof.append(root(leaves[start:stop]))
    return proof[::-1]


def extends(
    early_root: bytes, earlier: int, late_root: bytes, later: int, proof: Sequence[bytes]
) -> bool:
    """Return whether a proof shows that the later tree begins with the earlier one.

    >>> leaves = [leaf_hash(line) for line in (b"a", b"b", b"c")]
    >>> extends(root(leaves[:2]), 2, root(leaves), 3, consistency(leaves, 2))
    True
    """
    if not 0 <= earlier <= later:
        return False
    if earlier in (0, later):
        empty = earlier == 0 and early_root == Tree().root()
        return not proof and (empty or (earlier == later and early_root == late_root))
    left = list(proof)
    roots = _both_roots(left, 0, later, earlier, early_root)
    return not left and roots == (early_root, late_root)


def _both_roots(
    proof: list[bytes], start: int, stop: int, earlier: int, early_root: bytes
) -> tuple[bytes, bytes] | None:
    """Return the roots of the earlier and the later tree within [start, stop), taken from the front
    of the proof, which is used up; None: it is too short."""
    if earlier == stop:
        if start == 0:
            return early_root, early_root
        return (proof[0], proof.pop(0)) if proof else None
    middle = start + _split(stop - start)
    inner = (start, middle) if earlier <= middle else (middle, stop)
    found = _both_roots(proof, *inner, earlier, early_root)
    if found is None or not proof:
        return None
    other, (early, late) = proof.pop(0), found
    if earlier <= middle:
        return early, node_hash(late, other)
    return node_hash(other, early), node_hash(other, late)
