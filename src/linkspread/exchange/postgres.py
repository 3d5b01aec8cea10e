"""Export vectors to a table of PostgreSQL with the extension pgvector.

Search with ``ORDER BY embedding <#> query``; ``<#>`` is the negative inner product.
"""

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex
from types import ModuleType
from typing import Any

import numpy as np

from linkspread.exchange.vectors import INDEXES, Embeddings, take_embeddings
from linkspread.ground.checks import check_name
from linkspread.ground.errors import LinkspreadError, require
from linkspread.models.vector_search import VectorSearch
from linkspread.storage.database import connect_postgres

# Limits of pgvector's type `vector`, and of PostgreSQL's names in bytes.
MAX_STORED = 16_000
MAX_INDEXED = 2_000
MAX_NAME = 63
# The binary format of COPY is exact and many times faster than numbers as text
# (https://www.postgresql.org/docs/current/sql-copy.html). A `vector` is its length and
# a zero in two bytes each, then its numbers in float32, most significant byte first.
HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
TRAILER = struct.pack(">h", -1)
BLOCK_ROWS = 4096


def write_postgres(
    model: VectorSearch,
    url: str,
    table: str,
    *,
    source: str,
    target: str,
    role: str = "found",
    index: str = "exact",
    overwrite: bool = False,
) -> int:
    """Write the vectors of a view's items to a table of PostgreSQL with pgvector.

    Its columns are `id` (bigint or text, the primary key) and `embedding`
    (``vector(n_dimensions)``, float32); its comment describes them. All is done in one
    transaction: others see the old table until the new one is complete.

    Parameters
    ----------
    model : CrossViewSearch, LinkSpreading, or a baseline of `studies.baselines`
        Fitted.
    url : str
        Such as "postgresql://user@host:5432/database". Missing parts come from the
        environment (PGHOST, PGPASSWORD) or ~/.pgpass, as for psql. No message shows
        it.
    table : str
        Name of the table, or "schema.table". Names are quoted, so capitals count.
    source, target : str
        View that searches and view that is searched.
    role : {"searching", "found"}, default="found"
        As for `write_vectors`.
    index : {"exact", "hnsw"}, default="exact"
        "hnsw" adds an index for inner products, which is faster, misses some results
        and takes at most 2,000 dimensions.
    overwrite : bool, default=False
        Whether to replace an existing table, with its indexes and grants.

    Returns
    -------
    n_rows : int
        Rows written.
    """
    psycopg = require("psycopg", purpose="Writing to PostgreSQL")
    check_name(index, INDEXES, name="index")
    name = _split_name(table)
    taken = take_embeddings(model, source, target, role=role, dtype="float32")
    _check_width(taken.vectors.shape[1], index)
    with _connected(psycopg, url) as connection:
        _Export(psycopg, connection, name).write(taken, index, overwrite)
    return len(taken.ids)


