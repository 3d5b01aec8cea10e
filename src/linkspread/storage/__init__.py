"""Model folders and the link store.

Model folders hold named arrays and a JSON tree; this room does not depend on the
models. A save that is killed leaves the old folder intact. Folders are
untrusted input: nothing is executed, and nothing is used before it is checked.

The link store keeps judgements in SQLite or PostgreSQL; the ledger combines those of
several people.
"""

from linkspread.storage.folder import Content, read_folder, write_folder
from linkspread.storage.judgements import Judgement, Undo
from linkspread.storage.ledger import Disagreement, JudgedPairs, Ledger, PairColumns
from linkspread.storage.link_store import LinkStore
from linkspread.storage.people import KeptItem, Person
from linkspread.storage.schema import Registry, Stored

__all__ = [
    "Content",
    "Disagreement",
    "JudgedPairs",
    "Judgement",
    "KeptItem",
    "Ledger",
    "LinkStore",
    "PairColumns",
    "Person",
    "Registry",
    "Stored",
    "Undo",
    "read_folder",
    "write_folder",
]
