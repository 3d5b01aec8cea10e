"""Bilinear ridge regression: links predicted from all products of features.

``min_B  mean_ij (x_i' B y_j - z_ij)^2 + ridge ||B||^2`` over the judged pairs (i, j).
Pairs that labels judge are all pairs of labelled items; their part of the normal
equations is a Kronecker product and never written out.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from linkspread.ground.checks import check_count, check_positive, naming
from linkspread.links import LinkMatrix, Links
from linkspread.studies.baselines.correspondences import balanced_links
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.preparation import prepare, prepared_rows
from linkspread.studies.baselines.side import Side

Array = np.ndarray

# Products of features up to which the normal equations are formed and solved.
MAX_DIRECT = 2500
# Judged pairs whose products of features exist at a time.
PAIR_TILE = 2048
CG_TOLERANCE = 1e-10


@dataclass(kw_only=True, eq=False, repr=False)
class BilinearRidge(PairMatching):
    """Match by ridge regression of the links on products of features.

    ``score(x, y) = [1, x] B [1, y]'`` with x and y the leading principal components of
    both views, and B from ``min mean (score - z)^2 + ridge ||B||^2`` over the judged
    pairs, or over all pairs of labelled items: bilinear regression in closed form, the
    pairwise form of [Bai2010]. With few components and a strong ridge it is a strong
    baseline for few links.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("n_components", "scaling")

    n_components: Any = 32
    ridge: float = 0.01
    balance: str | float = "auto"
    scaling: Any = "standard"
    random_state: int = 0

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        ridge = check_positive(self.ridge, name="ridge", remedy="The default is 0.01.")
        Z = balanced_links(links, a, b, balance=self.balance)
        left, right = (self._describe(tables[v], v, **chosen[v]) for v in (a, b))
        X, Y = left(tables[a]), right(tables[b])
        B = fit_bilinear(X, Z, Y, ridge=ridge)
        return (
            Side(X @ B, _Mapped(left, B), tables[a].shape[1]),
            Side(Y, right, tables[b].shape[1]),
        )

    def _describe(
        self, X: Any, view: str, *, n_components: int, scaling: str
    ) -> "ComponentFeatures":
        """Return the features of a view."""
        with naming(view):
            n_components = check_count(
                n_components, name="n_components", remedy="The default is 32."
            )
            prepared = prepare(
                X,
                scaling=scaling,
                n_components=n_components,
                random_state=self.random_state,
            )
            return ComponentFeatures(X, prepared)


class ComponentFeatures:
    """Describe rows by a constant and their principal components."""

    def __init__(self, X: Any, prepared: Pipeline) -> None:
        self.prepared = prepared
        # Rows of mean square norm 1, so that `ridge` is comparable for all features.
        components = prepared_rows(X, prepared)
        self.size = float(np.sqrt(np.mean(np.sum(components**2, axis=1)))) or 1.0

    def __call__(self, rows: Any) -> Array:
        """Return features of shape (n_rows, 1 + n_components)."""
        components = self.prepared.transform(rows) / self.size
        return np.column_stack([np.ones(len(components)), components])


class _Mapped:
    """Multiply features by a matrix."""

    def __init__(self, features: ComponentFeatures, B: Array) -> None:
        self.features, self.B = features, B

    def __call__(self, rows: Any) -> Array:
        return self.features(rows) @ self.B


def fit_bilinear(X: Array, Z: LinkMatrix, Y: Array, *, ridge: float) -> Array:
    """Return B, exactly; by conjugate gradients where features are many."""
    problem = _Problem.of(X, Z, Y, ridge)
    if Z.pairs.nnz == 0:
        return _solve_by_eigenvectors(problem)
    if problem.target.size <= MAX_DIRECT:
        return _solve_directly(problem)
    return _solve_by_gradients(problem)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The normal equations ``gram_x B gram_y + sum_k x_k x_k' B y_k y_k' + ...``."""

    gram_x: Array
    gram_y: Array
    pair_x: Array
    pair_y: Array
    ridge: float  # times the number of judged pairs
    target: Array

    @classmethod
    def of(cls, X: Array, Z: LinkMatrix, Y: Array, ridge: float) -> "_Problem":
        """Gather the judged pairs."""
        labelled_x, labelled_y = X[_used(Z.left)], Y[_used(Z.right)]
        pairs = Z.pairs.tocoo()
        n_judged = len(labelled_x) * len(labelled_y) + pairs.nnz
        return cls(
            gram_x=labelled_x.T @ labelled_x,
            gram_y=labelled_y.T @ labelled_y,
            pair_x=X[pairs.row],
            pair_y=Y[pairs.col],
            ridge=ridge * n_judged,
            target=X.T @ (Z @ Y),
        )

    def apply(self, B: Array) -> Array:
        """Return the left side of the normal equations."""
        fitted = np.einsum("kp,kp->k", self.pair_x, self.pair_y @ B.T)
        from_pairs = self.pair_x.T @ (fitted[:, None] * self.pair_y)
        return self.gram_x @ B @ self.gram_y + from_pairs + self.ridge * B


def _used(memberships: Any) -> Array:
    """Return the items that have a label."""
    return np.flatnonzero(np.asarray(memberships.sum(axis=1)).ravel())


def _solve_by_eigenvectors(problem: _Problem) -> Array:
    """Solve ``gram_x B gram_y + ridge B = target`` in the eigenvectors of both."""
    values_x, Q = np.linalg.eigh(problem.gram_x)
    values_y, R = np.linalg.eigh(problem.gram_y)
    turned = Q.T @ problem.target @ R
    return Q @ (turned / (np.outer(values_x, values_y) + problem.ridge)) @ R.T


def _solve_directly(problem: _Problem) -> Array:
    """Form the normal equations of all products of features and solve them."""
    normal = np.kron(problem.gram_x, problem.gram_y)
    for start in range(0, len(problem.pair_x), PAIR_TILE):
        tile = slice(start, start + PAIR_TILE)
        x, y = problem.pair_x[tile], problem.pair_y[tile]
        products = (x[:, :, None] * y[:, None, :]).reshape(len(x), -1)
        normal += products.T @ products
    normal[np.diag_indices_from(normal)] += problem.ridge
    solution = solve(normal, problem.target.ravel(), assume_a="pos")
    return solution.reshape(problem.target.shape)


def _solve_by_gradients(problem: _Problem) -> Array:
    """Solve the normal equations without forming them."""
    shape, size = problem.target.shape, problem.target.size
    operator = LinearOperator(
        (size, size),
        matvec=lambda b: problem.apply(b.reshape(shape)).ravel(),
        dtype=np.float64,
    )
    solution, info = cg(operator, problem.target.ravel(), rtol=CG_TOLERANCE)
    if info:
        warnings.warn(
            f"bilinear ridge regression must reach a residual of {CG_TOLERANCE:g}, got "
            f"a larger one after {info:,} iterations. Use a larger `ridge` or fewer "
            "`n_components`.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solution.reshape(shape)
