"""Approximate neighbours of large views: an inverted file of cells for each block.

Each block of items is sorted into cells by faiss once, and how many cells and
candidates are enough is tried out on a sample of its own items. The cells of all
blocks, a few bytes for each item, then travel to every worker, which looks up its rows
in them and ranks the candidates by exact distances.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.cluster.row_blocks import RowBlocks
from linkspread.cluster.session import Session, alone
from linkspread.cluster.views import ChunkedView
from linkspread.graphs.approximate import (
    LEAST_ITEMS,
    N_SAMPLED,
    SLOW_SECONDS,
    Cells,
    check_method,
    load_faiss,
    metric_obstacle,
)
from linkspread.graphs.cost import knn_cost
from linkspread.graphs.distances import exact_sums, resolve_metric
from linkspread.graphs.neighbors import NeighborIndex, sort_candidates
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import GraphError, MissingDependencyError

Array = np.ndarray
QUERIES_AT_A_TIME = 2048


@dataclass(frozen=True)
class BlockCells:
    """The cells of one block of items, as they travel."""

    content: Array
    n_probed: int
    n_candidates: int


def choose_search(
    method: str, view: ChunkedView, n_neighbors: int, metric: Any, n_workers: int
) -> str:
    """Return "exact" or "approximate"."""
    check_method(method)
    obstacle = metric_obstacle(resolve_metric(metric))
    if method == "approximate":
        if obstacle:
            raise GraphError(obstacle)
        load_faiss()
        return method
    seconds = knn_cost(*view.shape, n_neighbors)[0] * count_threads(None) / n_workers
    if method == "exact" or obstacle or seconds <= SLOW_SECONDS:
        return "exact"
    try:
        load_faiss()
    except MissingDependencyError:
        return "exact"
    return "approximate"


def build_cells(
    session: Session,
    view: ChunkedView,
    blocks: RowBlocks,
    *,
    n_neighbors: int,
    metric: Any,
) -> list[Any]:
    """Sort the items of every block into cells."""
    each = len(blocks)
    shared = [n_neighbors] * each, [metric] * each
    cells = session.submit_each(
        blocks, _sort_block, [view] * each, list(blocks), *shared
    )
    session.finish(cells, f"cells of {view.name}")
    return cells


def sample_rows(blocks: RowBlocks, own: tuple[int, int]) -> Array:
    """Return the positions of a sample of all items that lie in one block."""
    n_items = blocks.n_items
    rng = np.random.default_rng(1)
    sample = np.sort(rng.choice(n_items, min(N_SAMPLED, n_items), replace=False))
    return sample[(own[0] <= sample) & (sample < own[1])]


def look_up(
    cells: BlockCells,
    index: NeighborIndex,
    queries: Array,
    excluded: Array,
    n_neighbors: int,
) -> tuple[Array, Array]:
    """Return most of the nearest items of a block, ranked by exact distances."""
    faiss = load_faiss()
    lists = faiss.deserialize_index(cells.content)
    lists.nprobe = cells.n_probed
    tiles = next(index.products())
    found_ids, found_distances = [], []
    for start in range(0, len(queries), QUERIES_AT_A_TIME):
        part = queries[start : start + QUERIES_AT_A_TIME]
        own = excluded[start : start + QUERIES_AT_A_TIME]
        rows = Cells.even(-tiles.queries(part, np.empty(0)).rows)
        found = lists.search(rows, cells.n_candidates)[1]
        found[found == own[:, None]] = -1
        sums = exact_sums(index.metric, part, index.embedded, found)
        ids, sums = sort_candidates(found, sums, n_neighbors)
        found_ids.append(np.where(np.isfinite(sums), ids, -1))
        found_distances.append(np.sqrt(sums))
    return np.concatenate(found_ids), np.concatenate(found_distances)


@alone
def _sort_block(
    view: ChunkedView, own: tuple[int, int], n_neighbors: int, metric: Any
) -> BlockCells:
    """Return the cells of a block, tuned on a sample of its own items."""
    n_items = own[1] - own[0]
    if n_items < max(LEAST_ITEMS, 2 * n_neighbors):
        return BlockCells(np.zeros(0, np.uint8), 0, 0)
    index = NeighborIndex(view.rows(*own), metric=metric)
    queries, excluded = index.prepare(None)
    cells = Cells(index, n_neighbors, count_threads(None))
    rng = np.random.default_rng(0)
    sample = rng.choice(n_items, min(N_SAMPLED, n_items), replace=False)
    exact = index.search_prepared(
        queries[sample], excluded[sample], n_neighbors=n_neighbors
    )[1]
    cells.tune(queries, sample, exact)
    content = cells.faiss.serialize_index(cells.cells)
    return BlockCells(content, cells.n_probed, cells.n_candidates)
