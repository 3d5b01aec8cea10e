"""Cores: small matrices that judgements teach, in fixed features of both views.

- `fit_pairs`: ridge regression of judged pairs on products of features,
  ``M = argmin sum_p w_p (z_p - phi(x_p)' M phi(y_p))^2 + ridge |M|^2``.
- `Decomposition`: ridge regressions on known items, for every ridge at once. How much
  an item is like each of them is its *description*.
- `fit_labels`: ridge regression of labels on features, its ridge and the weights of the
  kernels chosen by labels that are left out one at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from linkspread.learning.maps import ViewMap

__all__ = ["Decomposition", "LabelModel", "decompose", "fit_labels", "fit_pairs"]

Array = np.ndarray

# Directions of the known items below this share of the largest are rounding.
ROUNDING, SMALL = 1e-10, 1000
MAX_ITER = 500
# Ridges of labels, in units of the mean squared length of the features.
LABEL_RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
# Where no class has two labels nothing can be left out: this ridge, equal kernels.
RIDGE_OF_SINGLES = 0.3
# Logits that differ by about so much are neither flat nor sharp.
SHARPNESS = 1.0


@dataclass(frozen=True)
class Decomposition:
    """The centred features of known items, ``A - mean = U diag(s) V'``."""

    mean: Array
    U: Array
    s: Array
    V: Array

    def directions(self, ridge: float) -> Array:
        """Return what turns centred features into descriptions, of shape (d, r)."""
        return self.V * (self.s / (self.s**2 + ridge))

    def describe(self, features: Array, ridge: float) -> Array:
        """Return ridge regressions on the known items, in the basis U."""
        return (features - self.mean) @ self.directions(ridge)


def decompose(A: Array) -> Decomposition:
    """Decompose the features of known items once, for every ridge."""
    # Thousands of items are decomposed in single precision, which a ridge forgives.
    A = A.astype(np.float64 if min(A.shape) <= SMALL else np.float32)
    mean = A.mean(axis=0)
    centred = A - mean
    # By the smaller of the two Gram matrices: never more than n or d cubed.
    is_wide = len(A) <= A.shape[1]
    values, own = eigh(centred @ centred.T if is_wide else centred.T @ centred)
    least = max(ROUNDING, 10 * np.finfo(A.dtype).eps ** 2)
    kept = values > max(least * values[-1], 1e-30)
    s, own = np.sqrt(values[kept]), own[:, kept]
    if is_wide:
        return Decomposition(mean, own, s, (centred.T @ own) / s)
    return Decomposition(mean, (centred @ own) / s, s, own)


def fit_pairs(
    left: Sequence[Array],
    right: Sequence[Array],
    pairs: tuple[Array, Array, Array, Array],
    ridge: float,
    *,
    tol: float = 1e-9,
) -> tuple[list[Array], Array]:
    """Return the core of each kernel, and the coefficient of each judged pair.

    Pairs are alike by the mean over kernels of how alike their items are in both views.

    Parameters
    ----------
    left, right : sequence of ndarray of shape (n_items, d)
        Features of each kernel in both views.
    pairs : tuple of (rows, cols, targets, weights)
    ridge : float
    tol : float, default=1e-9
        Relative residual of the solution.

    Returns
    -------
    cores : list of ndarray of shape (d_left, d_right)
    coefficients : ndarray of shape (n_pairs,)
        ``(K + ridge / w) c = z``, with K the likeness of pairs.
    """
    i, j, targets, weights = pairs
    rows, own_i = np.unique(i, return_inverse=True)
    cols, own_j = np.unique(j, return_inverse=True)
    root = len(left) ** -0.25
    parts = [
        _Factor.of(root * A[rows].astype(np.float64), root * B[cols].astype(np.float64))
        for A, B in zip(left, right, strict=True)
    ]

    def matrix(c: Array) -> sp.csr_array:
        return sp.csr_array((c, (own_i, own_j)), shape=(len(rows), len(cols)))

    def product(c: Array) -> Array:
        C = matrix(c)
        fitted = sum(part.product(C, own_i, own_j) for part in parts)
        return fitted + ridge / weights * c

    diagonal = sum(part.diagonal(own_i, own_j) for part in parts) + ridge / weights
    c = _conjugate_gradients(product, targets, diagonal, tol)
    C = matrix(c)
    return [root**2 * (part.A.T @ (C @ part.B)) for part in parts], c


