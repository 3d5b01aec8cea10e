"""Cores: what judgements teach, in fixed features of both views.

Every fit ends in two tables of vectors, left and right, whose inner products are the
scores of one term. Three kinds of term exist.

- `fit_grid`: matched pairs. An item is described by its ridge regression on the known
  pairs, ``u(x) = (K + ridge I)^-1 k(x)``: how much it is like each of them. The score
  is the cosine of the two descriptions.
- `fit_pairs`: judged pairs. Ridge regression of the judgements on products of
  features, ``M = argmin sum_p w_p (z_p - phi(x_p)' M phi(y_p))^2 + ridge |M|^2``.
- `fit_displacement`: matched pairs where the views share a space. The differences of
  the partners are regressed on the features, and items are moved by what is expected
  of them before their cosine is taken. A large ridge moves all by the mean difference.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from linkspread.learning.maps import unit_rows

__all__ = [
    "Decomposition",
    "Term",
    "decompose",
    "fit_displacement",
    "fit_grid",
    "fit_pairs",
    "fit_prior",
]

Array = np.ndarray
Embed = Callable[[Any, Any], Any]

# Directions of the known items below this share of the largest are rounding.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Term:
    """One term of the scores: vectors of any items of both views.

    Attributes
    ----------
    left, right : callable
        Called with features and prior rows of items, return their vectors.
    """

    left: Embed
    right: Embed


@dataclass(frozen=True)
class Decomposition:
    """The centred features of known items, ``A - mean = U diag(s) V'``."""

    mean: Array
    U: Array
    s: Array
    V: Array

    def describe(self, features: Array, ridge: float) -> Array:
        """Return ridge regressions on the known items, in the basis U."""
        shrunk = self.s / (self.s**2 + ridge)
        return ((features - self.mean) @ self.V) * shrunk


def decompose(A: Array) -> Decomposition:
    """Decompose the features of known items once, for every ridge."""
    mean = A.mean(axis=0)
    # By the smaller of the two Gram matrices: never more than n or d cubed.
    centred = A - mean
    if len(A) <= A.shape[1]:
        values, U = np.linalg.eigh(centred @ centred.T)
        kept = values > ROUNDING * max(values[-1], 1e-300)
        s = np.sqrt(values[kept])
        U = U[:, kept]
        return Decomposition(mean, U, s, (centred.T @ U) / s)
    values, V = np.linalg.eigh(centred.T @ centred)
    kept = values > ROUNDING * max(values[-1], 1e-300)
    s = np.sqrt(values[kept])
    V = V[:, kept]
    return Decomposition(mean, (centred @ V) / s, s, V)


def fit_grid(left: Decomposition, right: Decomposition, ridge: float) -> Term:
    """Return the cosine of descriptions by the known pairs."""
    core = left.U.T @ right.U

    def describe_left(features: Array, prior: Any) -> Array:
        return unit_rows(left.describe(features, ridge)) @ core

    def describe_right(features: Array, prior: Any) -> Array:
        return unit_rows(right.describe(features, ridge))

    return Term(describe_left, describe_right)


def fit_pairs(A: Array, B: Array, z: Array, weights: Array, ridge: float) -> Term:
    """Return the ridge regression of judged pairs on products of features.

    `A` and `B` are the features of the items of each pair, `z` the verdicts.
    """
    K = (A @ A.T) * (B @ B.T)
    K[np.diag_indices_from(K)] += ridge / weights
    coefficients = cho_solve(cho_factor(K, lower=True), z)
    core = (A * coefficients[:, None]).T @ B
    return Term(
        lambda features, prior: features @ core, lambda features, prior: features
    )


def fit_prior() -> Term:
    """Return the plain cosine of rows in a shared space."""
    return Term(lambda features, prior: prior, lambda features, prior: prior)


def fit_displacement(
    left: Decomposition,
    right: Decomposition,
    prior: tuple[Any, Any],
    ridge: float,
) -> Term:
    """Return the cosine after items are moved by what is expected of them.

    ``(cos(x + d(x), y) + cos(x, y - d(y))) / 2``; `prior` has the unit rows of the
    known pairs in the shared space.
    """
    difference = _dense(prior[1] - prior[0])
    mean = difference.mean(axis=0)
    forward, backward = left.U.T @ difference, right.U.T @ difference
    half = np.sqrt(0.5)

    def move_left(features: Array, rows: Any) -> Array:
        rows = _dense(rows)
        moved = rows + mean + left.describe(features, ridge) @ forward
        return np.hstack([unit_rows(moved), rows]) * half

    def move_right(features: Array, rows: Any) -> Array:
        rows = _dense(rows)
        moved = rows - mean - right.describe(features, ridge) @ backward
        return np.hstack([rows, unit_rows(moved)]) * half

    return Term(move_left, move_right)


def _dense(X: Any) -> Array:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
