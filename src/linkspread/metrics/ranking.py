"""Rank the items of every query, block by block, and measure each ranking."""

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkspread.ground.errors import LinkspreadError
from linkspread.metrics.relevance import check_labels, relevant

# A block of float64 scores takes 32 MB, and its ranking about three times as much.
ENTRIES_PER_BLOCK = 2**22


class RowScores(Protocol):
    """Scores that are computed when their rows are asked for."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of queries and number of items."""

    def rows(self, index: Any, /) -> NDArray[Any]:
        """Return the scores of the queries in ``index``."""


Scores = ArrayLike | RowScores
Measure = Callable[[NDArray[np.bool_]], NDArray[np.float64]]


def measure_queries(
    measure: Measure, scores: Scores, query_labels: Any, item_labels: Any
) -> NDArray[np.float64]:
    """Apply a measure to the ranking of every query, in blocks of queries."""
    blocks = []
    for block, same in score_blocks(scores, query_labels, item_labels):
        ranked = np.take_along_axis(same, _stable_order(-block), axis=1)
        blocks.append(_undefined_where_none(measure(ranked), ranked))
    return np.concatenate(blocks)


def score_blocks(
    scores: Scores, query_labels: Any, item_labels: Any
) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_]]]:
    """Yield the scores of a few queries at a time, and which items are relevant."""
    query_labels, item_labels = check_labels(query_labels, item_labels)
    rows, shape = _row_reader(scores)
    _check_shape(shape, n_queries=query_labels.shape[0], n_items=item_labels.shape[0])
    for index in _row_blocks(*shape):
        block = _check_numbers(rows(index), index)
        yield block, relevant(query_labels[index], item_labels)


def mean_over_queries(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average over the queries that have a relevant item."""
    counted = ~np.isnan(values).any(axis=tuple(range(1, values.ndim)))
    if not counted.any():
        raise LinkspreadError(
            "At least one query must have a relevant item, got none among "
            f"{len(values)} queries. Check that queries and items use the same class "
            "numbers and that not all are unknown (-1)."
        )
    return values[counted].mean(axis=0)


def check_cutoff(k: Any) -> None:
    """Refuse a number of ranks that is not a positive integer."""
    if not isinstance(k, Integral) or k < 1:
        raise LinkspreadError(
            f"`k` must be a positive integer, got {k!r}. Pass the number of ranks "
            "to look at."
        )


def _row_reader(
    scores: Any,
) -> tuple[Callable[[NDArray[np.intp]], NDArray[Any]], tuple[int, ...]]:
    """Return the function that reads rows of the scores, and their shape."""
    if callable(getattr(scores, "rows", None)):
        return scores.rows, tuple(scores.shape)
    table = np.asarray(scores)
    if table.ndim != 2 or table.dtype.kind not in "iubf":
        raise LinkspreadError(
            "`scores` must be a table of numbers of shape (n_queries, n_items), got "
            f"{type(scores).__name__} of shape {getattr(scores, 'shape', table.shape)}."
            " Pass a dense array, or an object with `shape` and `rows(index)`."
        )
    return table.__getitem__, table.shape


def _check_shape(shape: tuple[int, ...], n_queries: int, n_items: int) -> None:
    """Refuse scores that do not fit the labels."""
    if shape != (n_queries, n_items):
        raise LinkspreadError(
            "`scores` must have one row per query and one column per item, got shape "
            f"{shape} for {n_queries} query labels and {n_items} item labels. "
            "Transpose the scores, or pass the labels of the other view."
        )


def _row_blocks(n_queries: int, n_items: int) -> Iterator[NDArray[np.intp]]:
    """Yield the positions of the queries in blocks, at least one, maybe empty."""
    size = max(1, ENTRIES_PER_BLOCK // max(1, n_items))
    for start in range(0, max(1, n_queries), size):
        yield np.arange(start, min(start + size, n_queries))


def _check_numbers(block: NDArray[Any], index: NDArray[np.intp]) -> NDArray[Any]:
    """Return scores as floats, none of which may be NaN."""
    block = np.asarray(block)
    if block.dtype.kind != "f":
        # Negation overflows for the smallest integer and for unsigned ones.
        block = block.astype(np.float64)
    bad = np.isnan(block)
    if bad.any():
        row, item = np.argwhere(bad)[0]
        raise LinkspreadError(
            f"`scores` must not contain NaN, got NaN for query {index[row]} and item "
            f"{item}. Replace it, for instance by -inf to rank the item last."
        )
    return block


def _stable_order(block: NDArray[Any]) -> NDArray[np.intp]:
    """Sort each row, equal values by their position, as fast as rows allow."""
    # The stable sort takes about three times as long, and only rows with ties need it.
    order = np.argsort(block, axis=1)
    values = np.take_along_axis(block, order, axis=1)
    tied = (values[:, 1:] == values[:, :-1]).any(axis=1)
    order[tied] = np.argsort(block[tied], axis=1, kind="stable")
    return order


def _undefined_where_none(
    values: NDArray[np.float64], ranked: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Overwrite the values of queries without a relevant item by NaN."""
    values[~ranked.any(axis=1)] = np.nan
    return values
