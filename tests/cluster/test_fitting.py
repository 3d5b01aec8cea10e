"""A fit by worker processes gives the model that one machine fits."""

import importlib
from functools import partial

import numba
import numpy as np
import pytest
from scipy import sparse

import linkspread as ls
from cluster_cases import largest_difference, problem
from example_files import command, made_data, write_pairs, write_views
from linkspread import cluster
from linkspread.cluster import block_graphs, session
from linkspread.cluster.fitting import SpreadingFit
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import GraphError, LinkspreadError, ViewError
from thread_counts import blas_threads, two_blas_threads  # noqa: F401

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def case():
    return problem()


def both(client, views, links, **parameters):
    """Return the model of one machine and that of the cluster."""
    parameters = {"n_neighbors": 10, **parameters}
    one = ls.LinkSpreading(**parameters).fit(views, links)
    other = ls.LinkSpreading(**parameters)
    return one, cluster.fit(other, views, links, client=client)


@pytest.mark.parametrize("graph", ["knn", "sr", "cwa", "csr"])
def test_spread_scores_and_graphs_are_those_of_one_machine(client, case, graph):
    one, other = both(client, *case, graph=graph)
    assert largest_difference(one, other) < 1e-6
    for view in case[0]:
        gap = one.graphs_[view].affinity_ - other.graphs_[view].affinity_
        assert abs(gap).max() < 1e-9
        gap = one._spreading.normalized[view] - other._spreading.normalized[view]
        assert abs(gap).max() < 1e-9


def test_the_largest_spread_link_may_be_at_no_edge(client, case):
    # Far apart: what spreads is largest between them, where the graph has no edge.
    views, _ = case
    far = np.argsort(views["text"][:, 0])
    within = [(int(far[i]), int(far[-1 - i]), 1.0) for i in range(12)]
    links = some_pairs() + ls.Links.from_pairs(within, between=("text", "text"))
    graph = {"text": "cwa", "image": "knn"}
    one, other = both(client, views, links, graph=graph, alpha=0.3)
    gap = one.graphs_["text"].affinity_ - other.graphs_["text"].affinity_
    assert abs(gap).max() < 1e-6
    edges = one.graphs_["text"].neighbors.affinity_
    assert not any(edges[i, j] for i, j, _ in within)


def test_neighbours_ties_and_duplicates_are_those_of_one_machine(client):
    # Items on a grid have many neighbours at the same distance, and copies.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (150, 3)).astype(float)
    labels = {"X": np.where(rng.random(150) < 0.3, X[:, 0].astype(int), -1)}
    one, other = both(client, {"X": X}, labels)
    assert (one.graphs_["X"].affinity_ != other.graphs_["X"].affinity_).nnz == 0


def test_new_items_find_what_they_find_on_one_machine(client, case):
    one, other = both(client, *case)
    queries = case[0]["text"][:5] + 0.01
    asked = {"source": "text", "target": "image", "n_results": 7}
    for found, expected in zip(
        other.search(queries, **asked), one.search(queries, **asked), strict=True
    ):
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_pairs_without_thin_factors_are_spread_as_on_one_machine(client, case):
    parameters = {"alpha": 0.2, "tol": 1e-8}
    one, other = both(client, case[0], some_pairs(), **parameters)
    assert largest_difference(one, other) < 1e-6
    reports = [m.report_.spreads["text", "image"] for m in (one, other)]
    assert [report.rank for report in reports] == [None, None]


@pytest.mark.slow
def test_a_rank_is_kept_as_on_one_machine(client, case):
    one, other = both(client, case[0], some_pairs(), rank=5)
    assert other.spreads_["text", "image"].core.shape == (5, 5)
    assert largest_difference(one, other) < 1e-4  # both are sketches, in float32


def test_columns_in_slabs_and_single_precision_change_nothing(client, monkeypatch):
    views, links = problem(np.float32)
    monkeypatch.setattr(block_graphs, "SLAB_BYTES", 2 * 4 * len(views["text"]))
    parameters = {"bandwidth": "0.5 mean", "metric": "cosine", "alpha": 0.02}
    one, other = both(client, views, links, **parameters)
    assert other.spreads_["text", "image"].left.dtype == np.float32
    assert largest_difference(one, other) < 1e-5


