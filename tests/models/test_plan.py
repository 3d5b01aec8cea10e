"""What a fit says beforehand, and what it reports afterwards."""

import logging
import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from linkspread import Links, LinkSpreading
from linkspread.graphs import normalize
from linkspread.links import as_link_matrix
from linkspread.models.spreading import FitReport, GraphReport, SpreadReport
from linkspread.propagation import spread_links
from linkspread.propagation.exact import propagation_cost
from small_views import PARAMETERS, N, make_links, make_views

PLAN = r"^fit of text 40 x 3, image 30 x 4: about [\d.]+ s and [\d.]+ \w?B beyond the"


@pytest.mark.parametrize("verbose", [False, True])
def test_the_plan_is_said_before_any_work(monkeypatch, caplog, verbose):
    class Started(Exception):
        """The work has begun."""

    def stop(*_, **__):
        raise Started

    monkeypatch.setattr("linkspread.models.link_spreading.build_graphs", stop)
    caplog.set_level(logging.DEBUG, logger="linkspread")
    model = LinkSpreading(verbose=verbose, **PARAMETERS)
    with pytest.raises(Started):
        model.fit(make_views(), make_links("labels"))
    record = caplog.records[0]
    assert re.search(PLAN, record.getMessage())
    assert record.levelno == (logging.INFO if verbose else logging.DEBUG)


def test_every_kind_of_graph_has_a_plan(caplog):
    caplog.set_level(logging.DEBUG, logger="linkspread")
    W = sparse.csr_array(np.ones((N, N)))
    for graph, X in [(W, np.ones((N, 2))), (lambda X: W, np.ones((N, 2))),
                     ("precomputed", W), (W.toarray(), np.ones((N, 2)))]:  # fmt: skip
        LinkSpreading(graph=graph).fit(X, np.arange(N) % 2)
        assert any(m.startswith("fit of X 40 x") for m in caplog.messages)
        caplog.clear()


def ring(n, n_neighbors):
    """Return the normalised graph in which items are joined to the next ones."""
    i = np.repeat(np.arange(n), n_neighbors)
    j = (i + np.tile(np.arange(1, n_neighbors + 1), n)) % n
    W = sparse.csr_array((np.ones(len(i)), (i, j)), shape=(n, n))
    return normalize(W + W.T)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.1, 0.6])
def test_the_memory_of_a_propagation_is_known_beforehand(rng, alpha):
    n, m = 20_000, 15_000
    labels = {"x": rng.integers(0, 8, n), "y": rng.integers(0, 8, m)}
    Z = Links.from_labels(labels).between("x", "y")
    S_x, S_y = ring(n, 10), ring(m, 10)
    parameters = {"alpha": (alpha, alpha), "beta": 0.95, "tol": 1e-6}
    width = as_link_matrix(Z).thin_width()
    _, n_bytes = propagation_cost((n, m), (20, 20), width, **parameters)
    spread_links(S_x, Z, S_y, **parameters)  # so that nothing is compiled below
    tracemalloc.start()
    spread_links(S_x, Z, S_y, **parameters)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 1 / 2.5 <= n_bytes / peak <= 2.5


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_plan_of_many_pairs_is_that_of_the_rank(caplog, rng, dtype):
    # Thousands of pairs are probed with some more vectors than the rank, not with one
    # for each pair.
    n, m, n_pairs = 4_000, 3_000, 1_500
    W = {"x": ring(n, 5).astype(dtype), "y": ring(m, 5).astype(dtype)}
    ends = rng.choice(n, n_pairs, replace=False), rng.choice(m, n_pairs, replace=False)
    links = Links.from_pairs(np.column_stack(ends), between=("x", "y"))
    model = LinkSpreading(graph=W, rank=64)
    tables = {"x": np.ones((n, 1), dtype), "y": np.ones((m, 1), dtype)}
    model.fit(tables, links)  # so that nothing is compiled below
    caplog.set_level(logging.DEBUG, logger="linkspread")
    tracemalloc.start()
    model.fit(tables, links)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    planned = 1e6 * float(re.search(r"([\d.]+) MB", caplog.messages[0])[1])
    assert 1 / 2.5 <= planned / peak <= 2.5


def test_the_report_counts_what_is_there():
    views = make_views()
    model = LinkSpreading(**PARAMETERS).fit(views, make_links("labels"))
    for view, X in views.items():
        W = model.graphs_[view].affinity_.toarray()
        edges = [(i, j) for i in range(len(X)) for j in range(i) if W[i, j]]
        report = model.report_.graphs[view]
        assert (report.n_items, report.n_edges) == (len(X), len(edges))
        assert report.n_isolated == 0
        assert report.mean_degree == pytest.approx(2 * len(edges) / len(X))
        assert report.seconds > 0
    spread = model.spreads_["text", "image"]
    report = model.report_.spreads["text", "image"]
    assert report.rank == max(spread.core.shape)
    assert report.error == spread.error < 1e-8


def test_loops_are_no_edges_and_leave_an_item_isolated():
    W = sparse.csr_array([[2.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 3, 0], [0, 0, 0, 0]])
    report = GraphReport.of(W, seconds=0.0)
    assert (report.n_items, report.n_edges, report.n_isolated) == (4, 1, 2)
    assert report.mean_degree == 0.5


def test_a_search_within_a_view_is_reported_when_it_happens():
    model = LinkSpreading(**PARAMETERS).fit(make_views(), make_links("labels"))
    assert list(model.report_.spreads) == [("text", "image")]
    model.search(0, source="text", target="text")
    assert list(model.report_.spreads) == [("text", "image"), ("text", "text")]


def test_the_report_is_for_people():
    report = FitReport(
        graphs={"text": GraphReport(12_000, 150_000, 3, 25.0, 0.52)},
        spreads={("text", "image"): SpreadReport(24, 1.5e-7, 71.0)},
    )
    assert str(report) == (
        "text: 12,000 items, 150,000 edges, 25.0 neighbours each, 3 isolated, 0.5 s\n"
        "text and image: 24 dimensions, error 1.5e-07, 1 min 11 s"
    )
