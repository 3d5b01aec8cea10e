"""Visual words: pictures as shares of the words of a codebook of local descriptors."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from linkspread.features.pictures import check_pictures, open_picture
from linkspread.features.transformers import COUNT, StoredTransformer, table
from linkspread.ground.checks import check_count
from linkspread.ground.cores import count_threads, hold_blas
from linkspread.ground.errors import LinkspreadError, require
from linkspread.ground.progress import track

# Most pictures and local descriptors from which a codebook is learnt.
_N_SAMPLED = 1000
_N_SAMPLES = 100_000
_MIN_SIZE = 64
# Length of the descriptors of SIFT.
_N_VALUES = 128


class CodebookTransformer(StoredTransformer):
    """Learn visual words from a sample of pictures, and describe pictures by them.

    A subclass has local descriptors (`_local_descriptors`, a row for each place of a
    picture), learns from some of them (`_learn`) and makes features (`_describe`).
    """

    kind = "picture"
    _metric = "hellinger"
    n_words: int
    size: int
    random_state: Any
    n_jobs: int | None
    verbose: bool
    _n_features: int
    _local_descriptors: Callable[[Any], np.ndarray]
    _learn: Callable[[Sequence[np.ndarray], Any], None]
    _describe: Callable[[Any], np.ndarray]

    def fit(self, pictures: Sequence[Any], y: Any = None) -> Self:
        """Learn the visual words of pictures: files, PIL images or arrays of uint8."""
        remedy = "Leave it out for the default."
        check_count(self.n_words, name="n_words", remedy=remedy)
        check_count(self.size, name="size", remedy=remedy, at_least=_MIN_SIZE)
        check_pictures(pictures)
        random_state = check_random_state(self.random_state)
        seed = random_state.randint(np.iinfo(np.int32).max)
        chosen = random_state.permutation(len(pictures))[:_N_SAMPLED]
        drawn: list[Any] = [None] * len(chosen)

        def draw(i: int) -> None:
            image = open_picture(pictures[chosen[i]], chosen[i], self.size)
            found = self._local_descriptors(image)
            # One seed for each picture, as threads finish in any order.
            order = np.random.default_rng([seed, i]).permutation(len(found))
            drawn[i] = found[order[: _N_SAMPLES // len(chosen)]]

        self._for_each(draw, len(chosen), label="descriptors of pictures")
        # Small steps are faster in one thread, as waiting threads spin.
        with hold_blas(1), threadpool_limits(1, user_api="openmp"):
            self._learn(drawn, random_state)
        self._complete()
        return self

    def transform(self, pictures: Sequence[Any]) -> np.ndarray:
        """Return the features of pictures, float32, one row for each."""
        check_is_fitted(self)
        check_pictures(pictures)
        X = np.empty((len(pictures), self._n_features), dtype=np.float32)

        def describe(i: int) -> None:
            X[i] = self._describe(open_picture(pictures[i], i, self.size))

        self._for_each(describe, len(pictures), label="features of pictures")
        return X

    def _for_each(self, work: Callable[[int], None], n: int, *, label: str) -> None:
        """Process pictures in threads, each of which holds one picture."""
        n_threads = count_threads(self.n_jobs)
        with hold_blas(1), ThreadPoolExecutor(n_threads) as pool:
            done = pool.map(work, range(n))
            for _ in track(done, total=n, label=label, verbose=self.verbose):
                pass

    def _learn_words(self, samples: np.ndarray, random_state: Any) -> None:
        """Set the codebook to the centres of clusters of descriptors."""
        if len(samples) < self.n_words:
            raise LinkspreadError(
                f"`n_words` must be at most the {len(samples):,} local descriptors of "
                f"the pictures, got {self.n_words:,}. Choose fewer words, or fit to "
                "more pictures."
            )
        kmeans = MiniBatchKMeans(
            self.n_words, batch_size=4096, n_init=1, random_state=random_state
        )
        self.codebook_ = np.ascontiguousarray(kmeans.fit(samples).cluster_centers_)

    def _nearest_words(self, descriptors: np.ndarray) -> np.ndarray:
        """Return the position of the word nearest to each descriptor."""
        norms = (self.codebook_**2).sum(axis=1)
        return (norms - 2 * descriptors @ self.codebook_.T).argmin(axis=1)


class VisualWords(CodebookTransformer):
    """Describe pictures by the shares of visual words among their keypoints.

    SIFT [Lowe2004] describes each keypoint that OpenCV finds in a picture's lightness;
    words are clusters of such descriptors (mini-batch k-means of a sample), as in
    [Lu2015]. A picture without any keypoint, such as a blank one, has a row of zeros.

    Parameters
    ----------
    n_words : int, default=128
        Number of visual words. [Lu2015] has 128 for Wikipedia and 2,000 for Flickr.
    size : int, default=256
        Pixels of the longer side, to which pictures are resized.
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

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.features import VisualWords
    >>> noise = np.random.default_rng(0).integers(256, size=(64, 64), dtype="u1")
    >>> features = VisualWords(n_words=5, random_state=0).fit([noise, noise * 0])
    >>> features.n_empty_, features.transform([noise * 0]).tolist()
    (1, [[0.0, 0.0, 0.0, 0.0, 0.0]])
    """

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

    def _local_descriptors(self, image: Any) -> np.ndarray:
        """Return the descriptors of a picture's keypoints, shape (n_keypoints, 128)."""
        # One object per picture, as they keep results and cannot be shared by threads.
        sift = require("cv2", purpose="VisualWords").SIFT_create()
        found = sift.detectAndCompute(np.asarray(image.convert("L")), None)[1]
        return np.empty((0, _N_VALUES), np.float32) if found is None else found

    def _learn(self, drawn: Sequence[np.ndarray], random_state: Any) -> None:
        """Set the codebook, and the number of pictures without a keypoint."""
        self._learn_words(np.concatenate(drawn), random_state)
        self.n_empty_ = sum(not len(found) for found in drawn)

    def _complete(self) -> None:
        """Set the metric, once the shape of the codebook is checked."""
        super()._complete()
        self._check_shape("codebook_", None, _N_VALUES)
        self._n_features = len(self.codebook_)

    def _describe(self, image: Any) -> np.ndarray:
        """Return the shares of the words."""
        words = self._nearest_words(self._local_descriptors(image))
        return np.bincount(words, minlength=self._n_features) / max(len(words), 1)
