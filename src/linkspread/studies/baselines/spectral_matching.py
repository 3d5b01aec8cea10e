"""Spectral matching: correlation analysis of the eigenvectors of two graphs."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh

from linkspread.graphs import NeighborGraph, normalize
from linkspread.graphs.memory import cached
from linkspread.graphs.normalize import row_sums
from linkspread.ground.checks import check_count, check_positive, naming
from linkspread.links import Links
from linkspread.studies.baselines.correlation import (
    Projection,
    canonical_projections,
    linked_covariances,
)
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.side import Side, unit_rows

Array = np.ndarray

# Smallest eigenvalue, as new items are divided by it.
LEAST_EIGENVALUE = 1e-3
# With fewer items per eigenvector, computing all eigenvectors is as fast.
FEW_ITEMS = 4


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralMatching(PairMatching):
    """Match by correlation analysis of spectral embeddings, as SUE [Yacobi2025].

    Each view is embedded by the leading eigenvectors of the random walk on its graph
    of neighbours, with all its items, matched or not. Canonical correlation analysis
    of the must-links, as in `CorrelationMatching`, then joins both spaces. SUE trains
    a network for the embeddings and aligns distributions afterwards; here eigenvectors
    are exact and there is no alignment.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("n_components", "n_neighbors", "metric")

    n_components: Any = 30
    n_neighbors: Any = 10
    metric: Any = "euclidean"
    reg: float = 0.1
    hubs: int | None = None

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        reg = check_positive(
            self.reg, name="reg", remedy="The default is 0.1.", zero=True
        )
        left, right = (_embed_once(tables[v], v, chosen[v]) for v in (a, b))
        cov = linked_covariances(left.vectors, right.vectors, links, a, b)
        W, V, strengths = canonical_projections(cov, sys.maxsize, reg=reg)
        ways = (a, left, cov.mean_x, W), (b, right, cov.mean_y, V)
        sides = []
        for view, own, mean, weights in ways:
            projection = Projection(own, mean, weights, strengths)
            vectors = unit_rows((own.vectors - mean) @ weights)
            width = tables[view].shape[1]
            sides.append(Side(vectors, projection.unit_vectors, width))
        return tuple(sides)


class SpectralEmbedding:
    """Leading eigenvectors of the random walk on a view's graph of neighbours.

    ``D^-1 W vectors = vectors diag(values)``, of mean square 1 by degree; a new item
    gets the mean of its neighbours divided by the eigenvalue, as holds for fitted ones.
    """

    def __init__(
        self, X: Any, *, n_components: int, n_neighbors: int, metric: Any
    ) -> None:
        wanted = check_count(
            n_components, name="n_components", remedy="The default is 30."
        )
        self.graph = NeighborGraph(n_neighbors, metric).fit(X)
        W = self.graph.affinity_
        degrees = row_sums(W)
        values, vectors = _leading(normalize(W), degrees, wanted)
        kept = values > LEAST_EIGENVALUE
        self.values = values[kept]
        roots = np.sqrt(np.where(degrees > 0, degrees, np.inf) / degrees.mean())
        self.vectors = np.sqrt(len(degrees)) * vectors[:, kept] / roots[:, None]

    def transform(self, rows: Any) -> Array:
        """Return the embeddings of new rows, of shape (n_rows, n_components)."""
        near = sparse.csr_array(self.graph.extend(rows))
        sums = row_sums(near)
        means = near @ self.vectors / np.where(sums > 0, sums, 1.0)[:, None]
        return means / self.values


def _embed_once(X: Any, view: str, own: dict[str, Any]) -> SpectralEmbedding:
    """Return the embedding of a view, which does not depend on links."""
    with naming(view):
        return cached(X, ("spectral", repr(own)), lambda: SpectralEmbedding(X, **own))


def _leading(
    S: sparse.csr_array, degrees: Array, n_components: int
) -> tuple[Array, Array]:
    """Return the largest eigenvalues and their vectors, largest first."""
    n_items = S.shape[0]
    S = S.astype(np.float64)
    if n_items <= FEW_ITEMS * n_components:
        values, vectors = np.linalg.eigh(S.toarray())
        return values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
    # Each connected component has the eigenvalue 1. Iterations would miss some of equal
    # eigenvalues, so these eigenvectors are given explicitly and deflated.
    ones = _parts(S, degrees)[:, :n_components]
    n_left = n_components - ones.shape[1]
    if n_left == 0:
        return np.ones(n_components), ones
    rest = LinearOperator(
        S.shape, matvec=lambda x: S @ x - ones @ (ones.T @ x), dtype=np.float64
    )
    # A fixed start gives the same vectors each time.
    start = np.random.default_rng(0).standard_normal(n_items)
    values, vectors = eigsh(rest, n_left, which="LA", v0=start)
    order = np.argsort(-values)
    return (
        np.concatenate([np.ones(ones.shape[1]), values[order]]),
        np.hstack([ones, vectors[:, order]]),
    )


def _parts(S: sparse.csr_array, degrees: Array) -> Array:
    """Return the eigenvector of each connected component, the largest first."""
    part = connected_components(S, directed=False)[1]
    sizes = np.bincount(part)
    members = part[:, None] == np.argsort(-sizes, kind="stable")
    return unit_rows((members * np.sqrt(degrees)[:, None]).T).T
