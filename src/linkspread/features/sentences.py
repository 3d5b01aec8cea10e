"""Texts as means of word vectors that were trained to bring like sentences together.

Vectors and tokens are those of WordLlama, which come with its package, so that nothing
is downloaded when it is used::

    pip install 'linkspread[sentences]'
"""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.features.codebooks import check_at_least
from linkspread.features.counts import (
    check_text,
    check_texts,
    count_tokens,
    row_shares,
)
from linkspread.features.states import TEXT, StoredTransformer
from linkspread.features.weights import check_digest, file_digest, package_file
from linkspread.ground.errors import require

_PURPOSE = "SentenceFeatures"
_WEIGHTS = ("weights", "l2_supercat_256.safetensors")
_TOKENS = ("tokenizers", "l2_supercat_tokenizer_config.json")


class SentenceFeatures(StoredTransformer):
    """Describe texts by the mean of trained vectors of their tokens.

    Vectors of 256 numbers for 32,000 tokens, those of the package wordllama, trained so
    that sentences of like meaning lie near each other, mostly in English. Texts of
    other scripts are taken to pieces down to characters, or to their bytes. Nothing is
    learnt from the texts.

    Parameters
    ----------
    batch_size : int, default=1024
        Number of texts whose tokens are held at a time; it changes no result.

    Attributes
    ----------
    weights_ : str
        What tells these vectors and tokens from others: the SHA-256 of their files.
    metric_ : str
        "cosine", the distance that suits these features.

    Examples
    --------
    >>> from linkspread.features import SentenceFeatures
    >>> features = SentenceFeatures().fit([])  # doctest: +SKIP
    >>> features.transform(["A boat on a lake", None]).shape  # doctest: +SKIP
    (2, 256)
    """

    _metric = "cosine"
    _stored: ClassVar[dict[str, Any]] = {"weights_": TEXT}

    def __init__(self, *, batch_size: int = 1024) -> None:
        self.batch_size = batch_size

    def fit(self, texts: Iterable[Any], y: Any = None) -> Self:
        """Look whether the vectors are there; nothing is learnt from texts.

        Parameters
        ----------
        texts : iterable of str
            Not read.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : SentenceFeatures
        """
        check_at_least("batch_size", self.batch_size, 1)
        _vectors(), _tokenizer()
        self.weights_ = _digest()
        self._complete()
        return self

    def transform(self, texts: Iterable[Any]) -> np.ndarray:
        """Return the mean vectors of texts.

        Parameters
        ----------
        texts : iterable of str
            Read once, some at a time. None and NaN are empty texts.

        Returns
        -------
        X : ndarray of float32 of shape (n_texts, 256)
            An empty text has a row of zeros.
        """
        check_is_fitted(self)
        check_digest(_digest(), self.weights_, purpose=_PURPOSE)
        check_at_least("batch_size", self.batch_size, 1)
        parts = _parts(texts, self.batch_size)
        return np.concatenate([_mean_vectors(*part) for part in parts])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _parts(texts: Any, size: int) -> Iterator[tuple[list[Any], int]]:
    """Yield some texts at a time, and the position of the first of them."""
    stream = check_texts(texts)
    start, part = 0, list(islice(stream, size))
    # Also an empty one, which is refused where its tokens are counted.
    yield part, start
    while part := list(islice(stream, size)):
        start += size
        yield part, start


def _mean_vectors(texts: list[Any], start: int) -> np.ndarray:
    """Return the mean vectors of texts, the first of which has position ``start``."""
    tokens, vectors = _tokenizer(), _vectors()

    def split(text: Any, position: int) -> list[str]:
        # Half of a pair of surrogates is no character, and the tokenizer refuses it.
        text = check_text(text, start + position).encode("utf-8", "replace").decode()
        return tokens.encode(text, add_special_tokens=False).tokens

    # As a product with counts, for a long text has more tokens than memory vectors.
    counts = count_tokens(texts, split, _places())[0]
    return row_shares(counts).astype(np.float32) @ vectors


@cache
def _vectors() -> np.ndarray:
    """Return the vectors of the tokens, read once."""
    reader = require("safetensors.numpy", extra="sentences", purpose=_PURPOSE)
    return reader.load_file(_file(_WEIGHTS))["embedding.weight"].astype(np.float32)


@cache
def _tokenizer() -> Any:
    """Return what splits texts into tokens, read once."""
    package = require("tokenizers", extra="sentences", purpose=_PURPOSE)
    return package.Tokenizer.from_file(str(_file(_TOKENS)))


@cache
def _places() -> dict[str, int]:
    """Return the places of the tokens in the table of vectors."""
    n_vectors = len(_vectors())
    places = _tokenizer().get_vocab()
    return {token: place for token, place in places.items() if place < n_vectors}


def _digest() -> str:
    """Return what tells vectors and tokens from those of other versions."""
    return file_digest(_file(_WEIGHTS), _file(_TOKENS))


def _file(parts: tuple[str, ...]) -> Any:
    """Return a file of the package's own folder.

    The package itself is not imported: it would set up logging for the whole program.
    """
    return package_file("wordllama", *parts, extra="sentences", purpose=_PURPOSE)
