"""Kernels on a device: streams, bounds, certificates, memory that runs out."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from linkspread.compiled.lad import solve_many, solve_on_device
from linkspread.graphs import nearest_neighbors, normalize
from linkspread.ground.errors import LinkspreadError
from linkspread.links import as_link_matrix
from linkspread.propagation import propagate
from linkspread.propagation.filter import fitted_response, separate

torch = pytest.importorskip("torch")

from linkspread.compiled.gpu import Device, codes, plain, search  # noqa: E402
from linkspread.compiled.gpu.graphs import symmetric_edges, triangle  # noqa: E402
from linkspread.propagation.exact import spread_on_device  # noqa: E402

pytestmark = pytest.mark.slow

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_cuda)])
def device(request):
    return Device(request.param)


@pytest.mark.parametrize("n_features", [3, 40, 150])
def test_items_stream_through_a_small_device(rng, device, n_features):
    X = rng.random((300, n_features)).astype(np.float32)
    expected = nearest_neighbors(X, n_neighbors=6, backend="cpu")
    device.budget = 12e3 + 1200 * n_features  # a few items and queries at a time
    found = search.nearest_items(device, X, X, np.arange(len(X)), 6)
    assert found[2].mean() > 0.95
    assert_array_equal(found[0][found[2]], expected[0][found[2]])
    assert_allclose(found[1][found[2]], expected[1][found[2]], rtol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
@pytest.mark.parametrize("spread", [0.0, 1e3, 1e6])
def test_the_bound_holds_for_every_item_that_could_be_dropped(
    rng, device, dtype, spread
):
    X = rng.standard_normal((80, 30)) + spread * rng.integers(-1, 2, (80, 1))
    table = search.ProductTable(device, X, dtype, 20)
    assert table.group == 1
    queries, norms, errors = table.convert(device.put(X))
    keys = table.minima(queries)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    slack = np.stack(
        [
            distances[:, j]
            - table.nearest_dropped(keys[:, j], norms, errors).cpu().numpy()
            for j in range(80)
        ]
    )
    assert slack.min() >= 0
    if spread == 0:
        # A bound of 0 would hold as well, and prove nothing.
        assert np.median(slack) < 1e-2 * np.median(distances)


def test_half_precision_proves_most_rows(rng, device):
    X = rng.standard_normal((1500, 64)).astype(np.float32)
    own = search._Search(device, X, X, np.arange(1500))
    ids, _, is_proven = own.run(np.arange(1500), 10, torch.float16)
    assert is_proven.mean() > 0.9
    expected = nearest_neighbors(X, n_neighbors=10, backend="cpu")[0]
    assert_array_equal(ids[is_proven], expected[is_proven])


def test_without_a_bound_wrong_neighbors_would_pass(rng, device, monkeypatch):
    X = rng.standard_normal((2000, 5))
    X[::2] += 1e4
    expected = nearest_neighbors(X, n_neighbors=5, backend="cpu")[0]
    trust = lambda self, worst, norms, errors: norms + torch.inf  # noqa: E731
    monkeypatch.setattr(search.ProductTable, "nearest_dropped", trust)
    found = search.nearest_items(device, X, X, np.arange(2000), 5)[0]
    assert np.mean(found == expected) < 0.99


@needs_cuda
@pytest.mark.parametrize(
    ("n_items", "width", "group"), [(4096, 128, 32), (1000, 32, 8), (999, 192, 1)]
)
def test_fused_kernels_equal_plain_ones(n_items, width, group):
    from linkspread.compiled.gpu import fused

    draw = {"device": "cuda"}
    items, queries = (torch.rand((n, width), **draw).half() for n in (n_items, 300))
    offsets = torch.rand(n_items, **draw)
    one, other = (
        k.group_minima(queries, items, offsets, group) for k in (fused, plain)
    )
    assert_allclose(one.cpu(), other.cpu(), rtol=1e-5, atol=1e-4)
    rows, wanted = (torch.rand((n, width + 1), **draw) for n in (n_items - 1, 300))
    groups = torch.randint(0, n_items // group, (300, 5), **draw)
    one, other = (k.candidate_sums(wanted, rows, groups, group) for k in (fused, plain))
    assert_allclose(one.cpu(), other.cpu(), rtol=1e-12)


def test_edges_are_the_larger_of_both_directions(rng, device):
    n_items, k = 50, 6
    ids = np.stack([rng.permutation(n_items)[:k] for _ in range(n_items)])
    weights = rng.random((n_items, k)) * (rng.random((n_items, k)) < 0.8)
    arrays = symmetric_edges(device.put(ids), device.put(weights))
    found = sp.csr_array(tuple(a.cpu().numpy() for a in arrays), shape=(50, 50))
    W = np.zeros((n_items, n_items))
    np.put_along_axis(W, ids, weights, axis=1)
    assert_array_equal(found.toarray(), np.maximum(W, W.T))
    assert found.nnz == np.count_nonzero(np.maximum(W, W.T))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_triangle_has_the_products_of_its_matrix(rng, device, dtype):
    tall = rng.standard_normal((20_000, 6)).astype(dtype)
    tall[:, 5] = tall[:, 0]  # dependent columns
    R = triangle(device.put(tall))
    wide = tall.astype(np.float64)
    assert_allclose(R.T @ R, wide.T @ wide, rtol=1e-6 if dtype == np.float32 else 1e-12)


def random_problems(rng, n=40, m=25, k=12):
    A = rng.random((n, m, k)) * np.exp(-3 * rng.random((n, m, k)))
    targets = rng.random((n, m))
    targets[3] = 0
    return A, targets


def test_codes_are_those_of_the_simplex_method(rng, device):
    A, targets = random_problems(rng)
    found, gaps, _ = codes.solve_codes(device.put(A), device.put(targets), 1e-7)
    expected, _, _ = solve_many(lambda rows: (A[rows], targets[rows]), len(A))
    assert gaps.max() <= 1e-7
    assert_allclose(found.cpu().numpy(), expected, atol=1e-10)
    assert_array_equal(found[3].cpu().numpy(), np.zeros(12))


def test_codes_that_are_not_proven_go_to_the_processor(rng, device, monkeypatch):
    A, targets = random_problems(rng)

    def problems(rows):
        return device.put(A[rows]), device.put(targets[rows])

    monkeypatch.setattr(codes, "MAX_STEPS", 2)
    found, gaps, report = solve_on_device(device, problems, len(A), shape=A.shape[1:])
    expected, _, _ = solve_many(lambda rows: (A[rows], targets[rows]), len(A))
    assert report.n_retried > 30 and gaps.max() <= 1e-7
    assert_allclose(found, expected, atol=1e-12)


def test_a_block_that_does_not_fit_is_halved(device):
    tried = []

    def work(rows):
        tried.append(rows.stop - rows.start)
        if tried[-1] > 3:
            raise torch.OutOfMemoryError("Tried to allocate 9 GiB. GPU 0 has less")
        return rows.start

    starts = [rows.start for rows, _ in device.in_blocks(work, 10, 8)]
    assert tried == [8, 4, 2, 2, 2, 2, 2] and starts == [0, 2, 4, 6, 8]


def test_a_row_that_does_not_fit_says_what_it_needs(device):
    def work(rows):
        raise torch.OutOfMemoryError("Tried to allocate 9 GiB. GPU 0 has less")

    match = r"must have room for one row.*allocate 9 GiB.*backend='cpu'"
    with pytest.raises(LinkspreadError, match=match):
        list(device.in_blocks(work, 10, 2))


def test_propagation_says_what_it_needs(device):
    S = normalize(np.ones((6, 6)) - np.eye(6))
    links = as_link_matrix(sp.csr_array(np.eye(6)))
    separable = separate((fitted_response((0.1, 0.1), 0.9),), tol=1e-6)
    device.budget = 1000.0
    with pytest.raises(LinkspreadError, match=r"must have about .* over `S_x`, got"):
        spread_on_device(device, S, links, S, separable, tol=1e-6, rank=None)


def test_a_graph_that_is_not_normalised_is_refused():
    W = np.ones((6, 6)) - np.eye(6)
    with pytest.raises(LinkspreadError, match=r"`S_x` must be normalised"):
        propagate(W, np.eye(6), normalize(W), backend="torch", rank=2)


def test_ranking_takes_few_rows_where_memory_is_short(rng, device):
    items, vectors = rng.random((300, 4)), rng.random((20, 4))
    device.budget = 50_000.0
    parts = list(search.best_items(device, vectors, items, 5))
    assert len(parts) > 1
    found = np.concatenate([part[0] for part in parts])
    assert_array_equal(found, np.argsort(-(vectors @ items.T), axis=1)[:, :5])


@pytest.mark.parametrize("n_columns", [30, 1000, 1003])
def test_the_least_entries_are_found_in_two_rounds(rng, device, n_columns):
    minima = rng.random((6, n_columns))
    values, places = search._least(device.put(minima), 9)
    expected = np.argsort(minima, axis=1)[:, :9]
    assert_array_equal(places.cpu().numpy(), expected)
    assert_array_equal(values.cpu().numpy(), np.take_along_axis(minima, expected, 1))


@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_distances_within_neighborhoods_are_those_of_differences(rng, shift):
    items = rng.normal(size=(6, 9, 5)) + shift
    items[:, 4] = items[:, 2]  # duplicates
    items[:, 5] = items[:, 3] + 1e-9 * rng.normal(size=(6, 5))  # all but duplicates
    items[0] = items[0, :1]  # one place
    found = codes.distances_within(*[torch.from_numpy(items)] * 2).numpy()
    apart = items[:, :, None] - items[:, None]
    assert_allclose(found, np.sqrt((apart**2).sum(-1)), rtol=1e-9)
    assert not found[:, 2, 4].any() and not found[0].any()
    assert not np.diagonal(found, axis1=1, axis2=2).any()
