"""Judged pairs of a link store as a file that `Links.from_pairs` reads."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkspreadError, require
from linkspread.storage import PairColumns
from linkspread.storage.files import FilePath, new_file


def write_pairs(
    pairs: PairColumns,
    path: FilePath,
    *,
    between: tuple[str, str],
    overwrite: bool = False,
) -> Path:
    """Write judged pairs to a CSV or parquet file.

    Parameters
    ----------
    pairs : PairColumns
        Of :meth:`LinkStore.pairs <linkspread.storage.LinkStore.pairs>`.
    path : path-like
        Ends in .csv, .tsv or .parquet.
    between : tuple of two str
        The views, after which the columns of the ids are named.
    overwrite : bool, default=False
        Whether a file that is there may be replaced.

    Returns
    -------
    path : Path
    """
    path = Path(path)
    names = [*between, "verdict", "weight"]
    if between[0] == between[1]:
        # Two columns of one name are two only by their order.
        names[1] = f"{between[0]} 2"
    writers = {".csv": _write_text, ".tsv": _write_text, ".parquet": _write_parquet}
    if path.suffix.lower() not in writers:
        raise LinkspreadError(
            f"a file of pairs must end in {', '.join(writers)}, got {path.name!r}. "
            "Choose one of these."
        )
    with new_file(path, overwrite=overwrite) as file:
        writers[path.suffix.lower()](file, path.suffix.lower(), names, _columns(pairs))
    return path


def _columns(pairs: PairColumns) -> list[list[Any]]:
    """Return ids, verdicts and weights: weights alone may be taken for ratings."""
    verdicts = np.where(pairs.weight > 0, "must", "cannot")
    columns = pairs.left, pairs.right, verdicts, np.abs(pairs.weight)
    return [column.tolist() for column in columns]


def _write_text(
    file: Path, suffix: str, names: list[str], columns: list[list[Any]]
) -> None:
    """Write a header and a line for each pair."""
    with open(file, "w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, delimiter="\t" if suffix == ".tsv" else ",",
                            lineterminator="\n")  # fmt: skip
        writer.writerow(names)
        writer.writerows(zip(*columns, strict=True))


def _write_parquet(
    file: Path, _: str, names: list[str], columns: list[list[Any]]
) -> None:
    """Write a table of four columns."""
    arrow = require("pyarrow", extra="tables", purpose="Writing parquet")
    parquet = require("pyarrow.parquet", extra="tables", purpose="Writing parquet")
    arrays = [arrow.array(column) for column in columns]
    parquet.write_table(arrow.table(arrays, names=names), file)
