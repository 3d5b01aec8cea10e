import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs

from linkspread.metrics import mean_average_precision
from linkspread.studies.report import (
    ComparisonRow,
    choose_labeled,
    compare_chance,
    compare_label_spreading,
    compare_scores,
    expected_by_chance,
)


@pytest.fixture
def labels(rng):
    return {"text": rng.integers(3, size=60), "image": rng.integers(3, size=50)}


@pytest.fixture
def hidden(rng):
    return {"text": rng.permutation(60)[:40], "image": rng.permutation(50)[:30]}


def test_scores_are_measured_among_hidden_items_in_both_directions(rng, labels, hidden):
    F = rng.random((60, 50))

    def scores(source, target, *, rows, cols):
        table = F if source == "text" else F.T
        assert target != source
        return table[np.ix_(rows, cols)]

    row = compare_scores("ours", scores, labels, hidden, seconds=1.5)
    block = F[np.ix_(hidden["text"], hidden["image"])]
    y_text = labels["text"][hidden["text"]]
    y_image = labels["image"][hidden["image"]]
    assert row.forward == mean_average_precision(block, y_text, y_image)
    assert row.backward == mean_average_precision(block.T, y_image, y_text)
    assert row.average == pytest.approx((row.forward + row.backward) / 2)
    assert (row.method, row.seconds) == ("ours", 1.5)


def test_the_whole_table_of_scores_is_never_asked_for(labels, hidden, monkeypatch):
    monkeypatch.setattr("linkspread.metrics.ENTRIES_PER_BLOCK", 100)
    sizes = []

    def scores(source, target, *, rows, cols):
        sizes.append(len(rows) * len(cols))
        return np.zeros((len(rows), len(cols)))

    compare_scores("ours", scores, labels, hidden)
    assert max(sizes) <= 100 and sum(sizes) == 2 * 40 * 30


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_label_spreading_is_perfect_on_separate_classes(container):
    X, y = make_blobs(300, centers=np.eye(3) * 50, random_state=0)
    labels = {"text": y, "image": y}
    labeled = choose_labeled(y, 2)
    known = dict.fromkeys(labels, np.where(labeled, y, -1))
    hidden = dict.fromkeys(labels, np.flatnonzero(~labeled))
    views = dict.fromkeys(labels, container(X))
    row = compare_label_spreading(views, known, labels, hidden, n_neighbors=10)
    assert row.forward == row.backward == 1
    assert row.seconds > 0


def test_items_that_no_label_reaches_count_as_unrelated(rng):
    # Two far groups, labels in one of them only.
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 1000])
    y = np.repeat([0, 1, 0, 1], 15)
    known = np.where(np.isin(np.arange(60), [0, 1, 15, 16]), y, -1)
    both = ("text", "image")
    row = compare_label_spreading(
        dict.fromkeys(both, X),
        dict.fromkeys(both, known),
        dict.fromkeys(both, y),
        dict.fromkeys(both, np.arange(60)),
        n_neighbors=5,
    )
    assert 0 < row.average < 1


def test_chance_is_measured_on_hidden_items(labels, hidden):
    row = compare_chance(labels, hidden)
    y_text = labels["text"][hidden["text"]]
    y_image = labels["image"][hidden["image"]]
    assert row == ComparisonRow(
        "chance",
        expected_by_chance(y_text, y_image),
        expected_by_chance(y_image, y_text),
    )
    assert row.seconds is None
