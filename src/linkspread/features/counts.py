"""Texts from any iterable, counted token by token.

A stream of texts is read once, and nothing but the counts of its tokens is kept.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkspreadError

# From this many texts on, a token that only one of them has is left out by default:
# there are very many of these, and none makes two texts alike.
_MANY = 1000


def check_texts(texts: Any) -> Iterator[Any]:
    """Return an iterator over texts, after a look at what they are given in."""
    # A set would give its texts in an order of its own.
    is_one = isinstance(texts, str | bytes | bytearray | Mapping | Set)
    is_frame = nw.dependencies.is_into_dataframe(texts)
    if is_one or is_frame or not isinstance(texts, Iterable):
        raise LinkspreadError(
            f"`texts` must be several texts in a row, got {type(texts).__name__}. "
            "Give a list, a column of a DataFrame or any other iterable of strings."
        )
    for text in texts:
        # pyarrow's columns yield scalars of its own.
        yield text.as_py() if hasattr(text, "as_py") else text


def check_text(text: Any, position: int) -> str:
    """Return a text that is a string, or name the one that is not."""
    if isinstance(text, str):
        return text
    remedy = (
        "Decode it first, for instance by `text.decode('utf-8')`"
        if isinstance(text, bytes | bytearray)
        else "Turn it into a string, or into None where there is no text"
    )
    raise LinkspreadError(
        f"text {position} must be a string, got {type(text).__name__}. {remedy}."
    )


def is_missing(text: Any) -> bool:
    """Tell whether there is no text: None, NaN, or NA of pandas."""
    is_nan = isinstance(text, float | np.floating) and bool(np.isnan(text))
    return text is None or is_nan or type(text).__name__ in ("NAType", "NaTType")


def count_tokens(
    texts: Any,
    split: Callable[[Any, int], list[str]],
    places: dict[str, int] | None = None,
) -> tuple[sparse.csr_array, list[str]]:
    """Return how often each text has each token, and the tokens.

    ``split`` maps a text and its position to tokens. Where ``places`` gives the columns
    of tokens, others are left out; else columns are in the order of first occurrence.
    """
    known: dict[str, int] = {} if places is None else places
    columns, counts, ends = array("q"), array("q"), array("q", [0])
    for position, text in enumerate(check_texts(texts)):
        tokens = [] if is_missing(text) else split(text, position)
        for token, count in Counter(tokens).items():
            if places is None:
                known.setdefault(token, len(known))
            if token in known:
                columns.append(known[token])
                counts.append(count)
        ends.append(len(columns))
    if len(ends) == 1:
        raise LinkspreadError(
            "`texts` must hold at least one text, got none. If they come from a "
            "generator, it may have been read before."
        )
    # SciPy keeps the type of indices, and four bytes are enough for most.
    kind = np.int32 if len(columns) < np.iinfo(np.int32).max else np.int64
    parts = [np.array(part, dtype=kind) for part in (counts, columns, ends)]
    table = sparse.csr_array(tuple(parts), shape=(len(ends) - 1, len(known)))
    table.sort_indices()
    return table, list(known)


def choose_tokens(
    counts: sparse.csr_array,
    tokens: list[str],
    *,
    min_df: int | None,
    max_df: float = 1.0,
    max_features: int | None = None,
) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the columns of tokens neither too rare nor too common, and their names."""
    n_texts = counts.shape[0]
    least = _least_texts(min_df, n_texts)
    n_having = np.bincount(counts.indices, minlength=len(tokens))
    kept = np.flatnonzero((n_having >= least) & (n_having <= max_df * n_texts))
    if not len(kept):
        raise LinkspreadError(_no_tokens(len(tokens), n_texts, least, max_df))
    # Most frequent first; equally frequent ones by name, whatever came first.
    best = sorted(kept, key=lambda place: (-n_having[place], tokens[place]))
    columns = sorted(best[:max_features], key=tokens.__getitem__)
    names = np.array([tokens[place] for place in columns], dtype=object)
    return counts[:, columns], names


def row_shares(counts: sparse.csr_array) -> sparse.csr_array:
    """Return each row divided by its sum; a zero row stays as it is."""
    sums = np.asarray(counts.sum(axis=1)).ravel()
    shares = counts.astype(np.float64)
    shares.data /= np.repeat(sums, np.diff(shares.indptr))
    return shares


def _least_texts(min_df: int | None, n_texts: int) -> int:
    """Return in how many texts a token must occur."""
    if min_df is None:
        return 2 if n_texts >= _MANY else 1
    return check_count(min_df, name="min_df", remedy="Leave it out for the default.")


def _no_tokens(n_tokens: int, n_texts: int, least: int, max_df: float) -> str:
    """Return the sentence about a vocabulary that came out empty."""
    if not n_tokens:
        return (
            f"`texts` must have at least one token among them, got {n_texts:,} without "
            "any. Look whether the right column was given."
        )
    most = "" if max_df == 1 else f" and in at most {max_df:.0%} of them"
    remedy = "" if max_df == 1 else ", or raise `max_df`"
    return (
        f"`texts` must share tokens: of {n_tokens:,} none occurs in at least {least:,} "
        f"of the {n_texts:,} texts{most}. Lower `min_df`{remedy}."
    )
