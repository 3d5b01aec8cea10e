"""Visual words: a codebook of local descriptors, and the words of new ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from linkspread.ground.errors import LinkspreadError

# Pictures and local descriptors that a codebook is learnt from.
_N_SAMPLED = 1000
_N_SAMPLES = 100_000


def check_at_least(name: str, value: Any, least: int) -> None:
    """Refuse a parameter that is not a whole number of at least some size."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or value < least:
        raise LinkspreadError(
            f"`{name}` must be a whole number of at least {least}, got {value!r}. "
            "Leave it out for the default."
        )


def draw_descriptors(
    n_pictures: int,
    describe: Callable[[int], np.ndarray],
    *,
    random_state: np.random.RandomState,
    each: Callable[[Callable[[int], None], int], None],
) -> list[np.ndarray]:
    """Return some descriptors of each of some pictures.

    ``describe`` returns those of the picture at a position, and ``each`` does the work
    of each of so many pictures, in any order.
    """
    seed = random_state.randint(np.iinfo(np.int32).max)
    # These give descriptors enough for a codebook, however large the collection.
    chosen = random_state.permutation(n_pictures)[:_N_SAMPLED]
    drawn: list[Any] = [None] * len(chosen)

    def draw(i: int) -> None:
        found = describe(chosen[i])
        # A seed of each picture's own: threads finish in any order.
        places = np.random.default_rng([seed, i]).permutation(len(found))
        drawn[i] = found[places[: _N_SAMPLES // len(chosen)]]

    each(draw, len(chosen))
    return drawn


def learn_codebook(
    samples: np.ndarray, n_words: int, random_state: np.random.RandomState
) -> np.ndarray:
    """Return the centres of clusters of descriptors, shape (n_words, n_values)."""
    if len(samples) < n_words:
        raise LinkspreadError(
            f"`n_words` must be at most the {len(samples):,} local descriptors of the "
            f"pictures, got {n_words:,}. Choose fewer words, or fit to more pictures."
        )
    kmeans = MiniBatchKMeans(
        n_words, batch_size=4096, n_init=1, random_state=random_state
    )
    return np.ascontiguousarray(kmeans.fit(samples).cluster_centers_)


def nearest_words(descriptors: np.ndarray, codebook: np.ndarray) -> np.ndarray:
    """Return the position of the word nearest to each descriptor."""
    norms = (codebook**2).sum(axis=1)
    return (norms - 2 * descriptors @ codebook.T).argmin(axis=1)
