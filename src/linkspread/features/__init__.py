"""Features of things that are not tables: pictures, texts and tags."""

from linkspread.features.choices import TRANSFORMERS, default_transformer
from linkspread.features.images import read_picture
from linkspread.features.networks import NetworkFeatures
from linkspread.features.pictures import PictureFeatures
from linkspread.features.sentences import SentenceFeatures
from linkspread.features.tags import TagFeatures
from linkspread.features.tokens import tokenize
from linkspread.features.topics import TopicFeatures
from linkspread.features.visual_words import VisualWords
from linkspread.features.words import TextFeatures

__all__ = [
    "NetworkFeatures",
    "PictureFeatures",
    "SentenceFeatures",
    "TRANSFORMERS",
    "TagFeatures",
    "TextFeatures",
    "TopicFeatures",
    "VisualWords",
    "default_transformer",
    "read_picture",
    "tokenize",
]
