"""Between what the scores of one query lie, from tables that are kept in bytes.

A query reads every column of every target, so that its search takes as long as reading
them. In bytes they are a quarter: a row is ``codes * steps``, and its distance from
that is kept for each block of columns. By Cauchy-Schwarz the product with coefficients
a is off by ``sum_b |a_b| slack_b`` at most. Only targets whose upper bound reaches the
n-th lower bound can be among the best n: scored as always, they rank as all would.
"""

import threading
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.kernels import encode_rows, score_bounds, small_loops

__all__ = ["CodedTable", "bound_scores", "coded"]

Array = np.ndarray
# Of queries: (space, scale of targets, coefficients, constant), as learning has them.
Part = tuple[str, Array | None, Any, Array | None]

# Columns whose distances are one number. Fewer bound products better, where some
# columns count more than others, but are more to read: half as many leave a quarter
# fewer targets to score, and take up to a sixth longer.
WIDTH = 64
# Rows whose largest values are found at once.
TILE = 256
# Products of bytes in the time of one of `small_loops`: a thread of its own does those
# of 100,000 targets in 3 to 5 ms, and waits for none that others keep busy.
BYTES_AT_ONCE = 24
EPS = float(np.finfo(np.float32).eps)

# Codes of tables, by address, for as long as the tables live. Maps and priors are
# shared by pairs of views and by snapshots; they are replaced, never changed.
_CODED: "dict[int, tuple[weakref.ref[Array], CodedTable]]" = {}
_CODING = threading.Lock()


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table in bytes, ``codes * steps``, and how far each row is from that.

    Parameters
    ----------
    codes : ndarray of int8 of shape (n_rows, WIDTH * n_blocks)
    steps : ndarray of float32 of shape (WIDTH * n_blocks,)
    slack : ndarray of float32 of shape (n_rows, n_blocks)
        What products with coefficients of length 1 in one block are off by at most,
        with their rounding in single precision.
    """

    codes: Array
    steps: Array
    slack: Array

    @classmethod
    def of(cls, table: Array) -> "CodedTable":
        """Return the codes of a dense table."""
        table = np.asarray(table)
        n_rows, n_columns = table.shape
        n_blocks = -(-n_columns // WIDTH)
        steps = np.zeros(WIDTH * n_blocks, dtype=np.float32)
        own = steps[:n_columns]
        for start in range(0, n_rows, TILE):
            some = table[start : start + TILE]
            np.maximum(own, some.max(axis=0), out=own, casting="same_kind")
            np.maximum(own, -some.min(axis=0), out=own, casting="same_kind")
        own /= 127
        codes = np.zeros((n_rows, len(steps)), dtype=np.int8)
        slack = np.empty((n_rows, n_blocks), dtype=np.float32)
        # Half of it is the largest error of a sum of products, in any order; what is
        # compared with the bounds has one too.
        rounding = np.float32((n_columns + 16) * EPS)
        encode_rows(table, steps, WIDTH, rounding, codes, slack)
        return cls(codes, steps, slack)

    def add_bounds(
        self, parts: list[tuple[Array, np.float32, Array | None]], bounds: Array
    ) -> None:
        """Add the bounds of (coefficients, constant, scale) to the rows of `bounds`."""
        rows, constants, scales = zip(*parts, strict=True)
        A = np.zeros((len(rows), len(self.steps)), dtype=np.float32)
        for padded, own in zip(A, rows, strict=True):
            padded[: len(own)] = own
        norms = np.linalg.norm(A.reshape(len(A), -1, WIDTH).astype(np.float64), axis=2)
        blocks = np.array([_extent(own) for own in norms])
        given = [scale for scale in scales if scale is not None]
        places = iter(range(len(given)))
        scaled = [-1 if scale is None else next(places) for scale in scales]
        n_read = int(np.diff(blocks).sum()) * WIDTH * len(self.codes)
        with small_loops(n_read // BYTES_AT_ONCE):
            score_bounds(
                self.codes,
                self.slack,
                WIDTH,
                A * self.steps,
                norms.astype(np.float32),
                blocks,
                np.array([(own, _rounding(own)) for own in constants], np.float32),
                np.array(scaled),
                np.array(given, dtype=np.float32).reshape(len(given), bounds.shape[1]),
                bounds,
            )


def bound_scores(
    tables: Mapping[str, Any], parts: Iterable[Part], bias: Array
) -> tuple[Array, Array]:
    """Return what the scores of one query with all targets are at least, and at most.

    Parameters
    ----------
    tables : mapping from str to table of shape (n_targets, n_columns)
        Of the targets, by space. Sparse ones have rows of length 1, and are read as
        they are.
    parts : iterable of Part
        Of one query.
    bias : ndarray of float32 of shape (n_targets,)

    Returns
    -------
    lower, upper : ndarray of float32 of shape (n_targets,)
    """
    bounds = np.stack([bias - _rounding(bias), bias + _rounding(bias)])
    dense: dict[str, list[Any]] = {}
    for space, scale, coefficients, constant in parts:
        added = np.float32(0 if constant is None else constant[0])
        row = coefficients.toarray() if sp.issparse(coefficients) else coefficients
        if not sp.issparse(tables[space]):
            dense.setdefault(space, []).append((row[0], added, scale))
            continue
        score = np.asarray(tables[space] @ row[0]) + added
        n_terms = int(np.diff(tables[space].indptr).max(initial=0)) + 16
        size = n_terms * float(np.linalg.norm(row[0]))
        off: Any = _rounding(added) + np.float32(size * EPS)
        if scale is not None:
            score, off = score * scale, off * np.abs(scale)
        bounds += np.stack([score - off, score + off])
    for space, own in dense.items():
        coded(tables[space]).add_bounds(own, bounds)
    return bounds[0], bounds[1]


def coded(table: Array) -> CodedTable:
    """Return the codes of a table, made once."""
    with _CODING:
        kept = _CODED.get(id(table))
        if kept is None or kept[0]() is not table:
            made = CodedTable.of(table)
            kept = _CODED[id(table)] = weakref.ref(table, _forget), made
        return kept[1]


def _forget(gone: "weakref.ref[Array]") -> None:
    """Drop the codes of a table that is gone."""
    for key, (table, _) in list(_CODED.items()):
        if table is gone:
            _CODED.pop(key, None)


def _rounding(X: Any) -> Any:
    """Return what some operations in single precision may add to numbers, or take."""
    return np.float32(32 * EPS) * np.abs(X)


def _extent(norms: Array) -> tuple[int, int]:
    """Return the first block with coefficients, and that after the last."""
    places = np.flatnonzero(norms)
    return (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
