"""What each labelled item adds to the fitted values of another.

A fit keeps for new rows only what these need. The coefficients A of its labelled items
are found from that: a graph gives them back by ``(I - alpha S)``, and inner products of
features by the equations of the fit, whose A is the weighed error that is left, times
one number.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.fitting.embeddings import Added
from linkspread.fitting.extensions import (
    DenseExtension,
    FeatureExtension,
    GraphExtension,
)
from linkspread.graphs import normalize
from linkspread.propagation.smoothing import smooth_over_graph
from linkspread.retrieval.explanation_kernels import Asked

__all__ = ["LabelledRows", "logit_parts"]

Array = np.ndarray

GRAPH_TOL = 1e-9


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The labelled items of a view.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_items, n_features)
        Of all items of the view.
    rows : ndarray of int of shape (n_labelled,)
    targets : ndarray of shape (n_labelled, n_classes)
        Memberships as shares.
    weights : ndarray of shape (n_labelled,)
    """

    X: Any
    rows: Array
    targets: Array
    weights: Array

    @classmethod
    def of(cls, X: Any, memberships: Any) -> "LabelledRows":
        """Return the items that have memberships.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_items, n_features)
        memberships : ndarray or sparse of shape (n_items, n_classes)

        Returns
        -------
        labelled : LabelledRows
        """
        memberships = sparse.csr_array(memberships)
        masses = np.asarray(memberships.sum(axis=1)).ravel()
        rows = np.flatnonzero(masses > 0)
        weights = masses[rows]
        return cls(X, rows, memberships[rows].toarray() / weights[:, None], weights)

    def row_of(self, item: Asked) -> Any:
        """Return the features of an item, as a table with one row."""
        return item.rows if item.position is None else self.X[[item.position]]


def logit_parts(extension: Any, item: Asked, labelled: LabelledRows) -> Array:
    """Return what each labelled item adds to the fitted values of an item.

    Parameters
    ----------
    extension : Added, DenseExtension, FeatureExtension or GraphExtension
        What a fit of labels keeps for new rows.
    item : Asked
    labelled : LabelledRows

    Returns
    -------
    parts : ndarray of shape (n_labelled, n_classes)
        They add up to the values.
    """
    if isinstance(extension, Added):
        several = zip(extension.weights, extension.parts, strict=True)
        return np.sum([w * logit_parts(p, item, labelled) for w, p in several], axis=0)
    return _PARTS[type(extension)](extension, item, labelled)


def _dense_parts(
    extension: DenseExtension, item: Asked, labelled: LabelledRows
) -> Array:
    """Return similarities times coefficients, which are kept."""
    parts = np.zeros(labelled.targets.shape)
    near = extension.compare(labelled.row_of(item))[0, extension.used]
    places = np.searchsorted(labelled.rows, extension.used)
    parts[places] = near[:, None] * extension.coefficients
    return parts


def _feature_parts(
    extension: FeatureExtension, item: Asked, labelled: LabelledRows
) -> Array:
    """Return inner products times coefficients, the errors of the fit by one number."""
    features = extension.features(labelled.X[labelled.rows])
    error = labelled.targets - features @ extension.coefficients
    error *= labelled.weights[:, None]
    image = features.T @ error
    scale = np.sum(image * extension.coefficients) / (float(np.sum(image**2)) or 1.0)
    near = features @ extension.features(labelled.row_of(item))[0]
    return near[:, None] * (scale * error)


def _graph_parts(
    extension: GraphExtension, item: Asked, labelled: LabelledRows
) -> Array:
    """Return how easily labelled items are reached, times their coefficients."""
    graph = extension.similar.graph  # type: ignore[union-attr]
    S, alpha = normalize(graph.affinity_), extension.alpha
    kept = extension.reached - alpha * (S @ extension.reached)
    coefficients = kept[labelled.rows] / (1 - alpha)
    start = np.zeros((S.shape[0], 1))
    if item.position is not None:
        start[item.position] = 1
        scale = 1 / np.sqrt(extension.diagonal[item.position])
    else:
        near = extension.similar(item.rows).toarray()[0]  # type: ignore[misc]
        start[:, 0] = near
        own = (1 - alpha) + alpha**2 * float(near**2 @ extension.diagonal)
        scale = alpha / np.sqrt(own)
    reach = smooth_over_graph(S, start, alpha=alpha, tol=GRAPH_TOL)[labelled.rows]
    return scale * reach * coefficients


_PARTS: dict[type, Any] = {
    DenseExtension: _dense_parts,
    FeatureExtension: _feature_parts,
    GraphExtension: _graph_parts,
}
