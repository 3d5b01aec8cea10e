"""Wikipedia: articles and their pictures, the usual cross-modal benchmark.

2,866 sections of featured articles, each with one picture and one of ten topics.
The data are not part of this package; `load_wikipedia` reads them from a folder.
"""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from linkspread.datasets.collection import Collection
from linkspread.datasets.folders import file_error, find_folder, read_lines

_SOURCE = (
    "The data are the Wikipedia featured articles of Rasiwasia et al. (2010), "
    "published by the Statistical Visual Computing Lab of UC San Diego as "
    "wikipedia_dataset.tar.gz."
)
_FEATURES = "raw_features.mat"
_CATEGORIES = "categories.list"
_PARTS = {"tr": "trainset_txt_img_cat.list", "te": "testset_txt_img_cat.list"}
_TABLES = {"text": "T", "image": "I"}


@dataclass(frozen=True, eq=False, repr=False)
class Wikipedia(Collection):
    """Hold the views "text" and "image" of the Wikipedia benchmark.

    Parameters
    ----------
    views : dict of ndarray of float64
        ``"text"`` of shape (n_items, 10), topic proportions; ``"image"`` of shape
        (n_items, 128), frequencies of visual words.
    labels : ndarray of int of shape (n_items,)
        Topic of each article, 0 to 9.
    label_names : tuple of str
        The topics.
    ids : dict of ndarray of str of shape (n_items,)
        Ids of the texts and of the pictures, by view.
    train, test : ndarray of int
        Rows of the published split.
    """

    ids: dict[str, np.ndarray]
    train: np.ndarray
    test: np.ndarray


def load_wikipedia(folder: str | os.PathLike[str] | None = None) -> Wikipedia:
    """Read the Wikipedia benchmark with its original features.

    Parameters
    ----------
    folder : path-like, default=None
        Folder with raw_features.mat and the three list files. By default the folder
        "wikipedia" in the folder that the environment variable LINKSPREAD_DATA names.

    Returns
    -------
    wikipedia : Wikipedia
        Training rows first, then test rows.
    """
    folder = find_folder(
        folder,
        name="wikipedia",
        title="the Wikipedia benchmark",
        holds=_FEATURES,
        source=_SOURCE,
    )
    label_names = tuple(_lines(folder / _CATEGORIES))
    parts = [_read_list(folder / name, len(label_names)) for name in _PARTS.values()]
    rows = [row for part in parts for row in part]
    n_train = len(parts[0])
    return Wikipedia(
        views=_read_views(folder / _FEATURES, [len(part) for part in parts]),
        labels=np.array([int(row[2]) - 1 for row in rows]),
        label_names=label_names,
        ids={
            "text": np.array([row[0] for row in rows]),
            "image": np.array([row[1] for row in rows]),
        },
        train=np.arange(n_train),
        test=np.arange(n_train, len(rows)),
    )


def _read_list(path: Path, n_classes: int) -> list[tuple[str, str, str]]:
    """Return text id, image id and category (from 1) of each line of a list file."""
    rows = []
    for number, line in enumerate(_lines(path), start=1):
        fields = line.split("\t")
        if len(fields) != 3 or fields[2] not in map(str, range(1, n_classes + 1)):
            rule = (
                "must have a text id, an image id and a category between 1 and "
                f"{n_classes} on each line, parted by tabs"
            )
            raise _file_error(path, rule, f"{line[:80]!r} on line {number}")
        rows.append((fields[0], fields[1], fields[2]))
    return rows


def _read_views(path: Path, n_rows: list[int]) -> dict[str, np.ndarray]:
    """Return each view, training rows above test rows."""
    tables = _read_tables(path)
    views = {}
    for view, letter in _TABLES.items():
        parts = [tables[f"{letter}_{part}"] for part in _PARTS]
        for part, table, n in zip(_PARTS, parts, n_rows, strict=True):
            if len(table) != n:
                rule = (
                    f"must have one row in {letter}_{part} per line of {_PARTS[part]}"
                )
                raise _file_error(path, rule, f"{len(table)} rows for {n} lines")
        if parts[0].shape[1] != parts[1].shape[1]:
            rule = f"must have equal columns in {letter}_tr and {letter}_te"
            raise _file_error(
                path, rule, f"{parts[0].shape[1]} and {parts[1].shape[1]}"
            )
        views[view] = np.vstack(parts).astype(np.float64)
    return views


def _read_tables(path: Path) -> dict[str, np.ndarray]:
    """Return the four tables of the feature file by their names in it."""
    if not path.is_file():
        raise _file_error(path, "must exist", "no such file")
    names = [f"{letter}_{part}" for letter in _TABLES.values() for part in _PARTS]
    try:
        content = loadmat(path, variable_names=names)
    except Exception as error:
        # The reader meets a damaged file anywhere and raises whatever comes up.
        reason = f"{type(error).__name__} while reading it"
        raise _file_error(path, "must be a complete MATLAB file", reason) from error
    missing = [name for name in names if name not in content]
    if missing:
        rule = f"must hold the tables {', '.join(names)}"
        raise _file_error(path, rule, f"no {missing[0]}")
    return {name: content[name] for name in names}


# The messages of this collection tell where it comes from.
_file_error = partial(file_error, source=_SOURCE)
_lines = partial(read_lines, source=_SOURCE)
