"""Tables of views: which columns are features, and which had better be none."""

from linkspread.tables.doubts import doubtful_columns, tell_doubts
from linkspread.tables.frames import Table, column_names, is_frame, read_frame
from linkspread.tables.views import Views

__all__ = [
    "Table",
    "Views",
    "column_names",
    "doubtful_columns",
    "is_frame",
    "read_frame",
    "tell_doubts",
]
