"""Colours and local patterns of a picture, counted in the whole and in three strips.

Sky, horizon and ground are the layout that photographs share, so strips from top to
bottom tell more than a square grid of as many cells.
"""

import numpy as np

N_STRIPS = 3
N_COLOURS = 16 * 4 * 4
# Weights of red, green and blue in lightness, red-green and yellow-blue.
_OPPONENT = np.array(
    [[1 / 3, 1 / 2, 1 / 4], [1 / 3, -1 / 2, 1 / 4], [1 / 3, 0, -1 / 2]], np.float32
)
# The eight neighbours of a pixel, once around it.
_AROUND = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]


def opponent(pixels: np.ndarray) -> np.ndarray:
    """Return lightness, red-green and yellow-blue of RGB pixels, channels first."""
    return np.moveaxis(pixels.astype(np.float32) @ _OPPONENT, 2, 0)


def colour_codes(hsv: np.ndarray) -> np.ndarray:
    """Return the colour of each HSV pixel as one of 16 hues x 4 x 4."""
    hue, saturation, value = np.moveaxis(hsv.astype(np.intp), 2, 0)
    return (hue // 16) * 16 + (saturation // 64) * 4 + value // 64


def pattern_codes(channel: np.ndarray) -> np.ndarray:
    """Return the uniform local binary pattern of each inner pixel of a channel."""
    n_rows, n_columns = channel.shape
    # Noise of less than a grey level must not make a pattern.
    threshold = channel[1:-1, 1:-1] + 1
    code = np.zeros(threshold.shape, np.uint8)
    for bit, (y, x) in enumerate(_AROUND):
        neighbour = channel[1 + y : n_rows - 1 + y, 1 + x : n_columns - 1 + x]
        code |= (neighbour >= threshold).view(np.uint8) << np.uint8(bit)
    return _UNIFORM[code]


def count_codes(codes: np.ndarray, n_codes: int) -> np.ndarray:
    """Return how often each code occurs in each strip, shape (N_STRIPS, n_codes)."""
    strip = np.arange(len(codes)) * N_STRIPS // len(codes)
    places = codes + (strip * n_codes)[:, np.newaxis]
    counts = np.bincount(places.ravel(), minlength=N_STRIPS * n_codes)
    return counts.reshape(N_STRIPS, n_codes)


def _uniform_table() -> np.ndarray:
    """Return a code for each pattern of at most two changes; others share one."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1)
    is_uniform = (bits != np.roll(bits, 1, axis=1)).sum(axis=1) <= 2
    return np.where(is_uniform, np.cumsum(is_uniform) - 1, is_uniform.sum())


_UNIFORM = _uniform_table()
N_PATTERNS = int(_UNIFORM.max()) + 1
