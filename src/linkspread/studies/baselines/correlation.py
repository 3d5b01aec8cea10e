"""Correlation analysis: project views so that corresponding items agree.

All methods use covariances only, so their cost does not depend on the number of pairs.
"""

import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from linkspread.compiled.singular import svd
from linkspread.ground.checks import check_count, check_name, check_positive
from linkspread.ground.errors import FewLinksError, LinkspreadError, require
from linkspread.links import LinkMatrix, Links
from linkspread.studies.baselines.correspondences import correspondences, sample_pairs
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.preparation import prepare_dense, prepared_rows
from linkspread.studies.baselines.side import Side, unit_rows

Array = np.ndarray
Projections = tuple[Array, Array, Array]

# Directions with less than this share of a view's variance are rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Covariances:
    """Means and covariances of two views over corresponding pairs."""

    mean_x: Array
    mean_y: Array
    xx: Array
    xy: Array
    yy: Array


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
        """Return the components of rows, scaled to unit norm."""
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

    n_components: int | None = None
    reg: float = 0.1
    scaling: Any = "standard"
    max_features: Any = 256
    random_state: int = 0

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        left, right = learn_projections(self, tables, links, chosen, a, b)
        return (
            self._projected(tables[a], left, links, a),
            self._projected(tables[b], right, links, b),
        )

    @abstractmethod
    def _projected(
        self, X: Any, projection: Projection, links: Links, view: str
    ) -> Side:
        """Return the side of a view, given its projection."""


@dataclass(kw_only=True, eq=False, repr=False)
class CorrelationMatching(ProjectionMatching):
    """Match by the cosine of projections: CA alone in [Rasiwasia2010]."""

    method: str = "cca"
    power: float = 0.0
    hubs: int | None = None

    def _projected(
        self, X: Any, projection: Projection, links: Links, view: str
    ) -> Side:
        return Side.of(X, projection.unit_vectors)


@dataclass(kw_only=True, eq=False, repr=False)
class CanonicalSimilarity(ProjectionMatching):
    """Match by canonical similarity analysis: CSA of [Li2025].

    ``sum_i rho_i u_i v_i``, u and v the unit vectors of the leading canonical
    components and rho their correlations. `CorrelationMatching(power=1)` weights first
    and normalises then.
    """

    scaling: Any = "none"
    hubs: int | None = None

    def _projected(
        self, X: Any, projection: Projection, links: Links, view: str
    ) -> Side:
        return Side.of(X, projection.weighted_units)


