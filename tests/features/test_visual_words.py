import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.metrics import pairwise_distances_argmin

from linkspread.features import VisualWords
from linkspread.graphs import nearest_neighbors
from linkspread.ground.errors import LinkspreadError, MissingDependencyError

Image = pytest.importorskip("PIL.Image", reason="pictures need the package pillow")
cv2 = pytest.importorskip("cv2", reason="SIFT needs the package opencv")

BLANK = np.full((64, 80, 3), 200, dtype=np.uint8)


def make_words(**parameters):
    """Return features small enough for a test."""
    return VisualWords(**{"n_words": 8, "size": 64, "random_state": 0} | parameters)


@pytest.fixture(scope="module")
def pictures():
    """Return pictures of coarse noise, as large as they are brought to."""
    noise = np.random.default_rng(0).integers(0, 256, (5, 12, 16, 3), dtype=np.uint8)
    return [np.asarray(Image.fromarray(picture).resize((64, 48))) for picture in noise]


@pytest.fixture(scope="module")
def fitted(pictures):
    return make_words().fit(pictures)


def test_rows_are_those_of_a_plain_loop_over_opencv(fitted, pictures):
    X = fitted.transform(pictures)
    assert X.dtype == np.float32 and X.shape == (5, 8)
    for row, picture in zip(X, pictures, strict=True):
        grey = np.asarray(Image.fromarray(picture).convert("L"))
        _, found = cv2.SIFT_create().detectAndCompute(grey, None)
        words = pairwise_distances_argmin(found, fitted.codebook_)
        expected = np.zeros(8)
        for word in words:
            expected[word] += 1 / len(words)
        # Rounding may decide a tie, which moves one keypoint to another word.
        assert np.abs(row - expected).sum() < 2.5 / len(words)


def test_words_are_centres_of_clusters(fitted, pictures):
    grey = [np.asarray(Image.fromarray(p).convert("L")) for p in pictures]
    found = np.concatenate(
        [cv2.SIFT_create().detectAndCompute(g, None)[1] for g in grey]
    )
    words = pairwise_distances_argmin(found, fitted.codebook_)
    spread = ((found - fitted.codebook_[words]) ** 2).sum()
    assert fitted.codebook_.shape == (8, 128)
    assert spread < 0.9 * ((found - found.mean(axis=0)) ** 2).sum()


def test_a_picture_without_a_keypoint_is_a_row_of_zeros(pictures):
    words = make_words().fit([*pictures, BLANK, BLANK])
    X = words.transform([pictures[0], BLANK])
    assert words.n_empty_ == 2
    assert X.sum(axis=1) == pytest.approx([1, 0])


def test_graphs_know_the_metric_also_of_rows_of_zeros(fitted, pictures):
    X = fitted.transform([*pictures, BLANK])
    assert fitted.metric_ == "hellinger"
    ids, distances = nearest_neighbors(X, n_neighbors=2, metric=fitted.metric_)
    assert np.isfinite(distances).all()


@pytest.mark.parametrize("n_jobs", [1, 3, None])
def test_threads_do_not_change_the_result(fitted, pictures, n_jobs):
    X = make_words(n_jobs=n_jobs).fit_transform(pictures)
    assert_array_equal(X, fitted.transform(pictures))


def test_permuting_pictures_permutes_rows(fitted, pictures):
    assert_array_equal(
        fitted.transform(pictures[::-1]), fitted.transform(pictures)[::-1]
    )


def test_the_threads_of_opencv_are_as_before(fitted, pictures):
    before = cv2.getNumThreads()
    cv2.setNumThreads(3)
    fitted.transform(pictures)
    with pytest.raises(LinkspreadError):
        fitted.transform(["nowhere"])
    assert cv2.getNumThreads() == 3
    cv2.setNumThreads(before)


def test_files_and_slivers_are_pictures(fitted, pictures, tmp_path):
    Image.fromarray(pictures[0]).save(tmp_path / "a.png")
    sliver = np.zeros((1, 900), dtype=np.uint8)
    X = fitted.transform([tmp_path / "a.png", sliver])
    assert_array_equal(X[:1], fitted.transform(pictures[:1]))
    assert np.isfinite(X).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_words": 0}, "`n_words` must be an? .*, got 0"),
        ({"size": 9}, "`size` must be an? .*, got 9"),
        ({"n_words": 9999}, "at most the [0-9,]+ local descriptors .* got 9,999"),
        ({"n_jobs": 0}, "`n_jobs` must be None or an integer other than 0, got 0"),
    ],
)
def test_wrong_parameters_are_refused(pictures, parameters, message):
    with pytest.raises(LinkspreadError, match=message):
        make_words(**parameters).fit(pictures)


def test_pictures_without_any_keypoint_cannot_be_learnt_from():
    with pytest.raises(LinkspreadError, match="at most the 0 local descriptors"):
        make_words().fit([BLANK])


def test_several_pictures_are_needed(fitted):
    for method in (fitted.transform, clone(fitted).fit):
        with pytest.raises(LinkspreadError, match="must be a list of at least one"):
            method("a.png")


def test_a_missing_opencv_is_named(fitted, pictures, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingDependencyError, match=r"linkspread\[pictures\]"):
        fitted.transform(pictures)
