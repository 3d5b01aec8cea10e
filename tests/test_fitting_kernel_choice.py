"""Landmarks that stand for all items of a large view, against the whole kernel."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from linkspread.fitting import kernel_choice
from linkspread.fitting.kernel_choice import affinity_kernel
from linkspread.fitting.view_kernels import DenseKernel, FeatureKernel

METRICS = ["euclidean", "cosine", "hellinger", "chi2"]


def make_both(X, monkeypatch, *, n_landmarks, width=1.0, metric="euclidean", **more):
    """Return the whole kernel, and that of the same items by landmarks."""
    whole = affinity_kernel(X, metric=metric, width=width)
    monkeypatch.setattr(kernel_choice, "DENSE_ITEMS", X.shape[0] - 1)
    monkeypatch.setattr(kernel_choice, "N_LANDMARKS", n_landmarks)
    large = affinity_kernel(X, metric=metric, width=width, **more)
    assert isinstance(whole, DenseKernel) and isinstance(large, FeatureKernel)
    assert large.features.shape[1] <= n_landmarks
    return whole, large


def assert_same_kernel(whole, large, new, *, atol, rng):
    """Compare products, entries and the values of new items."""
    n = whole.n_items
    C = rng.standard_normal((n, 2))
    C /= np.abs(C).sum(axis=0)
    assert large.n_items == n
    assert_allclose(large @ C, whole @ C, atol=atol)
    assert_allclose(large.diagonal(), whole.diagonal(), atol=atol)
    rows = np.arange(0, n, 7)
    assert_allclose(large.block(rows, rows), whole.block(rows, rows), atol=atol)
    said = [kernel.extend(new, C, kernel @ C) for kernel in (large, whole)]
    assert_allclose(*said, atol=atol)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("metric", METRICS)
def test_landmarks_are_exact_where_every_item_repeats_one(
    metric, make, monkeypatch, rng
):
    # Items lie at 12 places. Landmarks that are at all of them span the kernel, so
    # that K = C W^-1 C' holds and not only nearly, for new rows anywhere too.
    places = rng.random((12, 5))
    X = places[np.arange(240) % 12]
    whole, large = make_both(make(X), monkeypatch, n_landmarks=80, metric=metric)
    assert large.features.shape[1] <= 12
    new = make(rng.random((9, 5)))
    assert_same_kernel(whole, large, new, atol=1e-6, rng=rng)


def test_landmarks_are_exact_where_all_items_are_landmarks(monkeypatch, rng):
    X = rng.standard_normal((90, 6))
    whole, large = make_both(X, monkeypatch, n_landmarks=90, width=0.5)
    new = rng.standard_normal((9, 6))
    assert_same_kernel(whole, large, new, atol=1e-8, rng=rng)


def test_few_landmarks_are_nearly_exact_for_a_wide_kernel(monkeypatch, rng):
    # The eigenvalues of a smooth kernel of points in a plane fall so fast that 60
    # directions are nearly all there are.
    X = rng.uniform(size=(300, 2))
    whole, large = make_both(X, monkeypatch, n_landmarks=60)
    assert_same_kernel(whole, large, rng.uniform(size=(9, 2)), atol=1e-3, rng=rng)


def test_few_landmarks_never_say_more_than_the_whole_kernel(monkeypatch, rng):
    # What landmarks leave out is a kernel too: K - C W^-1 C' has no eigenvalue < 0.
    X = rng.standard_normal((120, 8))
    whole, large = make_both(X, monkeypatch, n_landmarks=10, width=0.3)
    missing = (whole @ np.eye(120)) - (large @ np.eye(120))
    values = np.linalg.eigvalsh(missing)
    assert values[0] > -1e-8 and values[-1] > 0.1
    again = affinity_kernel(X, metric="euclidean", width=0.3)
    assert_allclose(again.features, large.features)
    others = affinity_kernel(X, metric="euclidean", width=0.3, random_state=1)
    assert np.abs(others.diagonal() - large.diagonal()).max() > 0.1
