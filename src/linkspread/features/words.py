"""Texts as weighted words: TF-IDF for any script.

>>> from linkspread.features import TextFeatures
>>> X = TextFeatures().fit_transform(["a red car", "a blue car", "好天气", "天气不好"])
>>> (X @ X.T).toarray().round(1).tolist()[2]
[0.0, 0.0, 1.0, 0.6]
"""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from linkspread.features.states import table
from linkspread.features.text_transformer import TextTransformer
from linkspread.ground.checks import check_count


class TextFeatures(TextTransformer):
    """Describe texts by their words, rare ones weighing more (TF-IDF).

    The entry of token w in a text is ``(1 + log tf) * (1 + log((1 + n) / (1 + df)))``,
    where tf is how often the text has w, and df how many of the n texts do; then rows
    are brought to length 1. These are the numbers of scikit-learn's `TfidfVectorizer`
    with ``sublinear_tf=True``, over the tokens of `tokenize`, so any script will do.

    Parameters
    ----------
    min_df : int, default=None
        Number of texts in which a token must occur. None means 1, and 2 from 1,000
        texts on.
    max_features : int, default=None
        Keep this many tokens, those that most texts have. None keeps all.

    Attributes
    ----------
    vocabulary_ : ndarray of str of shape (n_features,)
        The tokens, sorted.
    idf_ : ndarray of shape (n_features,)
        Weights of the tokens.
    n_empty_ : int
        Number of fitted texts without any token of the vocabulary; their rows are zero.
    metric_ : str
        "cosine", the distance that suits these features.

    Examples
    --------
    >>> from linkspread.features import TextFeatures
    >>> features = TextFeatures().fit(["one fish", "two fish", None])
    >>> features.get_feature_names_out().tolist(), features.n_empty_
    (['fish', 'one', 'two'], 1)
    """

    _metric = "cosine"
    _stored: ClassVar[dict[str, Any]] = {
        **TextTransformer._stored,
        "idf_": table(np.float64, 1),
    }

    def __init__(
        self, *, min_df: int | None = None, max_features: int | None = None
    ) -> None:
        self.min_df = min_df
        self.max_features = max_features

    def _limits(self) -> dict[str, Any]:
        """Return the arguments of `choose_tokens`, checked."""
        if self.max_features is not None:
            remedy = "Leave it out to keep all tokens."
            check_count(self.max_features, name="max_features", remedy=remedy)
        return {"min_df": self.min_df, "max_features": self.max_features}

    def _learn(self, counts: sparse.csr_array) -> None:
        """Set the weights of the tokens."""
        n_texts, n_tokens = counts.shape
        n_having = np.bincount(counts.indices, minlength=n_tokens)
        self.idf_ = 1 + np.log((1 + n_texts) / (1 + n_having))

    def _complete(self) -> None:
        """Set the metric, after a look at the weights."""
        super()._complete()
        self._check_shape("idf_", len(self.vocabulary_))

    def _weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Return weighted counts as rows of length 1."""
        weighted = counts.astype(np.float64)
        weighted.data = (1 + np.log(weighted.data)) * self.idf_[weighted.indices]
        return normalize(weighted, copy=False)
