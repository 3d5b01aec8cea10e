"""Views on the disk: any rows of them, and a sentence for every broken file."""

import sys

import numpy as np
import pytest

from linkspread.cluster import open_view
from linkspread.cluster.session import cut_rows
from linkspread.cluster.views import open_views
from linkspread.ground.errors import LinkspreadError, ViewError


@pytest.fixture
def table(rng):
    return rng.standard_normal((23, 3)).astype(np.float32)


def write(kind, table, path):
    """Write a table as a file, or as a folder of blocks of seven rows."""
    if kind == "npy":
        np.save(path / "text.npy", table)
        return open_view(path / "text.npy", chunk_rows=5)
    if kind == "zarr":
        zarr = pytest.importorskip("zarr")
        stored = zarr.open_array(
            str(path / "text.zarr"),
            mode="w",
            shape=table.shape,
            chunks=(4, 2),
            dtype="f4",
        )
        stored[:] = table
        return open_view(path / "text.zarr", chunk_rows=4)
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    frame = pa.table({f"f{j}": table[:, j] for j in range(table.shape[1])})
    if kind == "parquet":
        pq.write_table(frame, path / "text.parquet", row_group_size=6)
        return open_view(path / "text.parquet")
    folder = path / "text"
    folder.mkdir()
    for k, start in enumerate(range(0, len(table), 7)):
        if kind == "npy folder":
            np.save(folder / f"{k}.npy", table[start : start + 7])
        else:
            pq.write_table(frame.slice(start, 7), folder / f"{k}.parquet")
    (folder / "notes.txt").write_text("no part of the table")
    return open_view(folder)


@pytest.mark.parametrize(
    "kind", ["npy", "parquet", "npy folder", "parquet folder", "zarr"]
)
def test_chunks_ranges_and_single_rows_are_those_of_the_table(table, tmp_path, kind):
    view = write(kind, table, tmp_path)
    assert view.shape == table.shape and view.dtype == np.float32
    assert len(view.boundaries) > 4
    for start, stop in [(0, 23), (3, 4), (4, 19), (22, 23)]:
        assert np.array_equal(view.rows(start, stop), table[start:stop])
    for positions in (np.array([0, 6, 7, 22]), np.array([], int), np.arange(23)):
        assert np.array_equal(view.take(positions), table[positions])


def test_whole_numbers_are_read_in_double_precision(tmp_path):
    np.save(tmp_path / "counts.npy", np.arange(6).reshape(3, 2))
    view = open_view(tmp_path / "counts.npy", name="words")
    assert (view.name, view.dtype) == ("words", np.float64)
    assert view.rows(0, 3).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_chunk_that_went_away_or_changed_is_told(table, tmp_path):
    view = write("npy folder", table, tmp_path)
    np.save(view.files[2], table[:2])
    with pytest.raises(ViewError, match="chunk 2 of view 'text' must keep the shape"):
        view.rows(14, 21)
    with open(view.files[1], "r+b") as file:
        file.truncate(100)
    with pytest.raises(ViewError, match="chunk 1 of view 'text' must be a file that"):
        view.rows(0, 23)
    (tmp_path / "text" / "0.npy").unlink()
    with pytest.raises(ViewError, match="chunk 0 of view 'text' must be a file that"):
        view.take(np.array([3]))


def test_a_chunk_with_gaps_is_told(table, tmp_path):
    table[9, 1] = np.nan
    view = write("npy folder", table, tmp_path)
    with pytest.raises(ViewError, match="view 'text, chunk 1' must be finite.*row 2"):
        view.rows(7, 14)


def test_what_is_no_table_on_the_disk_is_refused(table, tmp_path):
    with pytest.raises(ViewError, match="got none at"):
        open_view(tmp_path / "absent")
    (tmp_path / "table.csv").write_text("1,2")
    with pytest.raises(ViewError, match="got files that end in .csv"):
        open_view(tmp_path / "table.csv")
    (tmp_path / "broken.npy").write_bytes(b"nothing")
    with pytest.raises(ViewError, match="must be made of whole .npy or .parquet files"):
        open_view(tmp_path / "broken.npy")
    np.save(tmp_path / "flat.npy", table.ravel())
    with pytest.raises(ViewError, match=r"a table of shape \(69,\)"):
        open_view(tmp_path / "flat.npy")
    folder = tmp_path / "uneven"
    folder.mkdir()
    np.save(folder / "a.npy", table)
    np.save(folder / "b.npy", table[:, :2])
    with pytest.raises(ViewError, match=r"the same columns, got \[2, 3\] columns"):
        open_view(folder)
    with pytest.raises(
        LinkspreadError, match="`chunk_rows` must be a positive integer"
    ):
        open_view(folder, chunk_rows=0)


@pytest.mark.parametrize("n_items", [1, 63, 64, 65, 1000, 10**6])
@pytest.mark.parametrize("n_workers", [1, 2, 7])
def test_blocks_cover_all_rows_once(n_items, n_workers):
    ranges = cut_rows(n_items, 256, n_workers=n_workers)
    assert [0, *(b for _, b in ranges)] == [*(a for a, _ in ranges), n_items]
    assert all(a % 64 == 0 and a < b for a, b in ranges)
    assert len(ranges) <= 2 * n_workers or 256 * ranges[0][1] <= 2**28


def test_arrays_of_zarr_are_read_by_whole_chunks_of_theirs(
    table, tmp_path, monkeypatch
):
    write("zarr", table, tmp_path)
    monkeypatch.setattr("linkspread.tables.files.CHUNK_BYTES", 110)  # nine rows
    view = open_view(tmp_path / "text.zarr")
    assert view.boundaries == (0, 8, 16, 23)
    assert np.array_equal(view.rows(5, 20), table[5:20])


def test_a_folder_that_is_no_array_of_zarr_is_told(tmp_path):
    pytest.importorskip("zarr")
    (tmp_path / "text.zarr").mkdir()
    with pytest.raises(ViewError, match=r"whole .* files, got .*not a zarr array"):
        open_view(tmp_path / "text.zarr")


def test_zarr_that_is_not_installed_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    (tmp_path / "text.zarr").mkdir()
    with pytest.raises(LinkspreadError, match=r"pip install 'linkspread\[cluster\]'"):
        open_view(tmp_path / "text.zarr")


def test_ids_of_parquet_files_are_no_features(table, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for k, rows in enumerate((slice(0, 15), slice(15, 23))):
        columns = {"id": range(100, 123)[rows], "e": table[rows].tolist()}
        schema = pa.schema({"id": pa.int64(), "e": pa.list_(pa.float32())})
        file = tmp_path / f"{k}.parquet"
        pq.write_table(pa.table(columns, schema=schema), file, row_group_size=6)
    with open_views({"text": tmp_path, "other": table}, None, None) as opened:
        np.testing.assert_array_equal(opened.table("text"), table)
        assert opened.ids["text"].tolist() == list(range(100, 123))
        assert opened.ids["other"] == 23
        told = opened.report_columns(verbose=False)
    assert told == {"text": "3 features", "other": "3 features"}