class _Export:
    """The statements of one export, within one transaction."""

    def __init__(
        self, psycopg: ModuleType, connection: Any, name: tuple[str, ...]
    ) -> None:
        self.sql = psycopg.sql
        self.connection = connection
        self.name = name
        self.vector_schema = self._find_extension()

    def write(self, embeddings: Embeddings, index: str, overwrite: bool) -> None:
        """Write a table; replace an old one at the end."""
        exists = self._exists()
        if exists and not overwrite:
            raise LinkspreadError(
                "`table` must be new unless overwrite=True, got the existing "
                f"{'.'.join(self.name)}. Choose another, or pass overwrite=True."
            )
        # Written under another name first, because dropping a table locks out readers.
        draft = f"linkspread_{token_hex(6)}" if exists else self.name[-1]
        self._fill((*self.name[:-1], draft), embeddings, index)
        if exists:
            self._run("DROP TABLE {table}", self.name)
            renaming = "ALTER TABLE {table} RENAME TO {new}"
            new = self.sql.Identifier(self.name[-1])
            self._run(renaming, (*self.name[:-1], draft), new=new)

    def _fill(self, name: tuple[str, ...], embeddings: Embeddings, index: str) -> None:
        """Create a table with its rows, its index and its comment."""
        parts = {
            "kind": self.sql.SQL(
                "text" if embeddings.ids.dtype.kind == "U" else "bigint"
            ),
            "vector": self.sql.Identifier(self.vector_schema, "vector"),
            "n": self.sql.Literal(embeddings.vectors.shape[1]),
            "order": self.sql.Identifier(self.vector_schema, "vector_ip_ops"),
            "meaning": self.sql.Literal(
                json.dumps(embeddings.describe(), ensure_ascii=False)
            ),
        }
        create = "CREATE TABLE {table} (id {kind}, embedding {vector}({n}) NOT NULL)"
        self._run(create, name, **parts)
        self._copy(name, embeddings)
        self._run("ALTER TABLE {table} ADD PRIMARY KEY (id)", name)
        if index == "hnsw":
            self._run(
                "CREATE INDEX ON {table} USING hnsw (embedding {order})", name, **parts
            )
        self._run("COMMENT ON TABLE {table} IS {meaning}", name, **parts)
        self._run("ANALYZE {table}", name)

    def _copy(self, name: tuple[str, ...], embeddings: Embeddings) -> None:
        """Send all rows in PostgreSQL's binary format."""
        statement = "COPY {table} (id, embedding) FROM STDIN (FORMAT BINARY)"
        statement = self.sql.SQL(statement).format(table=self.sql.Identifier(*name))
        with self.connection.cursor().copy(statement) as copy:
            for block in copy_blocks(embeddings.ids, embeddings.vectors):
                copy.write(block)

    def _run(self, statement: str, name: tuple[str, ...], **parts: Any) -> Any:
        """Execute a statement in which all names and values are quoted."""
        table = self.sql.Identifier(*name)
        return self.connection.execute(
            self.sql.SQL(statement).format(table=table, **parts)
        )

    def _exists(self) -> bool:
        """Return whether a table, or anything else, has this name."""
        quoted = self.sql.Identifier(*self.name).as_string(self.connection)
        found = self.connection.execute("SELECT to_regclass(%s)", [quoted]).fetchone()
        return found[0] is not None

    def _find_extension(self) -> str:
        """Return the schema of pgvector, which need not be on the search path."""
        found = self.connection.execute(
            "SELECT nspname FROM pg_extension JOIN pg_namespace "
            "ON pg_namespace.oid = extnamespace WHERE extname = 'vector'"
        ).fetchone()
        if found is None:
            raise LinkspreadError(
                "`url` must lead to a database with the extension pgvector, got one "
                "without it. Install pgvector on the server and run CREATE EXTENSION "
                "vector in the database."
            )
        return found[0]


@contextmanager
def _connected(psycopg: ModuleType, url: str) -> Iterator[Any]:
    """Yield a connection with one transaction, rolled back on an error."""
    with connect_postgres(url, name="url") as connection:
        try:
            yield connection
        except psycopg.Error as error:
            reason = error.diag.message_primary or "the connection was lost"
            raise LinkspreadError(
                f"PostgreSQL must accept the export, got the error: {reason}. The "
                "database is unchanged. Correct this and export again."
            ) from error


def _split_name(table: str) -> tuple[str, ...]:
    """Return the schema, if there is one, and the name of a table."""
    parts = tuple(table.split(".")) if isinstance(table, str) else ()
    good = 1 <= len(parts) <= 2 and "\0" not in table
    if not good or not all(0 < len(part.encode()) <= MAX_NAME for part in parts):
        raise LinkspreadError(
            "`table` must be 'name' or 'schema.name', each of 1 to "
            f"{MAX_NAME} bytes, got {table!r:.80}. Choose such a name."
        )
    return parts


def _check_width(n_dimensions: int, index: str) -> None:
    """Refuse vectors that are too long for a table, or for an index."""
    limit = MAX_INDEXED if index == "hnsw" else MAX_STORED
    if n_dimensions > limit:
        other = "or use index='exact', " if n_dimensions <= MAX_STORED else ""
        raise LinkspreadError(
            f"vectors must have at most {limit:,} dimensions for index={index!r} in "
            f"pgvector, got {n_dimensions:,}. Fit with a smaller `rank`, {other}or "
            "export to parquet or faiss."
        )


def copy_blocks(ids: np.ndarray, vectors: np.ndarray) -> Iterator[bytes]:
    """Yield rows of an id and a vector in PostgreSQL's binary format."""
    yield HEADER
    for start in range(0, len(ids), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        keys = map(_id_field, ids[block].tolist())
        fields = _vector_fields(vectors[block])
        yield b"".join(key + field for key, field in zip(keys, fields, strict=True))
    yield TRAILER


def _id_field(name: int | str) -> bytes:
    """Return the number of fields in a row, and its first field."""
    value = name.encode() if isinstance(name, str) else struct.pack(">q", name)
    return struct.pack(">hi", 2, len(value)) + value


def _vector_fields(vectors: np.ndarray) -> Iterator[bytes]:
    """Yield the second field of each row."""
    n_dimensions = vectors.shape[1]
    head = struct.pack(">ihh", 4 + 4 * n_dimensions, n_dimensions, 0)
    return (head + row.tobytes() for row in vectors.astype(">f4"))
