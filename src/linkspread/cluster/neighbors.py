"""Nearest neighbours, a block of rows against every block of items.

Large views are searched approximately: faiss sorts the items of each block into cells,
and the numbers of cells and candidates are tuned on a sample. The cells of all blocks,
a few bytes for each item, are sent to every worker, which looks up its rows in them and
ranks the candidates by exact distances.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.cluster.session import Range, Session, cut_rows
from linkspread.cluster.views import ChunkedView
from linkspread.graphs.approximate import N_SAMPLED, Cells, load_faiss
from linkspread.graphs.distances import exact_sums, resolve_metric
from linkspread.graphs.knn import MIN_ITEMS, choose_method
from linkspread.graphs.neighbors import NeighborIndex, sort_candidates
from linkspread.ground.cores import count_threads

Array = np.ndarray
# Ids and distances of the neighbours of some rows.
Found = tuple[Array, Array]
QUERIES_AT_A_TIME = 2048


@dataclass(frozen=True)
class BlockCells:
    """The cells of one block of items, serialised."""

    content: Array
    n_probed: int
    n_candidates: int


def search_blocks(
    session: Session, view: ChunkedView, ranges: list[Range], chosen: dict[str, Any]
) -> tuple[list[Any], float | None]:
    """Search the neighbours of all items, and measure the recall of cells."""
    metric, n_neighbors = chosen["metric"], chosen["n_neighbors"]
    search = _Search(view, ranges, n_neighbors, metric, chosen["backend"])
    asked = view, n_neighbors, metric, session.n_workers
    cells = None
    if choose_search(chosen["method"], *asked) == "approximate":
        cells = session.map(_sort_block, ranges, search=search)
        session.finish(cells, f"cells of {view.name}")
    found = session.map(_search_block, ranges, search=search, cells=cells)
    session.finish(found, f"neighbours of {view.name}")
    if cells is None:
        return found, None
    hits = session.results(_count_found, ranges, found, search=search)
    n_found, n_true = np.sum(hits, axis=0)
    return found, float(n_found / n_true)


def choose_search(
    method: str, view: ChunkedView, n_neighbors: int, metric: Any, n_workers: int
) -> str:
    """Return "exact" or "approximate"."""
    n_machines = n_workers / count_threads(None)
    metric = resolve_metric(metric)
    return choose_method(method, metric, view, n_neighbors, n_machines=n_machines)


def nearest_in_chunks(
    view: ChunkedView, queries: Array, *, n_neighbors: int, metric: Any
) -> Found:
    """Return the items of a view nearest to new ones, read a block at a time."""
    ranges = cut_rows(view.shape[0], view.shape[1] * view.dtype.itemsize, n_workers=1)
    search = _Search(view, ranges, n_neighbors, metric, "auto")
    return search.nearest(queries, np.full(len(queries), -1))


@dataclass(frozen=True)
class _Search:
    """A search among all items of a view, block by block."""

    view: ChunkedView
    ranges: list[Range]
    n_neighbors: int
    metric: Any
    backend: str

    def nearest(
        self, queries: Array, positions: Array, cells: list[BlockCells] | None = None
    ) -> Found:
        """Return the neighbours of items, the items themselves excluded."""
        ids = np.full((len(queries), 0), -1)
        distances = np.full(ids.shape, np.inf)
        for j, (start, stop) in enumerate(self.ranges):
            index = NeighborIndex(self.view.rows(start, stop), metric=self.metric)
            inside = (start <= positions) & (positions < stop)
            excluded = np.where(inside, positions - start, -1)
            embedded = index.prepare(queries)[0]
            if cells is not None and len(cells[j].content):
                near, far = self._look_up(cells[j], index, embedded, excluded)
            else:
                n_near = min(self.n_neighbors, stop - start)
                given = embedded, excluded
                near, far = index.search_prepared(
                    *given, n_neighbors=n_near, backend=self.backend
                )
            near = np.where(near < 0, near, near.astype(np.int64) + start)
            ids, distances = sort_candidates(
                np.hstack([ids, near]), np.hstack([distances, far]), self.n_neighbors
            )
        return ids, distances

    def _look_up(
        self, cells: BlockCells, index: NeighborIndex, queries: Array, excluded: Array
    ) -> Found:
        """Return most of the nearest items of a block, ranked by exact distances."""
        lists = load_faiss().deserialize_index(cells.content)
        lists.nprobe = cells.n_probed
        tiles = next(index.products())
        found_ids, found_distances = [], []
        for start in range(0, len(queries), QUERIES_AT_A_TIME):
            here = slice(start, start + QUERIES_AT_A_TIME)
            part, own = queries[here], excluded[here]
            rows = Cells.even(-tiles.queries(part, np.empty(0)).rows)
            found = lists.search(rows, cells.n_candidates)[1]
            found[found == own[:, None]] = -1
            sums = exact_sums(index.metric, part, index.embedded, found)
            ids, sums = sort_candidates(found, sums, self.n_neighbors)
            found_ids.append(np.where(np.isfinite(sums), ids, -1))
            found_distances.append(np.sqrt(sums))
        return np.concatenate(found_ids), np.concatenate(found_distances)


def _sort_block(own: Range, *, search: _Search) -> BlockCells:
    """Return the cells of a block, tuned on a sample of its own items."""
    n_items, n_neighbors = own[1] - own[0], search.n_neighbors
    if n_items < max(MIN_ITEMS, 2 * n_neighbors):
        return BlockCells(np.zeros(0, np.uint8), 0, 0)
    index = NeighborIndex(search.view.rows(*own), metric=search.metric)
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


def _search_block(
    own: Range, *, search: _Search, cells: list[BlockCells] | None
) -> Found:
    """Return the neighbours of a block of rows among all items."""
    queries, positions = search.view.rows(*own), np.arange(*own)
    ids, distances = search.nearest(queries, positions, cells)
    missed = np.flatnonzero(~np.isfinite(distances[:, -1]))
    if len(missed):  # their cells had too few items
        found = search.nearest(queries[missed], positions[missed])
        ids[missed], distances[missed] = found
    small = search.view.shape[0] <= np.iinfo(np.int32).max
    return ids.astype(np.int32 if small else np.int64), distances


def _count_found(own: Range, found: Found, *, search: _Search) -> tuple[int, int]:
    """Return the numbers of found and of true neighbours of sampled rows."""
    rng, n_items = np.random.default_rng(1), search.view.shape[0]
    sample = np.sort(rng.choice(n_items, min(N_SAMPLED, n_items), replace=False))
    positions = sample[(own[0] <= sample) & (sample < own[1])]
    if not len(positions):
        return 0, 0
    exact = search.nearest(search.view.take(positions), positions)[1]
    distances = found[1][positions - own[0]]
    # By distance: of two items equally far away either is right.
    return int(np.sum(distances <= exact[:, -1:])), distances.size