@dataclass(frozen=True)
class _Factor:
    """One kernel among the judged items of both views."""

    A: Array
    B: Array
    # Whole kernels, where the judged items are fewer than the features.
    whole: tuple[Array, Array] | None

    @classmethod
    def of(cls, A: Array, B: Array) -> "_Factor":
        is_small = len(A) <= A.shape[1] and len(B) <= B.shape[1]
        return cls(A, B, (A @ A.T, B @ B.T) if is_small else None)

    def product(self, C: sp.csr_array, i: Array, j: Array) -> Array:
        """Return the entries of ``K_x C K_y`` at the judged pairs."""
        if self.whole is not None:
            return (self.whole[0] @ (C @ self.whole[1]))[i, j]
        turned = self.A @ (self.A.T @ (C @ self.B))
        return np.einsum("nd,nd->n", turned[i], self.B[j])

    def diagonal(self, i: Array, j: Array) -> Array:
        """Return how alike each judged pair is to itself."""
        own = (np.einsum("nd,nd->n", M, M) for M in (self.A, self.B))
        return next(own)[i] * next(own)[j]


def _conjugate_gradients(
    product: Any, targets: Array, diagonal: Array, tol: float
) -> Array:
    """Solve a positive definite system, preconditioned by its diagonal."""
    c, residual = np.zeros_like(targets), targets.copy()
    size = np.linalg.norm(targets) or 1.0
    scaled = residual / diagonal
    step, energy = scaled.copy(), residual @ scaled
    for _ in range(MAX_ITER):
        if np.linalg.norm(residual) <= tol * size:
            break
        moved = product(step)
        length = energy / (step @ moved)
        c += length * step
        residual -= length * moved
        scaled = residual / diagonal
        energy, before = residual @ scaled, energy
        step = scaled + energy / before * step
    return c


@dataclass(frozen=True, eq=False)
class LabelModel:
    """Probabilities of the classes, ``softmax(values W + b)``.

    Parameters
    ----------
    W : ndarray of shape (d, n_classes)
    b : ndarray of shape (n_classes,)
    shares : ndarray of shape (n_classes,)
        How frequent classes are among the labels.
    weights : dict from str to float
        Of each kernel.
    quality : float
        Mean probability of labels that were left out; NaN where none could be.
    """

    W: Array
    b: Array
    shares: Array
    weights: dict[str, float]
    quality: float

    def probabilities(self, values: Array) -> Array:
        """Return the probabilities of the classes for features of items.

        Parameters
        ----------
        values : ndarray of shape (n_items, d)

        Returns
        -------
        probabilities : ndarray of float32 of shape (n_items, n_classes)
        """
        return softmax(values @ self.W + self.b, axis=1).astype(np.float32)


