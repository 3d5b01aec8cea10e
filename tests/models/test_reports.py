"""What a fit reports."""

import pytest
from scipy import sparse

from linkspread import LinkSpreading
from linkspread.models.spreading import FitReport, GraphReport, SpreadReport
from small_views import PARAMETERS, make_links, make_views


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
