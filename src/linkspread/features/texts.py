"""Texts and tags as counts of tokens, and features made from the counts.

An iterable of texts is read once, and only the counts of tokens are kept.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, ClassVar, Self

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from linkspread.features.tokens import tag_name, tokenize
from linkspread.features.transformers import COUNT, NAMES, StoredTransformer, table
from linkspread.ground.checks import check_count, check_positive
from linkspread.ground.errors import LinkspreadError, ModelError

# From this many texts on, tokens of a single text are left out by default: there are
# very many of them, and none makes two texts similar.
_MANY_TEXTS = 1000
# Iterations of topics, and most texts for which an iteration is over all at once.
_N_ITERATIONS = 30
_MANY_AT_ONCE = 10_000
# Tokens in the name of a topic.
_N_NAMED = 3
# Separators of tags of several words; without any of them, spaces separate tags.
_SEPARATORS = re.compile(r"[,;|\n\t，、；،]")
_DEFAULT = "Leave it out for the default."


class TextTransformer(StoredTransformer):
    """A transformer of texts."""

    kind = "text"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class CountedTexts(TextTransformer):
    """Count the tokens of texts and turn the counts into features.

    A subclass defines how counts become features (`_weigh`) and what else is learnt
    (`_learn`).
    """

    _stored: ClassVar[dict[str, Any]] = {"vocabulary_": NAMES, "n_empty_": COUNT}
    # Parameters that are counts; the last one is how many tokens are kept.
    _counts: ClassVar[tuple[str, ...]] = ("min_df", "max_features")
    min_df: int | None
    max_df: float = 1.0

    def fit(self, texts: Iterable[Any], y: Any = None) -> Self:
        """Learn the vocabulary of the texts."""
        self._learn_from(texts)
        return self

    def fit_transform(self, texts: Iterable[Any], y: Any = None) -> Any:
        """Learn the vocabulary of the texts and return their features, in one pass."""
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
        """Learn from texts, and return their counts."""
        for name in self._counts:
            value = getattr(self, name)
            if value is not None or name not in ("min_df", "max_features"):
                check_count(value, name=name, remedy=_DEFAULT)
        remedy = "Give a part of the texts, such as 0.5."
        if check_positive(self.max_df, name="max_df", remedy=remedy) > 1:
            raise LinkspreadError(
                f"`max_df` must be at most 1, got {self.max_df!r}. {remedy}"
            )
        counts, self.vocabulary_ = self._choose(*count_tokens(texts, self._split))
        self.n_empty_ = int((np.diff(counts.indptr) == 0).sum())
        self._learn(counts)
        self._complete()
        return counts

    def _choose(
        self, counts: sparse.csr_array, tokens: list[str]
    ) -> tuple[sparse.csr_array, np.ndarray]:
        """Return the columns of tokens neither too rare nor too common, and these."""
        n_texts = counts.shape[0]
        least = self.min_df or (2 if n_texts >= _MANY_TEXTS else 1)
        n_having = np.bincount(counts.indices, minlength=len(tokens))
        kept = np.flatnonzero((n_having >= least) & (n_having <= self.max_df * n_texts))
        if not tokens:
            raise LinkspreadError(
                f"`texts` must have at least one token, got {n_texts:,} texts without "
                "any. Check that the right column was given."
            )
        if not len(kept):
            most = f" and in at most {self.max_df:.0%} of them"
            parts = (most, ", or raise `max_df`") if self.max_df < 1 else ("", "")
            raise LinkspreadError(
                f"`texts` must share tokens, got {len(tokens):,} tokens, of which none "
                f"is in at least {least:,} of the {n_texts:,} texts{parts[0]}. Lower "
                f"`min_df`{parts[1]}."
            )
        # Most frequent first, equally frequent ones by name.
        best = sorted(kept, key=lambda place: (-n_having[place], tokens[place]))
        best = best[: getattr(self, self._counts[-1])]
        columns = sorted(best, key=tokens.__getitem__)
        names = np.array([tokens[place] for place in columns], dtype=object)
        return counts[:, columns], names

    def _learn(self, counts: sparse.csr_array) -> None:
        """Learn more than the vocabulary; nothing by default."""

    def _weigh(self, counts: sparse.csr_array) -> Any:
        """Return features of counts."""
        raise NotImplementedError

    def _split(self, text: Any, position: int) -> list[str]:
        """Return the tokens of one text."""
        return tokenize(check_text(text, position))


class TextFeatures(CountedTexts):
    """Describe texts by their words, with larger weights for rare ones (TF-IDF).

    The entry of token w in a text is ``(1 + log tf) * (1 + log((1 + n) / (1 + df)))``,
    where tf is how often the text has w, and df how many of the n texts do; then rows
    get unit norm. This is scikit-learn's `TfidfVectorizer` with ``sublinear_tf=True``
    over the tokens of `tokenize`, so it works for any script.

    Parameters
    ----------
    min_df : int, default=None
        Number of texts in which a token must occur. None means 1, or 2 from 1,000
        texts on.
    max_features : int, default=None
        Keep the tokens that occur in most texts. None keeps all.

    Attributes
    ----------
    vocabulary_ : ndarray of str of shape (n_features,)
        The tokens, sorted.
    idf_ : ndarray of shape (n_features,)
        Weights of the tokens.

    Examples
    --------
    >>> from linkspread.features import TextFeatures
    >>> features = TextFeatures().fit(["one fish", "two fish", None])
    >>> features.get_feature_names_out().tolist(), features.n_empty_
    (['fish', 'one', 'two'], 1)
    """

    _metric = "cosine"
    _stored: ClassVar[dict[str, Any]] = {
        **CountedTexts._stored,
        "idf_": table(np.float64, 1),
    }

    def __init__(
        self, *, min_df: int | None = None, max_features: int | None = None
    ) -> None:
        self.min_df = min_df
        self.max_features = max_features

    def _learn(self, counts: sparse.csr_array) -> None:
        """Set the weights of the tokens."""
        n_texts, n_tokens = counts.shape
        n_having = np.bincount(counts.indices, minlength=n_tokens)
        self.idf_ = 1 + np.log((1 + n_texts) / (1 + n_having))

    def _complete(self) -> None:
        """Set the metric, once the shape of the weights is checked."""
        super()._complete()
        self._check_shape("idf_", len(self.vocabulary_))

    def _weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Return weighted counts as rows of unit norm."""
        weighted = counts.astype(np.float64)
        weighted.data = (1 + np.log(weighted.data)) * self.idf_[weighted.indices]
        return normalize(weighted, copy=False)


