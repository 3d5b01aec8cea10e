"""An index against the exact ranking, and filters against a plain loop."""

import logging
import sys

import numpy as np
import pytest
from scipy import sparse

from linkspread.ground.errors import LinkspreadError, MissingDependencyError
from linkspread.search import ItemIndex, index, rank

N_ITEMS, WIDTH = 3000, 8


def make_vectors(rng, n_queries=60):
    """Return queries and items around twenty places, of lengths that differ."""
    places = rng.standard_normal((20, WIDTH))
    items = places[rng.integers(0, 20, N_ITEMS)]
    items = items + 0.5 * rng.standard_normal(items.shape)
    items *= np.exp(0.7 * rng.standard_normal((N_ITEMS, 1)))
    queries = places[rng.integers(0, 20, n_queries)]
    return queries + 0.5 * rng.standard_normal(queries.shape), items


def by_loop(vectors, items, n_results, only, barred):
    """Return for each query the best of the items it may find."""
    rows = []
    for i, row in enumerate(vectors @ items.T):
        hidden = set(barred[[i]].indices.tolist())
        open_ = [j for j in only if j not in hidden]
        rows.append(sorted(open_, key=lambda j, row=row: (-row[j], j))[:n_results])
    shortest = min(map(len, rows))
    return np.array([row[:shortest] for row in rows], dtype=int)


def share_found(found, true):
    """Return the share of the true items that were found."""
    pairs = zip(found, true, strict=True)
    return np.mean([np.isin(best, row).mean() for row, best in pairs])


def hide_faiss(monkeypatch):
    """Make the import of faiss fail as if it were not installed."""
    monkeypatch.setitem(sys.modules, "faiss", None)


@pytest.fixture
def approximate(rng):
    """Return an approximate index with queries to ask it."""
    pytest.importorskip("faiss")
    vectors, items = make_vectors(rng)
    return ItemIndex(items, method="approximate", queries=vectors), vectors, items


@pytest.mark.parametrize("n_open", [3, 1400, 2900, N_ITEMS])
@pytest.mark.parametrize("n_barred", [0, 40, 2000])
def test_exact_filters_are_those_of_a_loop(rng, n_open, n_barred):
    vectors, items = make_vectors(rng, 6)
    only = np.sort(rng.choice(N_ITEMS, n_open, replace=False))
    barred = sparse.random_array(
        (6, N_ITEMS), density=n_barred / N_ITEMS, rng=rng, format="csr"
    )
    wanted = by_loop(vectors, items, 12, only, barred)
    found, scores = rank(vectors, items, n_results=12, only=only, barred=barred)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(
        scores, np.take_along_axis(vectors @ items.T, wanted, axis=1)
    )


def test_rows_are_as_long_as_the_shortest():
    items = np.array([[1.0], [2.0], [3.0], [4.0]])
    barred = sparse.csr_array([[0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 0, 0]])
    found, _ = rank(np.ones((3, 1)), items, n_results=9, barred=barred)
    assert found.tolist() == [[3, 2], [2, 0], [3, 2]]
    only = np.array([1, 3])
    found, _ = rank(np.ones((3, 1)), items, n_results=9, only=only, barred=barred)
    assert found.shape == (3, 0)


def test_a_few_items_are_all_that_is_scored(monkeypatch):
    module = sys.modules["linkspread.search.rank"]
    shapes = []

    def record(block, n_results):
        shapes.append(block.shape)
        return index.best_entries(block, n_results)

    monkeypatch.setattr(module, "best_entries", record)
    rank(np.ones((2, 3)), np.ones((1000, 3)), n_results=2, only=np.array([5, 900]))
    assert shapes == [(2, 2)]


def test_the_approximate_search_finds_nearly_all(approximate):
    own, vectors, items = approximate
    true, _ = rank(vectors, items, n_results=10)
    found, scores = own.search(vectors, n_results=10)
    assert own.method_ == "approximate"
    assert own._cells.n_probed < own._cells.n_cells
    assert own.recall_ >= 0.9
    assert share_found(found, true) == pytest.approx(own.recall_, abs=0.05)
    exact = np.take_along_axis(vectors @ items.T, found, axis=1)
    np.testing.assert_allclose(scores, exact, rtol=1e-12)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_looking_into_all_cells_is_exact_with_any_filter(approximate, rng):
    own, vectors, items = approximate
    own._cells.n_probed = own._cells.n_cells
    # Half of what each query would find is barred.
    best, _ = rank(vectors, items, n_results=10)
    where = np.repeat(np.arange(60), 5), best[:, ::2].ravel()
    barred = sparse.csr_array((np.ones(300), where), shape=(60, N_ITEMS))
    only = np.sort(rng.choice(N_ITEMS, 2500, replace=False))
    for asked in [{}, {"only": only}, {"barred": barred}]:
        got = own.search(vectors, n_results=5, **asked)
        wanted = rank(vectors, items, n_results=5, **asked)
        np.testing.assert_array_equal(got[0], wanted[0])
        np.testing.assert_allclose(got[1], wanted[1], rtol=1e-12)


def test_cells_that_hold_too_few_are_made_up_for(approximate):
    own, vectors, items = approximate
    own._cells.n_probed = 1
    # Nothing in the only cell that the first query looks into may be found.
    cell = own._cells.search(vectors[:1], N_ITEMS)[1][0]
    only = np.setdiff1d(np.arange(N_ITEMS), cell)
    barred = sparse.csr_array(([1.0], ([0], only[:1])), shape=(60, N_ITEMS))
    got, scores = own.search(vectors, n_results=5, only=only, barred=barred)
    wanted, _ = rank(vectors, items, n_results=5, only=only, barred=barred)
    np.testing.assert_array_equal(got[0], wanted[0])
    assert np.isfinite(scores).all()
    assert not np.isin(got, cell).any()


