"""Backends: the same answers from the processor, from torch and from a GPU."""

import builtins
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import linkspread as ls
from brute_force import brute_distances, brute_neighbors, separated
from linkspread.compiled import backends, gpu
from linkspread.graphs import knn_graph, l1_graph, nearest_neighbors, normalize
from linkspread.graphs.distances import METRICS
from linkspread.ground.errors import LinkspreadError, MissingDependencyError
from linkspread.learning import make_map
from linkspread.propagation import propagate, spread_links
from linkspread.search import rank

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-10}
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture(params=["cpu", "torch", pytest.param("cuda", marks=needs_cuda)])
def backend(request):
    return request.param


@pytest.fixture
def views(rng):
    """Return two views of four classes, and the labels of some items."""
    classes = rng.integers(0, 4, 90), rng.integers(0, 4, 70)
    centres = 2 * rng.standard_normal((2, 4, 6))
    tables = [
        centres[v][own] + rng.standard_normal((len(own), 6))
        for v, own in enumerate(classes)
    ]
    labels = [np.where(np.arange(len(own)) < 30, own, -1) for own in classes]
    names = "text", "image"
    return (
        dict(zip(names, tables, strict=True)),
        dict(zip(names, labels, strict=True)),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_neighbors_are_those_of_brute_force(rng, backend, metric, dtype):
    X = (rng.random((301, 12)) * (rng.random((301, 12)) < 0.7)).astype(dtype)
    Q = rng.random((30, 12)).astype(dtype)
    search = {"n_neighbors": 7, "metric": metric, "backend": backend}
    ids, distances = nearest_neighbors(X, **search)
    expected = brute_distances(metric, X, X)
    assert_array_equal(ids, brute_neighbors(expected, 7, exclude_self=True)[0])
    assert_allclose(distances**2, np.take_along_axis(expected, ids, 1) ** 2, atol=2e-7)
    ids, _ = nearest_neighbors(X, Q, **search)
    assert_array_equal(ids, brute_neighbors(brute_distances(metric, Q, X), 7)[0])
    assert ids.dtype == np.int32


def test_items_equal_in_half_precision_are_searched_again(rng, backend):
    X = separated(rng, n_items=600)
    ids, _ = nearest_neighbors(X, n_neighbors=5, backend=backend)
    distances = brute_distances("euclidean", X, X)
    assert_array_equal(ids, brute_neighbors(distances, 5, exclude_self=True)[0])


def test_equal_distances_go_to_the_smaller_number(rng, backend):
    X = rng.integers(0, 3, (500, 3)).astype(np.float64)
    ids, _ = nearest_neighbors(X, n_neighbors=9, backend=backend)
    distances = brute_distances("euclidean", X, X)
    assert_array_equal(ids, brute_neighbors(distances, 9, exclude_self=True)[0])


def test_sparse_items_and_own_distances_stay_with_the_processor(rng, backend):
    X = rng.random((40, 5))
    expected = nearest_neighbors(X, n_neighbors=3, backend="cpu")
    for table in (sp.csr_array(X), X):
        metric = "euclidean" if sp.issparse(table) else _own_distance
        found = nearest_neighbors(table, n_neighbors=3, metric=metric, backend=backend)
        assert_array_equal(found[0], expected[0])


def _own_distance(Q, X):
    return np.linalg.norm(Q[:, None] - X, axis=2)


@pytest.mark.parametrize("weights", ["gaussian", "binary", "similarity"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_graphs_are_equal(rng, backend, weights, dtype):
    X = rng.standard_normal((400, 8)).astype(dtype)
    graph = {"n_neighbors": 6, "weights": weights}
    W, expected = (knn_graph(X, backend=b, **graph) for b in (backend, "cpu"))
    assert W.dtype == dtype and W.indices.dtype == expected.indices.dtype
    assert_array_equal(W.indptr, expected.indptr)
    assert_array_equal(W.indices, expected.indices)
    assert_allclose(W.data, expected.data, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kernel", ["gaussian", "similarity"])
@pytest.mark.parametrize("linked", [False, True], ids=["SR", "CSR"])
def test_sparse_codes_are_equal(rng, backend, metric, kernel, linked):
    # More features than neighbours, so that no kernel is singular.
    X = rng.random((60, 20))
    y = np.where(np.arange(60) < 25, np.arange(60) % 3, -1)
    graph = {"n_neighbors": 15, "metric": metric, "kernel": kernel}
    graph["links"] = ls.Links.from_labels({"X": y}) if linked else None
    W, expected = (l1_graph(X, backend=b, **graph) for b in (backend, "cpu"))
    assert abs(W - expected).max() < 1e-8
    assert W.nnz == expected.nnz


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [None, 3])
def test_propagation_is_equal(views, backend, dtype, rank):
    graphs, Z = graphs_and_links(views, dtype)
    settings = {"alpha": (0.3, 0.1), "tol": 1e-12 if dtype == np.float64 else 1e-6}
    F, expected = (
        propagate(graphs[0], Z, graphs[1], rank=rank, backend=b, **settings)
        for b in (backend, "cpu")
    )
    assert F.left.dtype == dtype
    scale = abs(expected.toarray()).max()
    close = {"rtol": 0, "atol": TOLERANCE[dtype] * scale}
    assert_allclose(F.toarray(), expected.toarray(), **close)


def test_links_for_new_items_are_equal(views, backend):
    (S_x, S_y), Z = graphs_and_links(views, np.float64)
    one, other = (spread_links(S_x, Z, S_y, backend=b) for b in (backend, "cpu"))
    for name in ("core", "unseen_left", "unseen_right"):
        own, expected = getattr(one, name), getattr(other, name)
        own = one.left @ own @ one.right.T
        assert_allclose(own, other.left @ expected @ other.right.T, atol=1e-6)


def test_pairs_without_short_factors_are_spread_by_the_processor(rng, views, backend):
    (S_x, S_y), _ = graphs_and_links(views, np.float64)
    Z = sp.random_array((90, 70), density=0.3, format="csr", rng=rng)
    F, expected = (
        propagate(S_x, Z, S_y, rank=5, backend=b).toarray() for b in (backend, "cpu")
    )
    assert_array_equal(F, expected)


def graphs_and_links(views, dtype):
    tables, labels = views
    graphs = [
        normalize(knn_graph(X.astype(dtype), n_neighbors=8)) for X in tables.values()
    ]
    return graphs, ls.Links.from_labels(labels).between("text", "image")


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("place", ["cpu", pytest.param("cuda", marks=needs_cuda)])
def test_tensors_come_out_where_tensors_go_in(views, place):
    graphs, Z = graphs_and_links(views, np.float64)
    expected = propagate(graphs[0], Z, graphs[1], backend="cpu").toarray()
    tensors = [
        torch.sparse_csr_tensor(
            *(torch.from_numpy(a) for a in (S.indptr, S.indices, S.data)), S.shape
        ).to(place)
        for S in graphs
    ]
    F = propagate(tensors[0], Z, tensors[1])
    assert F.left.device.type == F.right.device.type == place
    assert_allclose(F.toarray().cpu().numpy(), expected, atol=1e-6 * expected.max())


@pytest.mark.parametrize("n_items", [50, 40_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranking_is_equal(rng, backend, n_items, dtype):
    items = rng.standard_normal((n_items, 4)).astype(dtype)
    vectors = rng.standard_normal((9, 4)).astype(dtype)
    only = np.flatnonzero(rng.random(n_items) < 0.8)
    barred = sp.random_array((9, n_items), density=0.1, format="csr", rng=rng)
    for limits in ({}, {"only": only}, {"barred": barred}):
        found, scores = rank(vectors, items, n_results=7, backend=backend, **limits)
        expected = rank(vectors, items, n_results=7, backend="cpu", **limits)
        assert_array_equal(found, expected[0])
        assert_allclose(scores, expected[1], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("n_items", [60, 40_000])
def test_equal_scores_come_in_the_order_of_the_items(rng, backend, n_items):
    items = rng.integers(0, 2, (n_items, 2)).astype(np.float64)
    vectors = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    found, scores = rank(vectors, items, n_results=7, backend=backend)
    block = vectors @ items.T
    assert_array_equal(found, np.argsort(-block, axis=1, kind="stable")[:, :7])
    assert_array_equal(scores, np.take_along_axis(block, found, 1))


@pytest.mark.parametrize("graph", ["knn", "sr"])
def test_a_model_answers_the_same(views, backend, graph):
    tables, labels = views
    models = [
        ls.LinkSpreading(n_neighbors=8, graph=graph, backend=b).fit(tables, labels)
        for b in (backend, "cpu")
    ]
    search = {"source": "text", "target": "image", "n_results": 5}
    for queries in (np.arange(20), tables["text"][:4] + 0.01):
        (ids, scores), expected = (m.search(queries, **search) for m in models)
        assert_array_equal(ids, expected[0])
        assert_allclose(scores, expected[1], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "hellinger"])
def test_maps_are_equal(rng, backend, metric):
    X = rng.random((700, 9)).astype(np.float32)
    X[3] = 0
    made = []
    for own in (backend, "cpu"):
        with backends.use_backend(own):
            made.append(make_map(X, metric=metric, judged=[5, 2], n_labelled=2))
    view, expected = made
    assert view.values.dtype == np.float32 and view.values.flags.c_contiguous
    # Whitening amplifies rounding by the root of the condition of the landmarks.
    assert_allclose(view.values, expected.values, atol=2e-3)
    K, expected_K = (own.values @ own.values.T for own in made)
    assert_allclose(K, expected_K, atol=2e-4)
    new = rng.random((5, 9)).astype(np.float32)
    assert_allclose(view.transform(new), expected.transform(new), atol=2e-3)


def test_components_of_wide_tables_are_equal(rng, backend):
    X = (rng.random((560, 40)) @ rng.random((40, 530))).astype(np.float32)
    made = []
    for own in (backend, "cpu"):
        with backends.use_backend(own):
            made.append(make_map(X, metric="cosine", blocks=("linear",)).values)
    # Components may be turned; inner products do not see it.
    K, expected = (own @ own.T for own in made)
    assert_allclose(K, expected, atol=2e-4)


def test_a_map_that_does_not_fit_the_device_is_made_by_the_processor(rng, monkeypatch):
    X = rng.random((50, 4))
    expected = make_map(X).values
    monkeypatch.setattr(type(gpu.open_device("torch")), "free_bytes", lambda self: 1e3)
    with backends.use_backend("torch"):
        view = make_map(X, blocks=("linear", "gaussian"))
    assert_array_equal(view.values, expected[:, : view.values.shape[1]])


@pytest.mark.parametrize("shared", [False, True], ids=["labels", "shared"])
def test_a_learner_answers_the_same(views, backend, shared):
    tables, labels = views
    if not shared:
        tables = {**tables, "image": tables["image"][:, :5]}
    links = ls.Links.from_labels(labels)
    if shared:
        i = np.arange(30)
        links = links + ls.Links.from_pairs(np.c_[i, i], between=("text", "image"))
    models = [
        ls.CrossViewSearch(backend=b).fit(tables, links) for b in (backend, "cpu")
    ]
    one, other = (model.scores("text", "image") for model in models)
    assert_allclose(one, other, atol=1e-3 * np.abs(other).max())
    queries = tables["text"][:4] + 0.01
    search = {"source": "text", "target": "image", "n_results": 5}
    (_, one), (_, other) = (model.search(queries, **search) for model in models)
    assert_allclose(one, other, atol=1e-3 * np.abs(other).max())


def test_a_learner_keeps_its_backend(views, tmp_path):
    tables, labels = views
    model = ls.CrossViewSearch(backend="torch")
    model.fit(tables, ls.Links.from_labels(labels)).save(tmp_path / "model")
    assert ls.load(tmp_path / "model").backend == "torch"
    with pytest.raises(LinkspreadError, match=r"`backend` must be one of .*'gpu'"):
        ls.CrossViewSearch(backend="gpu").fit(tables)


def test_an_unknown_backend_is_refused():
    with pytest.raises(LinkspreadError, match=r"`backend` must be one of .*'gpu'.*Cho"):
        knn_graph([[0.0], [1.0]], n_neighbors=1, backend="gpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_machine_without_a_gpu_says_so():
    gpu.open_device.cache_clear()
    match = r"`backend` must be one that this machine has, got 'cuda'.*backend='cpu'"
    with pytest.raises(LinkspreadError, match=match):
        knn_graph([[0.0], [1.0]], n_neighbors=1, backend="cuda")


def test_missing_torch_names_the_command(monkeypatch):
    real = builtins.__import__

    def fail(name, *args, **kwargs):
        if name.partition(".")[0] == "torch":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    gpu.open_device.cache_clear()
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr("importlib.import_module", fail)
    match = r"GPU backend needs the package torch.*pip install 'linkspread\[gpu\]'"
    with pytest.raises(MissingDependencyError, match=match):
        knn_graph([[0.0], [1.0]], n_neighbors=1, backend="torch")


def test_small_work_does_not_load_torch():
    program = (
        "import sys, numpy as np, linkspread as ls\n"
        "ls.graphs.knn_graph(np.eye(5), n_neighbors=2)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.parametrize(
    ("work", "has_cuda", "expected"),
    [(1e9, True, "device"), (1e9, False, None), (1e3, True, None)],
)
def test_auto_takes_a_gpu_where_it_pays(monkeypatch, work, has_cuda, expected):
    monkeypatch.setattr(gpu, "has_cuda", lambda: has_cuda)
    monkeypatch.setattr(gpu, "open_device", lambda backend: "device")
    assert backends.choose_device("auto", work=work, min_work=1e6) == expected
    with backends.use_backend("cpu"):
        assert backends.choose_device("auto", work=work, min_work=1e6) is None
    with backends.use_backend("torch"):
        assert backends.choose_device("auto", work=0, min_work=1e6) == "device"
    assert backends.choose_device("cpu", work=work, min_work=1e6) is None
