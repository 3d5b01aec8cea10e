"""Files as tables: the same file for fits, links, the command line and clusters."""

import csv

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import linkspread as ls
from linkspread.ground.errors import LinkError, LinkspreadError, ViewError
from linkspread.tables import files, read_table
from linkspread.tables.files import (
    find_chunks,
    find_delimiter,
    read_chunk,
    read_columns,
    read_texts,
)

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
def test_the_separator_is_found_in_the_header(line, delimiter):
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


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("pairs.xlsx", "text,image\n", "ends in .parquet, .csv, .tsv, got '.*xlsx'"),
        ("pairs.csv.gz", "text,image\n", "ends in .* got '.*gz'. Save it as"),
        ("missing.csv", None, "must exist, and there is none at '.*missing.csv'"),
        ("p.csv", "", "'p.csv' must begin with a line .* got an empty file"),
        ("p.csv", "\n\n", "'p.csv' must begin with a line .* got an empty file"),
        ("p.csv", "text,image,weight\n\nt1,i1,1\nt2,i2\n",
         "line 4 of 'p.csv' must have 3 values like its header, got 2: 't2,i2'. Corr"),
        ("p.csv", "text,image,weight\nt2,i2,1,x\n", "line 2 .*got 4: 't2,i2,1,x'"),
        ("p.csv", "text,image\nM\udcfc,i1\n", "UTF-8, and 'p.csv' is not at byte 12"),
        ("p.csv", "text,image\nt1," + "x" * 200_000, "must be a text file .* 2"),
    ],
)  # fmt: skip
def test_text_files_that_cannot_be_read(tmp_path, monkeypatch, name, text, message):
    monkeypatch.setattr(files, "MAX_CELL", 100_000)
    if text is not None:
        (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ViewError, match=message):
        read_columns(tmp_path / name)


@pytest.mark.parametrize("n_bytes", [0, 3, 100, -1])
def test_a_truncated_parquet_file(tmp_path, n_bytes):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(ViewError, match=r"'p\.parquet' must be a parquet file.*Write"):
        read_columns(path)


def test_the_error_of_a_caller_is_raised(tmp_path):
    with pytest.raises(LinkError, match="must exist"):
        read_columns(tmp_path / "p.csv", error=LinkError)


X = np.arange(12.0).reshape(6, 2)
IDS = [f"t{i}" for i in range(6)]


def write_zarr(path, array):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(str(path), data=array, chunks=(4, 2))


