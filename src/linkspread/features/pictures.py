"""Pictures as histograms: colours, local patterns and visual words.

Classical features that need no trained network and no download:

>>> import numpy as np
>>> from linkspread.features import PictureFeatures
>>> pictures = np.random.default_rng(0).integers(256, size=(3, 32, 48, 3), dtype="u1")
>>> X = PictureFeatures(n_words=20, random_state=0).fit_transform(pictures)
>>> X.shape, X.sum(axis=1).round(4).tolist()
((3, 2520), [16.0, 16.0, 16.0])
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from linkspread.features.codebooks import (
    check_at_least,
    draw_descriptors,
    learn_codebook,
    nearest_words,
)
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
from linkspread.features.images import check_pictures, open_picture, rescale
from linkspread.features.states import StoredTransformer, table
from linkspread.features.threads import for_each, single_threaded

# Sizes at which patterns and words are looked for, as parts of the picture's own.
_PATTERN_SCALES = (1.0, 0.5)
_WORD_SCALES = (1.0, 0.7, 0.5)
# Patterns are told apart by scale and opponent channel.
_N_CODES = len(_PATTERN_SCALES) * 3 * N_PATTERNS
_MIN_SIZE = 64
# Length of local descriptors once projected.
_N_COMPONENTS = 64


class PictureFeatures(StoredTransformer):
    """Describe pictures by their colours, local patterns and visual words.

    A row holds histograms, each with the sum 1, side by side: of colours (HSV), of
    uniform local binary patterns (in three opponent colours at two scales) and of
    visual words (k-means of SIFT-like descriptors), each of them once for the whole
    picture and once for its three horizontal strips. Compare them as histograms: by
    the Euclidean distance of their square roots (Hellinger), or by chi2.

    Parameters
    ----------
    n_words : int, default=500
        Number of visual words. The codebook is learnt by `fit`, so fit to training
        pictures only.
    size : int, default=192
        Length in pixels that the longer side of each picture is brought to.
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
        Directions of the local descriptors in which the words are told apart.
    blocks_ : dict from str to slice
        Columns of "colour", "pattern" and "word", and of each "by strip". Rows have
        the sum 6 in the blocks of patterns, which are six histograms, else 1.
    metric_ : str
        "hellinger", the distance that suits these features.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.features import PictureFeatures
    >>> grey = np.full((2, 64, 64), 128, dtype=np.uint8)
    >>> PictureFeatures(n_words=8, random_state=0).fit(grey).transform(grey).shape
    (2, 2472)
    """

    _metric = "hellinger"
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

    def fit(self, pictures: Sequence[Any], y: Any = None) -> Self:
        """Learn the visual words of the pictures.

        Parameters
        ----------
        pictures : sequence of path-like, PIL image or ndarray of uint8
            Arrays have the shape (height, width), or (height, width, 3 or 4).
        y : object, default=None
            Ignored.

        Returns
        -------
        self : PictureFeatures
        """
        check_at_least("n_words", self.n_words, 1)
        check_at_least("size", self.size, _MIN_SIZE)
        check_pictures(pictures)
        random_state = check_random_state(self.random_state)

        def describe(i: int) -> np.ndarray:
            levels = _word_levels(open_picture(pictures[i], i, self.size))
            return np.concatenate([level.reshape(-1, N_VALUES) for level in levels])

        each = self._each("descriptors of pictures")
        drawn = draw_descriptors(
            len(pictures), describe, random_state=random_state, each=each
        )
        single_threaded(lambda: self._learn_words(np.concatenate(drawn), random_state))
        self._complete()
        return self

    def transform(self, pictures: Sequence[Any]) -> np.ndarray:
        """Return the histograms of pictures.

        Parameters
        ----------
        pictures : sequence of path-like, PIL image or ndarray of uint8
            Arrays have the shape (height, width), or (height, width, 3 or 4).

        Returns
        -------
        X : ndarray of float32 of shape (n_pictures, n_features)
            Histograms side by side, see `blocks_`.
        """
        check_is_fitted(self)
        check_pictures(pictures)
        n_features = max(block.stop for block in self.blocks_.values())
        X = np.empty((len(pictures), n_features), dtype=np.float32)

        def describe(i: int) -> None:
            image = open_picture(pictures[i], i, self.size)
            shares = _colour_shares(image), _pattern_shares(image)
            tables = *shares, self._word_shares(image)
            parts = [part for t in tables for part in (t.sum(axis=0), t.ravel())]
            X[i] = np.concatenate(parts)

        self._each("features of pictures")(describe, len(pictures))
        return X

    def _each(self, label: str) -> Callable[[Callable[[int], None], int], None]:
        """Return a function that does the work of each picture."""
        return partial(for_each, label=label, n_jobs=self.n_jobs, verbose=self.verbose)

    def _learn_words(self, samples: np.ndarray, random_state: Any) -> None:
        """Set the projection and the codebook."""
        # Distances in the strongest directions are nearly those of the whole and
        # take a sixth of the time. They do not depend on a centre, so none is used.
        directions = np.linalg.eigh(samples.T @ samples)[1]
        projection = np.ascontiguousarray(directions[:, : -_N_COMPONENTS - 1 : -1])
        self.codebook_ = learn_codebook(
            samples @ projection, self.n_words, random_state
        )
        self.projection_ = projection

    def _complete(self) -> None:
        """Set the columns of the blocks, and the metric."""
        super()._complete()
        self._check_shape("projection_", N_VALUES, _N_COMPONENTS)
        self._check_shape("codebook_", None, _N_COMPONENTS)
        self.blocks_, start = {}, 0
        sizes = {"colour": N_COLOURS, "pattern": _N_CODES, "word": len(self.codebook_)}
        for name, size in sizes.items():
            middle, stop = start + size, start + (1 + N_STRIPS) * size
            self.blocks_[name] = slice(start, middle)
            self.blocks_[f"{name} by strip"] = slice(middle, stop)
            start = stop

    def _word_shares(self, image: Any) -> np.ndarray:
        """Return how often each word is the nearest one, by strip."""
        n_words = len(self.codebook_)
        counts = np.zeros((N_STRIPS, n_words), dtype=np.intp)
        for level in _word_levels(image):
            projected = level.reshape(-1, N_VALUES) @ self.projection_
            nearest = nearest_words(projected, self.codebook_)
            counts += count_codes(nearest.reshape(level.shape[:2]), n_words)
        return counts / counts.sum()


def _colour_shares(image: Any) -> np.ndarray:
    """Return how often each colour occurs, by strip."""
    counts = count_codes(colour_codes(np.asarray(image.convert("HSV"))), N_COLOURS)
    return counts / counts.sum()


def _pattern_shares(image: Any) -> np.ndarray:
    """Return how often each pattern occurs in each channel and scale, by strip."""
    found = []
    for scale in _PATTERN_SCALES:
        channels = opponent(np.asarray(rescale(image, scale)))
        found += [count_codes(pattern_codes(c), N_PATTERNS) for c in channels]
    # Patterns differ less than colours do. Were all six a single histogram, they
    # would hardly count beside the others.
    return np.hstack([counts / counts.sum() for counts in found])


def _word_levels(image: Any) -> list[np.ndarray]:
    """Return the local descriptors at each scale, laid out as in the picture."""
    scaled = [np.asarray(rescale(image, scale)) for scale in _WORD_SCALES]
    return [local_descriptors(opponent(pixels)) for pixels in scaled]
