"""Approximate neighbours of large views, with a measured recall.

faiss sorts the items into cells and compresses each to a quarter of a byte per feature.
A query searches the nearest cells, and the candidates found are ranked again by exact
distances. The numbers of cells and candidates are chosen on a sample of items with
known neighbours; another sample measures the recall.
``benchmarks/bench_approximate.py`` measures time and memory.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from linkspread.compiled.backends import map_blocks
from linkspread.graphs.distances import exact_sums
from linkspread.graphs.neighbors import Found, NeighborIndex, sort_candidates
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import MissingDependencyError, require
from linkspread.ground.progress import track

Array = np.ndarray

logger = logging.getLogger("linkspread")

# Recall that tuning aims at, and recall below which a warning is logged.
TARGET_RECALL, POOR_RECALL = 0.97, 0.9
N_SAMPLED = 256
GROWTH = 1.5
QUERY_BLOCK = 2048
SEED = 0


def has_faiss(method: str) -> bool:
    """Return whether faiss can be imported; method="approximate" must have it."""
    try:
        load_faiss()
    except MissingDependencyError as error:
        if method == "approximate":
            raise
        logger.info("%s The search is exact.", error)
        return False
    return True


def load_faiss(purpose: str = "method='approximate'") -> ModuleType:
    """Import faiss."""
    with warnings.catch_warnings():
        # The bindings of faiss raise DeprecationWarnings in newer versions of Python.
        warnings.simplefilter("ignore", DeprecationWarning)
        return require("faiss", purpose=purpose)


@contextmanager
def limit_faiss(faiss: ModuleType, n_threads: int) -> Iterator[None]:
    """Limit the threads of faiss in calls from this thread."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n_threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def approximate_neighbors(
    index: NeighborIndex,
    *,
    n_neighbors: int,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> tuple[Array, Array, float]:
    """Return most of the nearest neighbours of all items, and the recall."""
    queries, excluded = index.prepare(None)
    exactly = partial(index.search_prepared, n_neighbors=n_neighbors, n_jobs=n_jobs)
    cells = Cells(index, n_neighbors, count_threads(n_jobs))
    n_items = index.items.shape[0]
    rng = np.random.default_rng(SEED)
    sample = rng.choice(n_items, min(2 * N_SAMPLED, n_items), replace=False)
    exact = exactly(queries[sample], excluded[sample])[1]
    cells.tune(queries, sample[::2], exact[::2])
    ids, distances = cells.search(queries, verbose=verbose)
    missed = np.flatnonzero(~np.isfinite(distances[:, -1]))
    if len(missed):
        ids[missed], distances[missed] = exactly(queries[missed], excluded[missed])
    recall = _recall(distances[sample[1::2]], exact[1::2])
    level = logging.INFO if verbose else logging.DEBUG
    logger.log(
        logging.WARNING if recall < POOR_RECALL else level,
        "approximate neighbours: recall %.3f on %d items; method='exact' finds all",
        recall,
        len(sample[1::2]),
    )
    return ids, distances, recall


def _recall(distances: Array, exact: Array) -> float:
    """Return the share of neighbours that are as near as the last true one."""
    # By distance, because equally distant items are interchangeable.
    return float(np.mean(distances <= exact[:, -1:]))