@dataclass(kw_only=True, eq=False, repr=False)
class ZooMatching(PairMatching):
    """Match by any model that is fitted to a list of views with matched rows.

    Such as those of cca-zoo. The pairs of `CorrelationMatching` are sampled, as such
    models take no weights; vectors are compared by their cosine.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("scaling", "max_features")

    model: Any = None
    max_pairs: int = 20_000
    scaling: Any = "standard"
    max_features: Any = 256
    random_state: int = 0

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        model = _choose_zoo_model(self.model)
        left, right = (
            prepare_dense(tables[v], v, random_state=self.random_state, **chosen[v])
            for v in (a, b)
        )
        X, Y = left.transform(tables[a]), right.transform(tables[b])
        remedy = "The default is 20000."
        n_pairs = check_count(self.max_pairs, name="max_pairs", remedy=remedy)
        pairs = correspondences(links, a, b)
        rows, columns = sample_pairs(pairs, n_pairs, random_state=self.random_state)
        model.fit([X[rows], Y[columns]])
        return (
            Side.of(tables[a], _OneView(model, left, 0, Y[columns[:1]])),
            Side.of(tables[b], _OneView(model, right, 1, X[rows[:1]])),
        )


class _OneView:
    """Unit vectors of one view from a model that transforms two views at once."""

    def __init__(
        self, model: Any, prepared: Pipeline, place: int, other: Array
    ) -> None:
        self.model, self.prepared = model, prepared
        self.place, self.other = place, other

    def __call__(self, rows: Any) -> Array:
        own = self.prepared.transform(rows)
        both = [own, np.repeat(self.other, len(own), axis=0)]
        views = both if self.place == 0 else both[::-1]
        return unit_rows(np.asarray(self.model.transform(views)[self.place]))


def _choose_zoo_model(model: Any) -> Any:
    """Return a fresh copy of a model, or the one of cca-zoo."""
    if model is None:
        zoo = require("cca_zoo.linear", purpose="ZooMatching")
        return zoo.CCA()
    if not (hasattr(model, "fit") and hasattr(model, "transform")):
        raise LinkspreadError(
            "`model` must have `fit` and `transform` for a list of views, got "
            f"{type(model).__name__}. Give an estimator such as `cca_zoo.linear.CCA()`."
        )
    return clone(model, safe=False)


def learn_projections(
    model: Any, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
) -> tuple[Projection, Projection]:
    """Learn the projections of two views from corresponding items."""
    # Without a choice it is plain canonical correlation analysis.
    method = check_name(getattr(model, "method", "cca"), PROJECTIONS, name="method")
    power = getattr(model, "power", 0.0)
    check_positive(model.reg, name="reg", remedy="The default is 0.1.", zero=True)
    check_positive(power, name="power", remedy="0 weights none.", zero=True)
    n_components = sys.maxsize
    if model.n_components is not None:
        n_components = check_count(
            model.n_components, name="n_components", remedy="None keeps all."
        )
    key = a, b, model.random_state, repr(chosen)

    def learn_from() -> tuple[list[Any], Covariances]:
        prepared = [
            prepare_dense(tables[v], v, random_state=model.random_state, **chosen[v])
            for v in (a, b)
        ]
        X, Y = map(prepared_rows, (tables[a], tables[b]), prepared)
        return prepared, linked_covariances(X, Y, links, a, b)

    prepared, cov = model._once(("covariances", *key), learn_from)
    project = partial(PROJECTIONS[method], cov, reg=model.reg)
    if method == "pls":  # one component after the other
        left, right, strengths = project(n_components)
    else:
        made = model._once(
            ("projections", *key, method, model.reg), lambda: project(sys.maxsize)
        )
        left, right, strengths = (own[..., :n_components] for own in made)
    # Half of the exponent on each side gives the full weight in the inner product.
    weights = (strengths / strengths[0]) ** (power / 2)
    return (
        Projection(prepared[0], cov.mean_x, left * weights, strengths),
        Projection(prepared[1], cov.mean_y, right * weights, strengths),
    )


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
    cov: Covariances, n_components: int, *, reg: float
) -> Projections:
    """Maximise the correlation of the projections (CCA) [Hotelling1936].

    ``left.T (C_xx + reg v_x I) left = I``, v_x the mean variance of a feature, and the
    same for the right; the closed form is an SVD between whitened views.
    """
    white_x, white_y = _whitening(cov.xx, reg), _whitening(cov.yy, reg)
    return _leading(svd(white_x.T @ cov.xy @ white_y), n_components, white_x, white_y)


def factor_projections(
    cov: Covariances, n_components: int, *, reg: float
) -> Projections:
    """Minimise the distance of orthonormal projections (CFA) [Li2003].

    ``min ||X left - Y right||_F`` over matrices with orthonormal columns: the singular
    vectors of the cross-covariance.
    """
    return _leading(svd(cov.xy), n_components)


def least_squares_projections(
    cov: Covariances, n_components: int, *, reg: float
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
    while len(found) < min(n_components, *xy.shape):
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


# Each returns `left` and `right`, a column per component, and the strength of each.
PROJECTIONS: dict[str, Callable[..., Projections]] = {
    "cca": canonical_projections,
    "cfa": factor_projections,
    "pls": least_squares_projections,
}


def _leading(decomposed: Projections, n_components: int, *whitenings: Array) -> Any:
    """Return the leading singular vectors, mapped to the features before whitening."""
    U, strengths, Vt = decomposed
    # Directions beyond the rank, such as that of c classes, are rounding errors.
    rank = max(1, int(np.sum(strengths > ROUNDING * strengths[0])))
    kept = slice(0, min(n_components, rank))
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
