import csv
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from linkspread.ground.errors import LinkError, MissingDependencyError
from linkspread.links.files import find_delimiter, read_columns

COLUMNS = {"text": ["t1", "t2"], "image": ["i1", "i2"], "weight": ["1", "-0.5"]}


def write(path, text, encoding="utf-8"):
    """Write a file with exactly these characters."""
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.csv", "text,image,weight\nt1,i1,1\nt2,i2,-0.5\n"),
        ("p.csv", "\ufefftext,image,weight\r\nt1,i1,1\r\n\r\nt2,i2,-0.5\r\n\n"),
        ("p.csv", 'text, "image" ,weight\n"t1", i1, 1\nt2, i2, -0.5'),
        ("p.tsv", "text\timage\tweight\nt1\ti1\t1\nt2\ti2\t-0.5\n"),
        ("P.CSV", "text,image,weight\nt1,i1,1\nt2,i2,-0.5\n"),
        ("p.csv", "text;image;weight\nt1;i1;1\nt2;i2;-0.5\n"),
        ("p.csv", "\ufeff\r\ntext\timage\tweight\nt1\ti1\t1\nt2\ti2\t-0.5\n"),
        ("p.tsv", "text,image,weight\nt1,i1,1\nt2,i2,-0.5\n"),
    ],
    ids=["csv", "excel", "spaces", "tsv", "capitals", "semicolons", "tabs", "commas"],
)
def test_delimited_files(tmp_path, name, text):
    assert read_columns(write(tmp_path / name, text)) == COLUMNS


@pytest.mark.parametrize("separator", ["\n", "\r\n", "\u2028", "\x0c", "\x85"])
def test_an_id_may_hold_a_line_break(tmp_path, separator):
    """Splitting the text at every line separator tore such ids apart."""
    name = f"one{separator}two, three"
    with open(tmp_path / "p.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text", "image"], [name, "i1"]])
    assert read_columns(tmp_path / "p.csv") == {"text": [name], "image": ["i1"]}


@pytest.mark.parametrize(
    ("line", "delimiter"),
    [
        ("text,image", ","),
        ("text;image;name, in full", ";"),
        ('text,"a;b;c;d",image', ","),
        ("text\timage", "\t"),
        ("\ttext\timage; or none", "\t"),
        ("text;image, or none", ";"),
        ("text", ","),
        ("", ","),
    ],
)
def test_the_header_tells_the_separator(line, delimiter):
    assert find_delimiter(line) == delimiter


def test_a_column_may_be_called_like_a_verdict(tmp_path):
    path = write(tmp_path / "p.csv", "text,image,same\nt1,i1,1\nt2,i2,0\n")
    assert list(read_columns(path)) == ["text", "image", "same"]


def test_parquet(tmp_path):
    table = pa.table(
        {
            "text": pa.array(["t1", "t2"]).dictionary_encode(),
            "image": [7, 8],
            "weight": [1.0, -0.5],
        }
    )
    pq.write_table(table, tmp_path / "p.parquet")
    columns = read_columns(tmp_path / "p.parquet")
    assert {name: list(c) for name, c in columns.items()} == table.to_pydict()
    assert columns["image"].dtype == np.int64


def test_no_column_is_lost(tmp_path):
    """A second column of the same name replaced the first."""
    path = write(tmp_path / "p.csv", "text,text,weight\nt1,t2,-1\n")
    assert list(read_columns(path).values()) == [["t1"], ["t2"], ["-1"]]


def test_a_header_alone_has_empty_columns(tmp_path):
    path = write(tmp_path / "p.csv", "text,image\n")
    assert read_columns(path) == {"text": [], "image": []}


@pytest.mark.parametrize("name", ["pairs.xlsx", "pairs", "pairs.csv.gz"])
def test_an_unknown_suffix(tmp_path, name):
    with pytest.raises(
        LinkError,
        match=rf"must end in \.csv, \.tsv, \.parquet, got '{name}'\. Save it as CSV",
    ):
        read_columns(write(tmp_path / name, "text,image\n"))


@pytest.mark.parametrize("name", ["missing.csv", "folder.csv"])
def test_no_such_file(tmp_path, name):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(
        LinkError,
        match=rf"must exist, and there is none at '.*{name}'\. Check the path",
    ):
        read_columns(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("", "an empty file"),
        ("\n\n", "an empty file"),
        ("t1,i1,-1\nt2,i2,1\n", "'t1,i1,-1'"),
        ("t1,i1,must\n", "'t1,i1,must'"),
        ("t1,i1,same\nt2,i2,different\n", "'t1,i1,same'"),
        ("t1;i1;yes\nt2;i2;no\n", "'t1;i1;yes'"),
        ("0,5\n1,6\n", "'0,5'"),
    ],
)
def test_no_header(tmp_path, text, got):
    with pytest.raises(
        LinkError,
        match=rf"'p\.csv' must begin with a line of column names, got {got}\. Add one",
    ):
        read_columns(write(tmp_path / "p.csv", text))


@pytest.mark.parametrize(("row", "n_values"), [("t2,i2", 2), ("t2,i2,1,x", 4)])
def test_ragged_lines_are_named_by_number(tmp_path, row, n_values):
    text = f"text,image,weight\n\nt1,i1,1\n{row}\n"
    with pytest.raises(
        LinkError,
        match=rf"line 4 of 'p\.csv' must have 3 values like its header, got "
        rf"{n_values}: '{row}'\. Correct it",
    ):
        read_columns(write(tmp_path / "p.csv", text))


def test_other_encodings(tmp_path):
    path = write(tmp_path / "p.csv", "text,image\nMüller,i1\n", "latin-1")
    with pytest.raises(
        LinkError, match=r"must be UTF-8, and 'p\.csv' is not at byte 12\. Save it anew"
    ):
        read_columns(path)


def test_what_is_no_table(tmp_path):
    path = write(tmp_path / "p.csv", "text,image\nt1," + "x" * 200_000)
    with pytest.raises(
        LinkError, match=r"'p\.csv' must be a text file .* line 2 cannot be read .*anew"
    ):
        read_columns(path)


@pytest.mark.parametrize("n_bytes", [0, 3, 100, -1])
def test_a_truncated_parquet_file(tmp_path, n_bytes):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(
        LinkError,
        match=r"'p\.parquet' must be a parquet file, and .* \(.+\)\. Write it",
    ):
        read_columns(path)


def test_without_pyarrow(tmp_path, monkeypatch):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(
        MissingDependencyError,
        match=r"reading parquet needs the package pyarrow.*pip install "
        r"'linkspread\[tables\]'",
    ):
        read_columns(path)
