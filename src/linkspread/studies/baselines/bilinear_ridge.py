"""Bilinear ridge regression: links predicted from products of features."""

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.pipeline import Pipeline

from linkspread.ground.checks import check_count, check_positive, naming
from linkspread.links import Links
from linkspread.studies.baselines.bilinear_fit import fit_bilinear
from linkspread.studies.baselines.correspondences import balanced_links
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.preparation import prepare, prepared_rows
from linkspread.studies.baselines.side import Side
from linkspread.studies.baselines.steps import Steps

Array = np.ndarray


class ComponentFeatures:
    """Describe rows by a constant and their principal components."""

    def __init__(self, X: Any, **parameters: Any) -> None:
        self.prepared: Pipeline = prepare(X, **parameters)
        # Rows of mean square length 1 make `ridge` mean the same for any features.
        components = prepared_rows(X, self.prepared)
        self.size = float(np.sqrt(np.mean(np.sum(components**2, axis=1)))) or 1.0

    def __call__(self, rows: Any) -> Array:
        """Return features of shape (n_rows, 1 + n_components)."""
        components = self.prepared.transform(rows) / self.size
        return np.column_stack([np.ones(len(components)), components])


class BilinearRidge(PairMatching):
    """Match by ridge regression of the links on products of features.

    ``score(x, y) = [1, x] B [1, y]'`` with x and y the leading principal components of
    both views, and B from ``min mean (score - z)^2 + ridge ||B||^2`` over the judged
    pairs, or over all pairs of labelled items: bilinear regression in closed form, the
    pair-only relative of [Bai2010]. Few components and a strong ridge make it hard to
    beat with few links.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("n_components", "scaling")

    def __init__(
        self,
        *,
        n_components: Any = 32,
        ridge: float = 0.01,
        balance: str | float = "auto",
        scaling: Any = "standard",
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.ridge = ridge
        self.balance = balance
        self.scaling = scaling
        self.random_state = random_state

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> tuple[Side, Side]:
        ridge = check_positive(self.ridge, name="ridge", remedy="The default is 0.01.")
        Z = balanced_links(links, a, b, balance=self.balance)
        left, right = (self._describe(tables[v], v, **chosen[v]) for v in (a, b))
        X, Y = left(tables[a]), right(tables[b])
        B = fit_bilinear(X, Z, Y, ridge=ridge)
        return (
            Side(X @ B, Steps(left, partial(_multiply, B)), tables[a].shape[1]),
            Side(Y, right, tables[b].shape[1]),
        )

    def _describe(
        self, X: Any, view: str, *, n_components: int, scaling: str
    ) -> ComponentFeatures:
        """Return what describes the rows of a view."""
        with naming(view):
            n_components = check_count(
                n_components, name="n_components", remedy="The default is 32."
            )
            return ComponentFeatures(
                X,
                n_components=n_components,
                scaling=scaling,
                random_state=self.random_state,
            )


def _multiply(matrix: Array, vectors: Array) -> Array:
    """Return ``vectors @ matrix``."""
    return vectors @ matrix
