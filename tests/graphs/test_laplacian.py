import numpy as np
import pytest

from linkspread.graphs.laplacian import LinkedNeighborhoods
from linkspread.links import Links


def brute_laplacian(Z, ids):
    affinities = 1 + np.clip(Z[np.ix_(ids, ids)], -1, 1)
    degrees = affinities.sum(axis=1)
    return np.eye(len(ids)) - affinities / np.sqrt(np.outer(degrees, degrees))


def links_of(kind, rng, n=50):
    if kind == "labels":
        return Links.from_labels({"a": rng.integers(-1, 4, n)})
    if kind == "soft":
        return Links.from_labels({"a": rng.dirichlet([0.3] * 3, n)})
    pairs = [(i, i + 1, (-1.0) ** i) for i in range(n - 1)]
    pairs = Links.from_pairs(pairs, between=("a", "a")).resolve({"a": n})
    return pairs if kind == "pairs" else pairs + links_of("labels", rng, n)


@pytest.mark.parametrize("kind", ["labels", "soft", "pairs", "both"])
def test_roots_square_to_the_laplacian(rng, kind):
    Z = links_of(kind, rng).within("a", balance="literal")
    ids = np.array([rng.choice(50, 12, replace=False) for _ in range(9)])
    wanted = [brute_laplacian(Z.toarray(), row) for row in ids]
    symmetric = LinkedNeighborhoods(Z).roots(ids)
    literal = LinkedNeighborhoods(Z, root="literal").roots(ids)
    for L, root, other in zip(wanted, symmetric, literal, strict=True):
        np.testing.assert_allclose(root, root.T, atol=1e-12)
        assert np.linalg.eigvalsh(root).min() > -1e-10
        np.testing.assert_allclose(root @ root, L, atol=1e-12)
        np.testing.assert_allclose(other.T @ other, L, atol=1e-12)


def test_groups_and_eigenvectors_give_the_same_root(rng):
    Z = links_of("labels", rng).within("a", balance="literal")
    ids = np.array([rng.choice(50, 12, replace=False) for _ in range(9)])
    fast = LinkedNeighborhoods(Z)
    slow = LinkedNeighborhoods(Z)
    slow._groups = None
    np.testing.assert_allclose(fast.roots(ids), slow.roots(ids), atol=1e-7)


@pytest.mark.parametrize("labels", [[-1] * 5 + [0], [0] * 6, [0, 1, 2, 3, 4, 5]])
def test_neighbourhoods_of_one_kind(labels):
    Z = Links.from_labels({"a": labels}).within("a", balance="literal")
    ids = np.arange(5)[None, :]
    (root,) = LinkedNeighborhoods(Z).roots(ids)
    np.testing.assert_allclose(
        root @ root, brute_laplacian(Z.toarray(), ids[0]), atol=1e-12
    )


def test_symmetric_root_follows_the_order_of_the_neighbours(rng):
    Z = links_of("labels", rng).within("a", balance="literal")
    ids, order = rng.choice(50, 12, replace=False)[None, :], rng.permutation(12)
    neighborhoods = LinkedNeighborhoods(Z)
    root = neighborhoods.roots(ids)[0]
    shuffled = neighborhoods.roots(ids[:, order])[0]
    np.testing.assert_allclose(shuffled, root[np.ix_(order, order)], atol=1e-10)


def test_neighbours_that_are_like_nobody_stand_alone():
    # Too much of every class: such an item contradicts even itself.
    soft = np.vstack([np.full((3, 3), 2.0), np.eye(3)])
    Z = Links.from_labels({"a": soft}).within("a", balance="literal")
    (root,) = LinkedNeighborhoods(Z).roots(np.arange(6)[None, :])
    np.testing.assert_allclose(root[:3], np.eye(6)[:3], atol=1e-12)
    assert np.isfinite(root).all()
