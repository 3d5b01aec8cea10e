"""Shards: files with the vectors of some items each."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.cluster.session import Session, alone
from linkspread.ground.errors import LinkspreadError, ModelError
from linkspread.ground.progress import format_bytes
from linkspread.search.best import best_entries
from linkspread.search.index import most_barred, without_barred
from linkspread.search.rank import count_open, rank
from linkspread.storage.files import HashingFile, hash_file, open_plain, write_file

Array = np.ndarray

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
    def boundaries(self) -> Array:
        """Position of the first item of each file, and the end of the last."""
        return np.cumsum([0, *(file.n_rows for file in self.files)])

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

    def read(self, k: int, folder: str | os.PathLike[str]) -> Array:
        """Return the vectors of one file, mapped into memory."""
        file = self.files[k]
        try:
            # Refuses links out of the folder.
            open_plain(Path(folder), file.name).close()
            rows = np.load(Path(folder, file.name), mmap_mode="r", allow_pickle=False)
        except LinkspreadError:
            raise
        except (OSError, ValueError, EOFError) as error:
            raise ModelError(
                f"{file.name}: shards must be whole .npy files that this process can "
                f"read, got {error}. Copy the whole folder, or fit again."
            ) from error
        expected = (file.n_rows, self.width), np.dtype(self.precision)
        if (rows.shape, rows.dtype) != expected:
            raise ModelError(
                f"{file.name}: a shard must be of shape {expected[0]} and "
                f"{self.precision}, got {rows.shape} and {rows.dtype}. Copy the whole "
                "folder, or fit again."
            )
        return rows

    def take(self, positions: Array, folder: str | os.PathLike[str]) -> Array:
        """Return the vectors of some items."""
        taken = np.empty((len(positions), self.width), self.precision)
        for k, start, stop in self.ranges():
            own = np.flatnonzero((start <= positions) & (positions < stop))
            if len(own):
                taken[own] = self.read(k, folder)[positions[own] - start]
        return taken

    def ranges(self) -> Iterator[tuple[int, int, int]]:
        """Yield the number, the first item and the end of each file."""
        bounds = self.boundaries.tolist()
        for k, (start, stop) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
            yield k, start, stop

    def check(self, folder: Path, *, verify: bool) -> None:
        """Refuse files that differ from those that were written."""
        for k, file in enumerate(self.files):
            self.read(k, folder)
            with open_plain(folder, file.name) as opened:
                fits = os.fstat(opened.fileno()).st_size == file.n_bytes
                if not fits or (verify and hash_file(opened) != file.sha256):
                    raise ModelError(
                        f"{file.name}: a shard must have the size and checksum of the "
                        "manifest, got others. Copy it again, or fit again."
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


class ShardIndex:
    """Find items by inner product among vectors in shards, exactly."""

    method_, recall_ = "exact", 1.0

    def __init__(
        self, shards: VectorShards, folder: str | os.PathLike[str], client: Any = None
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
        shared = vectors, n_found + most_barred(barred), backend
        tasks = [
            (self.shards, k, self.folder, own, *shared)
            for k, own in self._open_of(only)
        ]
        if self.client is None:
            found = [alone(_search_shard, *task) for task in tasks]
        else:
            session = Session(self.client)
            found = session.fetch([session.submit(_search_shard, *t) for t in tasks])
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

    def _open_of(self, only: Array | None) -> list[tuple[int, Array | None]]:
        """Return the shards that may be searched, and which of their items."""
        if only is None:
            return [(k, None) for k in range(len(self.shards.files))]
        cuts = np.searchsorted(only, self.shards.boundaries)
        return [
            (k, only[cuts[k] : cuts[k + 1]] - start)
            for k, start, _ in self.shards.ranges()
            if cuts[k + 1] > cuts[k]
        ]


def _search_shard(
    shards: VectorShards,
    k: int,
    folder: str,
    only: Array | None,
    vectors: Array,
    n_results: int,
    backend: str,
) -> tuple[Array, Array]:
    """Return the best items of one shard, by their positions in the view."""
    rows = shards.read(k, folder)
    found, scores = rank(vectors, rows, n_results=n_results, only=only, backend=backend)
    return found + shards.boundaries[k], scores
