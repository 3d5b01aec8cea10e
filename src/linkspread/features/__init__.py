"""Features of things that are not tables: pictures as histograms."""

from linkspread.features.pictures import PictureFeatures

__all__ = ["PictureFeatures"]
