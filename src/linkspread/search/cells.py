"""Items sorted into cells by faiss, so that a query looks into a few of them only.

The cells are those of k-means, and a query looks into those whose centres have the
largest inner products with it. How many are enough is tried out on a sample of queries.

Vectors of spread links differ much in length, and long ones are what is found. So the
centres are learnt from items drawn by their squared lengths: few cells then hold most
of what is found. Graphs of neighbours (HNSW) take longer to build, and are at a loss
with queries that are vectors of another kind than the items.
"""

from typing import Any

import numpy as np

from linkspread.graphs.approximate import limit_faiss, load_faiss
from linkspread.ground.cores import count_threads

Array = np.ndarray

# On the sample that the number of cells to look into is chosen by.
TARGET_RECALL = 0.98
GROWTH = 1.5
FEWEST_PROBED = 4
# Items per cell that k-means is trained on.
N_TRAINED = 48
SEED = 0


class ItemCells:
    """Find items of large inner product in the cells that promise most."""

    def __init__(self, items: Array) -> None:
        self._faiss = load_faiss()
        self.n_cells = int(np.sqrt(len(items)))
        self.n_probed = min(FEWEST_PROBED, self.n_cells)
        self._cells = self._build(np.ascontiguousarray(items, dtype=np.float32))

    def _build(self, items: Array) -> Any:
        """Find the cells on a sample and sort all items into them."""
        metric = self._faiss.METRIC_INNER_PRODUCT
        cells = self._faiss.index_factory(
            items.shape[1], f"IVF{self.n_cells},Flat", metric
        )
        cells.cp.seed, cells.cp.niter = SEED, 8
        cells.cp.min_points_per_centroid = 1
        with limit_faiss(self._faiss, count_threads(None)):
            cells.train(items[_draw_by_length(items, N_TRAINED * self.n_cells)])
            cells.add(items)
        return cells

    def tune(self, vectors: Array, true: Array) -> None:
        """Look into more cells until the best items of a sample are found."""
        while self.recall(vectors, true) < TARGET_RECALL:
            if self.n_probed == self.n_cells:
                return
            self.n_probed = min(int(GROWTH * self.n_probed), self.n_cells)

    def recall(self, vectors: Array, true: Array) -> float:
        """Return the share of the best items that are found."""
        found = self.search(vectors, true.shape[1])
        return float(np.mean((found[:, :, None] == true[:, None, :]).any(axis=1)))

    def search(
        self, vectors: Array, n_results: int, *, only: Array | None = None
    ) -> Array:
        """Return the positions of promising items, in no order that counts."""
        choice = {} if only is None else {"sel": self._selector(only)}
        options = self._faiss.SearchParametersIVF(nprobe=self.n_probed, **choice)
        rows = np.ascontiguousarray(vectors, dtype=np.float32)
        with limit_faiss(self._faiss, count_threads(None)):
            return self._cells.search(rows, n_results, params=options)[1]

    def _selector(self, only: Array) -> Any:
        """Return a filter of one bit per item, as faiss reads it."""
        is_open = np.zeros(self._cells.ntotal, dtype=bool)
        is_open[only] = True
        return self._faiss.IDSelectorBitmap(np.packbits(is_open, bitorder="little"))


def _draw_by_length(items: Array, n_drawn: int) -> Array:
    """Return positions drawn by the squared lengths of their vectors, in order."""
    weights = np.einsum("ij,ij->i", items, items, dtype=np.float64)
    total = weights.sum()
    shares = weights / total if total > 0 else None
    rng = np.random.default_rng(SEED)
    return np.sort(rng.choice(len(items), min(n_drawn, len(items)), p=shares))