def test_equal_scores_come_in_the_order_of_the_items(rng):
    pytest.importorskip("faiss")
    items = np.repeat(rng.standard_normal((500, 4)), 4, axis=0)
    own = ItemIndex(items, method="approximate")
    own._cells.n_probed = own._cells.n_cells
    found, _ = own.search(items[:40], n_results=8)
    np.testing.assert_array_equal(found, rank(items[:40], items, n_results=8)[0])


def test_the_same_items_give_the_same_index(approximate):
    own, vectors, items = approximate
    other = ItemIndex(items, method="approximate", queries=vectors)
    assert other.recall_ == own.recall_
    got, again = (i.search(vectors, n_results=7)[0] for i in (own, other))
    np.testing.assert_array_equal(got, again)


@pytest.mark.parametrize("n_items, width", [(999, 3), (2000, 0)])
def test_small_views_are_searched_exactly(n_items, width):
    pytest.importorskip("faiss")
    own = ItemIndex(np.ones((n_items, width)), method="approximate")
    assert (own.method_, own.recall_) == ("exact", 1.0)


def test_no_queries_have_a_shape_too(approximate):
    found, scores = approximate[0].search(np.ones((0, WIDTH)), n_results=4)
    assert found.shape == scores.shape == (0, 4)


def test_items_of_length_zero_are_found_too():
    pytest.importorskip("faiss")
    own = ItemIndex(np.zeros((1500, 3)), method="approximate")
    assert own.search(np.ones((1, 3)), n_results=4)[1].tolist() == [[0.0] * 4]


def test_cells_are_learnt_from_long_items(rng):
    items = rng.standard_normal((4000, 3)).astype(np.float32)
    items[::100] *= 30
    drawn = index._draw_by_norm(items, 1000)
    squares = np.sum(items.astype(float) ** 2, axis=1)
    share = squares[::100].sum() / squares.sum()
    assert np.mean(drawn % 100 == 0) == pytest.approx(share, abs=0.04)


def test_auto_is_approximate_from_a_size_on(monkeypatch, rng):
    pytest.importorskip("faiss")
    items = rng.random((1200, 4))
    assert ItemIndex(items).method_ == "exact"
    monkeypatch.setattr(index, "LARGE_ENTRIES", items.size)
    assert ItemIndex(items).method_ == "approximate"


def test_without_faiss_auto_is_exact_and_approximate_says_what_to_install(
    monkeypatch, rng
):
    hide_faiss(monkeypatch)
    monkeypatch.setattr(index, "LARGE_ENTRIES", 0)
    items = rng.random((1200, 4))
    assert ItemIndex(items).method_ == "exact"
    message = r"method='approximate' needs the package faiss.*pip install"
    with pytest.raises(MissingDependencyError, match=message):
        ItemIndex(items, method="approximate")


def test_an_unknown_method_is_one_sentence():
    message = "`method` must be one of 'approximate', 'auto', 'exact', got 'fast'"
    with pytest.raises(LinkspreadError, match=message):
        ItemIndex(np.ones((3, 2)), method="fast")


def test_a_poor_recall_is_logged_as_a_warning(monkeypatch, caplog, rng):
    pytest.importorskip("faiss")
    monkeypatch.setattr("linkspread.search.index.TARGET_RECALL", 0.0)
    monkeypatch.setattr("linkspread.search.index.MIN_PROBED", 1)
    with caplog.at_level(logging.WARNING, logger="linkspread"):
        own = ItemIndex(rng.standard_normal((3000, 16)), method="approximate",
                        queries=rng.standard_normal((300, 16)))  # fmt: skip
    assert own.recall_ < 0.9
    assert f"recall {own.recall_:.3f} with 1 of 54 cells" in caplog.text


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
@pytest.mark.slow
def test_an_index_file_finds_what_was_indexed(tmp_path, rng, kind):
    pytest.importorskip("faiss")
    vectors, items = make_vectors(rng)
    index.FaissItems.build(items, kind).write(tmp_path / "items.faiss")
    read = index.load_faiss().read_index(str(tmp_path / "items.faiss"))
    found = index.FaissItems(read).search(vectors, 10)[1]
    true, _ = rank(vectors, items, n_results=10)
    assert share_found(found, true) > 0.95
    assert index.FaissItems.build(items, kind).search(vectors, 0)[1].shape == (60, 0)


def test_what_a_graph_does_not_reach_is_found_by_comparing_all():
    pytest.importorskip("faiss")
    # Copies of one item have no edges to others, so that walks do not arrive there.
    items = np.repeat(np.eye(4), 500, axis=0)
    found = index.FaissItems.build(items, "hnsw").search(np.ones((2, 4)), 2000)[1]
    assert [sorted(row) for row in found.tolist()] == [list(range(2000))] * 2


def test_a_disk_that_refuses_an_index_is_an_os_error(tmp_path, rng):
    pytest.importorskip("faiss")
    with pytest.raises(OSError, match=r"items\.faiss"):
        index.FaissItems.build(rng.random((3, 2)), "exact").write(
            tmp_path / "nowhere" / "items.faiss"
        )
