"""Must- and cannot-links: from labels, from judged pairs, from matched rows."""

from linkspread.links.collection import Links
from linkspread.links.matrix import LinkMatrix, as_dense, as_link_matrix
from linkspread.links.pairs import Items

__all__ = ["Items", "LinkMatrix", "Links", "as_dense", "as_link_matrix"]