class Cells:
    """Items in the cells of a faiss index, compressed."""

    def __init__(self, index: NeighborIndex, n_neighbors: int, n_threads: int):
        self.faiss = load_faiss()
        self.index, self.n_neighbors = index, n_neighbors
        self.n_threads = n_threads
        # The converted items of the exact search are centred and scaled, so that
        # float32 suffices; negation does not change distances.
        self.rows = self.even(next(index.products()).negated)
        self.n_probed = 8
        self.n_candidates = min(4 * n_neighbors + 8, len(self.rows))
        n_items, n_features = self.rows.shape
        self.n_cells = int(np.sqrt(n_items))
        # Two features share half a byte: sums of 16-entry tables in registers.
        self.cells: Any = self.faiss.index_factory(
            n_features, f"IVF{self.n_cells},PQ{n_features // 2}x4fs"
        )
        for clustering in (self.cells.cp, self.cells.pq.cp):
            clustering.seed = SEED
            clustering.min_points_per_centroid = 1
        self.cells.cp.niter = 8
        rng = np.random.default_rng(SEED)
        n_trained = min(n_items, max(64 * self.n_cells, 4096))
        trained = np.sort(rng.choice(n_items, n_trained, replace=False))
        with limit_faiss(self.faiss, self.n_threads):
            self.cells.train(self.rows[trained])
            self.cells.add(self.rows)

    @staticmethod
    def even(rows: Array) -> Array:
        """Return rows padded with zeros to an even number of features."""
        is_odd = rows.shape[1] % 2
        return np.pad(rows, [(0, 0), (0, 1)]) if is_odd else rows

    def tune(self, queries: Array, sample: Array, exact: Array) -> None:
        """Increase the numbers of cells and candidates until the recall suffices."""
        recall = self._try(queries, sample, exact)
        largest = min(40 * self.n_neighbors + 80, len(self.rows))
        while recall < TARGET_RECALL:
            p, c = self.n_probed, self.n_candidates
            more_cells = min(int(GROWTH * p), self.n_cells)
            more_candidates = min(int(GROWTH * c), largest)
            wider = {(more_cells, c), (p, more_candidates)} - {(p, c)}
            if not wider:
                break
            tried = {}
            for self.n_probed, self.n_candidates in sorted(wider):
                tried[self.n_probed, self.n_candidates] = self._try(
                    queries, sample, exact
                )
            recall = max(tried.values())
            self.n_probed, self.n_candidates = max(tried, key=lambda key: tried[key])
        logger.debug(
            "approximate neighbours: %d of %d cells, %d candidates",
            self.n_probed,
            self.n_cells,
            self.n_candidates,
        )

    def _try(self, queries: Array, sample: Array, exact: Array) -> float:
        """Return the recall of a sample with the current settings."""
        self.cells.nprobe = self.n_probed
        with limit_faiss(self.faiss, self.n_threads):
            return _recall(self._search_block(queries, sample)[1], exact)

    def search(self, queries: Array, *, verbose: bool = False) -> Found:
        """Return the neighbours of all items, with distance infinity if too few."""
        self.cells.nprobe = self.n_probed
        n_items = len(self.rows)
        ids: Array = np.empty((n_items, self.n_neighbors), self.index.id_dtype)
        distances = np.empty(ids.shape)
        # Queries of one cell share candidates, which stay in the cache.
        with limit_faiss(self.faiss, self.n_threads):
            cells = self.cells.quantizer.search(self.rows, 1)[1]
        order = np.argsort(cells.ravel(), kind="stable")
        blocks = np.split(order, range(QUERY_BLOCK, n_items, QUERY_BLOCK))

        def search_alone(rows: Array) -> Found:
            with limit_faiss(self.faiss, 1):  # every block has a thread of its own
                return self._search_block(queries, rows)

        steps = map_blocks(search_alone, blocks, n_threads=self.n_threads)
        steps = track(steps, total=len(blocks), label="neighbours", verbose=verbose)
        for block, found in zip(blocks, steps, strict=True):
            ids[block], distances[block] = found
        return ids, distances

    def _search_block(self, queries: Array, rows: Array) -> Found:
        """Return the candidates of some items that are nearest by exact distance."""
        found = self.cells.search(self.rows[rows], self.n_candidates)[1]
        found[found == rows[:, None]] = -1
        sums = exact_sums(self.index.metric, queries[rows], self.index.embedded, found)
        if self.n_candidates > self.n_neighbors:
            nearest = np.argpartition(sums, self.n_neighbors - 1)[:, : self.n_neighbors]
            found = np.take_along_axis(found, nearest, 1)
            sums = np.take_along_axis(sums, nearest, 1)
        ids, sums = sort_candidates(found, sums, self.n_neighbors)
        return ids, np.sqrt(sums)
