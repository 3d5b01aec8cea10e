import logging
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from linkspread.features import PictureFeatures
from linkspread.graphs import nearest_neighbors
from linkspread.ground.errors import LinkspreadError, MissingDependencyError

Image = pytest.importorskip("PIL.Image", reason="pictures need the package pillow")


# Patterns are counted in three colours at two scales, a histogram each.
SUMS = [1, 1, 6, 6, 1, 1]


def make_features(**parameters):
    """Return features small enough for a test."""
    return PictureFeatures(
        **{"n_words": 12, "size": 64, "random_state": 0} | parameters
    )


MODEL = make_features().fit(
    np.random.default_rng(1).integers(0, 256, (2, 40, 64, 3), dtype=np.uint8)
)


@pytest.fixture(scope="module")
def pictures():
    """Return six noisy pictures, each of another colour."""
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 60, (6, 48, 64, 3))
    return (noise + rng.integers(0, 190, (6, 1, 1, 3))).astype(np.uint8)


@pytest.fixture(scope="module")
def fitted(pictures):
    return make_features().fit(pictures)


def test_blocks_cover_all_columns_and_hold_histograms(fitted, pictures):
    X = fitted.transform(pictures)
    blocks = list(fitted.blocks_.values())
    assert [b.start for b in blocks] == [0] + [b.stop for b in blocks[:-1]]
    assert X.shape == (6, blocks[-1].stop) and X.dtype == np.float32
    assert X.min() >= 0
    sums = [X[:, block].sum(axis=1) for block in blocks]
    assert_allclose(np.transpose(sums), [SUMS] * 6, rtol=1e-5)


@pytest.mark.parametrize("name", ["colour", "pattern", "word"])
def test_strips_add_up_to_the_whole(fitted, pictures, name):
    X = fitted.transform(pictures)
    whole, strips = (X[:, fitted.blocks_[b]] for b in (name, f"{name} by strip"))
    assert_allclose(strips.reshape(6, 3, -1).sum(axis=1), whole, atol=1e-6)


@given(
    arrays(
        np.uint8,
        st.tuples(st.integers(1, 90), st.integers(1, 90))
        | st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from([3, 4])),
        elements=st.integers(0, 255),
    )
)
@settings(max_examples=25)
def test_any_array_of_pixels_is_a_picture(picture):
    x = MODEL.transform([picture])
    assert_allclose([x[0, b].sum() for b in MODEL.blocks_.values()], SUMS, rtol=1e-5)


def test_files_images_and_arrays_give_the_same(fitted, pictures, tmp_path):
    files = [tmp_path / f"{i}.png" for i in range(6)]
    images = [Image.fromarray(picture) for picture in pictures]
    for image, file in zip(images, files, strict=True):
        image.save(file)
    X = fitted.transform(pictures)
    for given_as in (images, files, [str(file) for file in files]):
        assert_array_equal(fitted.transform(given_as), X)


def test_permuting_pictures_permutes_rows(fitted, pictures, rng):
    order = rng.permutation(6)
    X = fitted.transform(pictures)
    assert_array_equal(fitted.transform(pictures[order]), X[order])


@pytest.mark.parametrize("n_jobs", [1, 3, -1])
def test_threads_do_not_change_the_result(fitted, pictures, n_jobs):
    X = make_features(n_jobs=n_jobs).fit_transform(pictures)
    assert_array_equal(X, fitted.transform(pictures))


def test_mirroring_keeps_the_colours(fitted, pictures):
    columns = slice(0, fitted.blocks_["colour by strip"].stop)
    mirrored = fitted.transform(pictures[:, :, ::-1])
    assert_array_equal(mirrored[:, columns], fitted.transform(pictures)[:, columns])


def test_words_are_the_nearest_of_the_codebook(fitted, pictures):
    from linkspread.features.pictures import _word_levels

    levels = _word_levels(Image.fromarray(pictures[0]))
    found = np.concatenate([level.reshape(-1, 384) for level in levels])
    projected = found @ fitted.projection_
    squares = ((projected[:, np.newaxis] - fitted.codebook_) ** 2).sum(axis=2)
    expected = np.bincount(squares.argmin(axis=1), minlength=12) / len(found)
    x = fitted.transform(pictures[:1])[0, fitted.blocks_["word"]]
    # Rounding may decide a tie, which moves one place from a word to another.
    assert np.abs(x - expected).sum() < 2.5 / len(found)


