"""Neighbours looked up in the cells of each block, by worker processes."""

import numpy as np
import pytest

import linkspread as ls
from linkspread import cluster
from linkspread.cluster.neighbors import choose_search, search_blocks
from linkspread.cluster.session import Session
from linkspread.graphs import nearest_neighbors
from linkspread.ground.errors import GraphError

pytest.importorskip("faiss")
CHOSEN = {"n_neighbors": 8, "metric": "euclidean", "backend": "cpu"}


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    X = ls.datasets.make_views(2900, n_classes=9, n_features=11).views()["text"]
    path = tmp_path_factory.mktemp("views") / "text.npy"
    np.save(path, X)
    return cluster.open_view(path)


def test_recall_is_high_and_measured_well(client, view):
    # The last block is too small for cells and is searched exactly.
    ranges = [(0, 1216), (1216, 2432), (2432, 2900)]
    session = Session(client)
    chosen = {**CHOSEN, "method": "approximate"}
    futures, recall = search_blocks(session, view, ranges, chosen)
    ids, distances = map(np.concatenate, zip(*session.fetch(futures), strict=True))
    X = view.rows(0, 2900)
    expected = nearest_neighbors(X, n_neighbors=8)[1]
    share = np.mean(distances <= expected[:, -1:])
    assert share > 0.9 and recall == pytest.approx(share, abs=0.04)
    assert (ids != np.arange(2900)[:, None]).all() and ids.min() >= 0
    true = np.linalg.norm(X[:, None].astype(float) - X[ids].astype(float), axis=2)
    assert distances == pytest.approx(true, rel=1e-6)


def test_a_model_keeps_the_recall(client, view):
    links = {"text": np.where(np.arange(2900) % 9 == 0, np.arange(2900) % 5, -1)}
    # Two rounds in place of many: the search is what is looked at here.
    model = ls.LinkSpreading(n_neighbors=8, alpha=0.01, tol=0.1, rank=3)
    cluster.fit(model, {"text": view}, links, client=client, method="approximate")
    assert 0.9 < model.graphs_["text"].recall_ <= 1


def test_large_views_are_looked_up_where_that_can_be(view):
    def choose(method, metric="euclidean", n_workers=1, n_items=10**6):
        large = cluster.ChunkedView("X", ("x.npy",), (0, n_items), (0,), 64, np.float32)
        return choose_search(method, large, 20, metric, n_workers)

    assert choose("auto") == "approximate"
    assert choose("auto", n_workers=10**4) == "exact"
    assert choose("auto", n_items=10**4) == "exact"
    assert choose("auto", metric="chi2") == "exact"
    assert choose("exact") == "exact"
    with pytest.raises(GraphError, match="`metric` must be euclidean, cosine"):
        choose("approximate", metric="chi2")
    with pytest.raises(GraphError, match="`method` must be one of"):
        choose("fast")
