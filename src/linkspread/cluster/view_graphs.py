"""The graph of one view, built by the workers and left with them."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.graph_blocks import (
    assemble,
    larger_of_both,
    normalize_blocks,
    symmetrize_blocks,
)
from linkspread.cluster.neighbors import Found, search_blocks
from linkspread.cluster.products import BlockGraph
from linkspread.cluster.row_blocks import RowBlocks
from linkspread.cluster.session import Session, alone
from linkspread.cluster.views import ChunkedView
from linkspread.graphs.distances import resolve_metric
from linkspread.graphs.weights import (
    LOCAL_NEIGHBOR,
    WEIGHTS,
    exponents,
    fixed_bandwidth,
    local_bandwidths,
    neighbor_matrix,
)

Array = np.ndarray
# Rows from which the mean distance is taken, as by `graphs.mean_distance`.
N_SAMPLED = 1000


@dataclass(frozen=True)
class Neighborhoods:
    """The neighbours of all items of a view, in blocks of rows."""

    session: Session
    view: ChunkedView
    blocks: RowBlocks
    found: list[Any]
    widths: Any
    chosen: dict[str, Any]
    recall: float | None


@dataclass
class BuiltGraph:
    """A graph in blocks of rows."""

    near: Neighborhoods
    affinity: list[Any]
    told: list[Any] = field(default_factory=list)
    base: "BuiltGraph | None" = None

    def normalized(self, *, rescale: bool = True) -> BlockGraph:
        """Return the graph, normalised; weights up to 1 need not be rescaled."""
        near = self.near
        parts = normalize_blocks(
            near.session, self.affinity, near.blocks, rescale=rescale
        )
        near.session.finish(parts, f"normalising the graph of {near.view.name}")
        return BlockGraph(
            near.session, near.view.name, near.blocks, parts, near.view.dtype
        )

    def fetch(self) -> sparse.csr_array:
        """Return the graph whole."""
        near = self.near
        return assemble(near.session, self.affinity, near.blocks.n_items)


def find_neighborhoods(
    session: Session, view: ChunkedView, blocks: RowBlocks, chosen: dict[str, Any]
) -> Neighborhoods:
    """Search the neighbours of all items and measure how wide neighbourhoods are."""
    found, recall = search_blocks(session, view, blocks, chosen)
    blocks = session.settle(blocks, found)
    if chosen["bandwidth"] == "local":
        own = session.fetch(session.submit_each(blocks, _own_widths, found))
        widths: Any = local_bandwidths(np.concatenate(own)[:, None])
    else:
        widths = _fixed_width(view, chosen)
    return Neighborhoods(session, view, blocks, found, widths, chosen, recall)


def build_knn(near: Neighborhoods) -> BuiltGraph:
    """Build the graph of nearest neighbours."""
    session, view, chosen = near.session, near.view, near.chosen
    shared = chosen["metric"], chosen["weights"], view.dtype, near.blocks.n_items
    widths = [session.hold(near.widths)] * len(near.found)
    columns = near.found, widths, list(near.blocks)
    weigh = partial(_weigh_block, shared)
    edges = session.submit_each(near.blocks, weigh, *columns)
    session.keep(*edges)
    affinity = symmetrize_blocks(session, edges, near.blocks, join=larger_of_both)
    session.finish(affinity, f"edges of {view.name}")
    return BuiltGraph(near, affinity)


def _own_widths(found: Found) -> Array:
    """Return the distances that are local widths."""
    distances = found[1]
    return distances[:, min(LOCAL_NEIGHBOR, distances.shape[1]) - 1].copy()


def _fixed_width(view: ChunkedView, chosen: dict[str, Any]) -> float:
    """Return the one width for all, from the sample that one machine would take."""
    bandwidth, n_items = chosen["bandwidth"], view.shape[0]
    if not isinstance(bandwidth, str):
        return float(bandwidth)
    sample = np.arange(n_items)
    if n_items > N_SAMPLED:
        rng = np.random.default_rng(0)
        sample = np.sort(rng.choice(n_items, N_SAMPLED, replace=False))
    return fixed_bandwidth(bandwidth, view.take(sample), metric=chosen["metric"])


@alone
def _weigh_block(
    shared: tuple[Any, str, Any, int], found: Found, widths: Any, own: tuple[int, int]
) -> sparse.csr_array:
    """Return the edges of a block of rows to their neighbours."""
    metric, weights, dtype, n_items = shared
    ids, distances = found
    left, right = widths, widths
    if np.ndim(widths):
        left, right = widths[slice(*own), None], widths[ids]
    exponent = exponents(distances, left, right)
    values = WEIGHTS[weights](distances, exponent, resolve_metric(metric))
    return neighbor_matrix(ids, values, dtype, n_items)
