"""What baselines learn from: links as classes or as pairs, and prepared features."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from linkspread.graphs.neighbors import cached
from linkspread.ground.checks import check_name
from linkspread.ground.errors import FewLinksError, LinkError, ViewError
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


def as_dense_rows(X: Any) -> Array:
    """Return rows as an array of float64."""
    dense = X.toarray() if sparse.issparse(X) else X
    return np.asarray(dense, dtype=np.float64)


def root_of_shares(X: Any) -> Any:
    """Return the square roots of each row's shares, the Hellinger map of histograms.

    Euclidean distances between the results are Hellinger distances between the rows,
    up to a factor.
    """
    values = X.data if sparse.issparse(X) else X
    if values.min(initial=0) < 0:
        raise ViewError(
            "features must be at least 0 for scaling='sqrt', got "
            f"{values.min():.3g}. Use scaling='standard'."
        )
    sums = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    inverse = 1 / np.where(sums > 0, sums, 1.0)
    if sparse.issparse(X):
        return (sparse.diags_array(inverse) @ X).tocsr().sqrt()
    return np.sqrt(X * inverse[:, None])


SCALINGS: dict[str, Callable[[Any], Any]] = {
    "none": lambda X: "passthrough",
    "sqrt": lambda X: FunctionTransformer(root_of_shares, accept_sparse=True),
    # Sparse rows are not centred.
    "standard": lambda X: StandardScaler(with_mean=not sparse.issparse(X)),
}


def prepare(
    X: Any, *, scaling: str, n_components: int | None = None, random_state: int = 0
) -> Pipeline:
    """Fit the preparation of a view to all its items, labelled or not.

    A view with more columns than `n_components` is reduced to dense principal
    components, without centring if it is sparse. None keeps the columns.
    """
    scale = SCALINGS[check_name(scaling, SCALINGS, name="scaling")](X)
    steps: list[tuple[str, Any]] = [("scale", scale)]
    if n_components is not None:
        if X.shape[1] > n_components:
            reduction = TruncatedSVD if sparse.issparse(X) else PCA
            n_kept = min(n_components, X.shape[0])
            steps.append(("reduce", reduction(n_kept, random_state=random_state)))
        steps.append(("fill", FunctionTransformer(as_dense_rows, accept_sparse=True)))
    key = "prepared", scaling, n_components, random_state
    return cached(X, key, lambda: Pipeline(steps).fit(X))


def prepared_rows(X: Any, prepared: Pipeline) -> Array:
    """Return all prepared rows of a view, read-only."""
    return cached(X, ("rows", prepared), lambda: prepared.transform(X))
