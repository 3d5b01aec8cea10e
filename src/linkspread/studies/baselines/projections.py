"""Correlation analysis: projections of two views, from their covariances alone.

Every method returns ``left`` and ``right``, one column per component, and the strength
of each component. Working on covariances, they cost the same for any number of pairs.
"""

from collections.abc import Callable

import numpy as np

from linkspread.compiled.singular import svd
from linkspread.studies.baselines.correspondences import Covariances

Array = np.ndarray
Projections = tuple[Array, Array, Array]

# Directions with less than this share of a view's variance are rounding.
ROUNDING = 1e-12


def canonical_projections(
    cov: Covariances, n_components: int, *, reg: float
) -> Projections:
    """Maximise the correlation of the projections (CCA) [Hotelling1936].

    ``left.T (C_xx + reg v_x I) left = I``, v_x the mean variance of a feature, and the
    same for the right; the closed form is an SVD between whitened views.
    """
    white_x, white_y = _whitening(cov.xx, reg), _whitening(cov.yy, reg)
    U, strengths, Vt = svd(white_x.T @ cov.xy @ white_y)
    # Beyond the rank, such as that of c classes, directions are rounding.
    kept = slice(0, min(n_components, _numerical_rank(strengths)))
    return white_x @ U[:, kept], white_y @ Vt[kept].T, strengths[kept]


def factor_projections(
    cov: Covariances, n_components: int, *, reg: float
) -> Projections:
    """Minimise the distance of orthonormal projections (CFA) [Li2003].

    ``min ||X left - Y right||_F`` over matrices with orthonormal columns: the singular
    vectors of the cross-covariance.
    """
    U, strengths, Vt = svd(cov.xy)
    kept = slice(0, min(n_components, _numerical_rank(strengths)))
    return U[:, kept], Vt[kept].T, strengths[kept]


def least_squares_projections(
    cov: Covariances, n_components: int, *, reg: float
) -> Projections:
    """Take covariance away one component at a time (canonical PLS) [Wegelin2000].

    The symmetric form, scikit-learn's `PLSCanonical`: both views lose what their own
    scores explain. Regression PLS would make one view the target of the other, and
    either may be the query here.
    """
    xx, xy, yy = cov.xx, cov.xy, cov.yy
    # Products of all deflations so far, which lead back to the views as given.
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


PROJECTIONS: dict[str, Callable[..., Projections]] = {
    "cca": canonical_projections,
    "cfa": factor_projections,
    "pls": least_squares_projections,
}


def _whitening(covariance: Array, reg: float) -> Array:
    """Return the matrix that gives a view's directions variance 1."""
    ridge = reg * np.trace(covariance) / len(covariance)
    values, vectors = np.linalg.eigh(covariance)
    kept = values + ridge > ROUNDING * max(values[-1], 0)
    return vectors[:, kept] / np.sqrt(values[kept] + ridge)


def _numerical_rank(singular: Array) -> int:
    """Return the number of singular values that are not rounding."""
    return max(1, int(np.sum(singular > ROUNDING * singular[0])))


def _deflation(covariance: Array, weights: Array) -> Array:
    """Return the matrix that removes what the score ``X @ weights`` explains."""
    loadings = covariance @ weights / (weights @ covariance @ weights)
    return np.eye(len(weights)) - np.outer(weights, loadings)
