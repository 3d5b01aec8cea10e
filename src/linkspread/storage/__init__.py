"""Model folders and the link store.

Model folders are named arrays, a JSON tree and columns of ids. Nothing here knows what
a model is. It writes so that a save that is killed leaves the old folder whole, and
reads as if the folder came from a stranger: nothing is executed, and nothing is used
before it is checked.

The link store keeps judgements of people in SQLite or PostgreSQL, and the ledger tells
what they say together.
"""

from linkspread.storage.folder import Content, read_folder, write_folder
from linkspread.storage.judgements import Judgement, Undo
from linkspread.storage.ledger import Disagreement, JudgedPairs, Ledger, PairColumns
from linkspread.storage.link_store import LinkStore
from linkspread.storage.schema import Ids, Registry, Stored

__all__ = [
    "Content",
    "Disagreement",
    "Ids",
    "JudgedPairs",
    "Judgement",
    "Ledger",
    "LinkStore",
    "PairColumns",
    "Registry",
    "Stored",
    "Undo",
    "read_folder",
    "write_folder",
]
