"""Catalogues: two shops' descriptions of the same products, and which are the same.

Both sides are texts, so one description serves both, and a row of one shop can be
compared with a row of the other. Many products look alike without being the same. The
data are not part of this package; `load_catalogues` reads them from a folder.
"""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linkspread.datasets.collection import Partners
from linkspread.datasets.folders import file_error, find_folder, read_lines
from linkspread.ground.checks import check_name

_SOURCE = (
    "The data are the clean-clean collections of the project pyJedAI, which publishes "
    "them on GitHub in its folder data/ccer (Apache-2.0)."
)
_PAIRS = "gt.csv"


class _Format(NamedTuple):
    """The files of a catalogue, and how to read them."""

    separator: str
    files: dict[str, str]
    columns: tuple[str, ...]


# The price is left out of the texts: shops differ in it, and half of Abt-Buy has none.
_FORMATS = {
    "abt-buy": _Format(
        "|", {"abt": "abt.csv", "buy": "buy.csv"}, ("name", "description")
    ),
    "amazon-google": _Format(
        "#",
        {"amazon": "amazon.csv", "google": "gp.csv"},
        ("title", "manufacturer"),
    ),
}


def load_catalogues(
    name: str,
    data: str | os.PathLike[str] | None = None,
    *,
    features: str = "tfidf",
) -> Partners:
    """Read two catalogues and the pairs of rows that are the same product.

    The text of a product is its name and description (Abt-Buy), or its title and
    manufacturer (Amazon-Google, whose descriptions are mostly advertisement: the cosine
    finds fewer partners with them). Prices are left out.

    Parameters
    ----------
    name : {"abt-buy", "amazon-google"}
        Which two catalogues.
    data : path-like, default=None
        Folder with the two catalogues and gt.csv. By default the folder
        "catalogues/abt-buy" or "catalogues/amazon-google" in the folder that the
        environment variable LINKSPREAD_DATA names.
    features : {"tfidf", "sentences"}, default="tfidf"
        "tfidf": weighted words that both sides use, csr_array of float64.
        "sentences": means of trained word vectors, ndarray of float32; needs
        ``linkspread[sentences]``. Rows have length 1, so that inner products are
        cosines.

    Returns
    -------
    catalogues : Partners
        Views "abt" and "buy", or "amazon" and "google", in a shared space. Each
        product has at most one partner.
    """
    form = _FORMATS[check_name(name, _FORMATS, name="name")]
    describe = _DESCRIPTIONS[check_name(features, _DESCRIPTIONS, name="features")]
    folder = find_folder(
        data,
        name=f"catalogues/{name}",
        title=f"the catalogues {name}",
        holds=", ".join([*form.files.values(), _PAIRS]),
        source=_SOURCE,
        argument="data",
    )
    tables = {
        view: _read_table(folder / file, form.separator, ("id", *form.columns))
        for view, file in form.files.items()
    }
    places = {
        view: _positions(folder / form.files[view], table["id"])
        for view, table in tables.items()
    }
    texts = {view: _join(table, form.columns) for view, table in tables.items()}
    return Partners(
        views=dict(zip(texts, describe(*texts.values()), strict=True)),
        ids={view: np.array(table["id"]) for view, table in tables.items()},
        pairs=_read_pairs(folder / _PAIRS, form, places),
        metrics=dict.fromkeys(texts, "cosine"),
        shared_space=True,
        texts=texts,
    )


def _read_table(
    path: Path, separator: str, columns: Sequence[str]
) -> dict[str, list[str]]:
    """Return some columns of a table whose first line names them."""
    header, *rows = (line.split(separator) for line in _lines(path))
    missing = [column for column in columns if column not in header]
    if missing:
        rule = f"must have the columns {', '.join(columns)}, parted by {separator!r}"
        raise _file_error(path, rule, f"no {missing[0]!r} in its first line")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            rule = f"must have {len(header)} fields on each line"
            raise _file_error(path, rule, f"{len(row)} on line {number}")
    if not rows:
        raise _file_error(path, "must have rows below its first line", "none")
    return {column: [row[header.index(column)] for row in rows] for column in columns}


def _positions(path: Path, ids: list[str]) -> dict[str, int]:
    """Return the row of each id, which no two rows may share."""
    places: dict[str, int] = {}
    for place, item in enumerate(ids):
        if places.setdefault(item, place) != place:
            raise _file_error(path, "must have a different id in each row", f"2 {item}")
    return places


def _read_pairs(
    path: Path, form: _Format, places: dict[str, dict[str, int]]
) -> np.ndarray:
    """Return the rows of true partners; each product has at most one."""
    columns = _read_table(path, form.separator, ("D1", "D2"))
    rows = []
    for ids, (view, known) in zip(columns.values(), places.items(), strict=True):
        unknown = next((item for item in ids if item not in known), None)
        if unknown is not None:
            rule = f"must have ids of {form.files[view]} for view {view!r}"
            raise _file_error(path, rule, f"{unknown!r}, which is none")
        if len(set(ids)) < len(ids):
            twice = next(item for item in ids if ids.count(item) > 1)
            rule = f"must have at most one partner for each product of view {view!r}"
            raise _file_error(path, rule, f"several for {twice!r}")
        rows.append([known[item] for item in ids])
    return np.array(rows).T


def _join(table: dict[str, list[str]], columns: Sequence[str]) -> list[str]:
    """Return the fields of each row that are not empty as one text."""
    rows = zip(*(table[column] for column in columns), strict=True)
    return [" ".join(filter(None, row)) for row in rows]


def _weigh_words(left: list[str], right: list[str]) -> list[Any]:
    """Return TF-IDF of both sides, by the words that both use.

    A word of one side only can join nothing, and would only make rows longer.
    """
    # Imported here, as below, so that `import linkspread` stays light.
    from sklearn.preprocessing import normalize

    from linkspread.features import TextFeatures

    words = TextFeatures().fit([*left, *right])
    tables = [words.transform(texts) for texts in (left, right)]
    used = [np.diff(X.tocsc().indptr) > 0 for X in tables]
    kept = np.flatnonzero(used[0] & used[1])
    return [normalize(X[:, kept]) for X in tables]


def _encode_sentences(left: list[str], right: list[str]) -> list[Any]:
    """Return trained vectors of both sides, rows of length 1."""
    from sklearn.preprocessing import normalize

    from linkspread.features import SentenceFeatures

    encoder = SentenceFeatures().fit([])
    return [normalize(encoder.transform(texts)) for texts in (left, right)]


_DESCRIPTIONS = {"tfidf": _weigh_words, "sentences": _encode_sentences}
# The messages of this collection tell where it comes from.
_file_error = partial(file_error, source=_SOURCE)
_lines = partial(read_lines, source=_SOURCE)
