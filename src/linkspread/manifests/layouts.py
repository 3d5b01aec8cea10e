"""Read collections from tables and folders, whose layout is recognised."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.datasets.benchmarks import (
    CATEGORIES,
    COREL5K_SOURCE,
    LISTS,
    PARTS,
    SERIES,
    WIKIPEDIA_SOURCE,
    read_corel5k_labels,
    read_wikipedia_list,
)
from linkspread.datasets.folders import PublishedFolder
from linkspread.ground.errors import LinkspreadError
from linkspread.manifests.collection import (
    ItemCollection,
    Places,
    ViewItems,
    is_picture_name,
)
from linkspread.tables.files import read_texts

_TEXT_SUFFIX = ".txt"
# Share of its values of one kind from which a column is of this kind.
_CLEAR = 0.9
# Longest path, so that a long text that ends in ".jpg" stays a text.
_MAX_PATH = 512


def read_collection(
    path: str | os.PathLike[str], *, allow_outside: bool = False
) -> ItemCollection:
    r"""Find the items of a collection, without reading any picture or text file.

    It may be a table (CSV, TSV or parquet) with a column `id` and a column for each
    view; a folder of pictures with texts of the same names beside them, perhaps with
    one folder for each class; or the benchmark Wikipedia or Corel5k.

    Parameters
    ----------
    path : str or Path
        A folder or a table.
    allow_outside : bool, default=False
        Allow absolute paths, ``..`` and symbolic links to lead out of the folder of the
        collection. Only for tables and folders that you trust.

    Returns
    -------
    collection : ItemCollection

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from linkspread.manifests import read_collection
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "fish.csv"
    ...     _ = table.write_text("id,title\na,one fish\nb,two fish\n")
    ...     read_collection(table)
    ItemCollection(title: 2 texts)
    """
    path = Path(path)
    if path.is_file():
        return _read_table(path, Places(path.parent, allow_outside=allow_outside))
    if not path.is_dir():
        raise LinkspreadError(
            "a collection must be a folder or a table (.csv, .tsv, .parquet), got "
            f"{str(path)!r}, which is neither. Correct the path."
        )
    labels = path / "labels"
    has_files = (path / "texts").is_dir() or (path / "images").is_dir()
    is_wikipedia = has_files and any((path / name).is_file() for name in LISTS)
    is_corel5k = (labels / "words").is_file()
    is_corel5k = is_corel5k and any((labels / name).is_file() for name in PARTS)
    if is_wikipedia and is_corel5k:
        raise LinkspreadError(
            f"a folder must have the layout of one collection, got {str(path)!r} with "
            "those of Wikipedia and Corel5k. Split it into two folders."
        )
    places = Places(path, allow_outside=allow_outside)
    if is_wikipedia:
        return _read_wikipedia(places)
    return _read_corel5k(places) if is_corel5k else _read_files(places)


def _read_table(path: Path, places: Places) -> ItemCollection:
    """Return a collection with a view for each column of a table."""
    columns = read_texts(path, error=LinkspreadError)
    if "id" not in columns:
        raise LinkspreadError(
            f"{path.name!r} must have a column named 'id', got "
            f"{', '.join(map(repr, columns)) or 'none'!s:.120}. Rename one."
        )
    ids = _check_ids([value.strip() for value in columns.pop("id")], path)
    labels = columns.pop("label", [])
    views, skipped = {}, []
    for name, values in columns.items():
        kind = _kind_of_column(name, values, path)
        if kind == "number" or not any(values):
            why = "numbers" if kind == "number" else "empty"
            skipped.append(f"column {name!r} ({why})")
            continue
        having = [i for i, value in enumerate(values) if value.strip()]
        contents: list[Any] = [values[i] for i in having]
        if kind != "text":
            contents = [places.path(value.strip()) for value in contents]
        views[name] = ViewItems(
            "picture" if kind == "picture" else "text",
            np.array([ids[i] for i in having], dtype=str),
            contents,
            np.array([labels[i].strip() for i in having]) if any(labels) else None,
        )
    if not views:
        raise LinkspreadError(
            f"{path.name!r} must have a column with texts or paths beside `id`, got "
            f"{', '.join(map(repr, columns)) or 'none'!s:.120}. Add one for each view."
        )
    return ItemCollection(views, places.root, "a table", tuple(skipped))


def _check_ids(ids: list[str], path: Path) -> list[str]:
    """Return ids; refuse empty and repeated ones."""
    if not ids:
        raise LinkspreadError(
            f"{path.name!r} must have at least one row, got none. Add a row for each "
            "item."
        )
    seen: set[str] = set()
    for number, own in enumerate(ids, start=1):
        if not own or own in seen:
            got = f"{own!r:.60} again" if own else "an empty one"
            raise LinkspreadError(
                f"each row of {path.name!r} must have a different id, got {got} in "
                f"row {number}. Number the rows."
            )
        seen.add(own)
    return ids


def _kind_of_column(name: str, values: Sequence[str], path: Path) -> str:
    """Return the kind of a column, by all its values."""
    given = [value.strip() for value in values if value.strip()]
    tests = {"picture": is_picture_name, "file": _is_text_name, "number": _is_number}
    shares = {
        kind: sum(len(v) <= _MAX_PATH and "\n" not in v and test(v) for v in given)
        / max(len(given), 1)
        for kind, test in tests.items()
    }
    kind, share = max(shares.items(), key=lambda own: own[1])
    if kind == "number":
        return "number" if share == 1 else "text"
    if 1 - _CLEAR < share < _CLEAR:
        other = next(v for v in given if not tests[kind](v))
        raise LinkspreadError(
            f"column {name!r} of {path.name!r} must hold either texts or paths, got "
            f"{share:.0%} paths, but also {other!r:.60}. Split it into two columns."
        )
    return kind if share >= _CLEAR else "text"


def _is_text_name(value: str) -> bool:
    """Return whether a file has the ending of a text."""
    return value.lower().endswith(_TEXT_SUFFIX)


def _is_number(value: str) -> bool:
    """Return whether a value is a number."""
    try:
        float(value)
    except ValueError:
        return False
    return True


def _read_files(places: Places) -> ItemCollection:
    """Return pictures, and texts with the same names beside them."""
    names = list(_files_below(places))
    pictures = [name for name in names if is_picture_name(name)]
    texts = [n for n in names if _is_text_name(n) and not n.endswith("/.txt")]
    _check_classes(pictures, texts, places.root)
    ids = {
        "text": {name: name[: -len(_TEXT_SUFFIX)] for name in texts},
        "image": _picture_ids(pictures, set(texts)),
    }
    views = {}
    for view, own in ids.items():
        folders = [name.rpartition("/")[0] for name in own]
        if own:
            views[view] = ViewItems(
                "text" if view == "text" else "picture",
                np.array(list(own.values()), dtype=str),
                [places.root / name for name in own],
                np.array(folders, dtype=str) if any(folders) else None,
            )
    n_others = len(names) - len(pictures) - len(texts)
    skipped = (f"{n_others:,} files that are neither pictures nor .txt",)
    is_classes = any("/" in name for name in (*pictures, *texts))
    layout = "a folder for each class" if is_classes else "a folder of files"
    return ItemCollection(views, places.root, layout, skipped if n_others else ())


def _files_below(places: Places) -> Iterator[str]:
    """Yield the files of a folder and of the folders in it, in their order."""
    for entry in _entries(places, ""):
        if not entry.is_dir():
            yield entry.name
            continue
        for inner in _entries(places, f"{entry.name}/"):
            name = f"{entry.name}/{inner.name}"
            if inner.is_dir():
                raise LinkspreadError(
                    "files of a collection must lie in its folder or in one folder "
                    f"for each class, got the inner folder {name!r:.120}. Give the "
                    "folder above the classes, or write a table."
                )
            yield name


def _entries(places: Places, prefix: str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, sorted, without hidden ones."""
    with os.scandir(places.root / prefix) as entries:
        found = [e for e in entries if not e.name.startswith((".", "__MACOSX"))]
    for entry in found:
        if entry.is_symlink():
            places.path(prefix + entry.name)
    return sorted(found, key=lambda entry: entry.name)


