"""Features of things that are not tables: pictures, texts and tags."""

from linkspread.features.pictures import PictureFeatures
from linkspread.features.tags import TagFeatures
from linkspread.features.tokens import tokenize
from linkspread.features.topics import TopicFeatures
from linkspread.features.words import TextFeatures

__all__ = [
    "PictureFeatures",
    "TagFeatures",
    "TextFeatures",
    "TopicFeatures",
    "tokenize",
]
