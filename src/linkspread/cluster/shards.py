"""Shards: files with the vectors of some items each."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.cluster.session import Session, Task, alone
from linkspread.ground.errors import LinkspreadError, ModelError
from linkspread.ground.progress import format_bytes
from linkspread.search.index import most_barred, without_barred
from linkspread.search.rank import best_entries, count_open, rank
from linkspread.storage.files import HashingFile, hash_file, open_plain, write_file

Array = np.ndarray
FilePath = str | os.PathLike[str]

# Named after the checksum, so that no file is ever overwritten.
SHARD_NAME = re.compile(r"vectors-[0-9a-f]{32}\.npy")
PRECISIONS = ("float32", "float64")


@dataclass(frozen=True)
class ShardFile:
    """A file of vectors."""

    name: str
    n_rows: int
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class VectorShards:
    """The vectors of one view's items, in files of some rows each."""

    files: tuple[ShardFile, ...]
    width: int
    precision: str

    @property
    def n_items(self) -> int:
        """Number of items."""
        return sum(file.n_rows for file in self.files)

    @property
    def is_plain(self) -> bool:
        """Whether the entries of a manifest can be those of `write_shard`."""
        return self.precision in PRECISIONS and all(
            SHARD_NAME.fullmatch(file.name) and file.n_rows > 0 for file in self.files
        )

    def ranges(self) -> Iterator[tuple[int, int, int]]:
        """Yield the number, the first item and the end of each file."""
        stop = 0
        for k, file in enumerate(self.files):
            start, stop = stop, stop + file.n_rows
            yield k, start, stop

    def read(self, k: int, folder: FilePath) -> Array:
        """Return the vectors of one file, mapped into memory."""
        file = self.files[k]
        try:
            # Refuses links out of the folder.
            open_plain(Path(folder), file.name).close()
            rows = np.load(Path(folder, file.name), mmap_mode="r", allow_pickle=False)
        except LinkspreadError:
            raise
        except (OSError, ValueError, EOFError) as error:
            raise _damaged(file, "be a whole .npy file", str(error)) from error
        expected = (file.n_rows, self.width), np.dtype(self.precision)
        if (rows.shape, rows.dtype) != expected:
            rule = f"be of shape {expected[0]} and {self.precision}"
            raise _damaged(file, rule, f"{rows.shape} and {rows.dtype}")
        return rows

    def take(self, positions: Array, folder: FilePath) -> Array:
        """Return the vectors of some items."""
        taken = np.empty((len(positions), self.width), self.precision)
        for k, start, stop in self.ranges():
            own = np.flatnonzero((start <= positions) & (positions < stop))
            if len(own):
                taken[own] = self.read(k, folder)[positions[own] - start]
        return taken

    def check(self, k: int, folder: FilePath, verify: bool) -> None:
        """Refuse a file that differs from the one that was written."""
        file = self.files[k]
        self.read(k, folder)
        with open_plain(Path(folder), file.name) as opened:
            n_bytes = os.fstat(opened.fileno()).st_size
            if n_bytes != file.n_bytes or (verify and hash_file(opened) != file.sha256):
                rule = "have the size and checksum of the manifest"
                raise _damaged(file, rule, "others")


def _damaged(file: ShardFile, rule: str, got: str) -> ModelError:
    """Return the error for a file that is not the one that was written."""
    return ModelError(
        f"{file.name}: a shard must {rule}, got {got}. Copy the whole folder again, or "
        "fit again."
    )


def write_shard(vectors: Array, folder: str) -> ShardFile:
    """Write vectors to a file of a folder, all or nothing."""
    vectors = np.ascontiguousarray(vectors)

    def write(file: HashingFile) -> None:
        header = np.lib.format.header_data_from_array_1_0(vectors)
        np.lib.format.write_array_header_1_0(file, header)
        file.write(vectors.reshape(-1).view(np.uint8))

    try:
        entry = write_file(Path(folder), write, "vectors-{}.npy")
    except OSError as error:
        raise LinkspreadError(
            f"`output` must be on a disk that all workers share, with room for "
            f"{format_bytes(vectors.nbytes)} more, got an error from {folder} "
            f"({error}). Free some space there, or give another folder."
        ) from error
    return ShardFile(entry.name, len(vectors), entry.n_bytes, entry.sha256)


def run_each(client: Any, task: Task, calls: list[tuple[Any, ...]]) -> list[Any]:
    """Return the results of calls, by the workers of a client or here."""
    if client is None:
        return [alone(task, *call) for call in calls]
    session = Session(client)
    return session.fetch([session.submit(task, *call) for call in calls])


class ShardIndex:
    """Find items by inner product among vectors in shards, exactly."""

    method_, recall_ = "exact", 1.0

    def __init__(
        self, shards: VectorShards, folder: FilePath, client: Any = None
    ) -> None:
        self.shards, self.folder, self.client = shards, str(folder), client

    def search(
        self,
        vectors: Array,
        *,
        n_results: int,
        only: Array | None = None,
        barred: Any = None,
        backend: str = "auto",
    ) -> tuple[Array, Array]:
        """Return the items with the largest inner products for each query."""
        n_found = min(n_results, count_open(self.shards.n_items, only, barred))
        asked = vectors, n_found + most_barred(barred), backend
        calls = []
        for k, start, stop in self.shards.ranges():
            own = only
            if only is not None:
                own = only[slice(*np.searchsorted(only, (start, stop)))] - start
            if own is None or len(own):
                calls.append((self.shards, k, start, self.folder, own, *asked))
        found = run_each(self.client, _search_shard, calls)
        nothing = np.zeros((len(vectors), 0))
        positions = np.hstack([nothing.astype(int), *(own for own, _ in found)])
        scores = np.hstack([nothing.astype(vectors.dtype), *(own for _, own in found)])
        scores[without_barred(positions, barred) < 0] = -np.inf
        # Sorted by position, so that equal scores come in the order of the items.
        order = np.argsort(positions, axis=1)
        positions, scores = (
            np.take_along_axis(own, order, axis=1) for own in (positions, scores)
        )
        places, scores = best_entries(scores, n_found)
        return np.take_along_axis(positions, places, axis=1), scores


def _search_shard(
    shards: VectorShards,
    k: int,
    start: int,
    folder: str,
    only: Array | None,
    vectors: Array,
    n_results: int,
    backend: str,
) -> tuple[Array, Array]:
    """Return the best items of one shard, by their positions in the view."""
    rows = shards.read(k, folder)
    found, scores = rank(vectors, rows, n_results=n_results, only=only, backend=backend)
    return found + start, scores
