"""Folders of pictures and texts: side by side, and perhaps a folder for each class."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from linkspread.ground.errors import LinkspreadError
from linkspread.manifests.collection import ItemCollection, ViewItems
from linkspread.manifests.places import Places, is_picture_name

# Names of files by kind; what else lies around is skipped and counted.
TEXT_SUFFIX = ".txt"


def read_files(places: Places) -> ItemCollection:
    """Return pictures, and texts with the same names beside them."""
    files: dict[str, list[str]] = {"picture": [], "text": [], "other": []}
    for name in _files_below(places):
        files[_kind(name)].append(name)
    _check_classes(files, places.root)
    ids = _picture_ids(files["picture"], files["text"])
    texts = {name: name[: -len(TEXT_SUFFIX)] for name in files["text"]}
    views = {
        "text": _make_view("text", texts, places),
        "image": _make_view("picture", ids, places),
    }
    views = {view: own for view, own in views.items() if len(own.ids)}
    n_others = len(files["other"])
    skipped = (f"{n_others:,} files that are neither pictures nor .txt",)
    is_classes = any("/" in name for name in (*ids, *texts))
    layout = "a folder for each class" if is_classes else "a folder of files"
    return ItemCollection(views, places.root, layout, skipped if n_others else ())


def _files_below(places: Places) -> Iterator[str]:
    """Yield the files of a folder and of the folders in it, in their order."""
    for entry in _entries(places.root):
        if not entry.is_dir():
            yield _checked(places, entry, entry.name)
            continue
        _checked(places, entry, entry.name)
        for inner in _entries(Path(entry.path)):
            name = f"{entry.name}/{inner.name}"
            _checked(places, inner, name)
            if inner.is_dir():
                raise LinkspreadError(
                    "files of a collection must lie in its folder or in one folder "
                    f"for each class, and {name!r:.120} is a folder within a folder. "
                    "Give the folder above the classes, or write a table."
                )
            yield name


def _checked(places: Places, entry: os.DirEntry[str], name: str) -> str:
    """Return the name of an entry that does not lead outside."""
    if entry.is_symlink():
        places.path(name)
    return name


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what lies in a folder, sorted, without what systems hide there."""
    with os.scandir(folder) as entries:
        found = [e for e in entries if not e.name.startswith((".", "__MACOSX"))]
    return sorted(found, key=lambda entry: entry.name)


def _kind(name: str) -> str:
    """Return the kind of a file by its name."""
    if is_picture_name(name):
        return "picture"
    is_text = name.lower().endswith(TEXT_SUFFIX) and not name.endswith("/.txt")
    return "text" if is_text else "other"


def _check_classes(files: dict[str, list[str]], root: Path) -> None:
    """Refuse a folder without files, and one whose folders may not be classes."""
    names = files["picture"] + files["text"]
    if not names:
        raise LinkspreadError(
            f"a collection must have at least one picture or text (.txt), and "
            f"{str(root)!r} has none. Give the folder that they lie in, or a table."
        )
    n_deep = sum("/" in name for name in names)
    if 0 < n_deep < len(names):
        raise LinkspreadError(
            f"files of a collection must lie all in its folder or all in folders of "
            f"classes, got {len(names) - n_deep:,} and {n_deep:,}. Move them, or give "
            "one of the folders."
        )
    folders = [{n.partition("/")[0] for n in files[k]} for k in ("picture", "text")]
    if n_deep and all(folders) and folders[0].isdisjoint(folders[1]):
        raise LinkspreadError(
            "texts must lie beside their pictures, got pictures in the folder "
            f"{min(folders[0])!r:.60} and texts in {min(folders[1])!r:.60}, which may "
            "be views or classes. Put them together, or write a table."
        )


def _picture_ids(pictures: list[str], texts: list[str]) -> dict[str, str]:
    """Return the id of each picture: its name, with the suffix only where needed."""
    stems: dict[str, list[str]] = {}
    for name in pictures:
        stems.setdefault(os.path.splitext(name)[0], []).append(name)
    ids: dict[str, str] = {}
    for stem, names in stems.items():
        if len(names) > 1 and f"{stem}{TEXT_SUFFIX}" in texts:
            raise LinkspreadError(
                f"a text must have one picture of its name, and {stem + TEXT_SUFFIX!r} "
                f"has {', '.join(names)!s:.120}. Rename one of them."
            )
        ids |= {name: stem if len(names) == 1 else name for name in names}
    return ids


def _make_view(kind: str, ids: dict[str, str], places: Places) -> ViewItems:
    """Return the items of a view, given the id of each file."""
    paths = [places.root / name for name in ids]
    folders = [name.rpartition("/")[0] for name in ids]
    labels = np.array(folders, dtype=str) if any(folders) else None
    return ViewItems(kind, np.array(list(ids.values()), dtype=str), paths, labels)
