"""Tables of views: reading, validation, and doubtful columns."""

from linkspread.tables.files import read_table
from linkspread.tables.validation import Table

__all__ = ["Table", "read_table"]
