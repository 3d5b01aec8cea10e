"""Correlation analysis: project views so that corresponding items agree.

All methods use covariances only, so their cost does not depend on the number of pairs.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from linkspread.compiled.singular import svd
from linkspread.ground.checks import check_count, check_name, check_positive, naming
from linkspread.ground.errors import FewLinksError
from linkspread.links import LinkMatrix, Links
from linkspread.studies.baselines.inputs import correspondences, prepare, prepared_rows
from linkspread.studies.baselines.matching import Chosen, PairMatching, Side, unit_rows

Array = np.ndarray
# `left` and `right`, a column per component, and the strength of each.
Projections = tuple[Array, Array, Array]

# Directions with less than this share of a view's variance are rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Projection:
    """Project the rows of one view."""

    prepared: Any
    mean: Array
    weights: Array
    strengths: Array

    def project(self, rows: Any) -> Array:
        """Return the components of rows."""
        return (self.prepared.transform(rows) - self.mean) @ self.weights

    def unit_vectors(self, rows: Any) -> Array:
        """Return the components of rows at unit norm."""
        return unit_rows(self.project(rows))

    def weighted_units(self, rows: Any) -> Array:
        """Return unit vectors times the roots of the correlations."""
        return self.unit_vectors(rows) * np.sqrt(self.strengths)


@dataclass(kw_only=True, eq=False, repr=False)
class ProjectionMatching(PairMatching):
    """A baseline that projects both views so that corresponding items agree.

    Items correspond by must-links between single items, or, where there are none, by
    class [Rasiwasia2014]. Cannot-links are not used.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("scaling", "max_features")
    # Plain canonical correlation analysis, unless a subclass has these as parameters.
    method = "cca"
    power = 0.0

    n_components: int | None = None
    reg: float = 0.1
    scaling: Any = "standard"
    max_features: Any = 256
    random_state: int = 0

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        method = check_name(self.method, PROJECTIONS, name="method")
        check_positive(self.reg, name="reg", remedy="The default is 0.1.", zero=True)
        check_positive(self.power, name="power", remedy="0 weights none.", zero=True)
        n_kept = self.n_components
        if n_kept is not None:
            check_count(n_kept, name="n_components", remedy="None keeps all.")
        key = a, b, self.random_state, repr(chosen)

        def measure() -> tuple[list[Any], Covariances]:
            fitted = [
                self._prepare(tables[view], view, **chosen[view]) for view in (a, b)
            ]
            X, Y = map(prepared_rows, (tables[a], tables[b]), fitted)
            return fitted, linked_covariances(X, Y, links, a, b)

        prepared, cov = self._once(("covariances", *key), measure)
        # Partial least squares find one component after the other.
        n_found = n_kept if method == "pls" else None
        left, right, strengths = self._once(
            ("projections", *key, method, self.reg, n_found),
            lambda: PROJECTIONS[method](cov, n_found, reg=self.reg),
        )
        strengths = strengths[:n_kept]
        # Half of the exponent on each side gives the full weight in the inner product.
        weights = (strengths / strengths[0]) ** (self.power / 2)
        left, right = left[:, :n_kept] * weights, right[:, :n_kept] * weights
        x = Projection(prepared[0], cov.mean_x, left, strengths)
        y = Projection(prepared[1], cov.mean_y, right, strengths)
        return (
            Side(self._embedding(tables[a], x, links, a), tables[a]),
            Side(self._embedding(tables[b], y, links, b), tables[b]),
        )

    def _prepare(self, X: Any, view: str, *, scaling: str, max_features: int) -> Any:
        """Fit the preparation of a view, of few dense features."""
        with naming(view):
            limit = check_count(
                max_features, name="max_features", remedy="The default is 256."
            )
            seed = self.random_state
            return prepare(X, scaling=scaling, n_components=limit, random_state=seed)

    @abstractmethod
    def _embedding(
        self, X: Any, projection: Projection, links: Links, view: str
    ) -> Any:
        """Return what makes vectors of the rows of a view."""


@dataclass(kw_only=True, eq=False, repr=False)
class CorrelationMatching(ProjectionMatching):
    """Match by the cosine of projections: CA alone in [Rasiwasia2010]."""

    method: str = "cca"
    power: float = 0.0

    def _embedding(
        self, X: Any, projection: Projection, links: Links, view: str
    ) -> Any:
        return projection.unit_vectors


@dataclass(kw_only=True, eq=False, repr=False)
class CanonicalSimilarity(ProjectionMatching):
    """Match by canonical similarity analysis: CSA of [Li2025].

    ``sum_i rho_i u_i v_i``, u and v the unit vectors of the leading canonical
    components and rho their correlations. `CorrelationMatching(power=1)` weights first
    and normalises then.
    """

    scaling: Any = "none"

    def _embedding(
        self, X: Any, projection: Projection, links: Links, view: str
    ) -> Any:
        return projection.weighted_units


