"""Cores: small matrices learnt from judgements, in fixed features of both views.

- `KnownItems`: ridge regressions on the features of known items.
- `Decomposition`: their decomposition, for every ridge at once.
- `fit_labels`: ridge regression of labels on features, with ridge and weights of the
  kernels chosen by leave-one-out.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from linkspread.compiled.backends import choose_device
from linkspread.learning.maps import BLOCKS, SHARES, ViewMap, tiles

Array = np.ndarray

# Relative size of directions that are rounding; sizes up to SMALL use float64.
ROUNDING, SMALL = 1e-10, 1000
# Up to this many links a term is fitted again with every judgement, which is cheap.
FEW = 100
# Smallest pivot of a safe rank-one change of an inverse.
MIN_PIVOT = 1e-9
# Ridges of labels, in units of the mean squared norm of the features.
LABEL_RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
RIDGE_OF_SINGLES = 0.3  # if no class has two labels to hold one out
# Multiplications of a regression from which a GPU is used.
MIN_WORK = 1e9
# Bounds of the scale of logits, and steps of its optimisation.
SCALES, STEPS = (np.exp(-2), np.exp(6)), 20
# Standard deviation of logits whose scale cannot be chosen.
SHARPNESS = 1.0


@dataclass(frozen=True)
class Decomposition:
    """The centred features of known items, ``A - mean = U diag(s) V'``."""

    mean: Array
    U: Array
    s: Array
    V: Array


def decompose(A: Array) -> Decomposition:
    """Decompose the features of known items once, for every ridge."""
    # Large matrices are decomposed in single precision, which suffices with a ridge.
    A = A.astype(np.float64 if min(A.shape) <= SMALL else np.float32)
    mean = A.mean(axis=0)
    centred = A - mean
    # By the smaller of the two Gram matrices, in min(n, d)^3.
    is_wide = len(A) <= A.shape[1]
    values, own = eigh(centred @ centred.T if is_wide else centred.T @ centred)
    least = max(ROUNDING, 10 * np.finfo(A.dtype).eps ** 2)
    kept = values > max(least * values[-1], 1e-30)
    s, own = np.sqrt(values[kept]), own[:, kept]
    if is_wide:
        return Decomposition(mean, own, s, (centred.T @ own) / s)
    return Decomposition(mean, (centred @ own) / s, s, own)


@dataclass(frozen=True, eq=False)
class KnownItems:
    """Ridge regression on the centred features A of known items.

    ``(A'A + ridge I)^-1`` is diagonal in a basis of their directions, or the full
    matrix, changed by rank one. Targets Y are stored as A'Y and their mean.
    """

    n_items: int
    mean: Array
    ridge: float
    inverse: Array
    basis: Array | None = None
    products: Array | None = None
    mean_taught: Array | float = 0.0

    @classmethod
    def of(cls, A: Array, ridge: float) -> "KnownItems":
        """Return the full inverse for some features."""
        A = A.astype(np.float64)
        mean = A.mean(axis=0)
        A -= mean
        G = A.T @ A
        G[np.diag_indices_from(G)] += ridge
        inverse = dpotri(cholesky(G, lower=True, overwrite_a=True), lower=1)[0]
        whole = np.tril(inverse) + np.tril(inverse, -1).T
        return cls(len(A), mean, ridge, np.asfortranarray(whole))

    @classmethod
    def in_basis(cls, own: Decomposition, ridge: float) -> "KnownItems":
        """Return the inverse in the directions of a decomposition."""
        return cls(len(own.U), own.mean, ridge, 1 / (own.s**2 + ridge), own.V)

    def fit_targets(
        self, A: Array, Y: Array, mean: Array | float = 0.0
    ) -> "KnownItems":
        """Return the regression of targets Y, which were centred by `mean`."""
        return replace(self, products=self.centred(A).T @ Y, mean_taught=mean)

    def centred(self, values: Array) -> Array:
        """Return features minus the mean of the known items, in the basis."""
        away = values - self.mean
        return away if self.basis is None else away @ self.basis

    def solve(self, away: Array) -> Array:
        """Return centred features times the inverse."""
        return away @ self.inverse if self.basis is None else away * self.inverse

    def whole(self, coefficients: Array) -> Array:
        """Return coefficients over all features."""
        return coefficients if self.basis is None else coefficients @ self.basis.T

    def changed(self, sign: int, x: Array, y: Any = 0.0) -> "KnownItems | None":
        """Return the regression with an item added or removed, or None if not safe."""
        n_items = self.n_items + sign
        if self.basis is not None or n_items <= FEW:
            return None
        away, missed = x - self.mean, y - self.mean_taught
        step = sign * self.n_items / n_items
        u = self.inverse @ away
        pivot = 1 + step * float(away @ u)
        if not pivot > MIN_PIVOT:
            return None
        products = self.products
        if products is not None:
            products = _plus_outer(products, step, away, missed)
        return replace(
            self,
            n_items=n_items,
            mean=self.mean + sign * away / n_items,
            inverse=_plus_outer(self.inverse, -step / pivot, u, u),
            products=products,
            mean_taught=self.mean_taught + sign * missed / n_items,
        )


