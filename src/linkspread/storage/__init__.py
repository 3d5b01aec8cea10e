"""The link store, and the files behind `save` and `load`.

The link store keeps judgements in SQLite or PostgreSQL; the ledger combines those of
several people. Model folders hold named arrays and a JSON tree; this room does not
depend on the models. A save that is killed leaves the old folder intact.
"""

from linkspread.storage.judgements import (
    Disagreement,
    JudgedPairs,
    Judgement,
    Ledger,
    PairColumns,
    Undo,
)
from linkspread.storage.link_store import KeptItem, LinkStore, Person

__all__ = [
    "Disagreement",
    "JudgedPairs",
    "Judgement",
    "KeptItem",
    "Ledger",
    "LinkStore",
    "PairColumns",
    "Person",
    "Undo",
]
