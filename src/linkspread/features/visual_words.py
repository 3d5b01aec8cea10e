"""Pictures as bags of visual words: SIFT at keypoints, counted word by word.

These are the picture features of [Lu2015]; they need the package opencv:

>>> import numpy as np
>>> from linkspread.features import VisualWords
>>> pictures = np.random.default_rng(0).integers(256, size=(3, 64, 96), dtype="u1")
>>> X = VisualWords(n_words=10, random_state=0).fit_transform(pictures)
>>> X.shape, X.sum(axis=1).round(4).tolist()
((3, 10), [1.0, 1.0, 1.0])
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from linkspread.features.images import check_pictures, open_picture
from linkspread.features.states import COUNT, StoredTransformer, table
from linkspread.features.threads import for_each, single_threaded
from linkspread.ground.errors import require

_N_VALUES = 128
_MIN_SIZE = 64


class VisualWords(StoredTransformer):
    """Describe pictures by the shares of visual words among their keypoints.

    SIFT [Lowe2004] describes each keypoint that OpenCV finds in a picture's lightness;
    words are clusters of such descriptors, found by mini-batch k-means in a sample of
    them. A picture without any keypoint, such as a blank one, has a row of zeros.

    Parameters
    ----------
    n_words : int, default=128
        Number of visual words. [Lu2015] has 128 for Wikipedia and 2,000 for Flickr.
    size : int, default=256
        Length in pixels that the longer side of each picture is brought to.
    random_state : int, RandomState instance or None, default=None
        Seed of the codebook.
    n_jobs : int, default=None
        Threads; None and -1 mean every core.
    verbose : bool, default=False
        Show progress.

    Attributes
    ----------
    codebook_ : ndarray of float32 of shape (n_words, 128)
        The visual words.
    n_empty_ : int
        Number of pictures without a keypoint among those that the words were learnt
        from, which are 1,000 at most.
    metric_ : str
        "hellinger", the distance that suits these features.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.features import VisualWords
    >>> noise = np.random.default_rng(0).integers(256, size=(64, 64), dtype="u1")
    >>> features = VisualWords(n_words=5, random_state=0).fit([noise, noise * 0])
    >>> features.n_empty_, features.transform([noise * 0]).tolist()
    (1, [[0.0, 0.0, 0.0, 0.0, 0.0]])
    """

    _metric = "hellinger"
    _stored: ClassVar[dict[str, Any]] = {
        "codebook_": table(np.float32, 2),
        "n_empty_": COUNT,
    }

    def __init__(
        self,
        n_words: int = 128,
        *,
        size: int = 256,
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
        self : VisualWords
        """
        check_at_least("n_words", self.n_words, 1)
        check_at_least("size", self.size, _MIN_SIZE)
        check_pictures(pictures)
        random_state = check_random_state(self.random_state)
        drawn = draw_descriptors(
            len(pictures),
            lambda i: _sift(open_picture(pictures[i], i, self.size)),
            random_state=random_state,
            each=self._each("keypoints of pictures"),
        )
        samples = np.concatenate(drawn)
        self.codebook_ = single_threaded(
            lambda: learn_codebook(samples, self.n_words, random_state)
        )
        self.n_empty_ = sum(not len(found) for found in drawn)
        self._complete()
        return self

    def transform(self, pictures: Sequence[Any]) -> np.ndarray:
        """Return the shares of visual words in pictures.

        Parameters
        ----------
        pictures : sequence of path-like, PIL image or ndarray of uint8
            Arrays have the shape (height, width), or (height, width, 3 or 4).

        Returns
        -------
        X : ndarray of float32 of shape (n_pictures, n_words)
            Rows have the sum 1, or 0 where a picture has no keypoint.
        """
        check_is_fitted(self)
        check_pictures(pictures)
        n_words = len(self.codebook_)
        X = np.zeros((len(pictures), n_words), dtype=np.float32)

        def describe(i: int) -> None:
            found = _sift(open_picture(pictures[i], i, self.size))
            words = nearest_words(found, self.codebook_)
            X[i] = np.bincount(words, minlength=n_words) / max(len(words), 1)

        self._each("visual words of pictures")(describe, len(pictures))
        return X

    def _each(self, label: str) -> Callable[[Callable[[int], None], int], None]:
        """Return a function that does the work of each picture."""
        return partial(
            for_each,
            label=label,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            within=_without_own_threads(),
        )

    def _complete(self) -> None:
        """Set the metric, after a look at the codebook."""
        super()._complete()
        self._check_shape("codebook_", None, _N_VALUES)


def _sift(image: Any) -> np.ndarray:
    """Return the descriptors of a picture's keypoints, shape (n_keypoints, 128)."""
    # An object for each picture: it keeps what it computes, and threads share none.
    grey = np.asarray(image.convert("L"))
    found = _opencv().SIFT_create().detectAndCompute(grey, None)[1]
    return np.empty((0, _N_VALUES), np.float32) if found is None else found


@contextmanager
def _without_own_threads() -> Iterator[None]:
    """Keep OpenCV from starting threads within each of ours."""
    opencv = _opencv()
    before = opencv.getNumThreads()
    opencv.setNumThreads(1)
    try:
        yield
    finally:
        opencv.setNumThreads(before)


def _opencv() -> Any:
    """Return the module that finds keypoints."""
    return require("cv2", extra="sift", purpose="VisualWords")
