"""Nearest neighbours, a block of rows against every block of items."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.cluster.cells import (
    BlockCells,
    build_cells,
    choose_search,
    look_up,
    sample_rows,
)
from linkspread.cluster.row_blocks import RowBlocks, cut_rows
from linkspread.cluster.session import Session, alone
from linkspread.cluster.views import ChunkedView
from linkspread.compiled.backends import use_backend
from linkspread.graphs.neighbors import NeighborIndex, sort_candidates

Array = np.ndarray
# Ids and distances of the neighbours of some rows.
Found = tuple[Array, Array]


def search_blocks(
    session: Session, view: ChunkedView, blocks: RowBlocks, chosen: dict[str, Any]
) -> tuple[list[Any], float | None]:
    """Search the neighbours of all items, each block of rows by one worker."""
    metric, n_neighbors = chosen["metric"], chosen["n_neighbors"]
    method = choose_search(
        chosen["method"], view, n_neighbors, metric, session.n_workers
    )
    cells = None
    if method == "approximate":
        shared = {"n_neighbors": n_neighbors, "metric": metric}
        cells = build_cells(session, view, blocks, **shared)
    search = _Search(view, blocks, n_neighbors, metric, chosen["backend"])
    found = [session.submit(_search_block, search, own, cells) for own in blocks]
    session.finish(found, f"neighbours of {view.name}")
    if cells is None:
        return found, None
    hits = [
        session.submit(_count_found, search, own, near)
        for own, near in zip(blocks, found, strict=True)
    ]
    n_found, n_asked = np.sum(session.fetch(hits), axis=0)
    return found, float(n_found / n_asked)


def nearest_in_chunks(
    view: ChunkedView, queries: Array, *, n_neighbors: int, metric: Any
) -> Found:
    """Return the items of a view nearest to new ones, read a block at a time."""
    blocks = cut_rows(view.shape[0], view.shape[1] * view.dtype.itemsize, n_workers=1)
    search = _Search(view, blocks, n_neighbors, metric, "auto")
    return search.nearest(queries, np.full(len(queries), -1))


@dataclass(frozen=True)
class _Search:
    """A search among all items of a view, block by block."""

    view: ChunkedView
    blocks: RowBlocks
    n_neighbors: int
    metric: Any
    backend: str

    def nearest(
        self, queries: Array, positions: Array, cells: list[BlockCells] | None = None
    ) -> Found:
        """Return the neighbours of items, which are not their own."""
        ids = np.full((len(queries), 0), -1)
        distances = np.full(ids.shape, np.inf)
        for j, (start, stop) in enumerate(self.blocks):
            index = NeighborIndex(self.view.rows(start, stop), metric=self.metric)
            is_inside = (start <= positions) & (positions < stop)
            excluded = np.where(is_inside, positions - start, -1)
            own = None if cells is None else cells[j]
            near, far = self._in_block(index, queries, excluded, own)
            near = np.where(near < 0, near, near.astype(np.int64) + start)
            ids, distances = sort_candidates(
                np.hstack([ids, near]), np.hstack([distances, far]), self.n_neighbors
            )
        return ids, distances

    def _in_block(
        self,
        index: NeighborIndex,
        queries: Array,
        excluded: Array,
        cells: BlockCells | None,
    ) -> Found:
        """Return the nearest items of one block."""
        embedded = index.prepare(queries)[0]
        if cells is not None and len(cells.content):
            return look_up(cells, index, embedded, excluded, self.n_neighbors)
        n_neighbors = min(self.n_neighbors, index.items.shape[0])
        with use_backend(self.backend):
            return index.search_prepared(embedded, excluded, n_neighbors=n_neighbors)


@alone
def _search_block(
    search: _Search, own: tuple[int, int], cells: list[BlockCells] | None
) -> Found:
    """Return the neighbours of a block of rows among all items."""
    queries, positions = search.view.rows(*own), np.arange(*own)
    ids, distances = search.nearest(queries, positions, cells)
    missed = np.flatnonzero(~np.isfinite(distances[:, -1]))
    if len(missed):  # cells with too few items in them
        ids[missed], distances[missed] = search.nearest(
            queries[missed], positions[missed]
        )
    small = search.blocks.n_items <= np.iinfo(np.int32).max
    return ids.astype(np.int32 if small else np.int64), distances


@alone
def _count_found(
    search: _Search, own: tuple[int, int], found: Found
) -> tuple[int, int]:
    """Return how many true neighbours of sampled rows were found, and of how many."""
    positions = sample_rows(search.blocks, own)
    if not len(positions):
        return 0, 0
    exact = search.nearest(search.view.take(positions), positions)[1]
    distances = found[1][positions - own[0]]
    # By distance, because of two items equally far away either is right.
    return int(np.sum(distances <= exact[:, -1:])), distances.size
