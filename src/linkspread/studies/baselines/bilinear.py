"""Bilinear ridge regression: links predicted from all products of features."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve

from linkspread.ground.checks import check_count, check_positive, naming
from linkspread.ground.errors import LinkspreadError
from linkspread.links import LinkMatrix, Links
from linkspread.studies.baselines.inputs import balanced_links, prepare, prepared_rows
from linkspread.studies.baselines.matching import Chosen, PairMatching, Side

Array = np.ndarray

# Products of features whose normal equations are solved.
MAX_PRODUCTS = 10_000
# Judged pairs whose products of features exist at a time.
PAIR_TILE = 2048


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
        return Side(partial(left, B=B), vectors=X @ B), Side(right, vectors=Y)

    def _describe(self, X: Any, view: str, *, n_components: int, scaling: str) -> Any:
        """Return the function that makes the features of a view."""
        with naming(view):
            n_kept = check_count(
                n_components, name="n_components", remedy="The default is 32."
            )
            seed = self.random_state
            prepared = prepare(
                X, scaling=scaling, n_components=n_kept, random_state=seed
            )
            squares = np.sum(prepared_rows(X, prepared) ** 2, axis=1)
        # Rows of mean square norm 1, so that `ridge` is comparable for all features.
        return partial(_features, prepared, float(np.sqrt(squares.mean())) or 1.0)


def _features(prepared: Any, size: float, rows: Any, B: Array | None = None) -> Array:
    """Return ``[1, components]`` of rows, multiplied by B if it is given."""
    components = prepared.transform(rows) / size
    features = np.column_stack([np.ones(len(components)), components])
    return features if B is None else features @ B


def fit_bilinear(X: Array, Z: LinkMatrix, Y: Array, *, ridge: float) -> Array:
    """Return B of ``min_B mean_ij (x_i' B y_j - z_ij)^2 + ridge ||B||^2``.

    Pairs that labels judge are all pairs of labelled items; their part of the normal
    equations is a Kronecker product and never written out pair by pair.
    """
    labelled_x, labelled_y = X[_used(Z.left)], Y[_used(Z.right)]
    gram_x, gram_y = labelled_x.T @ labelled_x, labelled_y.T @ labelled_y
    pairs = Z.pairs.tocoo()
    shift = ridge * (len(labelled_x) * len(labelled_y) + pairs.nnz)
    target = X.T @ (Z @ Y)
    if pairs.nnz == 0:
        # ``gram_x B gram_y + shift B = target`` in the eigenvectors of both.
        values_x, Q = np.linalg.eigh(gram_x)
        values_y, R = np.linalg.eigh(gram_y)
        turned = Q.T @ target @ R / (np.outer(values_x, values_y) + shift)
        return Q @ turned @ R.T
    if target.size > MAX_PRODUCTS:
        raise LinkspreadError(
            f"`n_components` must give at most {MAX_PRODUCTS:,} products of features, "
            f"got {target.size:,}. Use fewer."
        )
    normal = np.kron(gram_x, gram_y)
    for start in range(0, pairs.nnz, PAIR_TILE):
        tile = slice(start, start + PAIR_TILE)
        x, y = X[pairs.row[tile]], Y[pairs.col[tile]]
        products = (x[:, :, None] * y[:, None, :]).reshape(len(x), -1)
        normal += products.T @ products
    normal[np.diag_indices_from(normal)] += shift
    return solve(normal, target.ravel(), assume_a="pos").reshape(target.shape)


def _used(memberships: Any) -> Array:
    """Return the items that have a label."""
    return np.flatnonzero(np.asarray(memberships.sum(axis=1)).ravel())
