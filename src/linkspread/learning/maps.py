"""One map per view: fixed features of its items, computed once.

A map has three blocks of columns, each the features of one kernel, centred and scaled
to mean squared norm 1, so that ridges are comparable:

- "linear": the columns of the table, or their leading principal components;
- "gaussian": Nystrom features of ``exp(-|x - l|^2 / m)`` at landmarks l, m the mean
  squared distance;
- "graph": Nystrom features of the heat kernel ``exp(-t (I - S))`` of the neighbour
  graph, the sum of a short and a long time.

Memory is O(N d), never N x N. The resolvent of the graph was tested beside the heat
kernel: labels never chose it, and judged pairs did not gain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, eigh, solve_triangular
from sklearn.utils.extmath import randomized_svd

from linkspread.compiled.backends import choose_device
from linkspread.graphs import NeighborGraph
from linkspread.graphs.normalize import row_sums, scale_edges
from linkspread.propagation.chebyshev import DEGREE, heat, heat_on_device

Array = np.ndarray

# Components of the linear block; narrower tables are not reduced.
N_COMPONENTS = 512
# Columns up to which the components come from the full Gram matrix.
MAX_COLUMNS = 8192
# Landmarks: at least the first number, and all labelled items, without which a kernel
# loses accuracy, while whitening takes at most MAX_WORK multiplications (about ten
# seconds). The heat kernel is smooth and needs fewer.
N_LANDMARKS, MAX_WORK, MAX_GRAPH_LANDMARKS = 400, 1.2e11, 800
N_NEIGHBORS = 30
# Added to the kernel of the landmarks, which duplicates make singular.
JITTER = 1e-6
# Rows computed at once, here and by the workers of a cluster: the rounding of products
# depends on the number of rows.
TILE = 4096
# Multiplications from which a GPU is used: sixteen cores take about a second.
MIN_WORK = 1e10

BLOCKS = ("linear", "gaussian", "graph")
# Prior weights of the kernels: features and graph equally.
SHARES = {"linear": 0.25, "gaussian": 0.25, "graph": 0.5}
# Sums of kernels; the blocks are adjacent, so that their columns are one slice.
MIXTURES: dict[str, tuple[str, ...]] = {
    "linear": ("linear",),
    "linear + gaussian": ("linear", "gaussian"),
    "gaussian": ("gaussian",),
    "graph": ("graph",),
}


def unit_rows(X: Any) -> Any:
    """Return rows with unit norm; rows of zeros stay."""
    if sp.issparse(X):
        lengths = np.sqrt(X.multiply(X).sum(axis=1))
        scale = 1 / np.where(lengths > 0, lengths, 1)
        return sp.csr_array(sp.diags_array(np.asarray(scale).ravel()) @ X)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)


def dense(X: Any) -> Array:
    """Return rows as a dense array."""
    return X.toarray() if sp.issparse(X) else np.asarray(X)


@dataclass(eq=False)
class ViewMap:
    """The fixed features of one view."""

    metric: str  # of the rows, as for `make_map`
    blocks: dict[str, Any]  # feature functions by name
    values: Array  # features of the fitted items, block by block, in float32
    n_features: int  # columns of the table

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.values)

    def columns(self, mixture: str) -> slice:
        """Return the columns of a sum of kernels, one of `MIXTURES`."""
        start, found = 0, []
        for name, block in self.blocks.items():
            stop = start + len(block.mean)
            if name in MIXTURES[mixture]:
                found += [start, stop]
            start = stop
        return slice(min(found), max(found))

    def has(self, mixture: str) -> bool:
        """Return whether the map has all blocks of a sum of kernels."""
        return all(name in self.blocks for name in MIXTURES[mixture])

    def transform(self, rows: Any) -> Array:
        """Return the features of new rows, in float32."""
        parts = [
            (raw_features(block, rows, self.metric) - block.mean) / block.size
            for block in self.blocks.values()
        ]
        return np.hstack(parts, dtype=np.float32)

    def append(self, rows: Any) -> "ViewMap":
        """Return the map with the items of new rows appended."""
        values = np.vstack([self.values, self.transform(rows)])
        return ViewMap(self.metric, self.blocks, values, self.n_features)


class MapWork(Protocol):
    """Computations over all rows of a table, on this machine or a cluster."""

    def gram(self) -> Array:
        """Return the products of all prepared columns."""

    def heat(self, graph: NeighborGraph, landmarks: Array) -> Array:
        """Fit a graph, and return its heat features with unit norm."""

    def fill(self, view: ViewMap) -> None:
        """Write the features of all items, centred and scaled."""


def make_map(
    X: Any,
    *,
    metric: str = "euclidean",
    blocks: Sequence[str] = BLOCKS,
    judged: Sequence[int] | Array = (),
    n_labelled: int = 0,
    random_state: int = 0,
    n_jobs: int | None = None,
    work: MapWork | None = None,
) -> ViewMap:
    """Make the map of one view from its table of shape (n_items, n_features).

    Judged items are landmarks first, so that the kernel is exact for few judgements.
    `work` computes over all rows, None on this machine.
    """
    n_items = X.shape[0]
    rng = np.random.default_rng(random_state)
    n_landmarks = landmark_count(n_items, n_labelled)
    is_other = np.ones(n_items, dtype=bool)
    is_other[np.asarray(judged, dtype=np.intp)] = False
    both = [rng.permutation(np.flatnonzero(own)) for own in (~is_other, is_other)]
    landmarks = np.concatenate(both)[:n_landmarks]
    work = work or _OwnWork(X, metric, _device_for(X, len(landmarks)))
    heated = landmarks[:MAX_GRAPH_LANDMARKS]
    makers: dict[str, Any] = {
        "linear": lambda: _Linear.of(X, metric, random_state, work),
        "gaussian": lambda: _Gaussian.of(X, metric, landmarks),
        "graph": lambda: _Graph.of(X, metric, heated, n_jobs, work),
    }
    made = {name: makers[name]() for name in BLOCKS if name in blocks}
    width = sum(len(block.mean) for block in made.values())
    values = np.empty((n_items, width), dtype=np.float32)
    view = ViewMap(metric, made, values, X.shape[1])
    work.fill(view)
    if "graph" in made:
        made["graph"].values = values[:, view.columns("graph")]
    return view


def landmark_count(n_items: int, n_labelled: int) -> int:
    """Return the number of landmarks of a view."""
    most = int((MAX_WORK / n_items) ** 0.5)
    return min(n_items, max(N_LANDMARKS, min(n_labelled, most)))


def _device_for(X: Any, n_landmarks: int) -> Any:
    """Return the device for a map if it fits, or None."""
    n_items, n_columns = X.shape
    steps = n_columns + n_landmarks + N_NEIGHBORS * DEGREE
    work = float(n_items) * n_landmarks * steps
    device = choose_device("auto", work=work, min_work=MIN_WORK)
    if device is None or sp.issparse(X):
        return None
    # The table and its features, four blocks of landmarks, edges and sums.
    row_bytes = 12 * n_columns + 16 * n_landmarks + 80 * N_NEIGHBORS
    return device if n_items * row_bytes < device.free_bytes() else None


@dataclass(frozen=True)
class _OwnWork:
    """Computations over all rows, on this machine or its GPU."""

    X: Any
    metric: str
    device: Any

    def gram(self) -> Array:
        if self.device is None:
            return products_of_columns(self.X, self.metric).astype(np.float32)
        from linkspread.compiled.gpu import features

        return features.gram(self.device.put(self.X), self.metric)

    def heat(self, graph: NeighborGraph, landmarks: Array) -> Any:
        W = graph.fit(self.X).affinity_
        if self.device is None:
            # Without `normalize`, which would check the symmetry.
            S = scale_edges(W, row_sums(W)).astype(np.float32)
            K, root = heat(S, landmarks)
            return unit_rows(K @ root)
        from linkspread.compiled.gpu import features

        K, root = heat_on_device(self.device, W, landmarks)
        return features.unit_rows(K @ root)

    def fill(self, view: ViewMap) -> None:
        if self.device is None:
            _fill(view, self.X)
        else:
            _fill_on_device(view, self.X, self.device)


def _fill(view: ViewMap, X: Any) -> None:
    """Write the features of all items, one block after the other."""
    for name, block in view.blocks.items():
        own = view.values[:, view.columns(name)]
        if name == "graph":
            own[:] = block.values
            continue
        for rows in tiles(view.n_items):
            own[rows] = block(X[rows], _prepare(X[rows], view.metric))
    standardize(view)


def standardize(view: ViewMap) -> None:
    """Centre and scale the features of all items, and store mean and scale."""
    for name, block in view.blocks.items():
        own = view.values[:, view.columns(name)]
        block.mean = own.mean(axis=0, dtype=np.float64).astype(np.float32)
        own -= block.mean
        block.size = float(np.sqrt(np.mean(np.einsum("ij,ij->i", own, own)))) or 1.0
        own /= block.size


def _fill_on_device(view: ViewMap, X: Any, device: Any) -> None:
    """Write the same as `_fill`, computed on a device."""
    from linkspread.compiled.gpu import features

    table, parts = device.put(X), []
    for block in view.blocks.values():
        part = block.on_device(device, table, view.metric)
        block.mean, block.size = features.standardize(part)
        parts.append(part)
    features.to_host(parts, view.values)


def raw_features(block: Any, X: Any, metric: str) -> Array:
    """Return the features of rows, neither centred nor scaled."""
    parts = [block(X[s], _prepare(X[s], metric)) for s in tiles(max(X.shape[0], 1))]
    return np.vstack(parts).astype(np.float32, copy=False)


def tiles(n_rows: int, size: int = TILE) -> list[slice]:
    """Return slices of `size` rows."""
    return [slice(k, min(k + size, n_rows)) for k in range(0, n_rows, size)]


def _prepare(X: Any, metric: str) -> Any:
    """Return rows whose Euclidean distances are those of a metric."""
    if metric == "cosine":
        return unit_rows(X if sp.issparse(X) else np.asarray(X, dtype=np.float64))
    if metric in ("hellinger", "chi2"):
        total = np.asarray(X.sum(axis=1)).reshape(-1, 1)
        shares = X / np.where(total > 0, total, 1)
        return sp.csr_array(np.sqrt(shares)) if sp.issparse(X) else np.sqrt(shares)
    return X if sp.issparse(X) else np.asarray(X, dtype=np.float64)


@dataclass(eq=False)
class _Linear:
    """The columns, or their leading components if there are many."""

    components: Array | None
    mean: Array
    size: float = 1.0

    @classmethod
    def of(cls, X: Any, metric: str, seed: int, work: MapWork) -> "_Linear":
        width = X.shape[1]
        if width <= N_COMPONENTS or min(X.shape) <= N_COMPONENTS:
            return cls(None, np.zeros(width))
        if width > MAX_COLUMNS:
            R = _prepare(X, metric).astype(np.float32)
            _, _, Vt = randomized_svd(R, N_COMPONENTS, n_iter=3, random_state=seed)
            components = Vt.T
        else:
            last = width - N_COMPONENTS, width - 1
            _, components = eigh(work.gram(), subset_by_index=last)
        return cls(np.ascontiguousarray(components), np.zeros(N_COMPONENTS))

    def __call__(self, given: Any, prepared: Any) -> Array:
        if self.components is None:
            return dense(prepared).astype(np.float64)
        return np.asarray(prepared @ self.components)

    def on_device(self, device: Any, table: Any, metric: str) -> Any:
        from linkspread.compiled.gpu.features import projected

        own = None if self.components is None else device.put(self.components)
        return projected(table, metric, own)


@dataclass(eq=False)
class _Gaussian:
    """Nystrom features of a Gaussian kernel."""

    landmarks: Array
    width: float
    factor: Array  # Cholesky factor of the kernel of the landmarks
    mean: Array
    size: float = 1.0

    @classmethod
    def of(cls, X: Any, metric: str, landmarks: Array) -> "_Gaussian":
        L = dense(_prepare(X[landmarks], metric)).astype(np.float32)
        D = _squared_distances(L.astype(np.float64), L.astype(np.float64))
        width = float(D.mean()) or 1.0
        return cls(L, width, _factor(np.exp(-D / width)), np.zeros(len(L)))

    def __call__(self, given: Any, prepared: Any) -> Array:
        rows = prepared.astype(np.float32)
        K = np.exp(_squared_distances(rows, self.landmarks) / np.float32(-self.width))
        return _whiten(K, self.factor)

    def on_device(self, device: Any, table: Any, metric: str) -> Any:
        from linkspread.compiled.gpu.features import gaussian_kernel, whiten

        K = gaussian_kernel(table, metric, device.put(self.landmarks), self.width)
        return whiten(K, device.put(self.factor))


@dataclass(eq=False)
class _Graph:
    """Nystrom features of the heat kernel; for new items the mean of neighbours.

    With unit norm, so that items in dense regions do not count more.
    """

    graph: NeighborGraph
    fitted: Any
    values: Array
    mean: Array
    size: float = 1.0

    @classmethod
    def of(
        cls, X: Any, metric: str, landmarks: Array, n_jobs: int | None, work: MapWork
    ) -> "_Graph":
        n_neighbors = min(N_NEIGHBORS, X.shape[0] - 1)
        graph = NeighborGraph(n_neighbors=n_neighbors, metric=metric, n_jobs=n_jobs)
        values = work.heat(graph, landmarks)
        return cls(graph, X, values, np.zeros(values.shape[1]))

    def __call__(self, given: Any, prepared: Any) -> Array:
        weights = self.graph.extend(given)
        total = np.asarray(weights.sum(axis=1)).reshape(-1, 1)
        near, places = np.unique(weights.indices, return_inverse=True)
        shape = weights.shape[0], len(near)
        own = sp.csr_array((weights.data, places, weights.indptr), shape=shape)
        fitted = self.values[near] * np.float32(self.size) + self.mean
        return np.asarray(own @ fitted) / np.where(total > 0, total, 1)

    def on_device(self, device: Any, table: Any, metric: str) -> Any:
        return self.values


def products_of_columns(X: Any, metric: str) -> Array:
    """Return the products of all prepared columns, summed over tiles of rows."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for rows in tiles(X.shape[0]):
        R = _prepare(X[rows], metric).astype(np.float32)
        gram = R.T @ R
        total += gram.toarray() if sp.issparse(gram) else gram
    return total


def _squared_distances(rows: Any, landmarks: Array) -> Array:
    """Return squared distances of rows to landmarks."""
    squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
    D = np.asarray(rows @ landmarks.T) * -2
    D += np.asarray(squares.sum(axis=1)).reshape(-1, 1)
    D += np.einsum("ij,ij->i", landmarks, landmarks)
    return np.maximum(D, 0, out=D)


def _factor(K: Array) -> Array:
    """Return the Cholesky factor of the kernel of the landmarks."""
    K = (K + K.T) / 2
    K[np.diag_indices_from(K)] += JITTER * np.trace(K) / len(K)
    return cholesky(K, lower=True)


def _whiten(K: Array, factor: Array) -> Array:
    """Return features whose inner products approximate the kernel."""
    solved = solve_triangular(factor.astype(K.dtype), K.T, lower=True)
    return np.ascontiguousarray(solved.T)
