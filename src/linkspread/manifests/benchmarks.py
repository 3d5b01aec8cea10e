"""Folders of two published collections, as their publishers laid them out."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from linkspread.ground.errors import LinkspreadError
from linkspread.manifests.collection import ItemCollection, ViewItems
from linkspread.manifests.places import Places

LISTS = ("trainset_txt_img_cat.list", "testset_txt_img_cat.list")
CATEGORIES = "categories.list"
PARTS = {"training_label": "train_jpeg", "test_label": "test_jpeg"}
# A series of Corel5k is numbered from a multiple of this.
SERIES = 1000


def is_wikipedia(folder: Path) -> bool:
    """Tell whether a folder has the layout of the Wikipedia benchmark."""
    has_lists = any((folder / name).is_file() for name in LISTS)
    return has_lists and ((folder / "texts").is_dir() or (folder / "images").is_dir())


def read_wikipedia(places: Places) -> ItemCollection:
    """Return the articles and their pictures; the id of an item is that of its text."""
    names = list(_lines(places.path(CATEGORIES)))
    rows = [
        _wikipedia_row(line, names, name, number)
        for name in LISTS
        if (places.root / name).is_file()
        for number, line in enumerate(_lines(places.path(name)), start=1)
    ]
    suffix = ".xml" if any((places.root / "texts").glob("*.xml")) else ".txt"
    texts = [f"texts/{text}{suffix}" for text, _, _ in rows]
    pictures = [f"images/{label}/{picture}.jpg" for _, picture, label in rows]
    ids, labels = [row[0] for row in rows], [row[2] for row in rows]
    contents = {"text": texts, "image": pictures}
    return _matched(contents, ids, labels, places, "the Wikipedia benchmark")


def is_corel5k(folder: Path) -> bool:
    """Tell whether a folder has the layout of Corel5k."""
    labels = folder / "labels"
    return (labels / "words").is_file() and any((labels / p).is_file() for p in PARTS)


def read_corel5k(places: Places) -> ItemCollection:
    """Return the photographs and their keywords, which are a text with commas."""
    words = list(_lines(places.path("labels/words")))
    rows = [
        (folder, *_corel5k_row(line, words, f"labels/{name}", number))
        for name, folder in PARTS.items()
        if (places.root / "labels" / name).is_file()
        for number, line in enumerate(_lines(places.path(f"labels/{name}")), start=1)
    ]
    pictures = [f"{folder}/{picture}.jpeg" for folder, picture, _ in rows]
    ids = [str(picture) for _, picture, _ in rows]
    labels = [str(picture // SERIES * SERIES) for _, picture, _ in rows]
    found = _matched({"image": pictures}, ids, labels, places, "Corel5k")
    image = found.views["image"]
    text = ViewItems("text", image.ids, [row[2] for row in rows], image.labels)
    return ItemCollection({"text": text, "image": image}, found.root, found.layout)


def _matched(
    names: dict[str, list[str]],
    ids: list[str],
    labels: list[str],
    places: Places,
    layout: str,
) -> ItemCollection:
    """Return views of files whose rows belong together."""
    kinds = {"text": "text", "image": "picture"}
    if len(set(ids)) < len(ids):
        twice = next(own for own in ids if ids.count(own) > 1)
        raise LinkspreadError(
            f"lists of {layout} must name each item once, and {twice!r:.60} is there "
            "twice. Unpack the data again."
        )
    views = {
        view: ViewItems(
            kinds[view],
            np.array(ids, dtype=str),
            [places.path(name) for name in own],
            np.array(labels, dtype=str),
        )
        for view, own in names.items()
    }
    return ItemCollection(views, places.root, layout)


def _wikipedia_row(
    line: str, categories: list[str], name: str, number: int
) -> tuple[str, str, str]:
    """Return text id, picture id and category of a line of a list."""
    fields = line.split("\t")
    numbers = [str(i) for i in range(1, len(categories) + 1)]
    if len(fields) != 3 or fields[2].strip() not in numbers:
        raise LinkspreadError(
            f"line {number} of {name} must have a text id, an image id and a category "
            f"between 1 and {len(categories)}, parted by tabs, got {line[:80]!r}. "
            "Unpack the data again."
        )
    return fields[0], fields[1], categories[int(fields[2]) - 1]


def _corel5k_row(
    line: str, words: list[str], name: str, number: int
) -> tuple[int, str]:
    """Return the number of a picture and its keywords."""
    fields = line.split()
    are_numbers = all(f.isascii() and f.isdigit() for f in fields)
    if not are_numbers or not all(0 < int(f) <= len(words) for f in fields[1:]):
        raise LinkspreadError(
            f"line {number} of {name} must have a picture number and word numbers from "
            f"1 to {len(words)}, got {line[:80]!r}. Unpack the data again."
        )
    return int(fields[0]), ", ".join(words[int(f) - 1] for f in fields[1:])


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file that are not blank."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LinkspreadError(
            f"{path.name} must be a text file in UTF-8, got {type(error).__name__} "
            "while reading it. Unpack the data again."
        ) from error
    yield from (line.strip() for line in text.splitlines() if line.strip())
