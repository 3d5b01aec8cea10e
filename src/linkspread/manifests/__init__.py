"""Make features of collections of files and texts, and store them."""

from linkspread.manifests.collection import ItemCollection, ViewItems
from linkspread.manifests.feature_set import FeatureSet, load_features
from linkspread.manifests.featurizing import featurize
from linkspread.manifests.layouts import read_collection

__all__ = [
    "FeatureSet",
    "ItemCollection",
    "ViewItems",
    "featurize",
    "load_features",
    "read_collection",
]
