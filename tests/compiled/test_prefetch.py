"""Products that ask for rows ahead: the same numbers, whatever lies beyond the end."""

import numpy as np
import pytest
from scipy import sparse

from linkspread.compiled import chebyshev_step, clenshaw_step
from linkspread.compiled.prefetch import AHEAD, LINE_BYTES, SMALL_BYTES, lines_to_fetch
from linkspread.propagation.chebyshev import N_TERMS, recurrence_terms

N_ITEMS = 20_000


def graph_of(n_rows, n_edges, dtype, index):
    """Return some rows of a graph: the last ones have no neighbour."""
    rng = np.random.default_rng(n_edges)
    rows = rng.integers(0, n_rows - 5, n_edges)
    columns = rng.integers(0, N_ITEMS, n_edges)
    values = rng.standard_normal(n_edges).astype(dtype)
    S = sparse.coo_array((values, (rows, columns)), shape=(n_rows, N_ITEMS)).tocsr()
    return S.data, S.indices.astype(index), S.indptr.astype(index), S


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n_rows", [N_ITEMS, 300])
@pytest.mark.parametrize("n_edges", [0, AHEAD - 1, 5_000])
@pytest.mark.parametrize("width", [2, 30, 70])
def test_steps_are_the_products_of_scipy(dtype, index, n_rows, n_edges, width):
    data, indices, indptr, S = graph_of(n_rows, n_edges, dtype, index)
    rng = np.random.default_rng(0)
    current = rng.standard_normal((N_ITEMS, width)).astype(dtype)
    previous = rng.standard_normal((n_rows, width)).astype(dtype)
    expected = 2 * (S @ current) - previous
    following = np.empty_like(previous)
    graph = data, indices, indptr, dtype(2)
    chebyshev_step(*graph, current, previous, following)
    assert np.allclose(following, expected, atol=1e-4)

    sources = rng.standard_normal((n_rows, 2, width)).astype(dtype)
    weights = np.array([0.5, -1.0], dtype)
    expected = expected + 0.5 * sources[:, 0] - sources[:, 1]
    clenshaw_step(*graph, current, previous, weights, sources)
    assert np.allclose(previous, expected, atol=1e-4)


def test_a_block_in_the_cache_of_a_core_is_not_asked_for():
    assert lines_to_fetch(np.empty((SMALL_BYTES // 8, 1))) == 0
    assert lines_to_fetch(np.empty((SMALL_BYTES // 8 + 1, 1))) == 1


def test_a_row_is_asked_for_to_its_end():
    for width in (LINE_BYTES // 4, LINE_BYTES // 4 + 1):
        block = np.empty((SMALL_BYTES, width), np.float32)
        assert lines_to_fetch(block) * LINE_BYTES >= block[0].nbytes
        assert (lines_to_fetch(block) - 1) * LINE_BYTES < block[0].nbytes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_terms_of_a_recurrence_begin_with_a_cache_line(dtype):
    for n_items in (1, 7, 300):
        terms = recurrence_terms(n_items, 3, dtype)
        assert terms.ctypes.data % LINE_BYTES == 0
        assert terms.dtype == dtype and len(terms) == N_TERMS * n_items * 3
