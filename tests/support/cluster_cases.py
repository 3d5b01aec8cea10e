"""A small problem and a cluster on this machine, for the tests of `cluster`."""

from contextlib import contextmanager

import numpy as np
import pytest

import linkspread as ls

N_TEXT, N_IMAGE = 330, 210


@contextmanager
def local_cluster(n_workers=2):
    """Start worker processes of one thread each, and a client of theirs."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    # Some seconds after a loss, a cluster gives up the place of a worker that is not
    # there: also of one that was started again meanwhile and lost a second time.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    cluster = distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit=0,
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def problem(dtype=np.float64):
    """Return two views of different sizes and labels of a few of their items."""
    data = ls.datasets.make_views(N_TEXT, n_classes=3, random_state=0)
    views = {"text": data.views()["text"], "image": data.views()["image"][:N_IMAGE]}
    views = {view: np.asarray(X, dtype=dtype) for view, X in views.items()}
    rng = np.random.default_rng(1)
    labels = {
        view: np.where(rng.random(len(X)) < 0.2, data.labels[view][: len(X)], -1)
        for view, X in views.items()
    }
    return views, labels


def largest_difference(one, other, pair=("text", "image")):
    """Return how far the scores of two models are apart, as a share of the largest."""
    first, second = one.scores(*pair), other.scores(*pair)
    return np.abs(first - second).max() / np.abs(first).max()
