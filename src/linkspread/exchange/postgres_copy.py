"""Rows in the binary format of PostgreSQL's COPY.

It is exact and many times faster than numbers as text. The format is described at
https://www.postgresql.org/docs/current/sql-copy.html; a `vector` is its length and a
zero in two bytes each, then its numbers in float32, most significant byte first.
"""

import struct
from collections.abc import Iterator

import numpy as np

Array = np.ndarray

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
TRAILER = struct.pack(">h", -1)
BLOCK_ROWS = 4096


def copy_blocks(ids: Array, vectors: Array) -> Iterator[bytes]:
    """Yield the bytes of a table with an id and a vector in each row.

    `ids` of shape (n,), integers or strings, become bigint or text; `vectors` of
    shape (n, r) the type `vector` of pgvector.
    """
    yield HEADER
    for start in range(0, len(ids), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        keys = map(_id_field, ids[block].tolist())
        fields = _vector_fields(vectors[block])
        yield b"".join(key + field for key, field in zip(keys, fields, strict=True))
    yield TRAILER


def _id_field(name: int | str) -> bytes:
    """Return the number of fields in a row, and its first one."""
    value = name.encode() if isinstance(name, str) else struct.pack(">q", name)
    return struct.pack(">hi", 2, len(value)) + value


def _vector_fields(vectors: Array) -> Iterator[bytes]:
    """Yield the second field of each row."""
    n_dimensions = vectors.shape[1]
    head = struct.pack(">ihh", 4 + 4 * n_dimensions, n_dimensions, 0)
    return (head + row.tobytes() for row in vectors.astype(">f4"))
