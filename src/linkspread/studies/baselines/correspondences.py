"""Read links for baselines: classes of items, and corresponding rows."""

from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.errors import FewLinksError, LinkError
from linkspread.links import LinkMatrix, Links, as_link_matrix

Array = np.ndarray


def class_memberships(links: Links, view: str) -> sparse.csr_array:
    """Return the classes of each item of a view."""
    memberships = links.memberships(view)
    if memberships is None or not memberships.sum():
        raise LinkError(
            f"view {view!r} must have labels, got {links!r}. Label some items, or use "
            "a baseline that learns from pairs."
        )
    return sparse.csr_array(memberships)


def labelled_rows(links: Links, view: str) -> tuple[Array, Array, int]:
    """Return the labelled items of a view, their classes, and the number of classes."""
    memberships = class_memberships(links, view)
    rows = np.flatnonzero(memberships.sum(axis=1))
    classes = np.asarray(memberships[rows].argmax(axis=1)).ravel()
    if len(np.unique(classes)) < 2:
        raise LinkError(
            f"labels of view {view!r} must be of at least 2 classes, got 1 class in "
            f"{len(rows):,} labels. Label items of another class."
        )
    return rows, classes, memberships.shape[1]


def balanced_links(links: Links, a: str, b: str, *, balance: str | float) -> LinkMatrix:
    """Return all links of two views; refuse views without any."""
    Z = as_link_matrix(links.between(a, b, balance=balance))
    if not Z.norm():
        raise FewLinksError(
            f"views {a!r} and {b!r} must be joined by a link of weight other than 0, "
            f"got {links!r} and balance={balance!r}. Label items of both views, or "
            "judge pairs of them."
        )
    return Z


def correspondences(links: Links, a: str, b: str) -> LinkMatrix:
    """Return the must-links of two views: single pairs, or else pairs of one class.

    Pairs of one class are those of cluster canonical correlation analysis
    [Rasiwasia2014], as thin factors.
    """
    must = as_link_matrix(links.between(a, b, balance=0.0))
    if must.pairs.nnz:
        return as_link_matrix(must.pairs)
    if not must.norm():
        raise FewLinksError(
            f"views {a!r} and {b!r} must be joined by a must-link or share a class, "
            f"got {links!r}. Add must-links between them."
        )
    return must


def matched_rows(links: Links, a: str, b: str) -> tuple[Array, Array, Array]:
    """Return matched rows of two views by must-links, and their weights."""
    must = as_link_matrix(links.between(a, b, balance=0.0)).pairs.tocoo()
    kept = must.data > 0
    if not kept.any():
        raise FewLinksError(
            f"views {a!r} and {b!r} must be joined by must-links between single items, "
            f"got {links!r}. Match some items, or use CorrelationMatching, which takes "
            "labels too."
        )
    return must.row[kept], must.col[kept], must.data[kept]


def sample_pairs(
    Z: LinkMatrix, n_pairs: int, *, random_state: int = 0
) -> tuple[Array, Array]:
    """Return a number of pairs at most, drawn by weight where there are more.

    For methods that take matched rows only. Fewer single pairs are returned once each,
    without weights.
    """
    rng = np.random.default_rng(random_state)
    pairs = Z.pairs.tocoo()
    if 0 < pairs.nnz <= n_pairs:
        return pairs.row, pairs.col
    if pairs.nnz:
        shares = pairs.data / pairs.data.sum()
        chosen = rng.choice(pairs.nnz, n_pairs, replace=False, p=shares)
        return pairs.row[chosen], pairs.col[chosen]
    # First a class by the weight of its pairs, then an item of it on each side.
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
