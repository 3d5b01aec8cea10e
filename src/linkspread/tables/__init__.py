"""Tables of views: reading, validation, and doubtful columns."""

from linkspread.tables.files import read_table
from linkspread.tables.validation import Table, Views

__all__ = ["Table", "Views", "read_table"]