class TopicFeatures(CountedTexts):
    """Describe texts by the shares of topics in them.

    Topics are learnt by scikit-learn's `LatentDirichletAllocation`; ten topics are the
    text features of [Lu2015]. A text without any known token has a row of zeros.

    Parameters
    ----------
    n_topics : int, default=10
    min_df : int, default=None
        Number of texts in which a token must occur. None means 1, or 2 from 1,000
        texts on.
    max_df : float, default=0.5
        Largest share of texts in which a token may occur: more frequent ones, such as
        "the", are of no topic.
    max_features : int or None, default=20000
        Keep the tokens that occur in most texts. None keeps all.
    random_state : int, RandomState instance or None, default=None
        Seed of the topics.

    Attributes
    ----------
    vocabulary_ : ndarray of str of shape (n_tokens,)
        The tokens, sorted.
    topics_ : ndarray of shape (n_topics, n_tokens)
        Share of each token in each topic.

    Examples
    --------
    >>> from linkspread.features import TopicFeatures
    >>> features = TopicFeatures(1, max_df=1.0, random_state=0).fit(["b b b a", "b a"])
    >>> features.get_feature_names_out().tolist()
    ['topic 0: b, a']
    """

    _metric = "hellinger"
    _counts = ("n_topics", "min_df", "max_features")
    # Weights of tokens in topics, and their expectations as scikit-learn computes them.
    _stored: ClassVar[dict[str, Any]] = {
        **CountedTexts._stored,
        "_weights": table(np.float64, 2),
        "_expected": table(np.float64, 2),
    }

    def __init__(
        self,
        n_topics: int = 10,
        *,
        min_df: int | None = None,
        max_df: float = 0.5,
        max_features: int | None = 20000,
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
        """
        check_is_fitted(self)
        best = np.argsort(-self.topics_, axis=1, kind="stable")[:, :_N_NAMED]
        named = [", ".join(self.vocabulary_[places]) for places in best]
        return np.array([f"topic {i}: {n}" for i, n in enumerate(named)], dtype=object)

    def _learn(self, counts: sparse.csr_array) -> None:
        """Find the topics."""
        lda = LatentDirichletAllocation(
            self.n_topics,
            learning_method="online" if counts.shape[0] > _MANY_AT_ONCE else "batch",
            batch_size=1024,
            max_iter=_N_ITERATIONS,
            random_state=self.random_state,
        ).fit(counts)
        self._weights, self._expected = lda.components_, lda.exp_dirichlet_component_

    def _complete(self) -> None:
        """Set the topics and the metric, once the weights are checked."""
        super()._complete()
        for name in ("_weights", "_expected"):
            self._check_shape(name, len(self._weights), len(self.vocabulary_))
        if self._weights.min() <= 0 or self._expected.min() < 0:
            raise ModelError(
                "weights of a stored TopicFeatures must be positive, got others. Make "
                "the features again."
            )
        self.topics_ = self._weights / self._weights.sum(axis=1, keepdims=True)

    def _weigh(self, counts: sparse.csr_array) -> np.ndarray:
        """Return the shares of the topics."""
        lda = LatentDirichletAllocation(
            self.n_topics, batch_size=1024, random_state=self.random_state
        )
        # All fitted attributes that its `transform` reads.
        lda.components_, lda.exp_dirichlet_component_ = self._weights, self._expected
        lda.n_features_in_ = self._weights.shape[1]
        lda.doc_topic_prior_ = 1 / len(self._weights)
        shares = lda.transform(counts)
        shares[np.diff(counts.indptr) == 0] = 0
        return shares


class TagFeatures(CountedTexts):
    """Describe items by the shares of frequent tags among their tags.

    The tags of an item are a list of strings, or one string that separates them by
    commas, semicolons, bars, tabs or line breaks, or, where it has none, by spaces.
    Case, punctuation and Unicode's variants of a character make no difference: "New
    York", "new-york" and "#NEW_YORK" are one tag. Tags are not split further.

    Parameters
    ----------
    n_tags : int, default=1000
        Keep the tags of most items.
    min_df : int, default=None
        Number of items that must have a tag. None means 1, or 2 from 1,000 items on.

    Attributes
    ----------
    vocabulary_ : ndarray of str of shape (n_features,)
        The tags that were kept, sorted.

    Examples
    --------
    >>> from linkspread.features import TagFeatures
    >>> TagFeatures().fit_transform(["sea sky", ["Sea"], []]).toarray().tolist()
    [[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]]
    """

    _metric = "hellinger"
    _counts = ("min_df", "n_tags")

    def __init__(self, n_tags: int = 1000, *, min_df: int | None = None) -> None:
        self.n_tags = n_tags
        self.min_df = min_df

    def _weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Return the shares of the tags."""
        return row_shares(counts)

    def _split(self, text: Any, position: int) -> list[str]:
        """Return the names of the tags of one item."""
        if isinstance(text, str):
            parts = _SEPARATORS.split(text)
            parts = parts if len(parts) > 1 else text.split()
        elif isinstance(text, Iterable) and not isinstance(text, bytes | Mapping):
            parts = [part for part in text if not _is_missing(part)]
        else:
            parts = [text]
        wrong = next((part for part in parts if not isinstance(part, str)), None)
        if wrong is not None:
            raise LinkspreadError(
                f"tags of item {position} must be strings, got {type(wrong).__name__}. "
                "Give a list of strings for each item, or one string with commas; "
                "decode bytes first."
            )
        return [name for name in map(tag_name, parts) if name]


def check_text(text: Any, position: int) -> str:
    """Return a text; refuse anything but a string."""
    if isinstance(text, str):
        return text
    raise LinkspreadError(
        f"text {position} must be a string, got {type(text).__name__}. Decode bytes "
        "by `text.decode()`, and give None where there is no text."
    )


def count_tokens(
    texts: Any,
    split: Callable[[Any, int], list[str]],
    places: dict[str, int] | None = None,
) -> tuple[sparse.csr_array, list[str]]:
    """Return how often each text has each token, and the tokens.

    ``split`` maps a text and its position to tokens. ``places`` has the columns of
    known tokens; if None, all tokens get columns in the order of first occurrence.
    """
    is_one = isinstance(texts, str | bytes | bytearray | Mapping | Set)
    is_frame = nw.dependencies.is_into_dataframe(texts)
    if is_one or is_frame or not isinstance(texts, Iterable):
        raise LinkspreadError(
            f"`texts` must be a sequence of texts, got {type(texts).__name__}. "
            "Give a list, a column of a DataFrame or any other iterable of strings."
        )
    known: dict[str, int] = {} if places is None else places
    columns, counts, ends = array("q"), array("q"), array("q", [0])
    for position, text in enumerate(texts):
        # Columns of pyarrow yield its own scalars.
        text = text.as_py() if hasattr(text, "as_py") else text
        tokens = [] if _is_missing(text) else split(text, position)
        for token, count in Counter(tokens).items():
            if places is None:
                known.setdefault(token, len(known))
            if token in known:
                columns.append(known[token])
                counts.append(count)
        ends.append(len(columns))
    if len(ends) == 1:
        raise LinkspreadError(
            "`texts` must hold at least one text, got none. A generator can be read "
            "only once."
        )
    # SciPy keeps the type of indices; four bytes are usually enough.
    kind = np.int32 if len(columns) < np.iinfo(np.int32).max else np.int64
    parts = [np.array(part, dtype=kind) for part in (counts, columns, ends)]
    found = sparse.csr_array(tuple(parts), shape=(len(ends) - 1, len(known)))
    found.sort_indices()
    return found, list(known)


def row_shares(counts: sparse.csr_array) -> sparse.csr_array:
    """Return each row divided by its sum; a zero row stays as it is."""
    sums = np.asarray(counts.sum(axis=1)).ravel()
    shares = counts.astype(np.float64)
    shares.data /= np.repeat(sums, np.diff(shares.indptr))
    return shares


def _is_missing(text: Any) -> bool:
    """Return whether there is no text: None, NaN, or NA of pandas."""
    is_nan = isinstance(text, float | np.floating) and bool(np.isnan(text))
    return text is None or is_nan or type(text).__name__ in ("NAType", "NaTType")