def _check_classes(pictures: list[str], texts: list[str], root: Path) -> None:
    """Refuse a folder without files, and one whose folders cannot be classes."""
    names = pictures + texts
    if not names:
        raise LinkspreadError(
            f"a collection must have at least one picture or text (.txt), got none in "
            f"{str(root)!r}. Give the folder that they lie in, or a table."
        )
    n_deep = sum("/" in name for name in names)
    if 0 < n_deep < len(names):
        raise LinkspreadError(
            f"files of a collection must lie all in its folder or all in folders of "
            f"classes, got {len(names) - n_deep:,} and {n_deep:,}. Move them, or give "
            "one of the folders."
        )
    folders = [{name.partition("/")[0] for name in own} for own in (pictures, texts)]
    if n_deep and all(folders) and folders[0].isdisjoint(folders[1]):
        raise LinkspreadError(
            "texts must lie beside their pictures, got pictures in the folder "
            f"{min(folders[0])!r:.60} and texts in {min(folders[1])!r:.60}, which may "
            "be views or classes. Put them together, or write a table."
        )


def _picture_ids(pictures: list[str], texts: set[str]) -> dict[str, str]:
    """Return the id of each picture: its name, with the suffix only where needed."""
    stems: dict[str, list[str]] = {}
    for name in pictures:
        stems.setdefault(os.path.splitext(name)[0], []).append(name)
    ids: dict[str, str] = {}
    for stem, names in stems.items():
        if len(names) > 1 and f"{stem}{_TEXT_SUFFIX}" in texts:
            raise LinkspreadError(
                f"a text must have one picture of its name, got "
                f"{', '.join(names)!s:.120} for {stem + _TEXT_SUFFIX!r}. Rename one of "
                "them."
            )
        ids |= {name: stem if len(names) == 1 else name for name in names}
    return ids


