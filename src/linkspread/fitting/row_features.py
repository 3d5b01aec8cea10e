"""Features of rows, old and new, whose inner products are a kernel."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.fitting.gaussian_kernel import GaussianKernel
from linkspread.fitting.rows import as_dense_rows, root_of_shares

__all__ = ["LandmarkFeatures", "LinearFeatures"]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """Similarities to a few landmarks, turned so that they are uncorrelated.

    Attributes
    ----------
    compare : GaussianKernel
        With the landmarks as anchors.
    turn : ndarray of shape (n_landmarks, r)
    """

    compare: GaussianKernel
    turn: Array

    @property
    def width(self) -> int:
        """Number of features."""
        return self.turn.shape[1]

    def __call__(self, rows: Any) -> Array:
        """Return the features of shape (n_rows, r)."""
        return self.compare.smooth(rows, self.turn)


@dataclass(frozen=True, eq=False)
class LinearFeatures:
    """Columns of a table, scaled, shortened, centred, and of mean square length 1.

    Attributes
    ----------
    scaling : {"standard", "sqrt"}
        "sqrt" takes the roots of each row's shares.
    centre : ndarray of shape (r,)
        What is taken from the features in the end.
    length : float
        What they are divided by then.
    constant : bool
        Whether a feature is added that all items share.
    mean, scale : ndarray of shape (n_features,) or None
        Of the columns, for "standard"; sparse ones are not centred.
    components : ndarray of shape (r, n_features) or None
        Principal ones, where there are more columns than wanted.
    """

    scaling: str
    centre: Array
    length: float
    constant: bool
    mean: Array | None = None
    scale: Array | None = None
    components: Array | None = None

    @classmethod
    def fit(
        cls, X: Any, *, scaling: str, n_components: int, constant: bool
    ) -> "LinearFeatures":
        """Learn what is done to the rows from all items of a view."""
        # Only here: scikit-learn's pipelines make a bare import twice as long.
        from linkspread.fitting.preparation import prepare

        steps = prepare(X, scaling=scaling, n_components=n_components).named_steps
        raw = cls(
            scaling=scaling,
            centre=np.zeros(()),
            length=1.0,
            constant=constant,
            mean=None if sparse.issparse(X) else getattr(steps["scale"], "mean_", None),
            scale=getattr(steps["scale"], "scale_", None),
            components=getattr(steps["shorten"], "components_", None),
        )
        features = raw._shortened(X)
        centre = features.mean(axis=0)
        squares = np.sum((features - centre) ** 2, axis=1)
        length = float(np.sqrt(np.mean(squares))) or 1.0
        return replace(raw, centre=centre, length=length)

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.centre) + self.constant

    def __call__(self, rows: Any) -> Array:
        """Return the features of shape (n_rows, r), or r + 1 with a constant."""
        own = (self._shortened(rows) - self.centre) / self.length
        if not self.constant:
            return own
        # As long as one of the components is on average.
        share = np.full((len(own), 1), own.shape[1] ** -0.5)
        return np.hstack([share, own])

    def _shortened(self, rows: Any) -> Array:
        """Return scaled rows, or their principal components."""
        scaled = self._scaled(rows)
        if self.components is not None:
            scaled = scaled @ self.components.T
        return as_dense_rows(scaled)

    def _scaled(self, rows: Any) -> Any:
        """Return rows with the scaling of the fit; sparse ones stay sparse if so."""
        if self.scaling == "sqrt":
            return root_of_shares(rows)
        if self.mean is not None:
            return (as_dense_rows(rows) - self.mean) / self.scale
        if sparse.issparse(rows):
            return rows @ sparse.diags_array(1 / self.scale)  # type: ignore[operator]
        return rows / self.scale
