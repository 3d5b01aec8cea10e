"""Lower and upper bounds of the scores of one query, from tables quantised to bytes.

A search takes as long as reading all columns of all targets; bytes take a quarter of
that. A block of a row is ``codes * step``, up to an error of `slack` steps. By
Cauchy-Schwarz the product with coefficients a has an error of at most
``slack sum_b |a_b| step_b``. Only targets whose upper bound reaches the n-th best score
can be among the best n; these are scored exactly.

Blocks are rotated before quantisation, which keeps products and makes the largest
value of a block, and so the step, smaller: a quarter for sparse features.
"""

import threading
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import hadamard

from linkspread.compiled.backends import map_blocks
from linkspread.compiled.cpu import CODED, encode_rows, score_bounds
from linkspread.ground.cores import count_threads

Array = np.ndarray
# Of queries: (space, scale of targets, coefficients, constant), as in learning.
Part = tuple[str, Array | None, Any, Array | None]

# Multiplications up to which one thread is used (4 to 7 ms), and rows per task of
# several threads.
ALONE, TILE = 1 << 27, 1 << 15
EPS = float(np.finfo(np.float32).eps)
# The rotation: random signs, then a Hadamard matrix.
SIGNS = np.random.default_rng(0).choice([-1.0, 1.0], CODED) / CODED**0.5
TURN = SIGNS[:, None] * hadamard(CODED)

# Codes of tables, by address, for the lifetime of the tables. Maps and priors are
# shared by pairs of views and by snapshots, and are never changed in place.
_CODED: "dict[int, tuple[weakref.ref[Array], CodedTable]]" = {}
_CODING = threading.Lock()


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table quantised to ``codes * steps`` in every block, with its error."""

    codes: Array
    steps: Array
    slack: float

    @classmethod
    def of(cls, table: Array) -> "CodedTable":
        """Return the codes of a dense table."""
        table = np.asarray(table)
        n_rows, n_columns = table.shape
        n_blocks = -(-n_columns // CODED)
        codes = np.empty((n_rows, CODED * n_blocks), dtype=np.int8)
        steps = np.empty((n_rows, n_blocks), dtype=np.float32)
        slack = np.empty(n_rows, dtype=np.float32)
        # Twice the rounding of a sum of products, in any order, and of the rotation,
        # because the scores that are compared with the bounds are rounded, too.
        rounding = np.float32((n_columns + 32) * EPS)
        encode_rows(table, SIGNS.astype(np.float32), rounding, codes, steps, slack)
        return cls(codes, steps, float(slack.max(initial=0)))

    def add_bounds(
        self, parts: list[tuple[Array, np.float32, Array | None]], bounds: Array
    ) -> None:
        """Add the bounds of (coefficients, constant, scale) to the rows of `bounds`."""
        rows, constants, scales = zip(*parts, strict=True)
        A = np.zeros((len(rows), self.codes.shape[1]))
        for padded, own in zip(A, rows, strict=True):
            padded[: len(own)] = own
        turned = A.reshape(len(A), -1, CODED) @ TURN
        norms = np.linalg.norm(turned, axis=2)
        blocks = np.array([_extent(own) for own in norms])
        given = [scale for scale in scales if scale is not None]
        places = iter(range(len(given)))
        asked = (
            turned.reshape(A.shape).astype(np.float32),
            (self.slack * norms).astype(np.float32),
            blocks,
            np.array([(own, _rounding(own)) for own in constants], np.float32),
            np.array([-1 if scale is None else next(places) for scale in scales]),
        )

        def add(some: slice) -> None:
            own = np.empty((len(given), len(self.codes[some])), np.float32)
            for k, scale in enumerate(given):
                own[k] = scale[some]
            codes, steps = self.codes[some], self.steps[some]
            score_bounds(codes, steps, *asked, own, bounds[:, some])

        n_products = int(np.diff(blocks).sum()) * CODED * len(self.codes)
        n_threads = 1 if n_products <= ALONE else count_threads(None)
        starts = range(0, len(self.codes), TILE)
        tiles = [slice(start, start + TILE) for start in starts]
        for _ in map_blocks(add, tiles, n_threads=n_threads):
            pass


def bound_scores(
    tables: Mapping[str, Any], parts: Iterable[Part], bias: Array
) -> tuple[Array, Array]:
    """Return lower and upper bounds of the scores of one query with all targets."""
    bounds = np.empty((2, len(bias)), dtype=np.float32)
    off = _rounding(bias)
    np.subtract(bias, off, out=bounds[0])
    np.add(bias, off, out=bounds[1])
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
        off = _rounding(added) + np.float32(size * EPS)
        if scale is not None:
            score, off = score * scale, off * np.abs(scale)
        bounds += np.stack([score - off, score + off])
    for space, own in dense.items():
        coded(tables[space]).add_bounds(own, bounds)
    return bounds[0], bounds[1]


def coded(table: Array) -> CodedTable:
    """Return the codes of a table; computed once."""
    with _CODING:
        kept = _CODED.get(id(table))
        if kept is None or kept[0]() is not table:
            made = CodedTable.of(table)
            kept = _CODED[id(table)] = weakref.ref(table, _forget), made
        return kept[1]


def _forget(gone: "weakref.ref[Array]") -> None:
    """Remove the codes of a deleted table."""
    for key, (table, _) in list(_CODED.items()):
        if table is gone:
            _CODED.pop(key, None)


def _rounding(X: Any) -> Any:
    """Return a bound of the rounding of a few operations in single precision."""
    return np.float32(32 * EPS) * np.abs(X)


def _extent(norms: Array) -> tuple[int, int]:
    """Return the range of blocks with coefficients."""
    places = np.flatnonzero(norms)
    return (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
