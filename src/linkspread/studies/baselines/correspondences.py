"""Which rows of two views go together, and how the views vary over these pairs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.errors import FewLinksError
from linkspread.links import LinkMatrix, Links, as_link_matrix

Array = np.ndarray


def balanced_links(links: Links, a: str, b: str, *, balance: str | float) -> LinkMatrix:
    """Return all links of two views, of which at least one must count."""
    Z = as_link_matrix(links.between(a, b, balance=balance))
    if not Z.norm():
        raise FewLinksError(
            f"views {a!r} and {b!r} must be joined by a link that counts, and none is "
            f"there, got {links!r} and balance={balance!r}. Label items of both views, "
            "or judge pairs of them."
        )
    return Z


def correspondences(links: Links, a: str, b: str) -> LinkMatrix:
    """Return the must-links of two views: single pairs, or else all of one class.

    Items of one class as pairs make cluster canonical correlation analysis
    [Rasiwasia2014]; they stay thin factors.
    """
    must = as_link_matrix(links.between(a, b, balance=0.0))
    if must.pairs.nnz:
        return as_link_matrix(must.pairs)
    if not must.norm():
        raise FewLinksError(
            f"views {a!r} and {b!r} must be joined by a must-link or share a class, "
            f"and none is there, got {links!r}. Add must-links between them."
        )
    return must


def matched_rows(links: Links, a: str, b: str) -> tuple[Array, Array, Array]:
    """Return rows of two views that must-links match one by one, and their weights."""
    must = as_link_matrix(links.between(a, b, balance=0.0)).pairs.tocoo()
    kept = must.data > 0
    if not kept.any():
        raise FewLinksError(
            f"views {a!r} and {b!r} must be joined by must-links between single items, "
            f"and none is there, got {links!r}. Match some items, or use "
            "CorrelationMatching, which takes labels too."
        )
    return must.row[kept], must.col[kept], must.data[kept]


@dataclass(frozen=True, eq=False)
class Covariances:
    """Means and covariances of two views over the pairs that go together."""

    mean_x: Array
    mean_y: Array
    xx: Array
    xy: Array
    yy: Array


def covariances(X: Array, Z: LinkMatrix, Y: Array) -> Covariances:
    """Return the covariances of two views, each pair counted by its weight."""
    rows, columns = Z @ np.ones(Z.shape[1]), Z.T @ np.ones(Z.shape[0])
    total = rows.sum()
    mean_x, mean_y = rows @ X / total, columns @ Y / total
    X, Y = X - mean_x, Y - mean_y
    return Covariances(
        mean_x=mean_x,
        mean_y=mean_y,
        xx=X.T @ (rows[:, None] * X) / total,
        xy=X.T @ (Z @ Y) / total,
        yy=Y.T @ (columns[:, None] * Y) / total,
    )


def sample_pairs(
    Z: LinkMatrix, n_pairs: int, *, random_state: int = 0
) -> tuple[Array, Array]:
    """Write out at most so many pairs, drawn by weight where there are more.

    For methods that take nothing but paired rows. Single pairs that are fewer come
    once each, whatever their weight.
    """
    rng = np.random.default_rng(random_state)
    pairs = Z.pairs.tocoo()
    if 0 < pairs.nnz <= n_pairs:
        return pairs.row, pairs.col
    if pairs.nnz:
        chosen = rng.choice(
            pairs.nnz, n_pairs, replace=False, p=pairs.data / pairs.data.sum()
        )
        return pairs.row[chosen], pairs.col[chosen]
    return _sample_classes(Z, n_pairs, rng)


def _sample_classes(
    Z: LinkMatrix, n_pairs: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draw a class by the weight of its pairs, then one of its items on each side."""
    left, right = sparse.csc_array(Z.left), sparse.csc_array(Z.right)
    mass = left.sum(axis=0) * right.sum(axis=0)
    counts = rng.multinomial(n_pairs, mass / mass.sum())
    drawn = [
        (_draw(left[:, [c]], count, rng), _draw(right[:, [c]], count, rng))
        for c, count in enumerate(counts)
        if count
    ]
    rows, columns = zip(*drawn, strict=True)
    return np.concatenate(rows), np.concatenate(columns)


def _draw(column: Any, count: int, rng: np.random.Generator) -> Array:
    """Draw members of one class, with replacement and by membership."""
    column = column.tocoo()
    return rng.choice(column.row, count, p=column.data / column.data.sum())
