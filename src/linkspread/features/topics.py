"""Texts as mixtures of topics, found by latent Dirichlet allocation.

>>> from linkspread.features import TopicFeatures
>>> texts = ["sun rain wind", "rain wind snow", "goal team ball", "team ball match"] * 5
>>> X = TopicFeatures(n_topics=2, random_state=0).fit_transform(texts)
>>> X.shape, X.sum(axis=1).round(6).tolist()[:2]
((20, 2), [1.0, 1.0])
"""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.utils.validation import check_is_fitted

from linkspread.features.states import table
from linkspread.features.text_transformer import TextTransformer
from linkspread.ground.checks import check_count, check_positive
from linkspread.ground.errors import LinkspreadError, ModelError

# Rounds over all texts; up to so many texts each of them looks at all before a step.
_N_ROUNDS = 30
_MANY = 10_000
# Words in the name of a topic.
_N_NAMED = 3


class TopicFeatures(TextTransformer):
    """Describe texts by the shares of topics in them.

    Topics are learnt from the texts by scikit-learn's `LatentDirichletAllocation`; ten
    of them are the text features of [Lu2015]. A text without any known token has a
    row of zeros instead of the same share of each topic.

    Parameters
    ----------
    n_topics : int, default=10
    min_df : int, default=None
        Number of texts in which a token must occur. None means 1, and 2 from 1,000
        texts on.
    max_df : float, default=0.5
        Part of the texts that may have a token: those that more of them have are of
        no topic, such as "the".
    max_features : int, default=20000
        Keep this many tokens, those that most texts have.
    random_state : int, RandomState instance or None, default=None
        Seed of the topics.

    Attributes
    ----------
    vocabulary_ : ndarray of str of shape (n_tokens,)
        The tokens, sorted.
    topics_ : ndarray of shape (n_topics, n_tokens)
        Share of each token in each topic.
    n_empty_ : int
        Number of fitted texts without any token of the vocabulary; their rows are zero.
    metric_ : str
        "hellinger", the distance that suits these features.

    Examples
    --------
    >>> from linkspread.features import TopicFeatures
    >>> features = TopicFeatures(1, max_df=1.0, random_state=0).fit(["b b b a", "b a"])
    >>> features.get_feature_names_out().tolist()
    ['topic 0: b, a']
    """

    _metric = "hellinger"
    # Weights of tokens in topics, and what scikit-learn makes of them.
    _stored: ClassVar[dict[str, Any]] = {
        **TextTransformer._stored,
        "_weights": table(np.float64, 2),
        "_expected": table(np.float64, 2),
    }

    def __init__(
        self,
        n_topics: int = 10,
        *,
        min_df: int | None = None,
        max_df: float = 0.5,
        max_features: int = 20000,
        random_state: Any = None,
    ) -> None:
        self.n_topics = n_topics
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.random_state = random_state

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the topics, each with its most frequent tokens.

        Parameters
        ----------
        input_features : object, default=None
            Ignored.

        Returns
        -------
        names : ndarray of str of shape (n_topics,)
        """
        check_is_fitted(self)
        best = np.argsort(-self.topics_, axis=1, kind="stable")[:, :_N_NAMED]
        named = [", ".join(self.vocabulary_[places]) for places in best]
        return np.array([f"topic {i}: {n}" for i, n in enumerate(named)], dtype=object)

    def _limits(self) -> dict[str, Any]:
        """Return the arguments of `choose_tokens`, checked."""
        remedy = "Leave it out for the default."
        for name in ("n_topics", "max_features"):
            check_count(getattr(self, name), name=name, remedy=remedy)
        remedy = "Give a part of the texts, such as 0.5."
        if check_positive(self.max_df, name="max_df", remedy=remedy) > 1:
            raise LinkspreadError(
                f"`max_df` must be at most 1, got {self.max_df!r}. {remedy}"
            )
        names = ("min_df", "max_df", "max_features")
        return {name: getattr(self, name) for name in names}

    def _learn(self, counts: sparse.csr_array) -> None:
        """Find the topics."""
        lda = self._new_lda(n_texts=counts.shape[0]).fit(counts)
        self._weights, self._expected = lda.components_, lda.exp_dirichlet_component_
        self._complete()

    def _complete(self) -> None:
        """Set the topics and the metric, after a look at the weights."""
        super()._complete()
        for name in ("_weights", "_expected"):
            self._check_shape(name, len(self._weights), len(self.vocabulary_))
        if self._weights.min() <= 0 or self._expected.min() < 0:
            raise ModelError(
                "weights of a stored TopicFeatures must be positive, got some that are "
                "not. Write the features again."
            )
        self.topics_ = self._weights / self._weights.sum(axis=1, keepdims=True)

    def _weigh(self, counts: sparse.csr_array) -> np.ndarray:
        """Return the shares of the topics."""
        lda = self._new_lda()
        # All of its fitted attributes that its `transform` reads.
        lda.components_, lda.exp_dirichlet_component_ = self._weights, self._expected
        lda.n_features_in_ = self._weights.shape[1]
        lda.doc_topic_prior_ = 1 / len(self._weights)
        shares = lda.transform(counts)
        shares[np.diff(counts.indptr) == 0] = 0
        return shares

    def _new_lda(self, n_texts: int = 0) -> LatentDirichletAllocation:
        """Return scikit-learn's class, not fitted."""
        return LatentDirichletAllocation(
            self.n_topics,
            learning_method="online" if n_texts > _MANY else "batch",
            batch_size=1024,
            max_iter=_N_ROUNDS,
            random_state=self.random_state,
        )
