"""The kernels that ``objective="auto"`` fits by: few, and far apart."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from scipy import sparse

from linkspread.estimators.graph_choice import GivenGraph
from linkspread.estimators.similar_items import SimilarItems
from linkspread.fitting.centred_kernel import CentredKernel
from linkspread.fitting.heat import Diffusion
from linkspread.fitting.kernel_choice import (
    affinity_kernel,
    is_histogram,
    linear_kernel,
)
from linkspread.fitting.view_kernels import DENSE_ITEMS, GraphKernel, ViewKernel
from linkspread.graphs import NeighborGraph, normalize

__all__ = ["Material", "label_candidates", "other_metric", "pair_candidates"]


@dataclass(frozen=True, eq=False)
class Material:
    """What the kernels of a view are made of.

    Attributes
    ----------
    view : str
    X : ndarray or csr_array of shape (n_items, n_features)
    graph : object with `affinity_` and `extend`
        That of the model.
    S : csr_array of shape (n_items, n_items)
        The same, normalised.
    metric : str or callable
    """

    view: str
    X: Any
    graph: Any
    S: sparse.csr_array
    metric: Any


Candidates = Iterator[tuple[str, ViewKernel]]

# How far similarity reaches on the graph of a model, and on a denser one.
NEAR, FAR = 0.9, 0.99
DENSER = 90
WIDTHS = (0.5, 1.0)
# Error of a kernel that nobody sees beside that of the labels.
TOL = 1e-5
# Principal components of a linear kernel for pairs, of which there may be few.
COMPONENTS = (8, 32)


def label_candidates(made_of: Material) -> Candidates:
    """Yield kernels for the labels of a view, with their names.

    Parameters
    ----------
    made_of : Material

    Yields
    ------
    name : str
    kernel : ViewKernel
    """
    X, graph, metric = made_of.X, made_of.graph, made_of.metric
    yield "graph", _graph_kernel(graph, made_of.S, NEAR, made_of.view)
    if isinstance(graph, GivenGraph):
        yield "graph, far", _graph_kernel(graph, made_of.S, FAR, made_of.view)
        return
    # Further graphs of a large view would take longer than all the rest.
    is_large = X.shape[0] > DENSE_ITEMS
    if not is_large:
        yield (
            "denser graph, far",
            _neighbor_kernel(X, DENSER, metric, FAR, made_of.view),
        )
    for width in WIDTHS:
        yield f"affinity {width:g}", affinity_kernel(X, metric=metric, width=width)
    yield "linear", linear_kernel(X)
    second = other_metric(X, metric)
    if second is not None and not is_large:
        yield f"graph, {second}", _neighbor_kernel(X, 30, second, NEAR, made_of.view)
        for width in WIDTHS:
            kernel = affinity_kernel(X, metric=second, width=width)
            yield f"affinity {width:g}, {second}", kernel


def pair_candidates(
    made_of: Material, *, centred: bool, diffusing: bool
) -> Iterator[tuple[str, ViewKernel | Diffusion]]:
    """Yield kernels for judged pairs, in an order that all views share.

    Parameters
    ----------
    made_of : Material
    centred : bool
        Whether kernels say nothing of what is so for all items.
    diffusing : bool
        Whether the kernel of the graph is one of heat at several times, for fits of
        not too many pairs; it is centred.

    Yields
    ------
    name : str
    kernel : ViewKernel or Diffusion
    """
    if diffusing:
        similar = SimilarItems(made_of.graph, made_of.view)
        yield "graph", Diffusion(made_of.S, similar=similar)
    for name, kernel in _plain_pair_candidates(made_of, with_graph=not diffusing):
        yield name, CentredKernel(kernel) if centred else kernel


def _plain_pair_candidates(made_of: Material, *, with_graph: bool) -> Candidates:
    """Yield kernels for judged pairs, that of the graph only if asked."""
    X, graph, metric = made_of.X, made_of.graph, made_of.metric
    if with_graph:
        yield "graph", _graph_kernel(graph, made_of.S, NEAR, made_of.view)
    if isinstance(graph, GivenGraph):
        return
    best = metric
    if metric == "euclidean":
        best = other_metric(X, metric) or metric
    if X.shape[0] <= DENSE_ITEMS:
        yield "denser graph", _neighbor_kernel(X, DENSER, best, NEAR, made_of.view)
    for width in WIDTHS:
        yield f"affinity {width:g}", affinity_kernel(X, metric=best, width=width)
    for n in COMPONENTS:
        name = f"{n} components"
        yield name, linear_kernel(X, n_components=n, constant=True)


def other_metric(X: Any, metric: Any) -> str | None:
    """Return a second distance that suits the features of a view.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_items, n_features)
    metric : str or callable

    Returns
    -------
    metric : str or None
        "hellinger" for histograms, "cosine" for others; "euclidean" where that is
        the one already used, and None for a metric of the user's own.
    """
    if not isinstance(metric, str):
        return None
    suited = "hellinger" if is_histogram(X) else "cosine"
    return suited if metric != suited else "euclidean"


def _graph_kernel(
    graph: Any, S: sparse.csr_array, alpha: float, view: str
) -> GraphKernel:
    """Return the kernel of a graph that is at hand."""
    similar = SimilarItems(graph, view)
    return GraphKernel(S, alpha, similar=similar, tol=TOL)


def _neighbor_kernel(
    X: Any, n_neighbors: int, metric: Any, alpha: float, view: str
) -> GraphKernel:
    """Return the kernel of a graph of nearest neighbours."""
    n_neighbors = min(n_neighbors, X.shape[0] - 1)
    graph = NeighborGraph(n_neighbors=n_neighbors, metric=metric).fit(X)
    return _graph_kernel(graph, normalize(graph.affinity_), alpha, view)