WRITERS = {
    "x.npy": lambda path: np.save(path, X),
    "x.npz": lambda path: np.savez(path, vectors=X, id=IDS),
    "x.zarr": lambda path: write_zarr(path, X),
    "x.parquet": lambda path: pd.DataFrame(X, columns=["a", "b"]).assign(
        id=IDS, name="n").to_parquet(path),
    "lists.parquet": lambda path: pd.DataFrame(
        {"id": IDS, "e": list(X)}).to_parquet(path),
    "x.csv": lambda path: pd.DataFrame(X, columns=["a", "b"]).assign(
        id=IDS).to_csv(path, index=False),
    "x.tsv": lambda path: pd.DataFrame(X, columns=["a, b", "c"]).assign(
        id=IDS).to_csv(path, index=False, sep="\t"),
    "commas.csv": lambda path: pd.DataFrame(X, columns=["a", "b"]).assign(
        id=IDS).to_csv(path, index=False, sep=";", decimal=","),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_is_a_table_and_a_view_of_a_fit(name, tmp_path):
    WRITERS[name](tmp_path / name)
    table = read_table(tmp_path / name)
    assert_array_equal(table.values, X)
    if table.ids is not None:
        assert table.ids.tolist() == IDS
    links = ls.Links.from_matched(("text", "image"), 6)
    views = {"text": str(tmp_path / name), "image": tmp_path / name}
    model = ls.LinkSpreading(n_neighbors=2).fit(views, links)
    ids = None if table.ids is None else {"text": IDS, "image": IDS}
    same = ls.LinkSpreading(n_neighbors=2).fit({"text": X, "image": X}, links, ids=ids)
    assert_array_equal(model.scores("text", "image"), same.scores("text", "image"))
    assert model.items_["text"].ids.tolist() == same.items_["text"].ids.tolist()


def test_sparse_matrices_and_named_arrays_of_an_archive(tmp_path):
    sparse.save_npz(tmp_path / "s.npz", sparse.csr_array(X))
    assert_array_equal(read_table(tmp_path / "s.npz").values.toarray(), X)
    damaged = sparse.csr_array(X)
    damaged.indices[0] = 10**6  # compiled loops would read there
    sparse.save_npz(tmp_path / "damaged.npz", damaged)
    with pytest.raises(LinkspreadError, match="indices inside its shape"):
        read_table(tmp_path / "damaged.npz")
    np.savez(tmp_path / "two.npz", a=X, b=X + 1)
    assert_array_equal(read_table(tmp_path / "two.npz", array="b").values, X + 1)
    with pytest.raises(ViewError, match="must be chosen, got 2 arrays.*'a'"):
        read_table(tmp_path / "two.npz")
    with pytest.raises(ViewError, match="must be chosen, got 'c'"):
        read_table(tmp_path / "two.npz", array="c")


def test_columns_are_chosen_and_labels_read(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(key=range(6), label="x")
    frame.to_csv(tmp_path / "x.csv", index=False)
    table = read_table(
        tmp_path / "x.csv", columns=["b"], id_column="key", label_column="label"
    )
    assert_array_equal(table.values, X[:, 1:])
    assert table.ids.tolist() == [str(i) for i in range(6)]
    assert table.labels.tolist() == ["x"] * 6
    WRITERS["x.npy"](tmp_path / "x.npy")
    with pytest.raises(ViewError, match="`columns` must be of a file with named"):
        read_table(tmp_path / "x.npy", columns=["a"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("text.xlsx", "view 'text': a table must be a file that ends in .npy"),
        ("none.parquet", "view 'text': the file of a table must exist"),
        ("bad.npy", "bad.npy: the file must hold numbers .* cannot be read"),
        ("objects.npy", "objects.npy: .* holds Python objects"),
        ("bad.parquet", "bad.parquet: 'bad.parquet' must be a parquet file"),
    ],
)
def test_files_of_a_fit_that_cannot_be_read(name, message, tmp_path):
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    links = ls.Links.from_matched(("text", "image"), 6)
    with pytest.raises(ViewError, match=message):
        ls.LinkSpreading().fit({"text": tmp_path / name, "image": X}, links)


def test_a_mapped_array_is_not_changed_on_the_disk(tmp_path):
    np.save(tmp_path / "x.npy", X)
    table = read_table(tmp_path / "x.npy")
    table.values[:] = 0
    assert_array_equal(np.load(tmp_path / "x.npy"), X)


@pytest.mark.parametrize("name", ["x.npy", "x.zarr", "x.parquet", "lists.parquet"])
def test_chunks_of_a_file_are_its_rows(name, tmp_path):
    WRITERS[name](tmp_path / name)
    chunks, width, precision = find_chunks(tmp_path / name, 4)
    parts = [read_chunk(str(tmp_path / name), *own, name="text") for own in chunks]
    assert (width, precision) == (2, np.float64)
    assert_array_equal(np.concatenate(parts), X)


def test_texts_have_columns_of_their_own(tmp_path):
    frame = pd.DataFrame({"id": [1, 2], "text": ["a\nb", None], "year": [1.5, None]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    expected = {"id": ["1", "2"], "text": ["a\nb", ""], "year": ["1.5", ""]}
    assert read_texts(tmp_path / "t.parquet") == expected
    assert read_texts(tmp_path / "t.csv") == expected
    with pytest.raises(ViewError, match="must have unique names"):
        read_texts(write(tmp_path / "p.csv", "id,id\n1,2\n"))