def _read_wikipedia(places: Places) -> ItemCollection:
    """Return articles and their pictures, by the ids of the texts."""
    data = _published(places, WIKIPEDIA_SOURCE, CATEGORIES, *LISTS)
    classes = data.lines(CATEGORIES)
    lists = [name for name in LISTS if (places.root / name).is_file()]
    rows = [r for name in lists for r in read_wikipedia_list(data, name, len(classes))]
    suffix = ".xml" if any((places.root / "texts").glob("*.xml")) else _TEXT_SUFFIX
    labels = [classes[number - 1] for _, _, number in rows]
    pictures = [f"images/{c}/{row[1]}.jpg" for c, row in zip(labels, rows, strict=True)]
    contents = {
        "text": [places.path(f"texts/{text}{suffix}") for text, _, _ in rows],
        "image": [places.path(name) for name in pictures],
    }
    ids = [text for text, _, _ in rows]
    return _matched(contents, ids, labels, places.root, "the Wikipedia benchmark")


def _read_corel5k(places: Places) -> ItemCollection:
    """Return photographs, and their keywords as texts with commas."""
    files = {part: f"labels/{part}" for part in PARTS}
    data = _published(places, COREL5K_SOURCE, "labels/words", *files.values())
    words = data.lines("labels/words")
    ids, texts, pictures = [], [], []
    for part, folder in PARTS.items():
        if not (places.root / files[part]).is_file():
            continue
        for number, columns in read_corel5k_labels(data, part, len(words)).items():
            ids.append(str(number))
            texts.append(", ".join(words[column] for column in columns))
            pictures.append(places.path(f"{folder}/{number}.jpeg"))
    labels = [str(int(number) // SERIES * SERIES) for number in ids]
    contents: dict[str, list[Any]] = {"text": texts, "image": pictures}
    return _matched(contents, ids, labels, places.root, "Corel5k")


def _published(places: Places, source: str, *names: str) -> PublishedFolder:
    """Return a folder of published data; refuse lists that lead out of it."""
    for name in names:
        places.path(name)
    return PublishedFolder(places.root, source)


def _matched(
    contents: Mapping[str, list[Any]],
    ids: list[str],
    labels: list[str],
    root: Path,
    layout: str,
) -> ItemCollection:
    """Return a collection of texts and pictures with matched rows."""
    if len(set(ids)) < len(ids):
        twice = next(own for own in ids if ids.count(own) > 1)
        raise LinkspreadError(
            f"lists of {layout} must name each item once, got {twice!r:.60} twice. "
            "Unpack the data again."
        )
    kinds = {"text": "text", "image": "picture"}
    views = {
        view: ViewItems(kinds[view], np.array(ids), own, np.array(labels))
        for view, own in contents.items()
    }
    return ItemCollection(views, root, layout)
