"""The two benchmarks of the paper, read from their published folders."""

import os
from typing import Any

import numpy as np
from scipy.io import loadmat
from scipy.sparse import csr_array

from linkspread.datasets.collection import Collection
from linkspread.datasets.folders import PublishedFolder, find_folder
from linkspread.ground.errors import ViewError
from linkspread.tables.validation import check_table

WIKIPEDIA_SOURCE = (
    "The data are the Wikipedia featured articles of Rasiwasia et al. (2010), "
    "published by the Statistical Visual Computing Lab of UC San Diego as "
    "wikipedia_dataset.tar.gz."
)
COREL5K_SOURCE = (
    "The data are the Corel5k pictures and keywords of Duygulu et al. (2002), "
    "published with the paper 'Object recognition as machine translation' as the "
    "folders labels, train_jpeg and test_jpeg."
)
CATEGORIES = "categories.list"
# List files of Wikipedia, training part first.
LISTS = ("trainset_txt_img_cat.list", "testset_txt_img_cat.list")
# Label files of Corel5k and the folders of their pictures, training part first.
PARTS = {"training_label": "train_jpeg", "test_label": "test_jpeg"}
# A series of Corel5k has up to a hundred pictures, numbered from a multiple of this.
SERIES = 1000
_FEATURES = "raw_features.mat"
_TABLES = {"text": ("T_tr", "T_te"), "image": ("I_tr", "I_te")}


def load_wikipedia(folder: str | os.PathLike[str] | None = None) -> Collection:
    """Read 2,866 sections of articles with a picture each, of ten topics.

    Parameters
    ----------
    folder : path-like, default=None
        With raw_features.mat and three lists; None is "wikipedia" in LINKSPREAD_DATA.

    Returns
    -------
    wikipedia : Collection
        Training rows first, then test rows. Views "text", shares of ten topics, and
        "image", frequencies of 128 visual words; ids by view.
    """
    data = find_folder(folder, "wikipedia", WIKIPEDIA_SOURCE)
    label_names = tuple(data.lines(CATEGORIES))
    parts = [read_wikipedia_list(data, name, len(label_names)) for name in LISTS]
    texts, pictures, classes = zip(*parts[0], *parts[1], strict=True)
    n_train = len(parts[0])
    return Collection(
        views=_read_features(data, [len(part) for part in parts]),
        labels=np.array(classes) - 1,
        label_names=label_names,
        ids={"text": np.array(texts), "image": np.array(pictures)},
        train=np.arange(n_train),
        test=np.arange(n_train, len(texts)),
    )


def read_wikipedia_list(
    data: PublishedFolder, name: str, n_classes: int
) -> list[tuple[str, str, int]]:
    """Return text id, image id and category (from 1) of each line of a list file."""
    rows = []
    for number, line in enumerate(data.lines(name), start=1):
        fields = line.split("\t")
        if len(fields) != 3 or fields[2] not in map(str, range(1, n_classes + 1)):
            rule = (
                "must have a text id, an image id and a category between 1 and "
                f"{n_classes} on each line, separated by tabs"
            )
            raise data.error(name, rule, f"{line[:80]!r} on line {number}")
        rows.append((fields[0], fields[1], int(fields[2])))
    return rows


def _read_features(data: PublishedFolder, n_rows: list[int]) -> dict[str, np.ndarray]:
    """Return each view of Wikipedia, training rows above test rows."""
    names = [name for pair in _TABLES.values() for name in pair]
    path = data.file(_FEATURES)
    try:
        tables = loadmat(path, variable_names=names)
    except Exception as error:
        # The reader raises many kinds of errors on damaged files.
        reason = f"{type(error).__name__} while reading it"
        raise data.error(_FEATURES, "must be a complete MATLAB file", reason) from error
    missing = [name for name in names if name not in tables]
    if missing:
        rule = f"must hold the tables {', '.join(names)}"
        raise data.error(_FEATURES, rule, f"no {missing[0]}")
    views = {}
    for view, pair in _TABLES.items():
        train, test = (tables[name] for name in pair)
        if [len(train), len(test)] != n_rows or train.shape[1] != test.shape[1]:
            rule = (
                f"must have a row in {pair[0]} and {pair[1]} per line of their lists, "
                f"{n_rows[0]} and {n_rows[1]}, and equal columns"
            )
            got = f"shapes {train.shape} and {test.shape}"
            raise data.error(_FEATURES, rule, got)
        views[view] = np.vstack([train, test]).astype(np.float64)
    return views