def test_a_model_from_files_is_an_ordinary_folder(client, case, tmp_path):
    views, links = case
    np.save(tmp_path / "text.npy", views["text"])
    blocks = tmp_path / "image"
    blocks.mkdir()
    for k in range(3):
        np.save(blocks / f"part-{k}.npy", views["image"][70 * k : 70 * (k + 1)])
    paths = {"text": tmp_path / "text.npy", "image": str(blocks)}
    ids = {"text": [f"t{i}" for i in range(len(views["text"]))]}
    model = ls.LinkSpreading(n_neighbors=10, alpha=0.02)
    cluster.fit(model, paths, links, client=client, ids=ids)
    model.save(tmp_path / "model")
    again = ls.load(tmp_path / "model")
    expected = ls.LinkSpreading(n_neighbors=10, alpha=0.02).fit(views, links, ids=ids)
    assert largest_difference(expected, again) < 1e-6
    asked = {"source": "text", "target": "image", "n_results": 5}
    assert (again.search("t7", **asked)[0] == expected.search("t7", **asked)[0]).all()


def some_pairs():
    """Return pairs of 70 texts with 70 images, judged by their labels."""
    data = ls.datasets.make_views(330, n_classes=3, random_state=0)
    rng = np.random.default_rng(2)
    pairs = zip(rng.permutation(330)[:70], rng.permutation(210)[:70], strict=True)
    text, image = data.labels["text"], data.labels["image"]
    judged = [(int(i), int(j), 1.0 if text[i] == image[j] else -1.0) for i, j in pairs]
    return ls.Links.from_pairs(judged, between=("text", "image"))


def test_a_missing_chunk_is_told_in_one_sentence(client, case, tmp_path):
    views, links = case
    for view, X in views.items():
        np.save(tmp_path / f"{view}.npy", X)
    paths = {view: cluster.open_view(tmp_path / f"{view}.npy") for view in views}
    (tmp_path / "image.npy").unlink()
    with pytest.raises(ViewError, match="view 'image' must be visible to every worker"):
        cluster.fit(ls.LinkSpreading(n_neighbors=5), paths, links, client=client)


def test_what_workers_refuse_reaches_the_caller(client, case):
    views = {**case[0], "image": -np.abs(case[0]["image"])}
    model = ls.LinkSpreading(n_neighbors=5, metric={"text": "cosine", "image": "chi2"})
    with pytest.raises(ViewError, match="view 'image': `X` must have no negative"):
        cluster.fit(model, views, case[1], client=client)


def test_a_folder_without_room_is_told(client, case, monkeypatch):
    def fail(path, X):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("linkspread.cluster.views.np.save", fail)
    with pytest.raises(LinkspreadError, match="`folder` must have room for view"):
        cluster.fit(ls.LinkSpreading(), *case, client=client)


@pytest.mark.parametrize("package", ["linkspread", "numpy"])
def test_workers_with_another_version_are_refused(client, case, monkeypatch, package):
    versions = {**session.VERSIONS, package: "9.9"}
    monkeypatch.setattr(session, "VERSIONS", versions)
    with pytest.raises(LinkspreadError, match=f"must have {package} 9.9 "):
        cluster.fit(ls.LinkSpreading(), *case, client=client)


def test_what_only_one_machine_fits_is_refused(client, case):
    message = "view 'text': `graph` must be one of knn, sr"
    with pytest.raises(LinkspreadError, match=message):
        cluster.fit(ls.LinkSpreading(graph=np.ones_like), *case, client=client)


def test_something_else_than_a_client_is_refused(case):
    with pytest.raises(LinkspreadError, match="`client` must be a distributed.Client"):
        cluster.fit(ls.LinkSpreading(), *case, client="tcp://10.0.0.1:8786")


def test_sparse_views_and_wrong_ids_are_refused(client, case, tmp_path):
    views, links = case
    crowd = {**views, "image": sparse.csr_array(views["image"])}
    with pytest.raises(ViewError, match="view 'image' must be dense"):
        cluster.fit(ls.LinkSpreading(), crowd, links, client=client)
    np.save(tmp_path / "text.npy", views["text"])
    with pytest.raises(ViewError, match="ids of view 'text' must be as many"):
        cluster.fit(
            ls.LinkSpreading(),
            {**views, "text": tmp_path / "text.npy"},
            links,
            client=client,
            ids={"text": ["a", "b"]},
        )


