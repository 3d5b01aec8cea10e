"""The transformers by their short names, and those to begin with.

>>> from linkspread.features import TRANSFORMERS, default_transformer
>>> TRANSFORMERS["topics"].__name__, default_transformer("text")
('TopicFeatures', TextFeatures())
"""

from typing import Any

from linkspread.features.networks import NetworkFeatures
from linkspread.features.pictures import PictureFeatures
from linkspread.features.sentences import SentenceFeatures
from linkspread.features.states import StoredTransformer
from linkspread.features.tags import TagFeatures
from linkspread.features.topics import TopicFeatures
from linkspread.features.visual_words import VisualWords
from linkspread.features.words import TextFeatures
from linkspread.ground.checks import check_name

TRANSFORMERS: dict[str, type[StoredTransformer]] = {
    "histograms": PictureFeatures,
    "network": NetworkFeatures,
    "sentences": SentenceFeatures,
    "sift": VisualWords,
    "tags": TagFeatures,
    "topics": TopicFeatures,
    "words": TextFeatures,
}
# With the same seed for everybody: features made twice must not differ.
_DEFAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "picture": ("histograms", {"random_state": 0}),
    "text": ("words", {}),
}


def default_transformer(kind: str) -> Any:
    """Return the transformer to begin with, which needs no trained encoder.

    Parameters
    ----------
    kind : {"text", "picture"}

    Returns
    -------
    transformer : TextFeatures or PictureFeatures
        Not fitted.
    """
    name, params = _DEFAULTS[check_name(kind, _DEFAULTS, name="kind")]
    return TRANSFORMERS[name](**params)
