"""What a fit on a cluster is expected to take."""

import numpy as np
import pytest

import linkspread as ls
from cluster_cases import problem
from linkspread import cluster
from linkspread.ground.errors import LinkspreadError
from linkspread.propagation.exact import spread_responses
from linkspread.propagation.filter import separate


def test_rounds_are_the_degrees_of_the_filter():
    views, links = problem()
    plan = cluster.plan(ls.LinkSpreading(alpha=0.3), views, links, n_workers=4)
    degrees = separate(spread_responses((0.3, 0.3), 0.95), tol=5e-7).degrees
    assert plan.n_rounds == sum(degrees)


def test_one_worker_moves_only_what_the_client_gets():
    views, links = problem()
    one, four = (
        cluster.plan(ls.LinkSpreading(), views, links, n_workers=n) for n in (1, 4)
    )
    # And the vectors of one number for each item, and the small triangles.
    assert one.client_bytes < one.moved_bytes < 1.1 * one.client_bytes
    # Each further worker gets the thin matrix of every round.
    rounds = sum(len(X) * 3 * 8 for X in views.values()) * one.n_rounds / 2
    assert four.moved_bytes > one.moved_bytes + 3 * rounds * 0.9
    assert one.client_bytes == four.client_bytes


def test_files_and_tables_have_the_same_plan(tmp_path):
    views, links = problem(np.float32)
    for view, X in views.items():
        np.save(tmp_path / f"{view}.npy", X)
    paths = {view: tmp_path / f"{view}.npy" for view in views}
    plans = [
        cluster.plan(ls.LinkSpreading(), own, links, n_workers=3)
        for own in (views, paths)
    ]
    assert plans[0] == plans[1]
    assert "fit by 3 workers" in str(plans[0])


def test_cells_are_counted_where_they_are_used(monkeypatch):
    pytest.importorskip("faiss")
    views, links = problem()
    plans = []
    monkeypatch.setattr("linkspread.graphs.approximate.MIN_ITEMS", 100)
    for slow in (1e9, 0.0):
        monkeypatch.setattr("linkspread.graphs.approximate.SLOW_SECONDS", slow)
        plans.append(cluster.plan(ls.LinkSpreading(), views, links, n_workers=3))
    exact, cells = plans
    sent = 2 * sum(len(X) * (X.shape[1] / 4 + 8) for X in views.values())
    assert cells.moved_bytes - exact.moved_bytes == pytest.approx(sent, abs=2)
    assert cells.worker_bytes > exact.worker_bytes + 100e6
    codes = cluster.plan(ls.LinkSpreading(graph="sr"), views, links, n_workers=3)
    assert codes.worker_bytes == exact.worker_bytes


def test_no_workers_are_refused():
    with pytest.raises(LinkspreadError, match="`n_workers` must be a positive integer"):
        cluster.plan(ls.LinkSpreading(), *problem(), n_workers=0)
