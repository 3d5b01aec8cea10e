"""Judged pairs of a link store as a file that `Links.from_pairs` reads."""

import csv
from pathlib import Path

from linkspread.exceptions import LinkspreadError, require
from linkspread.exchange.files import FilePath, new_file
from linkspread.storage import PairColumns

__all__ = ["write_pairs"]


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
    names = [*between, "weight"]
    if between[0] == between[1]:
        # Two columns of one name are two only by their order.
        names = [between[0], f"{between[0]} 2", "weight"]
    writers = {".csv": _write_text, ".tsv": _write_text, ".parquet": _write_parquet}
    if path.suffix.lower() not in writers:
        raise LinkspreadError(
            f"a file of pairs must end in {', '.join(writers)}, got {path.name!r}. "
            "Choose one of these."
        )
    with new_file(path, overwrite=overwrite) as file:
        writers[path.suffix.lower()](file, path.suffix.lower(), names, pairs)
    return path


def _write_text(file: Path, suffix: str, names: list[str], pairs: PairColumns) -> None:
    """Write a header and a line for each pair."""
    with open(file, "w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, delimiter="\t" if suffix == ".tsv" else ",",
                            lineterminator="\n")  # fmt: skip
        writer.writerow(names)
        writer.writerows(zip(*(own.tolist() for own in pairs), strict=True))


def _write_parquet(file: Path, _: str, names: list[str], pairs: PairColumns) -> None:
    """Write a table of three columns."""
    arrow = require("pyarrow", extra="tables", purpose="Writing parquet")
    parquet = require("pyarrow.parquet", extra="tables", purpose="Writing parquet")
    columns = [arrow.array(own.tolist()) for own in pairs]
    parquet.write_table(arrow.table(columns, names=names), file)
