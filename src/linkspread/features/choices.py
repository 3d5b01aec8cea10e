"""The transformers by their short names."""

from typing import Any

from linkspread.features.encoders import NetworkFeatures, SentenceFeatures
from linkspread.features.histograms import PictureFeatures
from linkspread.features.texts import TagFeatures, TextFeatures, TopicFeatures
from linkspread.features.transformers import StoredTransformer
from linkspread.features.visual_words import VisualWords
from linkspread.ground.checks import check_name

# The first of each kind is the default: it needs no trained encoder.
TRANSFORMERS: dict[str, type[StoredTransformer]] = {
    "histograms": PictureFeatures,
    "sift": VisualWords,
    "network": NetworkFeatures,
    "words": TextFeatures,
    "topics": TopicFeatures,
    "tags": TagFeatures,
    "sentences": SentenceFeatures,
}


def default_transformer(kind: str, name: str | None = None) -> Any:
    """Return a transformer of a kind, not fitted, with the seed 0, by its short name.

    None takes the default, which needs no trained encoder.
    """
    kinds = {own.kind for own in TRANSFORMERS.values()}
    check_name(kind, kinds, name="kind")
    names = [name for name, own in TRANSFORMERS.items() if own.kind == kind]
    chosen = TRANSFORMERS[check_name(name or names[0], names, name=kind)]()
    if "random_state" in chosen.get_params():
        chosen.set_params(random_state=0)
    return chosen
