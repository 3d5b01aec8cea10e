"""Pictures as histograms of colours, local patterns and visual words.

These classical features need no trained network. Most photographs have sky, horizon and
ground, so horizontal strips discriminate better than a square grid of as many cells.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from linkspread.features.transformers import table
from linkspread.features.visual_words import CodebookTransformer

N_STRIPS = 3
N_COLOURS = 16 * 4 * 4
# Weights of red, green and blue in lightness, red-green and yellow-blue.
_OPPONENT = np.array(
    [[1 / 3, 1 / 2, 1 / 4], [1 / 3, -1 / 2, 1 / 4], [1 / 3, 0, -1 / 2]], np.float32
)
# The eight neighbours of a pixel, once around it.
_AROUND = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]
# Scales at which patterns and words are computed.
_PATTERN_SCALES = (1.0, 0.5)
_WORD_SCALES = (1.0, 0.7, 0.5)
# Local descriptors, like those of SIFT: cells of so many pixels, cells to a side,
# directions in each, for each of three opponent colours.
_CELL, _SIDE, _DIRECTIONS = 4, 4, 8
N_VALUES = 3 * _DIRECTIONS * _SIDE**2
# Gradient per pixel below which a place counts as flat: its directions are noise.
_FLAT = 1.0
# Length of projected local descriptors.
_N_COMPONENTS = 64


class PictureFeatures(CodebookTransformer):
    """Describe pictures by their colours, local patterns and visual words.

    A row holds histograms, each with the sum 1, side by side: of colours (HSV), of
    uniform local binary patterns (in three opponent colours at two scales) and of
    visual words (k-means of SIFT-like descriptors), each of them once for the whole
    picture and once for its three horizontal strips. Compare them as histograms: by
    the Euclidean distance of their square roots (Hellinger), or by chi2.

    Parameters
    ----------
    n_words : int, default=500
        Number of visual words, learnt by `fit`: fit to training pictures only.
    size : int, default=192
        Pixels of the longer side, to which pictures are resized.
    random_state : int, RandomState instance or None, default=None
        Seed of the codebook.
    n_jobs : int, default=None
        Threads; None and -1 mean every core.
    verbose : bool, default=False
        Show progress.

    Attributes
    ----------
    codebook_ : ndarray of float32 of shape (n_words, n_components)
        The visual words.
    projection_ : ndarray of float32 of shape (384, n_components)
        Directions of the local descriptors in which the words are compared.
    blocks_ : dict from str to slice
        Columns of "colour", "pattern" and "word", and of each "by strip". Rows have
        the sum 6 in the blocks of patterns, which are six histograms, else 1.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.features import PictureFeatures
    >>> grey = np.full((2, 64, 64), 128, dtype=np.uint8)
    >>> PictureFeatures(n_words=8, random_state=0).fit(grey).transform(grey).shape
    (2, 2472)
    """

    _stored: ClassVar[dict[str, Any]] = {
        "codebook_": table(np.float32, 2),
        "projection_": table(np.float32, 2),
    }

    def __init__(
        self,
        n_words: int = 500,
        *,
        size: int = 192,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_words = n_words
        self.size = size
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _local_descriptors(self, image: Any) -> np.ndarray:
        """Return the local descriptors of a picture at all scales."""
        return np.concatenate([x.reshape(-1, N_VALUES) for x in word_levels(image)])

    def _learn(self, drawn: Sequence[np.ndarray], random_state: Any) -> None:
        """Set the projection and the codebook."""
        samples = np.concatenate(drawn)
        # Distances in the leading directions are nearly the full ones and take a sixth
        # of the time. They do not depend on a centre, so none is used.
        directions = np.linalg.eigh(samples.T @ samples)[1]
        projection = np.ascontiguousarray(directions[:, : -_N_COMPONENTS - 1 : -1])
        self._learn_words(samples @ projection, random_state)
        self.projection_ = projection

    def _complete(self) -> None:
        """Set the columns of the blocks, and the metric."""
        super()._complete()
        self._check_shape("projection_", N_VALUES, _N_COMPONENTS)
        self._check_shape("codebook_", None, _N_COMPONENTS)
        n_codes = len(_PATTERN_SCALES) * 3 * N_PATTERNS
        sizes = {"colour": N_COLOURS, "pattern": n_codes, "word": len(self.codebook_)}
        self.blocks_, self._n_features = {}, 0
        for name, size in sizes.items():
            for block, width in (name, size), (f"{name} by strip", N_STRIPS * size):
                start, self._n_features = self._n_features, self._n_features + width
                self.blocks_[block] = slice(start, self._n_features)

    def _describe(self, image: Any) -> np.ndarray:
        """Return the histograms of a picture, each before its histograms by strip."""
        colours = count_codes(colour_codes(np.asarray(image.convert("HSV"))), N_COLOURS)
        patterns = [
            count_codes(pattern_codes(channel), N_PATTERNS)
            for channels in _opponent_levels(image, _PATTERN_SCALES)
            for channel in channels
        ]
        n_words = len(self.codebook_)
        words = np.zeros((N_STRIPS, n_words), dtype=np.intp)
        for level in word_levels(image):
            nearest = self._nearest_words(
                level.reshape(-1, N_VALUES) @ self.projection_
            )
            words += count_codes(nearest.reshape(level.shape[:2]), n_words)
        # Patterns differ less than colours: as a single histogram they would hardly
        # count, so each of their histograms has the sum 1.
        shares = np.hstack([counts / counts.sum() for counts in patterns])
        tables = colours / colours.sum(), shares, words / words.sum()
        return np.concatenate([p for t in tables for p in (t.sum(axis=0), t.ravel())])


def colour_codes(hsv: np.ndarray) -> np.ndarray:
    """Return the colour of each HSV pixel as one of 16 hues x 4 x 4."""
    hue, saturation, value = np.moveaxis(hsv.astype(np.intp), 2, 0)
    return (hue // 16) * 16 + (saturation // 64) * 4 + value // 64


def count_codes(codes: np.ndarray, n_codes: int) -> np.ndarray:
    """Return how often each code occurs in each strip, shape (N_STRIPS, n_codes)."""
    strip = np.arange(len(codes)) * N_STRIPS // len(codes)
    places = codes + (strip * n_codes)[:, np.newaxis]
    counts = np.bincount(places.ravel(), minlength=N_STRIPS * n_codes)
    return counts.reshape(N_STRIPS, n_codes)


def _opponent_levels(image: Any, scales: Sequence[float]) -> list[np.ndarray]:
    """Return the opponent channels of a picture at parts of its size."""
    sizes = [(round(image.width * s), round(image.height * s)) for s in scales]
    scaled = [image if size == image.size else image.resize(size) for size in sizes]
    return [opponent(np.asarray(own)) for own in scaled]


def opponent(pixels: np.ndarray) -> np.ndarray:
    """Return lightness, red-green and yellow-blue of RGB pixels, channels first."""
    return np.moveaxis(pixels.astype(np.float32) @ _OPPONENT, 2, 0)


def pattern_codes(channel: np.ndarray) -> np.ndarray:
    """Return the uniform local binary pattern of each inner pixel of a channel."""
    n_rows, n_columns = channel.shape
    # Noise of less than one grey level is ignored.
    threshold = channel[1:-1, 1:-1] + 1
    code = np.zeros(threshold.shape, np.uint8)
    for bit, (y, x) in enumerate(_AROUND):
        neighbour = channel[1 + y : n_rows - 1 + y, 1 + x : n_columns - 1 + x]
        code |= (neighbour >= threshold).view(np.uint8) << np.uint8(bit)
    return _UNIFORM[code]


# A code for each pattern with at most two changes; all others share the last one.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1)
_IS_UNIFORM = (_BITS != np.roll(_BITS, 1, axis=1)).sum(axis=1) <= 2
N_PATTERNS = int(_IS_UNIFORM.sum()) + 1
_UNIFORM = np.where(_IS_UNIFORM, np.cumsum(_IS_UNIFORM) - 1, N_PATTERNS - 1)


def word_levels(image: Any) -> list[np.ndarray]:
    """Return the grid of local descriptors at each scale."""
    return [local_descriptors(own) for own in _opponent_levels(image, _WORD_SCALES)]


def local_descriptors(channels: np.ndarray) -> np.ndarray:
    """Return the grid of local descriptors of opponent channels.

    Descriptors are square roots of shares of gradients, as in the Hellinger distance.
    """
    cells = _cell_sums(channels)
    square, axes = (_SIDE, _SIDE), (0, 1)
    total = sliding_window_view(cells.sum(axis=2), square, axes).sum(axis=(2, 3))
    total += _FLAT * (_CELL * _SIDE) ** 2
    # Roots of cells instead of descriptors are equal and a 16th as many.
    windows = np.moveaxis(sliding_window_view(np.sqrt(cells), square, axes), 2, 4)
    # Keeping the values of a cell together makes this copy twice as fast.
    descriptors = windows.reshape(*total.shape, N_VALUES)
    return descriptors / np.sqrt(total)[:, :, np.newaxis]


def _cell_sums(channels: np.ndarray) -> np.ndarray:
    """Return the gradient in each direction by cell, shape (rows, columns, 24)."""
    n_rows, n_columns = (length // _CELL for length in channels.shape[1:])
    channels = channels[:, : n_rows * _CELL, : n_columns * _CELL]
    down, right = np.gradient(channels, axis=(1, 2))
    # A gradient counts for the directions within 45 degrees, less the farther away, so
    # that the descriptor is continuous in its angle.
    threshold = np.sqrt(down**2 + right**2) * np.float32(np.cos(np.pi / 4))
    sums = np.empty((_DIRECTIONS, 3, n_rows, n_columns), dtype=np.float32)
    for direction, angle in enumerate(np.arange(_DIRECTIONS) * 2 * np.pi / _DIRECTIONS):
        part = right * np.float32(np.cos(angle)) + down * np.float32(np.sin(angle))
        part -= threshold
        np.maximum(part, 0, out=part)
        lines = part.reshape(3, n_rows, _CELL, -1).sum(axis=2)
        lines.reshape(3, n_rows, n_columns, _CELL).sum(axis=3, out=sums[direction])
    return np.ascontiguousarray(sums.reshape(-1, n_rows, n_columns).transpose(1, 2, 0))
