import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from linkspread.features.descriptors import N_VALUES, local_descriptors
from linkspread.features.histograms import (
    N_COLOURS,
    N_PATTERNS,
    N_STRIPS,
    colour_codes,
    count_codes,
    opponent,
    pattern_codes,
)


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
def test_strips_add_up_to_the_whole(codes):
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
