"""Views made to measure, of any size, with a known answer.

The class of an item decides where it lies in every view; each view bends the same
hidden space in its own way, so that no view can be compared with another directly:

>>> from linkspread.datasets import make_views
>>> made = make_views({"text": 6, "image": 4}, n_classes=2, random_state=1)
>>> made.views()["image"].shape
(4, 32)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from linkspread.ground.errors import LinkspreadError, ViewError

# Rows are drawn in chunks, each from a seed of its own: any row can be made again
# without the rows before it, and with the same bits, whatever range is asked for.
_CHUNK = 4096
_N_HIDDEN = 16


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticViews:
    """Make the rows of synthetic views on demand.

    Only `labels` and the maps are held in memory, a few bytes per item; rows are
    drawn again each time they are asked for.

    Parameters
    ----------
    labels : dict of ndarray of int of shape (n_samples,)
        Class of each item, by view.
    prototypes : ndarray of shape (n_classes, n_hidden)
        Place of each class in the hidden space.
    maps : dict of ndarray of shape (n_hidden, n_features)
        Map from the hidden space, by view.
    noise : float
        Spread of the items around their class in the hidden space.
    random_state : int
        Seed of the rows.
    dtype : dtype
        Type of the rows.
    """

    labels: Mapping[str, np.ndarray]
    prototypes: np.ndarray
    maps: Mapping[str, np.ndarray]
    noise: float
    random_state: int
    dtype: np.dtype[Any]

    def __repr__(self) -> str:
        shapes = [
            f"{v}: {len(self.labels[v])} x {A.shape[1]}" for v, A in self.maps.items()
        ]
        counts = f"{len(self.prototypes)} classes"
        return f"SyntheticViews({', '.join([counts, *shapes])})"

    def rows(self, view: str, start: int, stop: int) -> np.ndarray:
        """Return the rows from `start` up to `stop` of one view.

        Parameters
        ----------
        view : str
            Name of the view.
        start, stop : int
            First row and the row after the last, ``0 <= start <= stop <= n_samples``.

        Returns
        -------
        X : ndarray of shape (stop - start, n_features)
            The same bits for the same row, whatever the range.

        Examples
        --------
        >>> from linkspread.datasets import make_views
        >>> made = make_views(1_000_000)
        >>> made.rows("text", 999_990, 1_000_000).shape
        (10, 32)
        """
        n_samples = len(self._labels_of(view))
        if not 0 <= start <= stop <= n_samples:
            raise ViewError(
                f"Rows must lie within 0 <= start <= stop <= {n_samples} in view "
                f"{view!r}, got start={start}, stop={stop}. Choose a smaller range."
            )
        out = np.empty((stop - start, self.maps[view].shape[1]), dtype=self.dtype)
        for first in range(start - start % _CHUNK, stop, _CHUNK):
            low, high = max(first, start), min(first + _CHUNK, stop)
            out[low - start : high - start] = self._chunk(view, first)[
                low - first : high - first
            ]
        return out

    def blocks(self, view: str, size: int = 65_536) -> Iterator[np.ndarray]:
        """Yield one view in blocks of rows, for streaming.

        Parameters
        ----------
        view : str
            Name of the view.
        size : int, default=65536
            Rows per block; the last block may have fewer.

        Yields
        ------
        X : ndarray of shape (<= size, n_features)
        """
        _check_count("size", size)
        n_samples = len(self._labels_of(view))
        for start in range(0, n_samples, size):
            yield self.rows(view, start, min(start + size, n_samples))

    def views(self) -> dict[str, np.ndarray]:
        """Return every view in full.

        Returns
        -------
        views : dict of ndarray of shape (n_samples, n_features)
        """
        return {view: self.rows(view, 0, len(y)) for view, y in self.labels.items()}

    def _labels_of(self, view: str) -> np.ndarray:
        """Return the labels of a view, or say which views there are."""
        if view not in self.labels:
            raise ViewError(
                f"`view` must be one of {', '.join(map(repr, self.labels))}, got "
                f"{view!r}. Use one of these names."
            )
        return self.labels[view]

    def _chunk(self, view: str, first: int) -> np.ndarray:
        """Draw the chunk of rows that starts at `first`."""
        labels = self.labels[view][first : first + _CHUNK]
        rng = _generator(self.random_state, 1, list(self.maps).index(view), first)
        hidden = self.prototypes[labels]
        hidden += self.noise * rng.standard_normal(hidden.shape)
        # tanh bends the hidden space, so that no linear map joins two views exactly.
        return np.tanh(hidden @ self.maps[view])


def make_views(
    n_samples: int | Mapping[str, int] = 1000,
    *,
    n_classes: int = 10,
    n_features: int | Mapping[str, int] = 32,
    noise: float = 1.0,
    random_state: int = 0,
    dtype: DTypeLike = np.float32,
) -> SyntheticViews:
    """Make views whose items are related by class and by nothing else.

    ``x = tanh((p[class] + noise * e) B)`` with one ``B`` per view, hidden class
    places ``p`` common to all views, and ``e`` standard normal, new for each item.

    Parameters
    ----------
    n_samples : int or dict of int, default=1000
        Items per view by view name; one number makes the views "text" and "image".
    n_classes : int, default=10
        Number of classes, each item's drawn at random.
    n_features : int or dict of int, default=32
        Columns of each view.
    noise : float, default=1.0
        At 0 the items of a class coincide and retrieval is perfect; at 1 about eight
        of ten neighbours share the class; at 2 classes overlap widely.
    random_state : int, default=0
        Seed; the same seed gives the same bits.
    dtype : dtype, default=numpy.float32
        Type of the rows.

    Returns
    -------
    made : SyntheticViews

    Examples
    --------
    >>> from linkspread.datasets import make_views
    >>> make_views({"text": 1000, "image": 800}, n_features={"text": 8, "image": 64})
    SyntheticViews(10 classes, text: 1000 x 8, image: 800 x 64)
    """
    sizes = _by_view("n_samples", n_samples, ("text", "image"))
    widths = _by_view("n_features", n_features, tuple(sizes))
    _check_count("n_classes", n_classes)
    _check_noise(noise)
    rng = _generator(random_state, 0)
    return SyntheticViews(
        prototypes=rng.standard_normal((n_classes, _N_HIDDEN)),
        maps={v: rng.normal(0, _N_HIDDEN**-0.5, (_N_HIDDEN, widths[v])) for v in sizes},
        labels={
            v: rng.integers(n_classes, size=n, dtype=np.int32) for v, n in sizes.items()
        },
        noise=noise,
        random_state=random_state,
        dtype=np.dtype(dtype),
    )


def _generator(*seed: int) -> np.random.Generator:
    """Return a generator that depends on all the numbers given."""
    return np.random.default_rng(seed)


def _by_view(
    name: str, value: int | Mapping[str, int], views: tuple[str, ...]
) -> dict[str, int]:
    """Return one count per view from a number or a dict."""
    if not isinstance(value, Mapping):
        value = dict.fromkeys(views, value)
    missing = [view for view in views if view not in value]
    if name == "n_features" and missing:
        raise ViewError(
            f"`n_features` must name every view, got none for {missing[0]!r}. Add it, "
            "or give one number for all views."
        )
    for view, count in value.items():
        _check_count(f"{name}[{view!r}]", count)
    return dict(value)


def _check_count(name: str, value: int) -> None:
    """Raise unless a parameter is a whole number above zero."""
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise LinkspreadError(
            f"`{name}` must be a whole number of at least 1, got {value!r}. "
            "Choose a larger one."
        )


def _check_noise(noise: float) -> None:
    """Raise unless the noise is a finite number from 0 on."""
    if not 0 <= noise < np.inf:
        raise LinkspreadError(
            f"`noise` must be a finite number of at least 0, got {noise!r}. "
            "Use 0 for classes that are points, 1 for a moderate spread."
        )
