"""The learner with maps by worker processes is the one that one machine fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import linkspread as ls
from cluster_cases import largest_difference, problem
from example_files import command, made_data, write_pairs, write_views
from linkspread import cluster
from linkspread.cluster.fitting import BlockWork
from linkspread.cluster.session import Session
from linkspread.ground.errors import LinkError, LinkspreadError, ViewError

pytestmark = pytest.mark.slow

PAIR = ("text", "image")


def both(client, views, links=None, **parameters):
    """Return the model of one machine and that of the cluster."""
    one = ls.CrossViewSearch(**parameters).fit(views, links)
    other = ls.CrossViewSearch(**parameters)
    return one, cluster.fit(other, views, links, client=client)


def check_maps(one, other):
    """Compare the features of two models, block by block."""
    for view, own in one._maps.items():
        for block in own.blocks:
            first, second = (
                m._maps[view].values[:, m._maps[view].columns(block)]
                for m in (one, other)
            )
            if block == "graph":  # eigenvectors have either sign
                first, second = (own[:100] @ own.T for own in (first, second))
            assert_allclose(second, first, atol=1e-4)


def judged_pairs():
    """Return 70 judged pairs of a text and an image, a third of them refused."""
    rng = np.random.default_rng(2)
    pairs = zip(rng.permutation(330)[:70], rng.permutation(210)[:70], strict=True)
    judged = [
        (int(i), int(j), 1.0 if k % 3 else -1.0) for k, (i, j) in enumerate(pairs)
    ]
    return ls.Links.from_pairs(judged, between=PAIR)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("labels", "f4"),
        ("labels", "f8"),
        ("pairs", "f8"),
        ("matched", "f4"),
        ("", "f4"),
    ],
)
def test_scores_are_those_of_one_machine(client, kind, dtype):
    views, labels = problem(dtype)
    links = {
        "labels": ls.Links.from_labels(labels),
        "pairs": judged_pairs(),
        "matched": ls.Links.from_matched(PAIR, 100),
        "": None,
    }[kind]
    one, other = both(client, views, links)
    chosen = [
        [(term.kind, term.mixture, term.ridge) for term in m.choices_[PAIR].terms]
        for m in (one, other)
    ]
    assert chosen[0] == chosen[1]
    assert largest_difference(one, other) < 1e-5
    check_maps(one, other)
    if kind:
        for view in views:
            graphs = [m._maps[view].blocks["graph"].graph for m in (one, other)]
            assert abs(graphs[0].affinity_ - graphs[1].affinity_).max() == 0


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["cosine", "hellinger"])
def test_components_of_wide_views_are_those_of_one_machine(client, metric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 30)) @ rng.normal(size=(30, 600))
    X = np.abs(X + 0.3 * rng.normal(size=X.shape))
    views = {"text": X, "image": X[:, :9] + 0.1}
    links = ls.Links.from_matched(PAIR, 100)
    one, other = both(client, views, links, metric=metric)
    maps = [m._maps["text"] for m in (one, other)]
    first, second = (own.values[:, own.columns("linear")] for own in maps)
    assert first.shape[1] == 512
    assert_allclose(first, second, atol=1e-5)
    assert largest_difference(one, other) < 1e-5


@pytest.mark.slow
def test_maps_in_several_blocks_are_those_of_one_machine(client):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 6)).astype(np.float32)
    views = {"text": X, "image": X[:5000] @ rng.normal(size=(6, 4)).astype("f")}
    one, other = both(client, views, ls.Links.from_matched(PAIR, 30))
    check_maps(one, other)
    queries = views["text"][:20] + np.float32(0.01)
    found = [m.search(queries, source="text", target="image") for m in (one, other)]
    assert_allclose(found[0][1], found[1][1], rtol=1e-5)


@pytest.mark.parametrize("metric", ["euclidean", "hellinger"])
def test_products_of_columns_are_summed_over_blocks(client, tmp_path, metric):
    X = np.random.default_rng(0).random(size=(9000, 20)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    view = cluster.open_view(tmp_path / "X.npy")
    work = BlockWork(Session(client), view, X, metric, "exact")
    R = np.sqrt(X / X.sum(axis=1, keepdims=True)) if metric == "hellinger" else X
    assert_allclose(work.gram(), R.T.astype(float) @ R, rtol=1e-5)


def test_a_model_from_files_is_an_ordinary_one(client, tmp_path):
    views, labels = problem()
    np.save(tmp_path / "text.npy", views["text"])
    (tmp_path / "image").mkdir()
    for k in range(3):
        part = views["image"][70 * k : 70 * (k + 1)]
        np.save(tmp_path / "image" / f"part-{k}.npy", part)
    paths = {"text": tmp_path / "text.npy", "image": str(tmp_path / "image")}
    ids = {"text": [f"t{i}" for i in range(len(views["text"]))]}
    links = ls.Links.from_pairs([(f"t{i}", i, 1.0) for i in range(50)], between=PAIR)
    expected = ls.CrossViewSearch().fit(views, links, ids=ids)
    model = ls.CrossViewSearch()
    assert cluster.fit(model, paths, links, client=client, ids=ids) is model
    model.save(tmp_path / "model")
    again = ls.load(tmp_path / "model")
    more = ls.Links.from_pairs([("t60", 60, 1.0), ("t61", 3, -1.0)], between=PAIR)
    queries = views["text"][:5] + 0.01
    asked = {"source": "text", "target": "image", "n_results": 7}
    for own in (model, again):
        assert largest_difference(expected, own) < 1e-5
        found = own.search(queries, **asked)
        for mine, right in zip(found, expected.search(queries, **asked), strict=True):
            assert_allclose(mine, right, rtol=1e-4)
    for own in (model, again, expected):
        own.add_links(more)
    assert largest_difference(expected, model) < 1e-5
    assert largest_difference(expected, again) < 1e-5


def test_tables_of_data_frames_keep_their_columns_and_ids(client):
    pd = pytest.importorskip("pandas")
    views, _ = problem()
    names = [f"x{i}" for i in range(views["text"].shape[1])]
    text = pd.DataFrame(views["text"], columns=names)
    text["id"] = [f"t{i}" for i in range(len(text))]
    links = ls.Links.from_pairs([(f"t{i}", i, 1.0) for i in range(50)], between=PAIR)
    one, other = both(client, {**views, "text": text}, links)
    assert largest_difference(one, other) < 1e-5
    assert other._columns == one._columns
    assert list(other.items_["text"].ids) == list(one.items_["text"].ids)


def test_neighbours_may_be_approximate(client):
    pytest.importorskip("faiss")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 6))
    views = {"text": X, "image": X @ rng.normal(size=(6, 4))}
    model, links = ls.CrossViewSearch(), ls.Links.from_matched(PAIR, 30)
    cluster.fit(model, views, links, client=client, method="approximate")
    assert 0.9 < model._maps["text"].blocks["graph"].graph.recall_ <= 1


def test_the_report_has_what_was_moved(client):
    views, labels = problem()
    _, other = both(client, views, ls.Links.from_labels(labels))
    report = other.cluster_report_
    maps = sum(own.values.nbytes for own in other._maps.values())
    assert report.n_workers == 2 and report.moved_bytes > maps
    assert str(report).startswith("2 workers: ")


def test_what_one_machine_refuses_is_refused(client):
    views, labels = problem()
    with pytest.raises(LinkError, match="`links` must be Links"):
        cluster.fit(ls.CrossViewSearch(), views, labels, client=client)
    with pytest.raises(ViewError, match="`views` must be two or more"):
        cluster.fit(ls.CrossViewSearch(), {"text": views["text"]}, client=client)
    crowd = {**views, "image": sparse.csr_array(views["image"])}
    with pytest.raises(ViewError, match="view 'image' must be dense"):
        cluster.fit(ls.CrossViewSearch(), crowd, client=client)


def test_a_fit_that_fails_leaves_an_earlier_one_whole(client, monkeypatch):
    views, labels = problem()
    links = ls.Links.from_labels(labels)
    model = ls.CrossViewSearch().fit(views, links)
    before = model.scores(*PAIR)
    monkeypatch.setattr("linkspread.cluster.fitting._features", fail)
    with pytest.raises(ViewError, match="spoilt"):
        cluster.fit(model, views, links, client=client)
    assert (model.scores(*PAIR) == before).all()


def fail(*args, **named):
    raise ViewError("spoilt")


def test_shards_are_of_spreading_alone(client, tmp_path):
    with pytest.raises(LinkspreadError, match="`model` must be a LinkSpreading"):
        output = tmp_path / "shards"
        cluster.fit_shards(
            ls.CrossViewSearch(), *problem(), client=client, output=output
        )


def test_the_command_fits_the_learner_by_a_scheduler(client, tmp_path, monkeypatch):
    data = made_data()
    write_views(tmp_path, data)
    write_pairs(tmp_path, data)
    line = (
        "fit --view text=text.parquet --view image=image.parquet --links pairs.csv "
        "--output "
    )
    for rest in ("plain", f"made --scheduler {client.scheduler.address}"):
        assert command(monkeypatch, tmp_path, line + rest) == 0
    models = [ls.load(tmp_path / name) for name in ("plain", "made")]
    assert isinstance(models[1], ls.CrossViewSearch)
    assert largest_difference(*models) < 1e-5
    assert "scheduler" not in (tmp_path / "made" / "run.toml").read_text()
