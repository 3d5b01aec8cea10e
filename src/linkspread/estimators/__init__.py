"""scikit-learn classes that string the arrows together."""

from linkspread.estimators.cross_view_search import CrossViewSearch
from linkspread.estimators.link_spreading import LinkSpreading
from linkspread.estimators.loading import load

__all__ = ["CrossViewSearch", "LinkSpreading", "load"]
