"""Synthetic views of any size, with known classes.

The class of an item determines its place in a hidden space; each view is a different
nonlinear map of that space, so views do not share a space.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from linkspread.ground.checks import check_count, check_positive
from linkspread.ground.errors import ViewError

# Rows are drawn in chunks, each with its own seed, as the hidden coordinates of all
# rows would take more memory than the rows.
_CHUNK = 4096
_N_HIDDEN = 16


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticViews:
    """Synthetic views, computed on demand from `labels` and maps."""

    labels: Mapping[str, np.ndarray]
    prototypes: np.ndarray
    maps: Mapping[str, np.ndarray]
    noise: float
    random_state: int
    dtype: np.dtype[Any]

    def __repr__(self) -> str:
        sizes = {view: len(y) for view, y in self.labels.items()}
        shapes = [f"{v}: {sizes[v]} x {A.shape[1]}" for v, A in self.maps.items()]
        return f"SyntheticViews({len(self.prototypes)} classes, {', '.join(shapes)})"

    def views(self) -> dict[str, np.ndarray]:
        """Return every view in full, at each call with the same bits."""
        found = {}
        for place, (view, labels) in enumerate(self.labels.items()):
            A = self.maps[view]
            found[view] = X = np.empty((len(labels), A.shape[1]), dtype=self.dtype)
            for start in range(0, len(labels), _CHUNK):
                chunk = slice(start, start + _CHUNK)
                rng = np.random.default_rng((self.random_state, 1, place, start))
                hidden = self.prototypes[labels[chunk]]
                hidden += self.noise * rng.standard_normal(hidden.shape)
                # tanh bends the hidden space, so that no linear map joins two views.
                X[chunk] = np.tanh(hidden @ A)
        return found


def make_views(
    n_samples: int | Mapping[str, int] = 1000,
    *,
    n_classes: int = 10,
    n_features: int | Mapping[str, int] = 32,
    noise: float = 1.0,
    random_state: int = 0,
    dtype: DTypeLike = np.float32,
) -> SyntheticViews:
    """Make views whose items are related by their class only.

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
    check_count(n_classes, name="n_classes", remedy="Choose a larger one.")
    remedy = "Use 0 for classes that are points, 1 for a moderate spread."
    check_positive(noise, name="noise", remedy=remedy, zero=True)
    rng = np.random.default_rng((random_state, 0))
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
        check_count(count, name=f"{name}[{view!r}]", remedy="Choose a larger one.")
    return dict(value)
