"""Tables of views: reading, validation, and doubtful columns."""

from linkspread.tables.doubts import describe_doubts, doubtful_columns
from linkspread.tables.files import read_columns, read_table, read_texts
from linkspread.tables.frames import Table, column_names, is_frame, read_frame
from linkspread.tables.validation import Views

__all__ = [
    "Table",
    "Views",
    "column_names",
    "describe_doubts",
    "doubtful_columns",
    "is_frame",
    "read_columns",
    "read_frame",
    "read_table",
    "read_texts",
]