def test_inputs_are_not_modified(fitted, pictures):
    before = pictures.copy()
    clone(fitted).fit(pictures).transform(pictures)
    assert_array_equal(pictures, before)


def test_the_metric_is_one_that_graphs_know(fitted, pictures):
    X = fitted.transform(pictures)
    assert fitted.metric_ == "hellinger"
    found, _ = nearest_neighbors(X, n_neighbors=1, metric=fitted.metric_)
    # Rows are 16 histograms; roots of their shares are compared.
    distances = cdist(np.sqrt(X), np.sqrt(X)) + 9 * np.eye(6)
    assert_array_equal(found[:, 0], distances.argmin(axis=1))


def test_flat_pictures_are_no_trouble():
    flat = np.zeros((3, 64, 64), dtype=np.uint8)
    X = make_features(n_words=2).fit_transform(flat)
    assert_array_equal(X[0], X[1])


def test_progress_is_logged_where_it_was_asked_for(pictures, caplog):
    with caplog.at_level(logging.INFO, logger="linkspread"):
        make_features(verbose=True).fit(pictures).transform(pictures)
    assert "features of pictures: done in" in caplog.text


@pytest.mark.parametrize("content", [b"", b"no picture", "truncated"])
def test_a_damaged_file_is_named(fitted, pictures, tmp_path, content):
    file = tmp_path / "broken.jpeg"
    Image.fromarray(pictures[0]).save(file)
    file.write_bytes(file.read_bytes()[:400] if content == "truncated" else content)
    with pytest.raises(LinkspreadError, match="broken.jpeg must be a complete picture"):
        fitted.transform([pictures[0], file])


def test_a_missing_file_is_named(fitted, tmp_path):
    message = "nowhere.png must be a complete picture, got a path without a file"
    with pytest.raises(LinkspreadError, match=message):
        fitted.transform([tmp_path / "nowhere.png"])


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        (np.ones((40, 40)), "picture 0 must be .* uint8 .*, got float64 of shape"),
        (np.ones((3, 40, 40), "u1"), r"got uint8 of shape \(3, 40, 40\). Scale"),
        (np.ones((0, 4), "u1"), r"got uint8 of shape \(0, 4\)"),
        (7, "picture 0 must be a file, a PIL image or an array of uint8, got int"),
    ],
)
def test_what_is_no_picture_is_named(fitted, picture, message):
    with pytest.raises(LinkspreadError, match=message):
        fitted.transform([picture])


@pytest.mark.parametrize(("wrong", "got"), [("a.png", "str"), ([], "none"), (5, "int")])
def test_several_pictures_are_needed(fitted, wrong, got):
    message = f"`pictures` must be a list of at least one picture, got {got}"
    for method in (fitted.transform, make_features().fit):
        with pytest.raises(LinkspreadError, match=message):
            method(wrong)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_words": 0}, "`n_words` must be a whole number of at least 1, got 0"),
        ({"n_words": 2.5}, "`n_words` must be a whole number of at least 1, got 2.5"),
        ({"size": 63}, "`size` must be a whole number of at least 64, got 63"),
        ({"n_words": 9999}, "at most the [0-9,]+ local descriptors .* got 9,999"),
        ({"n_jobs": 0}, "`n_jobs` must be None or a whole number other than 0, got 0"),
        ({"n_jobs": "two"}, "`n_jobs` must be None or .*, got 'two'"),
    ],
)
def test_wrong_parameters_are_refused(pictures, parameters, message):
    with pytest.raises(LinkspreadError, match=message):
        make_features(**parameters).fit(pictures)


def test_transform_needs_a_fit(pictures):
    with pytest.raises(NotFittedError):
        make_features().transform(pictures)


def test_a_missing_pillow_is_named(fitted, pictures, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingDependencyError, match=r"linkspread\[images\]"):
        fitted.transform(pictures)
