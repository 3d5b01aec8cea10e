"""scikit-learn classes that string the arrows together."""

from linkspread.models.cross_view_search import CrossViewSearch
from linkspread.models.link_spreading import LinkSpreading
from linkspread.models.loading import load

__all__ = ["CrossViewSearch", "LinkSpreading", "load"]
