"""Examples of searches in a benchmark, as cards for the report."""

import base64
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.studies.report import Card, Hit, Search, choose_queries

N_RESULTS = 5


def describe_searches(
    collection: Any, source: str, target: str, test: np.ndarray, block: np.ndarray
) -> tuple[Search, ...]:
    """Return a few searches, of queries of different classes chosen at random."""
    places = choose_queries(collection.labels[test], np.arange(len(test)))
    return tuple(
        _search(collection, source, target, test, int(place), block[place])
        for place in places
    )


def _search(
    collection: Any,
    source: str,
    target: str,
    test: np.ndarray,
    place: int,
    scores: np.ndarray,
) -> Search:
    """Return the best results of one query."""
    query = int(test[place])
    best = np.argsort(-scores, kind="stable")[:N_RESULTS]
    hits = [
        Hit(
            _card(collection, target, int(test[b])),
            float(scores[b]),
            bool(collection.labels[test[b]] == collection.labels[query]),
        )
        for b in best
    ]
    return Search(source, target, _card(collection, source, query), hits)


def _card(collection: Any, view: str, row: int) -> Card:
    """Describe an item by what the collection has: words, a picture, its class."""
    family = f"class {collection.label_names[collection.labels[row]]}"
    pictures = getattr(collection, "pictures", None)
    if view == "image" and pictures is not None:
        return Card(Path(pictures[row]).stem, family, _photograph(Path(pictures[row])))
    words = getattr(collection, "words", None)
    if view == "text" and words is not None:
        own = collection.views["text"][[row]].nonzero()[-1]
        return Card(", ".join(words[k] for k in own), family)
    ids = getattr(collection, "ids", None)
    own = ids.get(view) if isinstance(ids, dict) else ids
    return Card(f"item {row}" if own is None else str(own[row]), family)


def _photograph(path: Path) -> str:
    """Return a JPEG file as an address that holds the picture itself."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return f"data:image/jpeg;base64,{data}"
