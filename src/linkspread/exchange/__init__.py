"""Export vectors, rankings and judged pairs for other programs.

A score is the inner product of a searching and a found vector. Every export states so,
because most vector databases compare by cosine by default.
"""

from linkspread.exchange.embeddings import Embeddings, take_embeddings
from linkspread.exchange.postgres import write_postgres
from linkspread.exchange.rankings import write_pairs, write_run
from linkspread.exchange.vector_files import (
    FaissIndex,
    read_faiss,
    read_numpy,
    read_parquet,
    write_faiss,
    write_numpy,
    write_parquet,
)

__all__ = [
    "Embeddings",
    "FaissIndex",
    "read_faiss",
    "read_numpy",
    "read_parquet",
    "take_embeddings",
    "write_faiss",
    "write_numpy",
    "write_pairs",
    "write_parquet",
    "write_postgres",
    "write_run",
]
