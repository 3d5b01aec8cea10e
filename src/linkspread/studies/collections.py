"""The collections of the studies, their splits, and the links known in each split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.datasets import load_corel5k, load_glyphs, load_wikipedia
from linkspread.features import PictureFeatures
from linkspread.ground.errors import LinkspreadError
from linkspread.links import Links

Array = np.ndarray

UNKNOWN = -1
WIDTHS = ("local", "0.3 mean", "0.45 mean", "0.7 mean")


@dataclass(frozen=True)
class Split:
    """Rows of a collection to train on, and rows to test on."""

    name: str
    train: Array
    test: Array


@dataclass(frozen=True)
class Benchmark:
    """A collection with its published split and grids that suit its features."""

    name: str
    collection: Any
    standard: Split
    metrics: Mapping[str, Sequence[str]]
    widths: Mapping[str, Sequence[Any]]

    def splits(self, n_resplits: int) -> list[Split]:
        """Return the standard split and random ones of the same size."""
        labels, n_train = self.collection.labels, len(self.standard.train)
        others = [resplit(labels, n_train, seed=k + 1) for k in range(n_resplits)]
        return [self.standard, *others]


def load_benchmark(
    name: str, folder: Path | None = None, *, half: bool = False, verbose: bool = False
) -> Benchmark:
    """Load a collection by name; a random half is for training if it has no split."""
    if name == "wikipedia":
        data: Any = load_wikipedia(folder)
        metrics = {
            "text": ("euclidean", "hellinger"),
            "image": ("euclidean", "hellinger", "chi2"),
        }
    elif name == "corel5k":
        features = PictureFeatures(random_state=0, verbose=verbose)
        data = load_corel5k(folder, features=features)
        metrics = {"text": ("euclidean", "cosine"), "image": ("euclidean", "hellinger")}
    elif name == "glyphs":
        data, half = load_glyphs(), True
        metrics = {"name": ("euclidean", "cosine"), "image": ("cosine", "euclidean")}
    else:
        raise LinkspreadError(
            "the collection must be one of ['wikipedia', 'corel5k', 'glyphs'], got "
            f"{name!r}. Choose one of these."
        )
    if half:
        data_split = resplit(data.labels, len(data.labels) // 2, seed=0)
    else:
        data_split = data
    split = Split("standard", data_split.train, data_split.test)
    return Benchmark(name, data, split, metrics, dict.fromkeys(metrics, WIDTHS))


def resplit(labels: Array, n_train: int, *, seed: int) -> Split:
    """Draw another split of the same size, with the classes in the same shares."""
    if not 0 < n_train < len(labels):
        raise LinkspreadError(
            f"`n_train` must leave items for the test, between 1 and "
            f"{len(labels) - 1}, got {n_train}. Choose a number in this range."
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    # Items of each class evenly along the list, so that a prefix has the same shares.
    place = np.empty(len(labels))
    for label in np.unique(labels):
        own = order[labels[order] == label]
        place[own] = (np.arange(len(own)) + rng.random()) / len(own)
    order = np.argsort(place, kind="stable")
    return Split(f"re-split {seed}", np.sort(order[:n_train]), np.sort(order[n_train:]))


def choose_labeled(
    labels: Array, labels_per_class: int = 5, *, random_state: int = 0
) -> Array:
    """Choose the items of each class whose label is known."""
    smallest = np.unique(labels, return_counts=True)[1].min()
    # Each class must have one item more than labels, to be searched for.
    if not 1 <= labels_per_class < smallest:
        raise LinkspreadError(
            f"`labels_per_class` must lie between 1 and {smallest - 1}, one less than "
            f"the size of the smallest class, got {labels_per_class}. Choose a number "
            "in this range."
        )
    order = np.random.default_rng(random_state).permutation(len(labels))
    labeled = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        labeled[order[labels[order] == label][:labels_per_class]] = True
    return labeled


def label_links(
    labels: Array, known: Array, views: Sequence[str], *, matched: bool = False
) -> Links:
    """Return links from the labels of some rows, and from matched rows if `matched`."""
    shown = np.full(len(labels), UNKNOWN)
    shown[known] = labels[known]
    links = Links.from_labels(dict.fromkeys(views, shown))
    return links + matched_links(known, views) if matched else links


def matched_links(known: Array, views: Sequence[str]) -> Links:
    """Return must-links between the views of the same rows."""
    first, second = views
    return Links.from_pairs(np.column_stack([known, known]), between=(first, second))


def random_links(
    labels: Array, known: Array, views: Sequence[str], n_links: int, *, seed: int
) -> Links:
    """Return links of random pairs, must where the classes are the same."""
    n = len(known)
    drawn = np.random.default_rng(seed).choice(n * n, n_links, replace=False)
    return judged_links(labels, known[drawn // n], known[drawn % n], views)


def judged_links(labels: Array, i: Array, j: Array, views: Sequence[str]) -> Links:
    """Return links of pairs, judged by their labels."""
    first, second = views
    weights = np.where(labels[i] == labels[j], 1.0, -1.0)
    table: Any = np.column_stack([i, j, weights])
    return Links.from_pairs(table, between=(first, second))
