"""Every sparse code of real neighbourhoods is certified, wide kernels to narrow."""

import numpy as np
import pytest

from lad_problems import GAP, laplacian_root
from linkspread.compiled.lad import solve_many
from linkspread.datasets import load_wikipedia
from linkspread.graphs import mean_distance, nearest_neighbors
from linkspread.graphs.distances import pairwise_distances

N_ROWS, N_NEIGHBORS = 200, 90
METRICS = {"text": "hellinger", "image": "chi2"}


@pytest.fixture(scope="module")
def wikipedia(data_folder):
    if not (data_folder / "wikipedia").is_dir():
        pytest.skip("LINKSPREAD_DATA holds no folder wikipedia")
    return load_wikipedia(data_folder / "wikipedia")


@pytest.fixture(scope="module", params=METRICS)
def neighborhoods(request, wikipedia):
    """Return mean distance, all distances among some items and their neighbours."""
    X, metric = wikipedia.views[request.param], METRICS[request.param]
    rows = np.random.default_rng(0).permutation(len(X))[:N_ROWS]
    ids, _ = nearest_neighbors(X, n_neighbors=N_NEIGHBORS, metric=metric)
    groups = np.hstack([rows[:, None], ids[rows]])
    distances = [pairwise_distances(X[g], X[g], metric=metric) for g in groups]
    labels = np.full(len(X), -1)
    labels[wikipedia.train] = wikipedia.labels[wikipedia.train]
    roots = [laplacian_root(labels[group[1:]]) for group in groups]
    return mean_distance(X, metric=metric), np.array(distances), np.array(roots)


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.5, 0.25, 0.1])
@pytest.mark.parametrize("is_constrained", [False, True])
def test_real_neighborhoods_are_certified(neighborhoods, share, is_constrained):
    width, distances, roots = neighborhoods
    K = np.exp(-((distances / (share * width)) ** 2))
    A, targets = K[:, 1:, 1:], K[:, 0, 1:]
    if is_constrained:
        A = np.concatenate([A, roots], axis=1)
        targets = np.hstack([targets, 0 * targets])
    coefficients, gaps, report = solve_many(lambda r: (A[r], targets[r]), N_ROWS)
    assert gaps.max() <= GAP
    assert report.n_fallback == 0
    assert np.isfinite(coefficients).all()
