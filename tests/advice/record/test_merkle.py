"""The tree of RFC 6962, compared with its definition and with known roots; wrong proofs."""

from __future__ import annotations

import hashlib

import pytest

from genrecourse.advice.record.merkle import (
    Tree,
    consistency,
    extends,
    includes,
    inclusion,
    leaf_hash,
    root,
)

# Leaves and roots that implementations of Certificate Transparency test themselves with.
ENTRIES = [
    *("", "00", "10", "2021", "3031", "40414243"),
    *("5051525354555657", "606162636465666768696a6b6c6d6e6f"),
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
SIZES = range(1, 20)
LEAVES = [leaf_hash(str(i).encode()) for i in range(20)]


def by_definition(leaves: list[bytes]) -> bytes:
    """MTH, as section 2.1 of the RFC writes it."""
    if len(leaves) < 2:
        return leaves[0] if leaves else hashlib.sha256(b"").digest()
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    both = by_definition(leaves[:k]) + by_definition(leaves[k:])
    return hashlib.sha256(b"\x01" + both).digest()


def path(m: int, leaves: list[bytes]) -> list[bytes]:
    """PATH, as section 2.1.1 writes it."""
    if len(leaves) == 1:
        return []
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    if m < k:
        return [*path(m, leaves[:k]), by_definition(leaves[k:])]
    return [*path(m - k, leaves[k:]), by_definition(leaves[:k])]


def subproof(m: int, leaves: list[bytes], b: bool) -> list[bytes]:
    """SUBPROOF, as section 2.1.2 writes it."""
    if m == len(leaves):
        return [] if b else [by_definition(leaves)]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    if m <= k:
        return [*subproof(m, leaves[:k], b), by_definition(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), by_definition(leaves[:k])]


def test_known_roots() -> None:
    leaves = [leaf_hash(bytes.fromhex(entry)) for entry in ENTRIES]
    assert [root(leaves[:n]).hex() for n in range(9)] == ROOTS


def test_a_growing_tree_has_the_root_of_the_definition() -> None:
    tree = Tree()
    for n, leaf in enumerate(LEAVES):
        assert (tree.size, tree.root()) == (n, by_definition(LEAVES[:n]))
        tree.add(leaf)


@pytest.mark.parametrize("n", SIZES)
def test_inclusion(n: int) -> None:
    """Each proof is that of the definition, shows its own leaf, and nothing else."""
    leaves = LEAVES[:n]
    top = root(leaves)
    for place in range(n):
        proof = inclusion(leaves, place)
        assert proof == path(place, leaves)
        shown = [
            (i, j)
            for i in range(-1, n + 2)
            for j, leaf in enumerate(LEAVES)
            if includes(top, n, i, leaf, proof)
        ]
        assert shown == [(place, place)]
        assert not includes(top, n, place, leaves[place], [*proof, top])
        assert not proof or not includes(top, n, place, leaves[place], proof[1:])


@pytest.mark.parametrize("later", SIZES)
def test_consistency(later: int) -> None:
    late = root(LEAVES[:later])
    for earlier in range(1, later + 1):
        early = root(LEAVES[:earlier])
        proof = consistency(LEAVES[:later], earlier)
        assert proof == subproof(earlier, LEAVES[:later], True)
        assert extends(early, earlier, late, later, proof)
        other = root([*LEAVES[: earlier - 1], leaf_hash(b"other")])  # the last leaf was replaced
        assert not extends(other, earlier, late, later, proof)
        assert not extends(early, earlier, root(LEAVES[1 : later + 1]), later, proof)
        assert not extends(early, earlier, late, later, [*proof, early])
        for k in range(len(proof)):
            assert not extends(early, earlier, late, later, proof[:k])
            wrong = [*proof[:k], leaf_hash(b"other"), *proof[k + 1 :]]
            assert not extends(early, earlier, late, later, wrong)
