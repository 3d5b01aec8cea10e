"""A model folder: written atomically, read as untrusted input.

::

    model/
      manifest.json                 contents, versions and files
      arrays-<checksum>.safetensors
      ids-<checksum>.parquet        one for each column of ids

Data files are named by their checksum. Replacing the manifest, one operation of the
file system, makes new files the model; old ones are removed afterwards.

Ids are parquet, so that any tool can read them. A small malicious parquet file can
unpack to any size: its pages must be plain, and the number of rows, the type and the
sizes are checked before any page is read.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from linkspread.ground.errors import ModelError
from linkspread.ground.progress import format_bytes
from linkspread.storage.files import (
    PARTIAL_NAME,
    FileEntry,
    HashingFile,
    damaged,
    hash_file,
    locked,
    naming_file,
    open_plain,
    remove_abandoned,
    sync_folder,
    write_file,
    writing,
)
from linkspread.storage.manifest import (
    DATA_NAME,
    MANIFEST,
    MODEL,
    check_entry,
    make_manifest,
    read_manifest,
)
from linkspread.storage.tensors import read_tensors, write_tensors

Array = np.ndarray

ID_COLUMN = "id"
# Ids read at a time.
ID_BATCH = 1 << 12
# NumPy pads every id to the longest, at four bytes a character.
MAX_WIDENED, MAX_WIDENING = 1 << 28, 64
# How often a reader starts again if a writer replaced the model meanwhile.
N_TRIES = 5


@dataclass
class Content:
    """The contents of a folder."""

    tree: dict[str, Any]
    arrays: dict[str, Array]
    ids: dict[str, Array]
    about: dict[str, Any]
    arrays_file: str = ""


def write_folder(
    path: str | os.PathLike[str], content: Content, *, kind: str = MODEL
) -> None:
    """Write a model folder, or replace the model in one."""
    folder = Path(path)
    # All checks come before anything is written.
    check_target(folder, kind=kind)
    for ids in content.ids.values():
        if ids.dtype.kind == "U":
            total = int(np.char.str_len(ids).sum())
            _check_widening(len(ids), ids.itemsize // 4, total)
    nowhere = FileEntry("x" * 49, 1 << 62, "0" * 64)
    make_manifest(content, nowhere, dict.fromkeys(content.ids, nowhere), kind=kind)
    with writing(folder), _kept_whole(folder), locked(folder, wait=False):
        remove_abandoned(folder)
        kept = _write_files(folder, content, kind)
        _remove_data(folder, lambda name: name not in kept)


@contextmanager
def _kept_whole(folder: Path) -> Iterator[None]:
    """Create a missing folder; on failure remove what the failed save added."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    before = set(os.listdir(folder))
    try:
        yield
    except BaseException:
        manifest = folder / MANIFEST
        named = manifest.read_bytes() if manifest.exists() else b""
        _remove_data(
            folder, lambda own: own not in before and own.encode() not in named
        )
        if is_new:
            with suppress(OSError):  # of a folder that is not empty
                folder.rmdir()
        raise


def _write_files(folder: Path, content: Content, kind: str) -> set[str]:
    """Write the data files, then the manifest; return the names of the former."""
    arrays = write_file(
        folder,
        lambda file: write_tensors(file, content.arrays),
        "arrays-{}.safetensors",
    )
    columns = {
        view: write_file(folder, partial(write_ids, ids=ids), "ids-{}.parquet")
        for view, ids in content.ids.items()
    }
    # The data must be on disk before the manifest names them.
    sync_folder(folder)
    data = make_manifest(content, arrays, columns, kind=kind)
    write_file(folder, lambda file: file.write(data), MANIFEST)
    sync_folder(folder)
    return {arrays.name, *(entry.name for entry in columns.values())}