def load_corel5k(
    folder: str | os.PathLike[str] | None = None, *, features: Any = None
) -> Collection:
    """Read 4,999 photographs in 50 series, each with one to five keywords.

    Parameters
    ----------
    folder : path-like, default=None
        With labels, train_jpeg and test_jpeg; None is "corel5k" in LINKSPREAD_DATA.
    features : transformer or table of shape (n_items, n_features), default=None
        The view "image": a transformer of files such as
        `linkspread.features.PictureFeatures()`, which is fitted to the training
        pictures, or a table in the order of `pictures`. None leaves the view out.

    Returns
    -------
    corel5k : Collection
        Training rows first, then test rows. View "text": csr_array of float64 of shape
        (n_items, n_words), 1 where the picture has the keyword. Labels are series,
        named by the number of their first picture.
    """
    data = find_folder(folder, "corel5k", COREL5K_SOURCE)
    words = tuple(data.lines("labels/words"))
    parts = [read_corel5k_labels(data, name, len(words)) for name in PARTS]
    pictures = []
    for (name, inner), part in zip(PARTS.items(), parts, strict=True):
        pictures += [data.path / inner / f"{number}.jpeg" for number in part]
        absent = next((own for own in pictures if not own.is_file()), None)
        if absent is not None:
            rule = f"must name pictures in the folder {inner}"
            got = f"{absent.stem} but no file {absent.name}"
            raise data.error(f"labels/{name}", rule, got)
    twice = parts[0].keys() & parts[1].keys()
    if twice:
        rule = "must name no training picture"
        raise data.error("labels/test_label", rule, min(map(str, twice)))
    keywords, n_train = parts[0] | parts[1], len(parts[0])
    numbers = np.array(list(keywords))
    series, labels = np.unique(numbers // SERIES, return_inverse=True)
    views: dict[str, Any] = {
        "text": _keyword_table(list(keywords.values()), len(words))
    }
    if features is not None:
        if hasattr(features, "transform"):
            # Nothing may be learnt from the test pictures.
            features = features.fit(pictures[:n_train]).transform(pictures)
        X = views["image"] = check_table(features, view="image")
        if X.shape[0] != len(pictures):
            raise ViewError(
                f"`features` must have one row per picture, {len(pictures):,}, got "
                f"{X.shape[0]:,}. Give them in the order of `pictures`."
            )
    return Collection(
        views=views,
        labels=labels,
        label_names=tuple(str(number) for number in series * SERIES),
        ids=numbers.astype(str),
        train=np.arange(n_train),
        test=np.arange(n_train, len(pictures)),
        words=words,
        pictures=tuple(pictures),
    )


def read_corel5k_labels(
    data: PublishedFolder, name: str, n_words: int
) -> dict[int, list[int]]:
    """Return the keywords of each picture of one part, as columns from 0."""
    keywords: dict[int, list[int]] = {}
    file = f"labels/{name}"
    for number, line in enumerate(data.lines(file), start=1):
        fields, got = line.split(), f"{line[:80]!r} on line {number}"
        if len(fields) < 2 or not all(f.isascii() and f.isdigit() for f in fields):
            rule = "must have a picture number and its word numbers on each line"
            raise data.error(file, rule, got)
        picture, *columns = (int(fields[0]), *(int(field) - 1 for field in fields[1:]))
        if not all(0 <= column < n_words for column in columns):
            raise data.error(file, f"must have word numbers from 1 to {n_words}", got)
        if picture in keywords:
            raise data.error(file, "must name each picture once", got)
        keywords[picture] = columns
    return keywords


def _keyword_table(keywords: list[list[int]], n_words: int) -> csr_array:
    """Return a table with 1 where a picture has a keyword."""
    rows = np.repeat(np.arange(len(keywords)), list(map(len, keywords)))
    cells = np.ones(len(rows)), (rows, np.concatenate(keywords))
    table = csr_array(cells, shape=(len(keywords), n_words))
    table.data[:] = 1  # A keyword may be given twice.
    return table
