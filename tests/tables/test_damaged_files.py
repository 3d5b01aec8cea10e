"""Damaged files of every kind are one sentence, in bounded memory and time."""

import io
import struct
import time
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from linkspread.ground.errors import LinkspreadError, ViewError
from linkspread.tables import files, read_table
from linkspread.tables.files import read_columns
from linkspread.tables.validation import check_views

X = np.random.default_rng(0).random((40, 6))
FRAME = pd.DataFrame(X, columns=list("abcdef")).assign(
    id=[f"t{i}" for i in range(40)], label="x"
)
N_DAMAGED = 40


def save_sparse(path):
    """Save a sparse table in the format of the file's name."""
    sparse.save_npz(path, sparse.csr_array(X * (X > 0.7)).asformat(path.stem))


WRITERS = {
    "x.npy": lambda path: np.save(path, X),
    "x.npz": lambda path: np.savez(path, x=X, id=np.arange(40)),
    "packed.npz": lambda path: np.savez_compressed(path, x=X),
    **dict.fromkeys(["csr.npz", "csc.npz", "coo.npz", "dia.npz", "bsr.npz"],
                    save_sparse),
    "x.parquet": lambda path: FRAME.to_parquet(path),
    "lists.parquet": lambda path: pd.DataFrame({"id": FRAME["id"], "e": list(X)})
    .to_parquet(path),
    "x.csv": lambda path: FRAME.to_csv(path, index=False),
    "x.tsv": lambda path: FRAME.to_csv(path, index=False, sep="\t"),
}  # fmt: skip


def damage(data, number, rng):
    """Return the bytes of a file with flipped bits, cut off, or overwritten."""
    data, place = bytearray(data), int(rng.integers(len(data)))
    kind = number % 4
    if kind == 0:
        for place in rng.integers(len(data), size=1 + number % 5):
            data[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del data[place:]
    elif kind == 2:
        data[place : place + 8] = rng.bytes(8)
    else:  # in the header of the file, or in its footer
        place = int(rng.integers(min(150, len(data))))
        data[place if number % 8 == 3 else -1 - place] = int(rng.integers(256))
    return bytes(data)


@pytest.mark.parametrize("name", WRITERS)
def test_damaged_files_are_read_or_refused_in_a_sentence(name, tmp_path, rng):
    """Sparse archives nearly always ended in a traceback, some in a crash."""
    WRITERS[name](tmp_path / name)
    data, path = (tmp_path / name).read_bytes(), tmp_path / f"damaged-{name}"
    n_refused, start = 0, time.perf_counter()
    for number in range(N_DAMAGED):
        path.write_bytes(damage(data, number, rng))
        try:
            check_views({"text": path})
        except LinkspreadError as error:
            assert "damaged-" in str(error) or "'text'" in str(error)
            n_refused += 1
    assert n_refused >= N_DAMAGED // 5
    assert time.perf_counter() - start < 20


def test_damaged_tables_of_links_are_refused_in_a_sentence(tmp_path, rng):
    FRAME.to_parquet(tmp_path / "x.parquet")
    data, path = (tmp_path / "x.parquet").read_bytes(), tmp_path / "damaged.parquet"
    for number in range(N_DAMAGED):
        path.write_bytes(damage(data, number, rng))
        try:
            read_columns(path)
        except ViewError as error:
            assert "damaged.parquet" in str(error)


def npy_header(shape):
    """Return the header of an npy file with this shape."""
    file = io.BytesIO()
    fields = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, fields)
    return file.getvalue()


def bomb_archive(path, shape, n_megabytes):
    """Write an archive with an array of zeros."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w") as file,
    ):
        file.write(npy_header(shape))
        for _ in range(n_megabytes):
            file.write(bytes(1 << 20))


def huge_sparse(path, kind, shape):
    """Write a sparse table that declares a huge shape."""
    X = sparse.coo_array(([1.0, 2.0], ([0, 1], [0, 1])), shape=(3, 3))
    sparse.save_npz(path, X.asformat(kind))
    np.savez(path, **{**np.load(path), "shape": np.array(shape)})


def bomb_text(path):
    """Write a parquet file with a long text that occurs in every row."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 2000), ["x" * (1 << 16)])
    table = pa.table({"a": np.zeros(2000), "t": text})
    pq.write_table(table, path, store_schema=False)


LONG = b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"(" * 9000
BOMBS = {
    "zeros.npz": lambda path: bomb_archive(path, (1 << 10, 1 << 13), 64),
    "declared.npz": lambda path: bomb_archive(path, (1 << 30, 1 << 10), 1),
    "overflow.npz": lambda path: bomb_archive(path, (1 << 62, 1 << 62), 1),
    "declared.npy": lambda path: path.write_bytes(npy_header((1 << 40, 8))),
    "overflow.npy": lambda path: path.write_bytes(npy_header((1 << 62, 1 << 62))),
    "negative.npy": lambda path: path.write_bytes(npy_header((-5, -8)) + bytes(320)),
    "axes.npy": lambda path: path.write_bytes(npy_header((1,) * 70) + bytes(8)),
    "brackets.npy": lambda path: path.write_bytes(LONG),
    "rows.npz": lambda path: huge_sparse(path, "coo", (10**12, 3)),
    "columns.npz": lambda path: huge_sparse(path, "csr", (3, 10**12)),
    "square.npz": lambda path: huge_sparse(path, "csc", (2**31, 2**31)),
    "zeros.parquet": lambda path: pq.write_table(
        pa.table({"a": np.zeros(1 << 21)}), path, compression="zstd"),
    "lists.parquet": lambda path: pq.write_table(
        pa.table({"e": pa.array([[0.0] * 1000] * 5000)}), path, compression="zstd"),
    "text.parquet": bomb_text,
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_small_files_do_not_fill_the_memory(name, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ALWAYS_ALLOWED", 1 << 23)
    BOMBS[name](tmp_path / name)
    start, before = time.perf_counter(), pa.total_allocated_bytes()
    tracemalloc.start()
    with pytest.raises(
        ViewError, match=f"^{tmp_path / name}: .*\\. (Save|Write|Leave)"
    ):
        read_table(tmp_path / name)
    peak = tracemalloc.get_traced_memory()[1] + pa.total_allocated_bytes() - before
    tracemalloc.stop()
    assert peak < 1 << 26
    assert time.perf_counter() - start < 5


def test_well_compressed_tables_are_read(tmp_path):
    zeros = np.zeros((4000, 50))
    np.savez_compressed(tmp_path / "x.npz", zeros)
    pq.write_table(pa.table({"e": pa.array(zeros.tolist())}), tmp_path / "x.parquet")
    words = pa.table({"a": zeros[:, 0], "kind": ["one", "two"] * 2000})
    pq.write_table(words, tmp_path / "words.parquet")
    for name in ("x.npz", "x.parquet"):
        assert read_table(tmp_path / name).shape == (4000, 50)
    assert read_table(tmp_path / "words.parquet").left_out == ("kind",)
