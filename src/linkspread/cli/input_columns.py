"""Parquet and CSV files as tables of columns."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from linkspread.ground.errors import LinkspreadError, ViewError, require
from linkspread.tables import Table, read_frame
from linkspread.tables.files import find_delimiter

PURPOSE = "Reading tables"


def read_columns_file(
    path: Path,
    *,
    columns: Sequence[str] = (),
    id_column: str | None = None,
    label_column: str | None = None,
) -> Table:
    """Read features, ids and labels from a .parquet, .csv or .tsv file."""
    as_text = [id_column or "id", *([label_column] if label_column else [])]
    return read_frame(
        _read(path, as_text),
        columns=columns,
        id_column=id_column,
        label_column=label_column,
        first_row=1,
    )


def choose_column(names: Sequence[str], wanted: str, *, what: str) -> str:
    """Return a column that must be there, or list the columns there are."""
    if wanted not in names:
        raise LinkspreadError(
            f"the table must have the column {wanted!r} for the {what}, and has "
            f"{', '.join(map(repr, names))}. Name one of these."
        )
    return wanted


def _read(path: Path, as_text: list[str]) -> Any:
    """Return a pyarrow table; in CSV files some columns are kept as they are typed."""
    arrow = require("pyarrow", extra="tables", purpose=PURPOSE)
    try:
        if path.suffix.lower() == ".parquet":
            parquet = require("pyarrow.parquet", extra="tables", purpose=PURPOSE)
            return parquet.read_table(path)
        text = require("pyarrow.csv", extra="tables", purpose=PURPOSE)
        delimiter, decimal_point = _find_signs(path)
        return text.read_csv(
            path,
            parse_options=text.ParseOptions(
                delimiter=delimiter, newlines_in_values=True
            ),
            convert_options=text.ConvertOptions(
                column_types={name: arrow.string() for name in as_text},
                decimal_point=decimal_point,
            ),
        )
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        reason = str(error).partition("\n")[0][:120]
        raise ViewError(
            f"the file must be a table, and cannot be read as one ({reason}). Correct "
            "that row, or write the file anew."
        ) from error


def _find_signs(path: Path) -> tuple[str, str]:
    """Return what parts the values of a file, and the whole from the fraction."""
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        header, row = lines.readline(), lines.readline()
    if path.suffix.lower() == ".tsv":
        return "\t", "."
    delimiter = find_delimiter(header)
    fields = row.strip().split(delimiter)
    commas = any(re.fullmatch(r'"?-?\d+,\d+"?', field) for field in fields)
    return delimiter, "," if delimiter == ";" and commas else "."
