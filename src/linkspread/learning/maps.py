"""One map per view: fixed features of its items, made once.

A map has blocks, each the features of one kernel, centred and of mean squared length 1,
so that a ridge means the same in all of them:

- "linear": the columns themselves, or their leading components where there are many;
- "gaussian": Nystrom features of ``exp(-|x - l|^2 / m)`` at landmarks l, m the mean
  squared distance;
- "graph": Nystrom features of the resolvent and of the heat of the neighbour graph.

Memory is O(N d), and nothing of N x N is made.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from linkspread.graphs import NeighborGraph, normalize
from linkspread.propagation.chebyshev import filtered_sums

__all__ = ["MIXTURES", "ViewMap", "make_map", "unit_rows"]

Array = np.ndarray
_Maker = Callable[["_Rows"], Array]

# Columns kept as they are; a wider view is reduced to so many components.
N_COMPONENTS = 512
# Landmarks of a kernel: its Nystrom error falls slowly beyond a few hundred.
N_LANDMARKS = 400
N_NEIGHBORS = 30
# Filters of the graph: mass that returns (resolvent) and time (heat), as in the paper's
# range of alpha; degree of their polynomials, exact to 1e-3 for both.
RETURN, TIME, DEGREE = 0.9, 6.0, 40
# Directions of a kernel below this share of the largest are rounding.
ROUNDING = 1e-6

# Sums of kernels to choose from.
MIXTURES: dict[str, tuple[str, ...]] = {
    "linear": ("linear",),
    "linear + gaussian": ("linear", "gaussian"),
    "gaussian": ("gaussian",),
    "all": ("linear", "gaussian", "graph"),
    "graph": ("graph",),
}


def unit_rows(X: Any) -> Any:
    """Return rows scaled to length 1; rows of zeros stay."""
    if sp.issparse(X):
        lengths = np.sqrt(X.multiply(X).sum(axis=1))
        scale = 1 / np.where(lengths > 0, lengths, 1)
        return sp.csr_array(sp.diags_array(np.asarray(scale).ravel()) @ X)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)


@dataclass(frozen=True)
class _Block:
    """Features of one kernel: how to make them, and their centre and size."""

    make: Callable[[Any], Array]
    mean: Array
    size: float

    @classmethod
    def of(cls, make: Callable[[Any], Array], features: Array) -> "_Block":
        mean = features.mean(axis=0)
        size = np.sqrt(np.mean(np.sum((features - mean) ** 2, axis=1)))
        return cls(make, mean, float(size) or 1.0)

    def scaled(self, features: Array) -> Array:
        return (features - self.mean) / self.size


class ViewMap:
    """The fixed features of one view; a block is made when it is first asked for.

    Parameters
    ----------
    X : array or csr_array of shape (n_items, n_features)
        Kept by reference: do not change it afterwards.
    prepare : callable
        Makes rows of which Euclidean distances are meant.
    makers : mapping from str to callable
        By block, what makes the features of prepared rows.
    """

    def __init__(
        self, X: Any, prepare: "_Prepared", makers: Mapping[str, Callable[[], _Maker]]
    ) -> None:
        self.n_items, self.n_features = X.shape
        self._X, self._prepare, self._makers = X, prepare, makers
        self._blocks: dict[str, tuple[_Block, Array]] = {}
        self._mixed: dict[str, Array] = {}

    def features(self, mixture: str) -> Array:
        """Return the features of a sum of kernels, each of equal weight.

        Parameters
        ----------
        mixture : str
            One of `MIXTURES`.

        Returns
        -------
        features : ndarray of shape (n_items, d)
        """
        if mixture not in self._mixed:
            blocks = [self._block(name)[1] for name in MIXTURES[mixture]]
            self._mixed[mixture] = _joined(blocks)
        return self._mixed[mixture]

    def transform(self, rows: Any, mixture: str) -> Array:
        """Return the features of new items.

        Parameters
        ----------
        rows : table of shape (n_rows, n_features)
        mixture : str
            One of `MIXTURES`.

        Returns
        -------
        features : ndarray of shape (n_rows, d)
        """
        both = _Rows(rows, self._prepare(rows))
        blocks = [self._block(name)[0] for name in MIXTURES[mixture]]
        return _joined([block.scaled(block.make(both)) for block in blocks])

    def _block(self, name: str) -> tuple[_Block, Array]:
        if name not in self._blocks:
            make = self._makers[name]()
            made = make(_Rows(self._X, self._prepare(self._X)))
            block = _Block.of(make, made)
            self._blocks[name] = block, block.scaled(made)
        return self._blocks[name]


def make_map(
    X: Any,
    *,
    metric: str = "euclidean",
    first: Sequence[int] | Array = (),
    random_state: int = 0,
    n_jobs: int | None = None,
) -> ViewMap:
    """Make the map of one view.

    Parameters
    ----------
    X : array or csr_array of shape (n_items, n_features)
    metric : {"euclidean", "cosine", "hellinger", "chi2"}, default="euclidean"
        The distance that suits the columns.
    first : sequence of int, default=()
        Items with judgements: landmarks are taken among them first, so that few
        judgements are mapped exactly.
    random_state : int, default=0
        Of the other landmarks.
    n_jobs : int, default=None
        Threads of the graph.

    Returns
    -------
    map : ViewMap

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.learning import make_map
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> make_map(X).features("linear").shape
    (50, 3)
    """
    rng = np.random.default_rng(random_state)
    landmarks = _landmarks(X.shape[0], np.asarray(first, dtype=np.intp), rng)
    prepare = _Prepared(metric)
    return ViewMap(
        X,
        prepare,
        {
            "linear": lambda: _linear(prepare(X), random_state),
            "gaussian": lambda: _Gaussian(prepare(X), landmarks),
            "graph": lambda: _Graph(X, landmarks, metric, n_jobs),
        },
    )


class _Prepared:
    """Rows whose Euclidean distances are those of a metric, dense or sparse."""

    def __init__(self, metric: str) -> None:
        self.metric = metric

    def __call__(self, X: Any) -> Any:
        if self.metric == "cosine":
            return unit_rows(X if sp.issparse(X) else np.asarray(X, dtype=np.float64))
        if self.metric in ("hellinger", "chi2"):
            total = np.asarray(X.sum(axis=1)).reshape(-1, 1)
            shares = X / np.where(total > 0, total, 1)
            return sp.csr_array(np.sqrt(shares)) if sp.issparse(X) else np.sqrt(shares)
        return X if sp.issparse(X) else np.asarray(X, dtype=np.float64)


@dataclass(frozen=True)
class _Rows:
    """Rows of a view, given and prepared."""

    given: Any
    prepared: Any


def _joined(features: Sequence[Array]) -> Array:
    """Return features side by side whose kernels sum with equal weight."""
    if len(features) == 1:
        return features[0]
    return np.hstack(features) / np.sqrt(len(features))


def _landmarks(n_items: int, first: Array, rng: np.random.Generator) -> Array:
    """Return judged items, then random others."""
    others = rng.permutation(np.setdiff1d(np.arange(n_items), first))
    return np.concatenate([rng.permutation(np.unique(first)), others])[:N_LANDMARKS]


def _linear(R: Any, random_state: int) -> _Maker:
    """Return the columns, or their leading components where there are many."""
    if R.shape[1] <= N_COMPONENTS or min(R.shape) <= N_COMPONENTS:
        return lambda rows: _dense(rows.prepared)
    _, _, Vt = randomized_svd(R, N_COMPONENTS, random_state=random_state)
    components = np.ascontiguousarray(Vt.T)
    return lambda rows: np.asarray(rows.prepared @ components)


class _Gaussian:
    """Nystrom features of a Gaussian kernel of the distances to landmarks."""

    def __init__(self, R: Any, landmarks: Array) -> None:
        self.landmarks = _dense(R[landmarks])
        D = self._distances(R[landmarks])
        self.width = float(D.mean()) or 1.0
        self.basis = _nystrom_basis(np.exp(-D / self.width))

    def __call__(self, rows: Any) -> Array:
        return np.exp(-self._distances(rows.prepared) / self.width) @ self.basis

    def _distances(self, rows: Any) -> Array:
        """Return squared distances to the landmarks."""
        squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
        lengths = np.asarray(squares.sum(axis=1)).reshape(-1, 1)
        D = np.asarray(rows @ self.landmarks.T) * -2
        D += lengths
        D += np.sum(self.landmarks**2, axis=1)
        return np.maximum(D, 0, out=D)


class _Graph:
    """Nystrom features of filters of the neighbour graph; new items by neighbours."""

    def __init__(
        self, X: Any, landmarks: Array, metric: str, n_jobs: int | None
    ) -> None:
        n_items = X.shape[0]
        self.fitted = X
        n_neighbors = min(N_NEIGHBORS, n_items - 1)
        self.graph = NeighborGraph(
            n_neighbors=n_neighbors, metric=metric, n_jobs=n_jobs
        )
        S = normalize(self.graph.fit(X).affinity_)
        units = np.zeros((n_items, len(landmarks)))
        units[landmarks, np.arange(len(landmarks))] = 1
        filters = (
            lambda t: (1 - RETURN) / (1 - RETURN * t),
            lambda t: np.exp(-TIME * (1 - t)),
        )
        coefficients = np.array([_chebyshev(response) for response in filters])
        both = filtered_sums(S, units, coefficients)
        parts = []
        for K in np.moveaxis(both, 1, 0):
            features = K @ _nystrom_basis(K[landmarks])
            # Unit norms: an item in a dense region is not more itself.
            lengths = np.linalg.norm(features, axis=1, keepdims=True)
            parts.append(features / np.maximum(lengths, 1e-3 * lengths.max()))
        self.features = _joined(parts)

    def __call__(self, rows: _Rows) -> Array:
        if rows.given is self.fitted:
            return self.features
        weights = self.graph.extend(rows.given)
        total = np.asarray(weights.sum(axis=1)).reshape(-1, 1)
        return np.asarray(weights @ self.features) / np.where(total > 0, total, 1)


def _chebyshev(response: Callable[[Array], Array]) -> Array:
    """Return the Chebyshev coefficients of a function on [-1, 1]."""
    k = np.arange(DEGREE + 1)
    angles = np.pi * (k + 0.5) / (DEGREE + 1)
    coefficients = (
        2 / (DEGREE + 1) * np.cos(np.outer(k, angles)) @ response(np.cos(angles))
    )
    coefficients[0] /= 2
    return coefficients


def _nystrom_basis(K: Array) -> Array:
    """Return B with ``K B B' K = K`` for the kernel of the landmarks."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    kept = values > ROUNDING * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])


def _dense(X: Any) -> Array:
    """Return rows as a dense array of float64."""
    return X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
