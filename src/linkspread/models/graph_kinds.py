"""The graphs of a view that are known by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scipy import sparse

from linkspread.graphs import L1Graph, NeighborGraph, adjust_weights
from linkspread.links import Links


@dataclass(frozen=True)
class GraphContext:
    """What a graph may use besides the table of its view."""

    view: str
    links: Links
    alpha: float
    beta: float
    balance: str | float
    rank: int | None
    tol: float
    n_jobs: int | None
    verbose: bool


class AdjustedGraph:
    """A graph of neighbours whose weights were adjusted to links (CWA)."""

    def __init__(self, neighbors: NeighborGraph, affinity: sparse.csr_array) -> None:
        self.neighbors = neighbors
        self.affinity_ = affinity
        self.n_features_in_ = neighbors.n_features_in_

    def extend(self, Q: Any) -> sparse.csr_array:
        """Return the affinities of new items, which no link can have adjusted."""
        return self.neighbors.extend(Q)


def _build_knn(X: Any, context: GraphContext, **parameters: Any) -> NeighborGraph:
    """Build the graph of nearest neighbours."""
    graph = NeighborGraph(**parameters, n_jobs=context.n_jobs, verbose=context.verbose)
    return graph.fit(X)


def _build_cwa(X: Any, context: GraphContext, **parameters: Any) -> AdjustedGraph:
    """Adjust the graph of nearest neighbours to the links within the view."""
    neighbors = _build_knn(X, context, **parameters)
    Z = context.links.within(context.view, balance=context.balance)
    adjusted = adjust_weights(
        neighbors.affinity_,
        Z,
        alpha=context.alpha,
        beta=context.beta,
        tol=context.tol,
        rank=context.rank,
    )
    return AdjustedGraph(neighbors, adjusted)


def _build_sr(
    X: Any, context: GraphContext, *, weights: str, links: Any = None, **parameters: Any
) -> L1Graph:
    """Build the graph of sparse codes."""
    graph = L1Graph(
        kernel=weights, **parameters, n_jobs=context.n_jobs, verbose=context.verbose
    )
    return graph.fit(X, links, view=context.view)


def _build_csr(X: Any, context: GraphContext, **parameters: Any) -> L1Graph:
    """Build the graph of sparse codes that the links constrain."""
    return _build_sr(X, context, links=context.links, **parameters)


GRAPHS: dict[str, Callable[..., Any]] = {
    "knn": _build_knn,
    "sr": _build_sr,
    "cwa": _build_cwa,
    "csr": _build_csr,
}
# Those that need links within their view.
CONSTRAINED = ("cwa", "csr")
