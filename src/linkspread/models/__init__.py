"""The two models as scikit-learn estimators, and their folders on disk."""

from linkspread.models.cross_view_search import CrossViewSearch
from linkspread.models.link_spreading import LinkSpreading
from linkspread.models.model_folder import ModelFolder
from linkspread.models.persistence import load

__all__ = ["CrossViewSearch", "LinkSpreading", "ModelFolder", "load"]
