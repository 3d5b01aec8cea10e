"""Tables of views: reading, validation, and doubtful columns."""

from linkspread.tables.doubts import doubtful_columns
from linkspread.tables.files import read_table
from linkspread.tables.frames import Table, read_frame
from linkspread.tables.validation import Views

__all__ = ["Table", "Views", "doubtful_columns", "read_frame", "read_table"]
