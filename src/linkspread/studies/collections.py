"""The collections of the studies, and the choices that suit their features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.datasets import load_corel5k, load_glyphs, load_wikipedia
from linkspread.features import PictureFeatures
from linkspread.ground.errors import LinkspreadError
from linkspread.studies.splits import Split, resplit

Array = np.ndarray

WIDTHS = ("local", "0.3 mean", "0.45 mean", "0.7 mean")


@dataclass(frozen=True)
class Benchmark:
    """A collection ready to be measured on."""

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
    """Load a collection by name."""
    if name not in COLLECTIONS:
        raise LinkspreadError(
            f"the collection must be one of {list(COLLECTIONS)}, got {name!r}. Choose "
            "one of these."
        )
    collection, split, metrics = COLLECTIONS[name](folder, verbose)
    if half:
        n_items = len(collection.labels)
        drawn = resplit(collection.labels, n_items // 2, seed=0)
        split = Split("standard", drawn.train, drawn.test)
    return Benchmark(name, collection, split, metrics, dict.fromkeys(metrics, WIDTHS))


def _wikipedia(folder: Path | None, verbose: bool) -> tuple[Any, Split, Any]:
    """Return the Wikipedia collection: topics and visual words."""
    data = load_wikipedia(folder)
    metrics = {
        "text": ("euclidean", "hellinger"),
        "image": ("euclidean", "hellinger", "chi2"),
    }
    return data, Split("standard", data.train, data.test), metrics


def _corel5k(folder: Path | None, verbose: bool) -> tuple[Any, Split, Any]:
    """Return Corel5k: keywords, and histograms of the pictures."""
    features = PictureFeatures(random_state=0, verbose=verbose)
    data = load_corel5k(folder, features=features)
    metrics = {"text": ("euclidean", "cosine"), "image": ("euclidean", "hellinger")}
    return data, Split("standard", data.train, data.test), metrics


def _glyphs(folder: Path | None, verbose: bool) -> tuple[Any, Split, Any]:
    """Return the glyphs: words of names, and pictures; half of them to test on."""
    data = load_glyphs()
    drawn = resplit(data.labels, len(data.labels) // 2, seed=0)
    metrics = {"name": ("euclidean", "cosine"), "image": ("cosine", "euclidean")}
    return data, Split("standard", drawn.train, drawn.test), metrics


COLLECTIONS = {"wikipedia": _wikipedia, "corel5k": _corel5k, "glyphs": _glyphs}