@dataclass(frozen=True, eq=False)
class Covariances:
    """Means and covariances of two views over corresponding pairs."""

    mean_x: Array
    mean_y: Array
    xx: Array
    xy: Array
    yy: Array


def linked_covariances(X: Array, Y: Array, links: Links, a: str, b: str) -> Covariances:
    """Return the covariances of two views over must-links; refuse zero ones."""
    cov = covariances(X, correspondences(links, a, b), Y)
    if not np.any(cov.xy):
        raise FewLinksError(
            f"views {a!r} and {b!r} must vary together over their must-links, got "
            f"no covariance for {links!r}. Add must-links between other items."
        )
    return cov


def covariances(X: Array, Z: LinkMatrix, Y: Array) -> Covariances:
    """Return the covariances of two views, each pair counted by its weight."""
    rows, columns = Z @ np.ones(Z.shape[1]), Z.T @ np.ones(Z.shape[0])
    total = rows.sum()
    mean_x, mean_y = rows @ X / total, columns @ Y / total
    X, Y = X - mean_x, Y - mean_y
    return Covariances(
        mean_x=mean_x,
        mean_y=mean_y,
        xx=X.T @ (rows[:, None] * X) / total,
        xy=X.T @ (Z @ Y) / total,
        yy=Y.T @ (columns[:, None] * Y) / total,
    )


def canonical_projections(
    cov: Covariances, n_components: int | None, *, reg: float
) -> Projections:
    """Maximise the correlation of the projections (CCA) [Hotelling1936].

    ``left.T (C_xx + reg v_x I) left = I``, v_x the mean variance of a feature, and the
    same for the right; the closed form is an SVD between whitened views.
    """
    white_x, white_y = _whitening(cov.xx, reg), _whitening(cov.yy, reg)
    return _leading(svd(white_x.T @ cov.xy @ white_y), n_components, white_x, white_y)


def factor_projections(
    cov: Covariances, n_components: int | None, *, reg: float
) -> Projections:
    """Minimise the distance of orthonormal projections (CFA) [Li2003].

    ``min ||X left - Y right||_F`` over matrices with orthonormal columns: the singular
    vectors of the cross-covariance.
    """
    return _leading(svd(cov.xy), n_components)


def least_squares_projections(
    cov: Covariances, n_components: int | None, *, reg: float
) -> Projections:
    """Deflate the covariance one component at a time (canonical PLS) [Wegelin2000].

    The symmetric form, as `PLSCanonical` of scikit-learn: each view is deflated by its
    own scores. Regression PLS is not symmetric, but either view may be the query here.
    """
    xx, xy, yy = cov.xx, cov.xy, cov.yy
    # Products of all deflations so far, which map to the original features.
    turn_x, turn_y = np.eye(len(xx)), np.eye(len(yy))
    found: list[tuple[Array, Array, float]] = []
    smallest = ROUNDING * np.linalg.norm(xy)
    while len(found) < min(n_components or len(xy), *xy.shape):
        U, singular, Vt = svd(xy)
        if singular[0] <= smallest:
            break
        found.append((turn_x @ U[:, 0], turn_y @ Vt[0], singular[0]))
        step_x, step_y = _deflation(xx, U[:, 0]), _deflation(yy, Vt[0])
        turn_x, turn_y = turn_x @ step_x, turn_y @ step_y
        xx, yy = step_x.T @ xx @ step_x, step_y.T @ yy @ step_y
        xy = step_x.T @ xy @ step_y
    left, right, strengths = zip(*found, strict=True)
    return np.column_stack(left), np.column_stack(right), np.array(strengths)


PROJECTIONS: dict[str, Callable[..., Projections]] = {
    "cca": canonical_projections,
    "cfa": factor_projections,
    "pls": least_squares_projections,
}


def _leading(
    decomposed: Projections, n_components: int | None, *whitenings: Array
) -> Any:
    """Return the leading singular vectors, mapped to the features before whitening."""
    U, strengths, Vt = decomposed
    # Directions beyond the rank, such as that of c classes, are rounding errors.
    rank = max(1, int(np.sum(strengths > ROUNDING * strengths[0])))
    kept = slice(0, min(n_components or rank, rank))
    left, right = U[:, kept], Vt[kept].T
    if whitenings:
        left, right = whitenings[0] @ left, whitenings[1] @ right
    return left, right, strengths[kept]


def _whitening(covariance: Array, reg: float) -> Array:
    """Return the matrix that whitens a view."""
    ridge = reg * np.trace(covariance) / len(covariance)
    values, vectors = np.linalg.eigh(covariance)
    kept = values + ridge > ROUNDING * max(values[-1], 0)
    return vectors[:, kept] / np.sqrt(values[kept] + ridge)


def _deflation(covariance: Array, weights: Array) -> Array:
    """Return the matrix that removes what the score ``X @ weights`` explains."""
    loadings = covariance @ weights / (weights @ covariance @ weights)
    return np.eye(len(weights)) - np.outer(weights, loadings)
