"""The learner, its maps computed by the workers in blocks of rows.

What is chosen, and the cores, are computed by the client as on one machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.products import BlockGraph
from linkspread.cluster.row_blocks import MULTIPLE, RowBlocks, cut_rows
from linkspread.cluster.session import Session, alone
from linkspread.cluster.tables import check_files, open_views
from linkspread.cluster.view_graphs import build_knn, find_neighborhoods
from linkspread.cluster.views import ChunkedView
from linkspread.compiled.backends import use_backend
from linkspread.compiled.threads import own_threads
from linkspread.graphs import NeighborGraph
from linkspread.learning import ViewMap
from linkspread.learning.maps import (
    TILE,
    products_of_columns,
    raw_features,
    standardize,
    unit_rows,
)
from linkspread.models import CrossViewSearch
from linkspread.propagation.heat import heat_coefficients, inverse_root

Array = np.ndarray


def fit_search(
    model: CrossViewSearch,
    session: Session,
    views: Any,
    links: Any,
    *,
    ids: Mapping[str, Any] | None,
    folder: Any,
    method: str,
) -> None:
    """Fit the learner, with maps that the workers compute."""
    with open_views(views, ids, folder) as opened:
        check_files(session, opened.chunked)
        opened.tell(verbose=session.verbose)
        whole = opened.whole()
        n_items = sum(X.shape[0] for X in whole.tables.values())

        def work_for(view: str, metric: str) -> BlockWork:
            table = whole.read[view].values
            how = metric, method, model.backend
            return BlockWork(session, opened.chunked[view], table, *how)

        with use_backend(model.backend), own_threads(model.n_jobs, n_items):
            model._learn(whole, links, work_for=work_for)


@dataclass(frozen=True)
class BlockWork:
    """What the map of a view needs of all rows, computed by the workers."""

    session: Session
    view: ChunkedView
    X: Array
    metric: str
    method: str
    backend: str = "auto"

    def gram(self) -> Array:
        """Return the products of all prepared columns, summed over blocks of rows."""
        parts = [
            self.session.submit(_products, self.view, own, self.metric)
            for own in self._cut(self.view.shape[1], TILE)
        ]
        self.session.finish(parts, f"products of the columns of {self.view.name}")
        total = np.zeros((self.view.shape[1],) * 2)
        for part in self.session.each(parts):
            total += part
        return total.astype(np.float32)

    def heat(self, graph: NeighborGraph, landmarks: Array) -> Array:
        """Build a graph in blocks, and return the features of its heat."""
        names = ("n_neighbors", "metric", "bandwidth", "weights")
        chosen = {name: getattr(graph, name) for name in names}
        chosen |= {"method": self.method, "backend": self.backend}
        near = find_neighborhoods(
            self.session, self.view, self._cut(self.view.shape[1]), chosen
        )
        built = build_knn(near)
        graph.resume(self.X, built.fetch(), near.widths)
        graph.recall_ = near.recall
        S = built.normalized(rescale=False).astype(np.float32)
        n_landmarks = len(landmarks)
        ones = np.ones(n_landmarks, np.float32), (landmarks, np.arange(n_landmarks))
        units = sparse.csr_array(ones, shape=(S.n_items, n_landmarks))
        sums = S.filtered_sums(units, heat_coefficients()[None])
        root = self.session.hold(inverse_root(self._rows(S, sums, landmarks)))
        parts = self.session.submit_each(
            S.blocks, _heat_features, sums, [root] * len(sums)
        )
        self.session.finish(parts, f"heat of {self.view.name}")
        return np.concatenate(self.session.fetch(parts))

    def fill(self, view: ViewMap) -> None:
        """Write the features of all items, and centre and scale them here."""
        names = [name for name in view.blocks if name != "graph"]
        for name in set(view.blocks) - set(names):
            view.values[:, view.columns(name)] = view.blocks[name].values
        kernels = self.session.hold([view.blocks[name] for name in names])
        width = sum(len(view.blocks[name].mean) for name in names)
        blocks = self._cut(max(width, self.view.shape[1]), TILE)
        parts = [
            self.session.submit(_features, self.view, own, self.metric, kernels)
            for own in blocks
        ]
        self.session.finish(parts, f"features of {self.view.name}")
        # The linear and the Gaussian columns are the first ones.
        for (start, stop), part in zip(blocks, self.session.each(parts), strict=True):
            view.values[start:stop, :width] = part
        standardize(view)

    def _cut(self, width: int, multiple: int = MULTIPLE) -> RowBlocks:
        """Return blocks of rows of so many numbers each."""
        row_bytes = width * self.view.dtype.itemsize
        cut = {"n_workers": self.session.n_workers, "multiple": multiple}
        return cut_rows(self.view.shape[0], row_bytes, **cut)

    def _rows(self, S: BlockGraph, sums: list[Any], items: Array) -> Array:
        """Return the rows of some items, in their order."""
        own = [np.flatnonzero((a <= items) & (items < b)) for a, b in S.blocks]
        asked = [items[i] - a for i, (a, _) in zip(own, S.blocks, strict=True)]
        found = self.session.submit_each(S.blocks, _some_rows, sums, asked)
        rows = np.empty((len(items), len(items)), np.float32)
        rows[np.concatenate(own)] = np.concatenate(self.session.fetch(found))
        return rows


@alone
def _products(view: ChunkedView, own: tuple[int, int], metric: str) -> Array:
    """Return the products of all columns over a block of rows."""
    return products_of_columns(view.rows(*own), metric)


@alone
def _features(
    view: ChunkedView, own: tuple[int, int], metric: str, kernels: list[Any]
) -> Array:
    """Return the features of a block of rows, side by side."""
    rows = view.rows(*own)
    return np.hstack([raw_features(kernel, rows, metric) for kernel in kernels])


def _some_rows(sums: Array, rows: Array) -> Array:
    """Return some rows of a block."""
    return sums[rows, 0]


@alone
def _heat_features(sums: Array, root: Array) -> Array:
    """Return the features of heat of a block of rows."""
    return unit_rows(sums[:, 0] @ root)