def fit_labels(map_: ViewMap, labels: Any) -> LabelModel:
    """Fit the labels of a view by each kernel, and add the fits.

    Every label is predicted without it, in closed form; ridges and weights are those
    that make the labels likeliest.

    Parameters
    ----------
    map_ : ViewMap
    labels : csr_array of shape (n_items, n_classes)
        Rows sum to 1, or to 0 for unknown.

    Returns
    -------
    model : LabelModel
    """
    known = np.flatnonzero(np.diff(labels.indptr))
    Y = labels[known].toarray()
    counts = (Y > 0).sum(axis=0)
    # What is left out must have others of its class to be found by.
    asked = (Y > 0) @ (counts > 1) > 0
    names = [name for name in ("linear", "gaussian", "graph") if map_.has(name)]
    fits = [_ridge_fits(map_.values[known, map_.columns(q)], Y, asked) for q in names]
    weights = np.ones(len(fits))
    quality = np.nan
    if asked.any():
        held_out = np.stack([fit.held_out[asked] for fit in fits])
        weights = _likeliest_weights(held_out, Y[asked])
        likely = softmax(np.tensordot(weights, held_out, 1), axis=1)
        quality = float(np.mean(np.sum(likely * Y[asked], axis=1)))
    W = np.zeros((map_.values.shape[1], Y.shape[1]))
    b = np.zeros(Y.shape[1])
    for name, fit, weight in zip(names, fits, weights, strict=True):
        W[map_.columns(name)] = weight * fit.W
        b += weight * fit.b
    if not asked.any():
        logits = map_.values @ W + b
        spread = float(np.std(logits - logits.mean(axis=1, keepdims=True))) or 1.0
        W, b = W * (SHARPNESS / spread), b * (SHARPNESS / spread)
    told = dict(zip(names, map(float, weights), strict=True))
    return LabelModel(W, b, Y.mean(axis=0), told, quality)


@dataclass(frozen=True)
class _RidgeFit:
    """Ridge regression of labels on one kernel, and its values left out."""

    W: Array
    b: Array
    held_out: Array


def _ridge_fits(
    A: Array, Y: Array, asked: Array, *, ridges: Sequence[float] = LABEL_RIDGES
) -> _RidgeFit:
    """Return the fit whose left-out labels are likeliest."""
    own = decompose(A)
    mean = Y.mean(axis=0)
    turned = own.U.T @ (Y - mean)
    best: tuple[float, _RidgeFit] | None = None
    for ridge in ridges if asked.any() else (RIDGE_OF_SINGLES,):
        shrunk = own.s**2 / (own.s**2 + ridge)
        H = own.U * shrunk
        leverage = np.einsum("ij,ij->i", H, own.U) + 1 / len(Y)
        fitted = H @ turned + mean
        held_out = Y - (Y - fitted) / (1 - np.minimum(leverage, 1 - 1e-6))[:, None]
        W = own.directions(ridge) @ turned
        fit = _RidgeFit(W, mean - own.mean @ W, held_out)
        surprise = 0.0
        if asked.any():
            surprise = _surprise(held_out[asked], Y[asked])
        if best is None or surprise < best[0]:
            best = surprise, fit
    assert best is not None
    return best[1]


def _surprise(values: Array, Y: Array) -> float:
    """Return the smallest mean surprise over all scales of the values."""

    def loss(t: Array) -> tuple[float, Array]:
        scale = np.exp(t[0])
        logits = scale * values
        missed = softmax(logits, axis=1) - Y
        value = -float(np.sum(Y * log_softmax(logits, axis=1)))
        return value / len(Y), np.array([np.sum(missed * logits) / len(Y)])

    start = np.log(5.0)
    found = minimize(loss, [start], jac=True, method="L-BFGS-B", bounds=[(-2, 6)])
    return float(found.fun)


def _likeliest_weights(held_out: Array, Y: Array) -> Array:
    """Return weights of fits that make the labels likeliest, drawn to equal ones.

    With the strength of one label for each fit.
    """
    n_fits = len(held_out)
    mean = held_out.mean(axis=0)

    def loss_of_scale(t: Array) -> float:
        return -float(np.sum(Y * log_softmax(np.exp(t[0]) * mean, axis=1)))

    scale = minimize(loss_of_scale, [np.log(5.0)], bounds=[(-2, 6)]).x[0]
    equal = float(np.exp(scale)) / n_fits

    def loss(w: Array) -> tuple[float, Array]:
        logits = np.tensordot(w, held_out, 1)
        missed = softmax(logits, axis=1) - Y
        away = w / equal - 1
        value = -float(np.sum(Y * log_softmax(logits, axis=1))) + 0.5 * away @ away
        slope = np.tensordot(held_out, missed, ((1, 2), (0, 1))) + away / equal
        return float(value), slope

    start = np.full(n_fits, equal)
    bounds: Sequence[tuple[float, None]] = [(0, None)] * n_fits
    return minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
