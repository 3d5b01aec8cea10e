"""Corel5k: 4,999 photographs with one to five keywords each, in 50 series.

A loader must not choose the picture features, so `load_corel5k` takes them: a
transformer, which it fits to the training pictures only, or a table made elsewhere.
The data are not part of this package; they are read from a folder.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from linkspread.datasets.collection import Collection
from linkspread.datasets.folders import file_error, find_folder, read_lines
from linkspread.ground.errors import ViewError
from linkspread.tables.validation import check_table

_SOURCE = (
    "The data are the Corel5k pictures and keywords of Duygulu et al. (2002), "
    "published with the paper 'Object recognition as machine translation' as the "
    "folders labels, train_jpeg and test_jpeg."
)
_WORDS = "words"
# Label file and picture folder of each part, training part first.
_PARTS = {"training_label": "train_jpeg", "test_label": "test_jpeg"}
# A series has up to a hundred pictures, numbered from a multiple of this.
_SERIES = 1000


@dataclass(frozen=True, eq=False, repr=False)
class Corel5k(Collection):
    """Hold the views "text" and "image" of the Corel5k benchmark.

    Parameters
    ----------
    views : dict
        ``"text"``: csr_array of float64 of shape (n_items, n_words), 1 where the
        picture has the keyword, rows not normalised. ``"image"``: the picture
        features, only where `load_corel5k` was given some.
    labels : ndarray of int of shape (n_items,)
        Series of each picture, a position in `label_names`.
    label_names : tuple of str
        Number of the first picture of each series, such as ``"1000"``.
    ids : ndarray of str of shape (n_items,)
        Numbers of the pictures.
    train, test : ndarray of int
        Rows of the published split.
    words : tuple of str
        The keywords, in the order of the columns of the view "text".
    pictures : tuple of Path
        File of each picture.
    """

    ids: np.ndarray
    train: np.ndarray
    test: np.ndarray
    words: tuple[str, ...]
    pictures: tuple[Path, ...]


def load_corel5k(
    folder: str | os.PathLike[str] | None = None, *, features: Any = None
) -> Corel5k:
    """Read the Corel5k benchmark, its keywords and the files of its pictures.

    Parameters
    ----------
    folder : path-like, default=None
        Folder with labels, train_jpeg and test_jpeg. By default the folder "corel5k"
        in the folder that the environment variable LINKSPREAD_DATA names.
    features : transformer or table of shape (n_items, n_features), default=None
        What makes the view "image": an object whose ``fit`` and ``transform`` take a
        list of files, such as `linkspread.features.PictureFeatures()`, which is
        fitted here to the training pictures; or features in the order of `pictures`.
        Without it the collection has no view "image".

    Returns
    -------
    corel5k : Corel5k
        Training rows first, then test rows.
    """
    folder = find_folder(
        folder,
        name="corel5k",
        title="the Corel5k benchmark",
        holds="labels, train_jpeg and test_jpeg",
        source=_SOURCE,
    )
    words = tuple(_lines(folder / "labels" / _WORDS))
    parts = [_read_part(folder, name, len(words)) for name in _PARTS]
    twice = {p.stem for p in parts[0]} & {p.stem for p in parts[1]}
    if twice:
        path = folder / "labels" / "test_label"
        raise _file_error(path, "must name no training picture", min(twice))
    keywords = parts[0] | parts[1]
    pictures, n_train = tuple(keywords), len(parts[0])
    numbers = np.array([int(picture.stem) for picture in pictures])
    series, labels = np.unique(numbers // _SERIES, return_inverse=True)
    views = {"text": _keyword_table(list(keywords.values()), len(words))}
    if features is not None:
        views["image"] = _picture_table(features, pictures, n_train)
    return Corel5k(
        views=views,
        labels=labels,
        label_names=tuple(str(number) for number in series * _SERIES),
        ids=numbers.astype(str),
        train=np.arange(n_train),
        test=np.arange(n_train, len(pictures)),
        words=words,
        pictures=pictures,
    )


def _read_part(folder: Path, name: str, n_words: int) -> dict[Path, list[int]]:
    """Return the keyword columns of each picture of one part, by its file."""
    path, keywords = folder / "labels" / name, {}
    for number, line in enumerate(_lines(path), start=1):
        got = f"{line[:80]!r} on line {number}"
        picture_id, columns = _read_line(line, path, got, n_words)
        picture = folder / _PARTS[name] / f"{picture_id}.jpeg"
        if picture in keywords:
            raise _file_error(path, "must name each picture once", got)
        if not picture.is_file():
            rule = f"must name pictures in the folder {_PARTS[name]}"
            raise _file_error(path, rule, f"{got} but no file {picture.name}")
        keywords[picture] = columns
    return keywords


def _read_line(line: str, path: Path, got: str, n_words: int) -> tuple[int, list[int]]:
    """Return the number of a picture and its keyword columns, counted from 0."""
    fields = line.split()
    if len(fields) < 2 or not all(f.isascii() and f.isdigit() for f in fields):
        rule = "must have a picture number and its word numbers on each line"
        raise _file_error(path, rule, got)
    columns = [int(field) - 1 for field in fields[1:]]
    if not all(0 <= column < n_words for column in columns):
        raise _file_error(path, f"must have word numbers from 1 to {n_words}", got)
    return int(fields[0]), columns


def _keyword_table(keywords: list[list[int]], n_words: int) -> csr_array:
    """Return 1 where a picture has a keyword; a repeated one counts once."""
    rows = [sorted(set(columns)) for columns in keywords]
    indices = np.concatenate([np.array(row, dtype=np.int32) for row in rows])
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    shape = (len(rows), n_words)
    return csr_array((np.ones(len(indices)), indices, starts), shape=shape)


def _picture_table(features: Any, pictures: Sequence[Path], n_train: int) -> Any:
    """Return the view "image" from a transformer or from a finished table."""
    if hasattr(features, "transform"):
        # The codebook of a transformer must not have seen the test pictures.
        features.fit(list(pictures[:n_train]))
        features = features.transform(list(pictures))
    X = check_table(features, view="image")
    if X.shape[0] != len(pictures):
        raise ViewError(
            f"`features` must have one row per picture, {len(pictures):,}, got "
            f"{X.shape[0]:,}. Give them in the order of `pictures`."
        )
    return X


# The messages of this collection tell where it comes from.
_file_error = partial(file_error, source=_SOURCE)
_lines = partial(read_lines, source=_SOURCE)
