"""Features made ready for a linear method: scaled, and shortened where asked."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from linkspread.fitting.rows import as_dense_rows, root_of_shares
from linkspread.graphs.table_memory import known
from linkspread.parameter_checks import check_count, check_name, naming

__all__ = ["SCALINGS", "prepare", "prepare_dense", "prepared_rows", "root_of_shares"]

Array = np.ndarray


def _standard(X: Any) -> Any:
    """Return the scaling to variance 1, which leaves sparse rows sparse."""
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

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_items, n_features)
    scaling : {"standard", "sqrt", "none"}
    n_components : int, default=None
        Principal components that a view with more columns is reduced to, of sparse
        ones without centring. None keeps the columns, sparse if they were.
    random_state : int, default=0

    Returns
    -------
    prepared : Pipeline
        Its `transform` makes rows ready, dense ones where `n_components` is given.
    """
    scale = SCALINGS[check_name(scaling, SCALINGS, name="scaling")](X)
    steps: list[tuple[str, Any]] = [("scale", scale)]
    if n_components is not None:
        steps.append(("shorten", _shortening(X, n_components, random_state)))
        steps.append(("fill", FunctionTransformer(as_dense_rows, accept_sparse=True)))
    key = "prepared", scaling, n_components, random_state
    return known(X, key, lambda: Pipeline(steps).fit(X))


def prepared_rows(X: Any, prepared: Pipeline) -> Array:
    """Return all rows of a view made ready, where they are dense and short.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_items, n_features)
    prepared : Pipeline
        As from :func:`prepare` with `n_components`.

    Returns
    -------
    rows : ndarray of shape (n_items, n_components)
        Not to be written to.
    """
    return known(X, ("rows", prepared), lambda: prepared.transform(X))


def prepare_dense(
    X: Any, view: str, *, scaling: str, max_features: int, random_state: int
) -> Pipeline:
    """Fit the preparation of a view for methods that need dense, short rows.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_items, n_features)
    view : str
        For messages.
    scaling : {"standard", "sqrt", "none"}
    max_features : int
        A view with more columns is reduced to so many principal components.
    random_state : int

    Returns
    -------
    prepared : Pipeline
    """
    with naming(view):
        limit = check_count(
            max_features, name="max_features", remedy="The default is 256."
        )
        return prepare(
            X, scaling=scaling, n_components=limit, random_state=random_state
        )


def _shortening(X: Any, n_components: int, random_state: int) -> Any:
    """Return the reduction of a view, or nothing where it is short enough."""
    if X.shape[1] <= n_components:
        return "passthrough"
    n_components = min(n_components, X.shape[0])
    if sparse.issparse(X):
        return TruncatedSVD(n_components, random_state=random_state)
    return PCA(n_components, random_state=random_state)
