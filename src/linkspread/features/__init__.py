"""Features of pictures, texts and tags."""

from linkspread.features.choices import TRANSFORMERS
from linkspread.features.encoders import NetworkFeatures, SentenceFeatures
from linkspread.features.histograms import PictureFeatures
from linkspread.features.pictures import read_picture
from linkspread.features.texts import TagFeatures, TextFeatures, TopicFeatures
from linkspread.features.tokens import tokenize
from linkspread.features.visual_words import VisualWords

__all__ = [
    "NetworkFeatures",
    "PictureFeatures",
    "SentenceFeatures",
    "TRANSFORMERS",
    "TagFeatures",
    "TextFeatures",
    "TopicFeatures",
    "VisualWords",
    "read_picture",
    "tokenize",
]
