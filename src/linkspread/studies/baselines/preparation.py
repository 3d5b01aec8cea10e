"""Prepare features for linear methods: scaling and dimension reduction."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from linkspread.graphs.memory import cached
from linkspread.ground.checks import check_count, check_name, naming
from linkspread.ground.errors import ViewError

Array = np.ndarray


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


def _standard(X: Any) -> Any:
    """Return the scaling to variance 1, without centring for sparse rows."""
    return StandardScaler(with_mean=not sparse.issparse(X))


def _root(X: Any) -> Any:
    """Return the scaling of histograms."""
    return FunctionTransformer(root_of_shares, accept_sparse=True)


SCALINGS: dict[str, Callable[[Any], Any]] = {
    "none": lambda X: "passthrough",
    "sqrt": _root,
    "standard": _standard,
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
        steps.append(("shorten", _shortening(X, n_components, random_state)))
        steps.append(("fill", FunctionTransformer(as_dense_rows, accept_sparse=True)))
    key = "prepared", scaling, n_components, random_state
    return cached(X, key, lambda: Pipeline(steps).fit(X))


def prepared_rows(X: Any, prepared: Pipeline) -> Array:
    """Return all prepared rows of a view, read-only."""
    return cached(X, ("rows", prepared), lambda: prepared.transform(X))


def prepare_dense(
    X: Any, view: str, *, scaling: str, max_features: int, random_state: int
) -> Pipeline:
    """Fit the preparation of a view for methods that need few dense features."""
    with naming(view):
        limit = check_count(
            max_features, name="max_features", remedy="The default is 256."
        )
        return prepare(
            X, scaling=scaling, n_components=limit, random_state=random_state
        )


def _shortening(X: Any, n_components: int, random_state: int) -> Any:
    """Return the dimension reduction of a view, or none if it has few columns."""
    if X.shape[1] <= n_components:
        return "passthrough"
    n_components = min(n_components, X.shape[0])
    if sparse.issparse(X):
        return TruncatedSVD(n_components, random_state=random_state)
    return PCA(n_components, random_state=random_state)
