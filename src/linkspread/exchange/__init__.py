"""Exports: vectors and rankings for other programs, each in a format of theirs.

A score is the inner product of a searching and a found vector. Every export says so,
because most vector stores compare by cosine unless told otherwise.
"""

from linkspread.exchange.embeddings import Embeddings, take_embeddings
from linkspread.exchange.faiss_index import FaissIndex, read_faiss, write_faiss
from linkspread.exchange.numpy_file import read_numpy, write_numpy
from linkspread.exchange.pairs_file import write_pairs
from linkspread.exchange.parquet_file import read_parquet, write_parquet
from linkspread.exchange.postgres import write_postgres
from linkspread.exchange.run_file import write_run

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
