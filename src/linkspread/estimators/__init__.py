"""scikit-learn classes that string the arrows together."""

from linkspread.estimators.link_spreading import LinkSpreading

__all__ = ["LinkSpreading"]
