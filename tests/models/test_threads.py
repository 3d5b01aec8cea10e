"""A model keeps to its threads: those of ``n_jobs``, and one that spins if small."""

import numba
import numpy as np
import pytest

import linkspread as ls
from linkspread.compiled import backends as threads
from linkspread.compiled.backends import count_rows, map_blocks
from linkspread.graphs import L1Graph, NeighborGraph
from linkspread.ground.cores import count_threads
from linkspread.propagation import chebyshev
from linkspread.selection import tune
from linkspread.studies.baselines import LabelSpreadingMatching
from thread_counts import blas_threads, two_blas_threads, watched  # noqa: F401

pytestmark = [
    pytest.mark.usefixtures("two_blas_threads"),
    pytest.mark.skipif(
        numba.config.NUMBA_NUM_THREADS < 2, reason="one core has one thread anyway"
    ),
]

BETWEEN = {"source": "text", "target": "image"}


@pytest.fixture(scope="module")
def data():
    return ls.datasets.make_views({"text": 90, "image": 80}, n_classes=3)


@pytest.fixture(scope="module")
def links():
    pairs = [(i, 7 * i % 40, 1.0 if i % 3 else -1.0) for i in range(40)]
    return ls.Links.from_pairs(pairs, between=("text", "image"))


@pytest.fixture
def large(monkeypatch):
    """Take every model for a large one, whose products may have all threads."""
    monkeypatch.setattr(threads, "SMALL_ITEMS", 0)
    monkeypatch.setattr(threads, "SMALL_ENTRIES", 0)
    monkeypatch.setattr(threads, "SMALL_LOOP", 0)


def parameters(n_jobs):
    return {"n_neighbors": 6, "n_jobs": n_jobs}


def labels_of(views):
    return {view: np.where(np.arange(len(X)) < 9, 0, 1) for view, X in views.items()}


def more_pairs():
    return ls.Links.from_pairs([(3, 5, 1.0)], between=("text", "image"))


DOORS = {
    "search": lambda model, data: model.search(np.arange(30), **BETWEEN),
    "search new": lambda model, data: model.search(
        data.views()["text"][:9] + 0.1, **BETWEEN
    ),
    "index": lambda model, data: model.index("text", "image"),
    "scores": lambda model, data: model.scores("text", "image"),
    "embeddings": lambda model, data: model.embeddings("text", "image"),
    "embed": lambda model, data: model.embed([1, 2], **BETWEEN),
    "add_links": lambda model, data: model.add_links(more_pairs()),
    "remove_links": lambda model, data: model.remove_links(
        ls.Links.from_pairs([(1, 7, 1.0)], between=("text", "image"))
    ),
    "add_items": lambda model, data: model.add_items(
        "text", data.views()["text"][:2] + 0.1
    ),
    "update_items": lambda model, data: model.update_items(
        "text", data.views()["text"][:1] + 0.1, ids=[4]
    ),
    "rebuild": lambda model, data: model.rebuild(),
    "explain": lambda model, data: model.explain(3, 4, **BETWEEN),
    "suggest_pairs": lambda model, data: model.suggest_pairs(4, **BETWEEN),
    "expected_gains": lambda model, data: model.expected_gains([50], [60], **BETWEEN),
}
FITS = {
    "spread": lambda views, links, **given: ls.LinkSpreading(**given).fit(views, links),
    "cwa": lambda views, links, **given: ls.LinkSpreading(graph="cwa", **given).fit(
        views, labels_of(views)
    ),
    "sr": lambda views, links, **given: ls.LinkSpreading(graph="sr", **given).fit(
        views, links
    ),
    "csr": lambda views, links, **given: ls.LinkSpreading(graph="csr", **given).fit(
        views, labels_of(views)
    ),
    "tune": lambda views, links, **given: tune(
        views, links, {"alpha": [0.1, 0.5]}, model=ls.LinkSpreading(**given), n_splits=2
    ),
    "baseline": lambda views, links, **given: LabelSpreadingMatching(**given).fit(
        views, labels_of(views)
    ),
    "knn graph": lambda views, links, **given: NeighborGraph(**given).fit(
        views["text"]
    ),
    "l1 graph": lambda views, links, **given: L1Graph(**given).fit(views["text"]),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.slow
def test_one_job_is_one_thread_of_a_fit(name, data, links, large, monkeypatch):
    with watched(monkeypatch) as seen:
        FITS[name](data.views(), links, **parameters(1))
    assert (seen.blas, seen.loops, seen.started) == ({1}, {1}, 0)
    assert set(blas_threads()) == {2}
    assert numba.get_num_threads() > 1


@pytest.mark.parametrize("name", DOORS)
def test_one_job_is_one_thread_of_a_fitted_model(name, data, links, large, monkeypatch):
    model = ls.LinkSpreading(**parameters(1)).fit(data.views(), links)
    with watched(monkeypatch) as seen:
        DOORS[name](model, data)
    assert (seen.blas, seen.loops, seen.started) == ({1}, {1}, 0)


def test_a_large_model_has_all_threads(data, links, large, monkeypatch):
    with watched(monkeypatch) as seen:
        ls.LinkSpreading(**parameters(None)).fit(data.views(), links)
    assert max(seen.blas) == 2
    assert max(seen.loops) == numba.get_num_threads()


@pytest.mark.parametrize("name", ["spread", "tune"])
@pytest.mark.slow
def test_nothing_of_a_small_model_spins(name, data, links, monkeypatch):
    # One of two spinning threads waits for whatever else the core has to do.
    monkeypatch.setattr(threads, "SMALL_LOOP", 0)
    loops, step = set(), chebyshev.chebyshev_step

    def noted(*arrays):
        loops.add(numba.get_num_threads())
        step(*arrays)

    with watched(monkeypatch) as seen:
        monkeypatch.setattr(chebyshev, "chebyshev_step", noted)
        found = FITS[name](data.views(), links, **parameters(None))
        if name == "spread":
            found.scores("text", "image")
    assert seen.blas == {1}
    assert loops == {1}


def test_search_of_a_small_model_holds_blas(data, links, monkeypatch):
    model = ls.LinkSpreading(**parameters(None)).fit(data.views(), links)
    with watched(monkeypatch) as seen:
        model.search(3, **BETWEEN)
    assert seen.blas == {1}


def test_rows_are_counted_where_all_tables_tell_them():
    assert count_rows({"a": np.zeros((3, 2)), "b": np.zeros((4, 1))}) == 7
    assert count_rows(np.zeros((3, 2))) == 3
    assert count_rows({"a": np.zeros((3, 2)), "b": "table.parquet"}) is None
    assert count_rows(5) is None


def test_a_wrong_number_of_jobs_is_refused(data, links):
    with pytest.raises(ls.ground.errors.GraphError, match="`n_jobs` must be None or"):
        ls.LinkSpreading(n_jobs=0).fit(data.views(), links)


def test_threads_of_a_pool_know_what_is_set_for_its_caller():
    with threads.own_threads(2, 10):
        parts = map_blocks(
            lambda _: (count_threads(None), threads._IS_SMALL.get(), *blas_threads()),
            [0, 1, 2],
            n_threads=2,
        )
        assert {own for part in parts for own in part} == {1}
