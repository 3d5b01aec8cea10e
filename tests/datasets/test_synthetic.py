import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkspread.datasets import make_views
from linkspread.ground.errors import LinkspreadError
from neighbor_graphs import make_neighbor_graph


@pytest.fixture(scope="module")
def made():
    # More than two chunks of rows, and views of different sizes.
    return make_views({"text": 9000, "image": 5000}, n_features={"text": 5, "image": 9})


def test_each_chunk_of_rows_has_a_seed_of_its_own(made):
    view, A = "text", made.maps["text"]
    rng = np.random.default_rng((made.random_state, 1, 0, 4096))
    hidden = made.prototypes[made.labels[view][4096:8192]]
    noisy = hidden + made.noise * rng.standard_normal(hidden.shape)
    expected = np.tanh(noisy @ A).astype(np.float32)
    assert_array_equal(made.views()[view][4096:8192], expected)


def test_shapes_types_and_classes(made):
    views = made.views()
    assert {v: X.shape for v, X in views.items()} == {
        "text": (9000, 5),
        "image": (5000, 9),
    }
    assert all(X.dtype == np.float32 for X in views.values())
    for view, y in made.labels.items():
        assert len(y) == len(views[view])
        assert_array_equal(np.unique(y), np.arange(10))
    assert (made.labels["text"][:5000] != made.labels["image"]).any()


def test_without_noise_a_class_is_a_point():
    made = make_views(500, noise=0.0, n_classes=7)
    for view, X in made.views().items():
        points = np.unique(np.column_stack([made.labels[view], X]), axis=0)
        assert len(points) == 7
        assert len(np.unique(X, axis=0)) == 7, "two classes must not share a point"


def test_noise_mixes_neighbours():
    purities = []
    for noise in (0.5, 1.0, 2.0):
        made = make_views(1000, noise=noise)
        X, y = made.views()["text"], made.labels["text"]
        distances = ((X[:, None] - X[None]) ** 2).sum(axis=2) + np.eye(1000) * 1e9
        purities.append((y[distances.argmin(axis=1)] == y).mean())
    assert purities[0] > 0.98 > purities[1] > 0.6 > purities[2] > 0.15


def test_same_seed_same_bits_other_seed_other_rows():
    first, again, other = (make_views(50, random_state=s) for s in (3, 3, 4))
    assert_array_equal(first.views()["text"], again.views()["text"])
    assert (first.views()["text"] != other.views()["text"]).any()


def test_views_are_bent_in_different_ways():
    made = make_views(50, noise=0.0, n_classes=3)
    text, image = made.views().values()
    assert not np.isin(text[:, 0], image[:, 0]).any()


def test_a_million_items_need_only_their_labels():
    made = make_views(1_000_000, dtype=np.float64)
    assert sum(y.nbytes for y in made.labels.values()) == 8_000_000


def test_repr_is_short(made):
    assert repr(made) == "SyntheticViews(10 classes, text: 9000 x 5, image: 5000 x 9)"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_samples": 0}, r"`n_samples\['text'\]` must be.*got 0"),
        ({"n_classes": 0}, "`n_classes` must be.*got 0"),
        ({"n_features": {"text": 3}}, "must name every view, got none for 'image'"),
        ({"noise": -1.0}, "`noise` must be.*got -1.0"),
        ({"noise": float("nan")}, "`noise` must be.*got nan"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(LinkspreadError, match=message):
        make_views(**parameters)


def edges(W):
    return np.repeat(np.arange(W.shape[0]), np.diff(W.indptr)), W.indices


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(0).integers(10, size=5000)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("n_neighbors", [1, 7, 20])
def test_graph_is_symmetric_without_loops(labels, shuffled, n_neighbors):
    W = make_neighbor_graph(labels, n_neighbors=n_neighbors, shuffled=shuffled)
    assert (W != W.T).nnz == 0
    assert not W.diagonal().any()
    assert W.has_canonical_format
    assert W.dtype == np.float32
    assert W.data.min() > 0 and W.data.max() <= 1
    assert W.nnz / len(labels) == pytest.approx(n_neighbors, rel=0.02)


@pytest.mark.parametrize("purity", [0.0, 0.5, 0.9, 1.0])
def test_purity_is_the_fraction_within_classes(labels, purity):
    rows, columns = edges(make_neighbor_graph(labels, purity=purity))
    assert np.mean(labels[rows] == labels[columns]) == pytest.approx(purity, abs=0.01)


def test_no_item_is_isolated(labels):
    assert np.diff(make_neighbor_graph(labels).indptr).min() > 5


def test_sorted_items_have_near_neighbours_shuffled_ones_far():
    ordered = np.sort(np.random.default_rng(0).integers(10, size=20_000))
    near, far = (
        np.abs(np.subtract(*edges(make_neighbor_graph(ordered, shuffled=s))))
        for s in (False, True)
    )
    assert np.median(near) < 25 < 300 < np.median(far)


def test_same_seed_same_graph(labels):
    first, again = (make_neighbor_graph(labels, random_state=5) for _ in range(2))
    other = make_neighbor_graph(labels, random_state=6)
    assert_array_equal(first.indices, again.indices)
    assert_array_equal(first.data, again.data)
    assert (first != other).nnz > 0


def test_one_class_keeps_every_edge_within():
    W = make_neighbor_graph(np.zeros(100, dtype=int), n_neighbors=4, purity=0.0)
    assert W.nnz == pytest.approx(400, rel=0.1)


def test_classes_smaller_than_the_neighbourhood():
    W = make_neighbor_graph([0, 0, 1, 1, 2], n_neighbors=20)
    assert (W != W.T).nnz == 0
    assert not W.diagonal().any()


def test_labels_are_not_modified(labels):
    before = labels.copy()
    make_neighbor_graph(labels, shuffled=True)
    assert_array_equal(labels, before)
