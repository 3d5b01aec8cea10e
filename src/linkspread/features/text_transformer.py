"""What the transformers of texts have in common: one pass, counts, then weights."""

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from linkspread.features.counts import check_text, choose_tokens, count_tokens
from linkspread.features.states import COUNT, NAMES, StoredTransformer
from linkspread.features.tokens import tokenize


class TextTransformer(StoredTransformer):
    """Count the tokens of texts and turn the counts into features.

    A class built on it says how counts become features in `_weigh`, what else it learns
    in `_learn`, and which of the tokens it keeps in `_limits`.
    """

    _stored: ClassVar[dict[str, Any]] = {"vocabulary_": NAMES, "n_empty_": COUNT}

    def fit(self, texts: Iterable[Any], y: Any = None) -> Self:
        """Learn the vocabulary of the texts."""
        self._learn_from(texts)
        return self

    def fit_transform(self, texts: Iterable[Any], y: Any = None) -> Any:
        """Learn the vocabulary of the texts and return their features.

        The texts are read once, as from a generator; what is held is the number of
        times that each token occurs in each of them.
        """
        return self._weigh(self._learn_from(texts))

    def transform(self, texts: Iterable[Any]) -> Any:
        """Return the features of texts."""
        check_is_fitted(self)
        places = {token: place for place, token in enumerate(self.vocabulary_)}
        return self._weigh(count_tokens(texts, self._split, places)[0])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features."""
        check_is_fitted(self)
        return self.vocabulary_.copy()

    def _learn_from(self, texts: Iterable[Any]) -> sparse.csr_array:
        """Set what is learnt and return the counts of the texts."""
        limits = self._limits()
        counts, tokens = count_tokens(texts, self._split)
        counts, self.vocabulary_ = choose_tokens(counts, tokens, **limits)
        self.n_empty_ = int((np.diff(counts.indptr) == 0).sum())
        self.metric_ = self._metric
        self._learn(counts)
        return counts

    def _limits(self) -> dict[str, Any]:
        """Return the arguments of `choose_tokens`, checked."""
        raise NotImplementedError

    def _learn(self, counts: sparse.csr_array) -> None:
        """Set what is learnt beyond the vocabulary."""

    def _weigh(self, counts: sparse.csr_array) -> Any:
        """Return features of counts."""
        raise NotImplementedError

    def _split(self, text: Any, position: int) -> list[str]:
        """Return the tokens of one text."""
        return tokenize(check_text(text, position))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
