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
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from linkspread.ground.errors import ModelError, require
from linkspread.ground.progress import format_bytes
from linkspread.storage.files import (
    DATA_NAME,
    PARTIAL_NAME,
    FileEntry,
    HashingFile,
    brief,
    hash_file,
    locked,
    naming_file,
    open_plain,
    sync_folder,
    write_file,
    writing,
)
from linkspread.storage.manifest import (
    MANIFEST,
    MAX_MANIFEST,
    MODEL,
    check_depth,
    check_entry,
    format_json,
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
        check_ids(ids)
    nowhere = FileEntry(f"arrays-{'0' * 32}.safetensors", 1 << 62, "0" * 64)
    columns = {name: (nowhere, len(ids)) for name, ids in content.ids.items()}
    document = make_manifest(content, nowhere, columns, kind=kind)
    check_depth(document)
    format_json(document, max_bytes=MAX_MANIFEST)
    with writing(folder), _created(folder), locked(folder, wait=False):
        _remove_files(folder, lambda name: bool(PARTIAL_NAME.fullmatch(name)))
        with _without_leftovers(folder):
            kept = _write_files(folder, content, kind)
        _remove_files(folder, lambda name: _is_data(name) and name not in kept)


@contextmanager
def _created(folder: Path) -> Iterator[None]:
    """Create a folder if it is missing; remove it again on failure if empty."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if is_new:
            with suppress(OSError):  # of a folder that is not empty
                folder.rmdir()
        raise


@contextmanager
def _without_leftovers(folder: Path) -> Iterator[None]:
    """Remove the data files that a failed save added."""
    before = set(os.listdir(folder))
    try:
        yield
    except BaseException:
        manifest = folder / MANIFEST
        named = manifest.read_bytes() if manifest.exists() else b""
        _remove_files(
            folder,
            lambda name: (
                _is_data(name) and name not in before and name.encode() not in named
            ),
        )
        raise


def _write_files(folder: Path, content: Content, kind: str) -> set[str]:
    """Write the data files, then the manifest; return the names of the former."""

    def write_data(
        name: str, suffix: str, write: Callable[[HashingFile], None]
    ) -> FileEntry:
        return write_file(folder, write, lambda e: f"{name}-{e.sha256[:32]}{suffix}")

    arrays = write_data(
        "arrays", ".safetensors", lambda file: write_tensors(file, content.arrays)
    )
    columns = {}
    for name, ids in content.ids.items():
        entry = write_data("ids", ".parquet", partial(write_ids, ids=ids))
        columns[name] = entry, len(ids)
    # The data must be on disk before the manifest names them.
    sync_folder(folder)
    document = make_manifest(content, arrays, columns, kind=kind)
    data = format_json(document, max_bytes=MAX_MANIFEST)
    write_file(folder, lambda file: file.write(data), lambda entry: MANIFEST)
    sync_folder(folder)
    return {arrays.name, *(entry.name for entry, _ in columns.values())}


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
    with _opened(folder, stored, verify) as file:
        arrays = read_tensors(file)
    ids = {}
    for name, entry in manifest["ids"].items():
        with naming_file(MANIFEST):
            column, n_ids = _check_column(entry)
        with _opened(folder, column, verify) as file:
            ids[name] = read_ids(file, column.n_bytes, n_ids)
    return Content(manifest["content"], arrays, ids, manifest["about"], stored.name)


def _check_column(entry: dict[str, Any]) -> tuple[FileEntry, int]:
    """Return the checked manifest entry of a column of ids."""
    n_ids = entry.get("n_ids")
    rest = {key: own for key, own in entry.items() if key != "n_ids"}
    column = check_entry(rest, ".parquet")
    # An id takes at least four bytes, which bounds their number.
    if type(n_ids) is not int or not 0 <= 4 * n_ids <= column.n_bytes:
        raise ModelError(
            f"{column.name} must have as many ids as it can hold, got "
            f"{brief(n_ids)}. Save the model again."
        )
    return column, n_ids


@contextmanager
def _opened(folder: Path, entry: FileEntry, verify: bool) -> Iterator[Any]:
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
    names = {entry.name for entry in os.scandir(folder)} if folder.exists() else set()
    if MANIFEST in names:
        read_manifest(folder, kind=kind, whole=False)
    elif not all(_is_data(name) or PARTIAL_NAME.fullmatch(name) for name in names):
        raise ModelError(
            f"the target must be a new folder, an empty one, or one of `format` "
            f"{kind!r}, and {str(folder)!r} holds other files. Give another path."
        )


def _is_data(name: str) -> bool:
    """Return whether a file has the name of a data file."""
    return bool(DATA_NAME.fullmatch(name))


def _remove_files(folder: Path, chosen: Callable[[str], bool]) -> None:
    """Remove chosen files; those in use are left for the next save."""
    for entry in list(os.scandir(folder)):
        if chosen(entry.name):
            with suppress(OSError):
                os.unlink(entry.path)


def check_ids(ids: Array) -> None:
    """Refuse ids that `read_ids` would refuse."""
    _pyarrow()  # raises now if it is missing
    if ids.dtype.kind == "U" and ids.nbytes > MAX_WIDENED:
        _check_widening(len(ids), ids.itemsize // 4, int(np.char.str_len(ids).sum()))


def write_ids(file: HashingFile, ids: Array) -> None:
    """Write ids as one parquet file."""
    arrow = _pyarrow()
    buffer = arrow.BufferOutputStream()
    kind = arrow.int64() if ids.dtype.kind == "i" else arrow.string()
    column = arrow.array(ids.tolist() if ids.dtype.kind == "U" else ids, type=kind)
    _pyarrow(".parquet").write_table(
        arrow.table({ID_COLUMN: column}),
        buffer,
        compression="none",
        use_dictionary=False,
        store_schema=False,
    )
    file.write(np.frombuffer(buffer.getvalue(), np.uint8))


def read_ids(file: BinaryIO, n_bytes: int, n_ids: int) -> Array:
    """Return the ids of a parquet file."""
    parquet = _pyarrow(".parquet")
    try:
        # From memory, in this thread: Arrow's own threads reading a file that an error
        # has closed would crash the process.
        opened = parquet.ParquetFile(
            _pyarrow().BufferReader(file.read()),
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
        raise ModelError(_count_error(n_ids, len(column) - column.null_count))
    if str(column.type) == "int64":
        return column.to_numpy().astype(np.int64)
    return _as_strings(column)


def _check_metadata(metadata: Any, schema: Any, n_bytes: int, n_ids: int) -> None:
    """Refuse a file that does not hold ids, before any page is read."""
    types = [str(field.type) for field in schema]
    if schema.names != [ID_COLUMN] or types[0] not in ("int64", "string"):
        raise ModelError(
            f"ids must be one column {ID_COLUMN!r} of int64 or string, got "
            f"{dict(zip(schema.names, types, strict=True))!s:.80}. Save the model "
            "again."
        )
    if metadata.num_rows != n_ids:
        raise ModelError(_count_error(n_ids, metadata.num_rows))
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
    parts, size = [], 0
    for batch in opened.iter_batches(batch_size=ID_BATCH, use_threads=False):
        parts.append(batch.column(0))
        size += parts[-1].nbytes
        if size > 2 * n_bytes:
            raise ModelError(
                "ids must take no more room than their file, and unpack to more. "
                "Save the model again."
            )
    return _pyarrow().chunked_array(parts, type=opened.schema_arrow.field(0).type)


def _as_strings(column: Any) -> Array:
    """Return a column of texts as an array, unless padding makes it far larger."""
    compute = _pyarrow(".compute")
    lengths = compute.utf8_length(column)
    longest = compute.max(lengths).as_py() or 0
    total = compute.sum(lengths).as_py() or 0
    if 4 * longest * len(column) > MAX_WIDENED:
        _check_widening(len(column), longest, total)
    ids = np.array(column.to_pylist(), dtype=str)
    return ids if len(ids) else np.zeros(0, dtype=np.int64)


def _check_widening(n_ids: int, longest: int, total: int) -> None:
    """Refuse ids that padding to the longest would make far larger."""
    if n_ids * longest > MAX_WIDENING * max(total, 1):
        raise ModelError(
            f"ids must be of similar length, got one of {longest:,} characters among "
            f"{n_ids:,}, which together would take {format_bytes(4 * n_ids * longest)}."
            " Give shorter ids."
        )


def _count_error(n_ids: int, got: int) -> str:
    """Return the message about a wrong number of ids."""
    return f"there must be {n_ids:,} ids, got {got:,}. Save the model again."


def _pyarrow(part: str = "") -> Any:
    """Import pyarrow or a part of it."""
    return require(f"pyarrow{part}", purpose="A model with ids")