def read_folder(
    path: str | os.PathLike[str], *, kind: str = MODEL, verify: bool = True
) -> Content:
    """Read a model folder, and refuse one that was changed or damaged."""
    folder = Path(path)
    if not folder.is_dir():
        raise ModelError(
            f"a model must be a folder, and there is none at {str(folder)!r}. "
            "Correct the path."
        )
    for _ in range(N_TRIES):
        manifest = read_manifest(folder, kind=kind)
        try:
            return _read_files(folder, manifest, verify)
        except FileNotFoundError as error:
            # Either a file was lost, or the model was replaced.
            missing = Path(error.filename).name
            if read_manifest(folder, kind=kind) == manifest:
                break
    raise ModelError(
        f"{missing}: a model must have all files that its manifest names, and this one "
        "is not there. Copy the whole folder, or save the model again."
    )


def _read_files(folder: Path, manifest: dict[str, Any], verify: bool) -> Content:
    """Return the contents of the files that a manifest names."""
    with naming_file(MANIFEST):
        stored = check_entry(manifest["arrays"], ".safetensors")
        columns = {view: _check_column(own) for view, own in manifest["ids"].items()}
    with _opened(folder, stored, verify) as file:
        arrays = read_tensors(file)
    ids = {}
    for view, (column, n_ids) in columns.items():
        with _opened(folder, column, verify) as file:
            ids[view] = read_ids(file, column.n_bytes, n_ids)
    return Content(manifest["content"], arrays, ids, manifest["about"], stored.name)


def _check_column(entry: Any) -> tuple[FileEntry, int]:
    """Return the checked manifest entry of a column of ids."""
    if not isinstance(entry, dict):
        raise damaged("`ids` must name a file for each column", entry)
    n_ids = entry.get("n_ids")
    rest = {key: own for key, own in entry.items() if key != "n_ids"}
    column = check_entry(rest, ".parquet")
    # An id takes at least four bytes, which bounds their number.
    if type(n_ids) is not int or not 0 <= 4 * n_ids <= column.n_bytes:
        raise damaged(f"{column.name} must have as many ids as it can hold", n_ids)
    return column, n_ids


@contextmanager
def _opened(folder: Path, entry: FileEntry, verify: bool) -> Iterator[BufferedReader]:
    """Open a file after checking its size and checksum."""
    with naming_file(entry.name), open_plain(folder, entry.name) as file:
        n_bytes = os.fstat(file.fileno()).st_size
        if n_bytes != entry.n_bytes:
            raise ModelError(
                f"the file must have {entry.n_bytes:,} bytes, got {n_bytes:,}. Copy "
                "it again, or save the model again."
            )
        if verify and hash_file(file) != entry.sha256:
            raise ModelError(
                "the file must have the checksum of its manifest, and has another: it "
                "was changed or damaged. Copy it again, or save the model again."
            )
        file.seek(0)
        yield file


def check_target(folder: Path, *, kind: str = MODEL) -> None:
    """Refuse a target that holds anything but a folder of this kind."""
    if folder.exists() and not folder.is_dir():
        raise ModelError(
            f"the target must be a folder, and {str(folder)!r} is a file. Give "
            "another path."
        )
    names = set(os.listdir(folder)) if folder.exists() else set()
    if MANIFEST in names:
        read_manifest(folder, kind=kind, whole=False)
    elif not all(
        DATA_NAME.fullmatch(own) or PARTIAL_NAME.fullmatch(own) for own in names
    ):
        raise ModelError(
            f"the target must be a new folder, an empty one, or one of `format` "
            f"{kind!r}, and {str(folder)!r} holds other files. Give another path."
        )


def _remove_data(folder: Path, chosen: Callable[[str], bool]) -> None:
    """Remove chosen data files; those in use are left for the next save."""
    for name in os.listdir(folder):
        if DATA_NAME.fullmatch(name) and chosen(name):
            with suppress(OSError):
                os.unlink(folder / name)