def _plus_outer(M: Array, factor: float, x: Array, y: Array) -> Array:
    """Return ``M + factor x y'`` as a new matrix."""
    return dger(factor, x, y, a=np.array(M, order="F"), overwrite_a=1)


@dataclass(frozen=True, eq=False)
class LabelModel:
    """Probabilities of the classes, ``softmax(values W + b)``."""

    W: Array  # (d, n_classes)
    b: Array
    shares: Array  # frequencies of the classes
    weights: dict[str, float]  # of each kernel
    quality: float  # mean held-out probability of labels, or NaN

    def probabilities(self, values: Array) -> Array:
        """Return the probabilities of the classes for features of items."""
        W, b = self.W.astype(np.float32), self.b.astype(np.float32)
        found = np.empty((len(values), len(b)), dtype=np.float32)
        for some in tiles(len(values)):
            found[some] = softmax(values[some] @ W + b, axis=1)
        return found


def fit_labels(map_: ViewMap, labels: Any) -> LabelModel:
    """Fit labels, (n_items, n_classes), by each kernel, and add the fits.

    Ridges and weights maximise the leave-one-out likelihood, which has a closed form.
    """
    known = np.flatnonzero(np.diff(labels.indptr))
    Y = labels[known].toarray()
    counts = (Y > 0).sum(axis=0)
    # Only labels with another of the same class can be held out.
    asked = (Y > 0) @ (counts > 1) > 0
    names = [name for name in BLOCKS if map_.has(name)]
    # The first guess of the ridge uses a sample of the labels.
    some = np.random.default_rng(0).permutation(len(known))[:SMALL]
    fits = []
    for name in names:
        A = map_.values[known, map_.columns(name)]
        ridge = _best_ridge(A[some], Y[some], asked[some])
        is_all = len(some) == len(known)
        fits.append(
            _ridge_fit(A, Y, ridge) if is_all else _refine_ridge(A, Y, ridge, asked)
        )
    shares = np.array([SHARES[name] for name in names])
    shares /= shares.sum()
    weights = shares * len(fits)
    quality = np.nan
    if asked.any():
        held_out = np.stack([fit.held_out[asked] for fit in fits])
        weights = _likeliest_weights(held_out, Y[asked], shares)
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
    by_kernel = dict(zip(names, map(float, weights), strict=True))
    return LabelModel(W, b, Y.mean(axis=0), by_kernel, quality)


@dataclass(frozen=True)
class _RidgeFit:
    """Ridge regression of labels on one kernel, and its held-out values."""

    W: Array
    b: Array
    held_out: Array


def _best_ridge(A: Array, Y: Array, asked: Array) -> float:
    """Return the ridge with the smallest leave-one-out cross-entropy."""
    if not asked.any():
        return RIDGE_OF_SINGLES
    own = decompose(A)
    mean = Y.mean(axis=0)
    turned = own.U.T @ (Y - mean)
    losses = {}
    for ridge in LABEL_RIDGES:
        H = own.U * (own.s**2 / (own.s**2 + ridge))
        leverage = np.einsum("ij,ij->i", H, own.U)
        held_out = _held_out_values(Y, H @ turned + mean, leverage)
        losses[ridge] = _cross_entropy(held_out[asked], Y[asked])
    return min(LABEL_RIDGES, key=lambda ridge: losses[ridge])