def test_wrong_names_of_views_are_refused(client, case):
    with pytest.raises(ViewError, match="`views` must map names"):
        cluster.fit(ls.LinkSpreading(), {}, case[1], client=client)
    with pytest.raises(ViewError, match="`ids` must be for the given views"):
        cluster.fit(ls.LinkSpreading(), *case, client=client, ids={"sound": [1]})


def test_workers_without_the_package_are_refused(client, case, tmp_path, monkeypatch):
    # A module that only this process can import stands for a package that is missing.
    (tmp_path / "only_here.py").write_text("def ask(dask_worker):\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    only_here = importlib.import_module("only_here")
    monkeypatch.setattr("linkspread.cluster.session._begin", only_here.ask)
    with pytest.raises(LinkspreadError, match="every worker must have linkspread"):
        cluster.fit(ls.LinkSpreading(), *case, client=client)


def test_a_cluster_without_workers_is_refused(case):
    distributed = pytest.importorskip("distributed")
    idle = distributed.LocalCluster(
        n_workers=0, processes=False, dashboard_address=":0"
    )
    with idle, distributed.Client(idle, set_as_default=False) as client:
        with pytest.raises(LinkspreadError, match="`client` must have workers"):
            cluster.fit(ls.LinkSpreading(), *case, client=client)


def test_the_report_has_what_was_moved(client, case):
    model = cluster.fit(ls.LinkSpreading(), *case, client=client)
    usage = model.cluster_report_
    (vectors,) = model.spreads_.values()
    assert usage.n_workers == 2 and usage.peak_bytes > 0
    assert usage.moved_bytes > vectors.left.nbytes + vectors.right.nbytes
    assert str(usage).startswith("2 workers: ")


def test_too_many_neighbours_are_refused_before_the_work(client, case):
    with pytest.raises(GraphError, match="view 'image': `n_neighbors` must be smaller"):
        cluster.fit(ls.LinkSpreading(n_neighbors=210), *case, client=client)


def test_the_command_fits_by_the_workers_of_a_scheduler(client, tmp_path, monkeypatch):
    data = made_data()
    write_views(tmp_path, data)
    write_pairs(tmp_path, data)
    line = (
        "fit --view text=text.parquet --view image=image.parquet --links pairs.csv "
        "--model spreading --n-neighbors 5 --output "
    )
    address = client.scheduler.address
    for rest in ("plain", f"made --scheduler {address}"):
        assert command(monkeypatch, tmp_path, line + rest) == 0
    models = [ls.load(tmp_path / name) for name in ("plain", "made")]
    assert largest_difference(*models) < 1e-6
    assert "scheduler" not in (tmp_path / "made" / "run.toml").read_text()
    assert not list(tmp_path.glob("linkspread-*"))  # tables for the workers


def test_a_scheduler_that_does_not_answer_is_told(monkeypatch):
    monkeypatch.setattr("linkspread.cluster.session.TIMEOUT", "0.2s")
    with pytest.raises(LinkspreadError, match="`scheduler` must be the address of"):
        with cluster.connect("tcp://127.0.0.1:1"):
            pass


@pytest.mark.usefixtures("two_blas_threads")
def test_a_task_has_the_threads_of_its_worker_and_no_more(client, monkeypatch):
    assert client.submit(session.worker_threads).result() == 1
    assert session.worker_threads() is None
    asked = numba.get_num_threads, partial(count_threads, None), largest_blas
    assert [session.alone(ask) for ask in asked] == [ask() for ask in asked]
    monkeypatch.setattr(session, "worker_threads", lambda: 1)
    assert [session.alone(ask) for ask in asked] == [1, 1, 1]


def largest_blas():
    return max(blas_threads())


@pytest.mark.usefixtures("two_blas_threads")
def test_jobs_are_the_threads_of_this_machine(case, client, monkeypatch):
    seen = []

    def run(work):
        seen.extend([count_threads(None), largest_blas()])

    monkeypatch.setattr(SpreadingFit, "run", run)
    model = ls.LinkSpreading(n_neighbors=5, n_jobs=1)
    cluster.fit(model, *case, client=client)
    assert seen == [1, 1]