def write_ids(file: HashingFile, ids: Array) -> None:
    """Write ids as one parquet file."""
    import pyarrow
    from pyarrow import parquet

    buffer = pyarrow.BufferOutputStream()
    kind = pyarrow.int64() if ids.dtype.kind == "i" else pyarrow.string()
    column = pyarrow.array(ids.tolist() if ids.dtype.kind == "U" else ids, type=kind)
    parquet.write_table(
        pyarrow.table({ID_COLUMN: column}),
        buffer,
        compression="none",
        use_dictionary=False,
        store_schema=False,
    )
    file.write(np.frombuffer(buffer.getvalue(), np.uint8))


def read_ids(file: BinaryIO, n_bytes: int, n_ids: int) -> Array:
    """Return the ids of a parquet file."""
    import pyarrow
    from pyarrow import parquet

    try:
        # From memory, in this thread: Arrow's own threads reading a file that an error
        # has closed would crash the process.
        opened = parquet.ParquetFile(
            pyarrow.BufferReader(file.read()),
            pre_buffer=False,
            thrift_string_size_limit=n_bytes,
            thrift_container_size_limit=n_bytes,
            page_checksum_verification=True,
        )
        _check_metadata(opened.metadata, opened.schema_arrow, n_bytes, n_ids)
        column = _read_pages(opened, n_bytes)
    except ModelError:
        raise
    # A broken file can raise anything in the reader.
    except Exception as error:
        raise ModelError(
            f"ids must be a parquet file, and it cannot be read ({error!s:.80}). "
            "Save the model again."
        ) from error
    if len(column) != n_ids or column.null_count:
        raise damaged(f"there must be {n_ids:,} ids", len(column) - column.null_count)
    if str(column.type) == "int64":
        return column.to_numpy().astype(np.int64)
    return _as_strings(column)


def _check_metadata(metadata: Any, schema: Any, n_bytes: int, n_ids: int) -> None:
    """Refuse a file that does not hold ids, before any page is read."""
    types = {field.name: str(field.type) for field in schema}
    if types not in ({ID_COLUMN: "int64"}, {ID_COLUMN: "string"}):
        raise damaged(f"ids must be one column {ID_COLUMN!r} of int64 or string", types)
    if metadata.num_rows != n_ids:
        raise damaged(f"there must be {n_ids:,} ids", metadata.num_rows)
    chunks = [metadata.row_group(i).column(0) for i in range(metadata.num_row_groups)]
    is_plain = all(
        chunk.compression == "UNCOMPRESSED" and set(chunk.encodings) <= {"PLAIN", "RLE"}
        for chunk in chunks
    )
    if not is_plain or sum(chunk.total_uncompressed_size for chunk in chunks) > n_bytes:
        raise ModelError(
            "ids must be stored plain, and these are compressed or encoded. Save the "
            "model again."
        )


def _read_pages(opened: Any, n_bytes: int) -> Any:
    """Return the column, read in batches; refuse one larger than its file."""
    import pyarrow

    parts, size = [], 0
    for batch in opened.iter_batches(batch_size=ID_BATCH, use_threads=False):
        parts.append(batch.column(0))
        size += parts[-1].nbytes
        if size > 2 * n_bytes:
            raise damaged("ids must take no more room than their file", size)
    return pyarrow.chunked_array(parts, type=opened.schema_arrow.field(0).type)


def _as_strings(column: Any) -> Array:
    """Return a column of texts as an array, unless padding makes it far larger."""
    from pyarrow import compute

    lengths = compute.utf8_length(column)
    longest, total = compute.max(lengths).as_py(), compute.sum(lengths).as_py()
    _check_widening(len(column), longest or 0, total or 0)
    ids = np.array(column.to_pylist(), dtype=str)
    return ids if len(ids) else np.zeros(0, dtype=np.int64)


def _check_widening(n_ids: int, longest: int, total: int) -> None:
    """Refuse ids that padding to the longest would make large, and far larger."""
    n_bytes = 4 * n_ids * longest
    if n_bytes > max(MAX_WIDENED, 4 * MAX_WIDENING * max(total, 1)):
        raise ModelError(
            f"ids must be of similar length, got one of {longest:,} characters among "
            f"{n_ids:,}, which together would take {format_bytes(n_bytes)}. Give "
            "shorter ids."
        )