def _refine_ridge(A: Array, Y: Array, ridge: float, asked: Array) -> _RidgeFit:
    """Return the best fit to all labels, by a local search from a first ridge."""

    def tried(ridge: float) -> tuple[float, _RidgeFit]:
        fit = _ridge_fit(A, Y, ridge)
        return _cross_entropy(fit.held_out[asked], Y[asked]), fit

    start, best = ridge, tried(ridge)
    # More labels need a smaller ridge, so larger ones are tried last.
    for step in (1 / 3, 3.0):
        while LABEL_RIDGES[0] / 10 < ridge * step < LABEL_RIDGES[-1] * 10:
            other = tried(ridge * step)
            if other[0] >= best[0]:
                break
            best, ridge = other, ridge * step
        if ridge != start:
            break
    return best[1]


def _ridge_fit(A: Array, Y: Array, ridge: float) -> _RidgeFit:
    """Return the regression of labels on features, with its held-out values."""
    center, mean = A.mean(axis=0), Y.mean(axis=0)
    H = (A - center).astype(np.float64 if A.shape[1] <= SMALL else np.float32)
    work = float(H.size) * H.shape[1]
    device = choose_device("auto", work=work, min_work=MIN_WORK)
    if device is None:
        W, fitted, leverage = _ridge_regression(H, Y - mean, ridge)
    else:
        from linkspread.compiled.gpu.features import ridge_regression

        W, fitted, leverage = ridge_regression(device, H, Y - mean, ridge)
    held_out = _held_out_values(Y, fitted + mean, leverage)
    return _RidgeFit(W, mean - center @ W, held_out)


def _ridge_regression(H: Array, Y: Array, ridge: float) -> tuple[Array, Array, Array]:
    """Return coefficients, fitted values and leverages."""
    G = H.T @ H
    G[np.diag_indices_from(G)] += ridge
    factor = cholesky(G, lower=True)
    half = solve_triangular(factor, H.T, lower=True)
    W = cho_solve((factor, True), H.T @ Y)
    return W, H @ W, np.einsum("ij,ij->j", half, half)


def _held_out_values(Y: Array, fitted: Array, leverage: Array) -> Array:
    """Return the leave-one-out predictions, from the fit to all items."""
    own = np.minimum(leverage + 1 / len(Y), 1 - 1e-6)
    return Y - (Y - fitted) / (1 - own)[:, None]


def _cross_entropy(values: Array, Y: Array) -> float:
    """Return the smallest mean cross-entropy over all scales; rows of Y sum to 1."""
    # Convex in the scale: Newton steps, of at most a factor of 4.
    away = values - values.max(axis=1, keepdims=True)
    linear, scale = float(np.sum(Y * away)), 5.0
    for _ in range(STEPS):
        likely = np.exp(scale * away)
        total = likely.sum(axis=1)
        mean = np.einsum("ij,ij->i", likely, away) / total
        square = np.einsum("ij,ij,ij->i", likely, away, away) / total
        slope, curvature = mean.sum() - linear, np.sum(square - mean**2)
        before = scale
        scale -= slope / max(float(curvature), 1e-300)
        scale = float(np.clip(scale, before / 4, before * 4).clip(*SCALES))
        if abs(scale - before) <= 1e-4 * before:
            break
    total = np.exp(scale * away).sum(axis=1)
    return float(np.log(total).sum() - scale * linear) / len(Y)


def _likeliest_weights(held_out: Array, Y: Array, shares: Array) -> Array:
    """Return the likeliest weights of fits, regularised towards their shares."""
    mean = np.tensordot(shares, held_out, 1)

    def loss_of_scale(t: Array) -> float:
        return -float(np.sum(Y * log_softmax(np.exp(t[0]) * mean, axis=1)))

    scale = minimize(loss_of_scale, [np.log(5.0)], bounds=[(-2, 6)]).x[0]
    usual = float(np.exp(scale)) * shares

    def loss(w: Array) -> tuple[float, Array]:
        logits = np.tensordot(w, held_out, 1)
        missed = softmax(logits, axis=1) - Y
        away = w / usual - 1
        value = -float(np.sum(Y * log_softmax(logits, axis=1))) + 0.5 * away @ away
        slope = np.tensordot(held_out, missed, ((1, 2), (0, 1))) + away / usual
        return float(value), slope

    return minimize(loss, usual, jac=True, bounds=[(0, None)] * len(shares)).x
