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

from linkspread.features import PictureFeatures
from linkspread.features.histograms import (
    N_COLOURS,
    N_PATTERNS,
    N_STRIPS,
    N_VALUES,
    colour_codes,
    count_codes,
    local_descriptors,
    opponent,
    pattern_codes,
    word_levels,
)
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
    levels = word_levels(Image.fromarray(pictures[0]))
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
        ({"n_words": 0}, "`n_words` must be an? .*, got 0"),
        ({"n_words": 2.5}, "`n_words` must be an? .*, got 2.5"),
        ({"size": 63}, "`size` must be an? .*, got 63"),
        ({"n_words": 9999}, "at most the [0-9,]+ local descriptors .* got 9,999"),
        ({"n_jobs": 0}, "`n_jobs` must be None or an integer other than 0, got 0"),
        ({"n_jobs": "two"}, "`n_jobs` must be None or .*, got 'two'"),
    ],
)
def test_wrong_parameters_are_refused(pictures, parameters, message):
    with pytest.raises(LinkspreadError, match=message):
        make_features(**parameters).fit(pictures)


def test_a_missing_pillow_is_named(fitted, pictures, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingDependencyError, match=r"linkspread\[pictures\]"):
        fitted.transform(pictures)


def n_changes(bits):
    """Count the changes once around a ring of bits."""
    return sum(bits[k] != bits[k - 1] for k in range(len(bits)))


@given(st.tuples(*[st.booleans()] * 8))
def test_patterns_with_more_than_two_changes_share_the_last_code(bits):
    ring = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)]
    channel = np.zeros((3, 3), np.float32)
    for place, bit in zip(ring, bits, strict=True):
        channel[place] = 10 * bit
    code = pattern_codes(channel)[0, 0]
    assert (code == N_PATTERNS - 1) == (n_changes(bits) > 2)


def test_each_uniform_pattern_has_a_code_of_its_own():
    assert N_PATTERNS == 59  # 58 patterns, and one for all others
    channel = np.random.default_rng(0).integers(0, 40, (300, 300)).astype(np.float32)
    assert_array_equal(np.unique(pattern_codes(channel)), np.arange(59))


def test_patterns_do_not_change_with_brightness(rng):
    channel = rng.integers(0, 200, (20, 30)).astype(np.float32)
    assert_array_equal(pattern_codes(channel), pattern_codes(channel + 50))


@given(arrays(np.uint8, (5, 7, 3)))
def test_colours_are_the_joint_bins_of_numpy(hsv):
    edges = [np.arange(0, 257, step) for step in (16, 64, 64)]
    expected = np.histogramdd(hsv.reshape(-1, 3), edges)[0].ravel()
    counts = np.bincount(colour_codes(hsv).ravel(), minlength=N_COLOURS)
    assert_array_equal(counts, expected)


@given(
    arrays(
        np.intp,
        st.tuples(st.integers(3, 9), st.integers(1, 5)),
        elements=st.integers(0, 3),
    )
)
def test_strips_add_up_to_the_whole_of_codes(codes):
    counts = count_codes(codes, 4)
    assert counts.shape == (N_STRIPS, 4)
    assert_array_equal(counts.sum(axis=0), np.bincount(codes.ravel(), minlength=4))


def test_strips_go_from_top_to_bottom():
    codes = np.repeat([0, 1, 2], 4)[:, np.newaxis] * np.ones(5, dtype=np.intp)
    assert_array_equal(count_codes(codes, 3), 20 * np.eye(3))


def test_grey_has_no_opponent_colour(rng):
    grey = np.repeat(rng.integers(0, 256, (4, 5, 1), dtype=np.uint8), 3, axis=2)
    assert_allclose(opponent(grey)[0], grey[:, :, 0], atol=1e-4)
    assert_allclose(opponent(grey)[1:], 0, atol=1e-4)


@pytest.mark.parametrize("direction", range(8))
def test_a_slope_has_one_direction(direction):
    angle = direction * np.pi / 4
    y, x = np.mgrid[:32, :32]
    slope = (x * np.cos(angle) + y * np.sin(angle)).astype(np.float32)
    channels = np.stack([slope, slope * 0, slope * 0])
    by_cell = local_descriptors(channels)[0, 0].reshape(16, 8, 3)
    assert_array_equal(by_cell[:, :, 0].argmax(axis=1), direction)
    assert_allclose(by_cell[:, :, 1:], 0)
    others = np.delete(by_cell[:, :, 0], direction, axis=1)
    assert_allclose(others**2, 0, atol=1e-5)


def test_descriptors_are_shorter_than_one_and_zero_where_flat(rng):
    found = local_descriptors(rng.normal(0, 50, (3, 40, 64)).astype(np.float32))
    assert found.shape == (10 - 3, 16 - 3, N_VALUES)
    lengths = np.linalg.norm(found, axis=2)
    assert lengths.max() < 1 and lengths.min() > 0.9
    assert_array_equal(local_descriptors(np.full((3, 16, 16), 9, np.float32)), 0)


def test_moving_by_a_cell_moves_the_descriptors(rng):
    channels = rng.normal(0, 50, (3, 48, 48)).astype(np.float32)
    whole, moved = local_descriptors(channels), local_descriptors(channels[:, 4:, 8:])
    # The gradient at the new border is another one, so the first cells are left out.
    assert_allclose(whole[2:, 3:], moved[1:, 1:], rtol=1e-5, atol=1e-6)
