"""Kernels that forget what only products need, and go on answering."""

import gc
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linkspread import LinkSpreading
from linkspread.datasets import make_views
from linkspread.estimators.graph_choice import similarities
from linkspread.fitting.gaussian_kernel import GaussianKernel
from linkspread.fitting.kernel_choice import affinity_kernel, linear_kernel
from linkspread.fitting.labels import fit_labels
from linkspread.fitting.view_kernels import (
    DenseKernel,
    GraphKernel,
    MixedKernel,
    ViewKernel,
)
from linkspread.graphs import NeighborGraph, normalize

N = 300
WHOLE = 8 * N * N  # bytes of all entries


def graph_kernel(X):
    """Return the kernel of a graph of neighbours."""
    graph = NeighborGraph(n_neighbors=6).fit(X)

    def similar(rows):
        return similarities(graph, rows, view="text")

    return GraphKernel(normalize(graph.affinity_), 0.9, similar=similar)


def gauss_kernel(X):
    """Return the Gaussian kernel with all its entries."""
    return affinity_kernel(X, metric="euclidean", width=0.5)


def dense_kernel(X):
    """Return a kernel of entries that were given."""
    gauss = GaussianKernel(X, np.arange(N), metric="euclidean", width=0.5)
    return DenseKernel(gauss(X), gauss)


def mixed_kernel(X):
    """Return the mean of both."""
    return MixedKernel([graph_kernel(X), gauss_kernel(X)], [0.5, 0.5])


# How many whole matrices each can forget.
KINDS = {
    graph_kernel: 1,
    gauss_kernel: 1,
    dense_kernel: 1,
    linear_kernel: 0,
    mixed_kernel: 0,
}


@contextmanager
def counted_bytes():
    """Count the memory that is held, from here on."""

    def held():
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        yield held
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", KINDS)
def test_a_released_kernel_forgets_its_entries_and_knows_new_items(make, rng):
    X, new = rng.standard_normal((N, 4)), rng.standard_normal((20, 4))
    memberships = np.eye(3)[rng.integers(3, size=N)] * (rng.random((N, 1)) < 0.3)
    with counted_bytes() as held:
        kernel = make(X)
        fit = fit_labels(kernel, memberships, ridges=(0.3,))
        said, before = fit.embed(new), held()
        kernel.release()
        freed = before - held()
    assert freed == pytest.approx(KINDS[make] * WHOLE, abs=0.1 * WHOLE)
    assert np.ptp(said) > 0.1
    assert_allclose(fit.embed(new), said, rtol=1e-12)
    assert kernel.n_items == N
    kernel.release()  # there is nothing left, and that is no mistake
    assert_allclose(fit.embed(new), said, rtol=1e-12)


@pytest.mark.parametrize("make", [graph_kernel, gauss_kernel])
def test_a_released_kernel_of_features_can_still_be_multiplied_with(make, rng):
    kernel = make(rng.standard_normal((N, 4)))
    block, rows = rng.standard_normal((N, 3)), np.array([5, 0, 77])
    product, diagonal = kernel @ block, kernel.diagonal().copy()
    entries = kernel.block(rows, rows)
    kernel.release()
    assert_allclose(kernel @ block, product, atol=1e-7)
    assert_allclose(kernel.diagonal(), diagonal)
    assert_allclose(kernel.block(rows, rows), entries, atol=1e-7)


def every_kind(cls):
    """Return a class and all that are derived from it."""
    return [cls] + [kind for own in cls.__subclasses__() for kind in every_kind(own)]


def test_a_model_that_weighs_many_fits_keeps_no_kernel_whole(monkeypatch):
    n_items, whole = 2 * N, 4 * WHOLE
    data = make_views(n_items, n_classes=3, random_state=0)
    known = {
        v: np.where(np.arange(n_items) < 90, y, -1) for v, y in data.labels.items()
    }

    def fit():
        with counted_bytes() as held:
            model = LinkSpreading(objective="auto").fit(data.views(), known)
            return model, held(), tracemalloc.get_traced_memory()[1]

    fit()  # what is compiled is not counted
    model, kept, highest = fit()
    assert model.choice_.count("affinity") + model.choice_.count("graph") >= 10
    assert kept < 5 * whole
    # They are forgotten one by one: never are those of a view there together.
    for kind in every_kind(ViewKernel):
        monkeypatch.setattr(kind, "release", lambda kernel: None)
    assert fit()[2] > highest + 4 * whole
