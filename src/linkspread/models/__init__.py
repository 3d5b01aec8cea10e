"""scikit-learn classes that string the arrows together, and their folders."""

from linkspread.models.cross_view_search import CrossViewSearch
from linkspread.models.link_spreading import LinkSpreading
from linkspread.models.loading import load
from linkspread.models.model_folder import ModelFolder

__all__ = ["CrossViewSearch", "LinkSpreading", "ModelFolder", "load"]
