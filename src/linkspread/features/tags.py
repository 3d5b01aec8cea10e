"""Tags as histograms over a vocabulary of the frequent ones.

>>> from linkspread.features import TagFeatures
>>> tags = [["New York", "night"], ["new-york", "#Night", "taxi"], "taxi, night"]
>>> features = TagFeatures(min_df=2).fit(tags)
>>> features.get_feature_names_out().tolist()
['new york', 'night', 'taxi']
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from scipy import sparse

from linkspread.features.counts import is_missing, row_shares
from linkspread.features.text_transformer import TextTransformer
from linkspread.features.tokens import tag_name
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkspreadError

# Where any of these stands in a string, tags may have several words.
_SEPARATORS = re.compile(r"[,;|\n\t，、；،]")


class TagFeatures(TextTransformer):
    """Describe items by the shares of the frequent tags among theirs.

    The tags of an item are a list of strings, or one string: then they are separated
    by commas, semicolons, bars, tabs or line breaks where it has any, else by spaces.
    Case, punctuation, and the ways of writing the same character make no difference, so
    that "New York", "new-york" and "#NEW_YORK" are one tag. Tags stay whole in every
    script.

    Parameters
    ----------
    n_tags : int, default=1000
        Keep this many tags, those that most items have.
    min_df : int, default=None
        Number of items that must have a tag. None means 1, and 2 from 1,000 items on.

    Attributes
    ----------
    vocabulary_ : ndarray of str of shape (n_features,)
        The tags that were kept, sorted.
    n_empty_ : int
        Number of fitted items without any of these tags; their rows are zero.
    metric_ : str
        "hellinger", the distance that suits these features.

    Examples
    --------
    >>> from linkspread.features import TagFeatures
    >>> TagFeatures().fit_transform(["sea sky", ["Sea"], []]).toarray().tolist()
    [[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]]
    """

    _metric = "hellinger"

    def __init__(self, n_tags: int = 1000, *, min_df: int | None = None) -> None:
        self.n_tags = n_tags
        self.min_df = min_df

    def _limits(self) -> dict[str, Any]:
        """Return the arguments of `choose_tokens`, checked."""
        remedy = "Leave it out for the default."
        n_tags = check_count(self.n_tags, name="n_tags", remedy=remedy)
        return {"min_df": self.min_df, "max_features": n_tags}

    def _weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Return the shares of the tags."""
        return row_shares(counts)

    def _split(self, text: Any, position: int) -> list[str]:
        """Return the names of the tags of one item."""
        if not isinstance(text, str):
            parts = _check_tags(text, position)
        else:
            parts = _SEPARATORS.split(text)
            parts = parts if len(parts) > 1 else text.split()
        names = [tag_name(part) for part in parts]
        return [name for name in names if name]


def _check_tags(tags: Any, position: int) -> list[str]:
    """Return the tags of an item that are no missing values, or name the item."""
    is_list = isinstance(tags, Iterable) and not isinstance(tags, bytes | Mapping)
    found = [tag for tag in tags if not is_missing(tag)] if is_list else [tags]
    wrong = next((tag for tag in found if not isinstance(tag, str)), None)
    if wrong is None:
        return found
    raise LinkspreadError(
        f"tags of item {position} must be strings, got {type(wrong).__name__}. Give a "
        "list of strings for each item, or one string with commas; decode bytes first."
    )
