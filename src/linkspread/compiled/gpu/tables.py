"""Items on a device, ready to be compared with queries, and what that proves.

A half-precision product gives every item's key; its rounding, and what converting the
rows lost, bound how near an item may be that was dropped. The same reasoning as in
`linkspread.graphs.products`, for groups of items instead of single ones: only the
smallest key of each group is ever written to memory.
"""

import math

import torch

from linkspread.compiled.gpu import plain

# Rows converted at a time; bounds the float64 scratch of a large table.
CONVERSION_BLOCK = 1 << 18
EPS64 = torch.finfo(torch.float64).eps


class ProductTable:
    """Keys ``||x||^2 / 2 - q . x`` from products of converted rows."""

    def __init__(self, device, rows, dtype, group):
        self.rows, self.group, self.dtype = rows, group, dtype
        self.is_fused = device.is_fused and dtype == torch.float16
        # Rounding grows with the norms, so the centre and the scale come off first. A
        # power of two is divided by exactly, and keeps float16 from overflowing.
        self.centre = rows.mean(dim=0, dtype=torch.float64)
        above, below = rows.amax(0) - self.centre, self.centre - rows.amin(0)
        reach = float(torch.maximum(above, below).max())
        self.scale = 2.0 ** math.ceil(math.log2(reach)) if reach > 1e-300 else 1.0
        # Features that are 0 for all items, once centred, are 0 in every product.
        self.columns = torch.nonzero((above > 0) | (below > 0)).flatten()
        self._convert_items()

    def _convert_items(self):
        """Store the converted items, and the largest norm and error."""
        n_items = len(self.rows)
        n_padded = -(-n_items // self.group) * self.group
        wide = torch.float64 if self.dtype == torch.float64 else torch.float32
        width = _padded_width(len(self.columns))
        self.items = self.rows.new_zeros((n_padded, width), dtype=self.dtype)
        self.offsets = self.rows.new_full((n_padded,), torch.inf, dtype=wide)
        self.norm = self.error = 0.0
        for start in range(0, n_items, CONVERSION_BLOCK):
            stop = min(start + CONVERSION_BLOCK, n_items)
            converted, norms, errors = self.convert(self.rows[start:stop])
            self.items[start:stop] = converted
            self.offsets[start:stop] = norms.square() / 2
            self.norm = max(self.norm, float(norms.max()))
            self.error = max(self.error, float(errors.max()))

    def convert(self, rows):
        """Return converted rows, their norms, and what the conversion lost."""
        centred = (rows.double() - self.centre) / self.scale
        converted = centred.to(self.dtype)
        norms = converted.double().norm(dim=1)
        errors = (centred - converted).norm(dim=1) + 2 * EPS64 * norms
        padding = self.items.shape[1] - len(self.columns)
        if len(self.columns) < centred.shape[1]:
            converted = converted[:, self.columns]
        if padding:
            converted = torch.nn.functional.pad(converted, (0, padding))
        return converted.contiguous(), norms, errors

    def minima(self, queries):
        """Return the smallest key of every group, for converted queries."""
        if self.is_fused:
            from linkspread.compiled.gpu import fused

            return fused.group_minima(queries, self.items, self.offsets, self.group)
        return plain.group_minima(queries, self.items, self.offsets, self.group)

    def nearest_dropped(self, worst, norms, errors):
        """Return lower bounds of the distances of items whose keys are no less.

        NaN, from a query that overflowed, compares as not proven.
        """
        squared = 2 * (worst.double() - self._rounding(norms)) + norms.square()
        lowest = squared.clamp(min=0).sqrt() - errors - self.error
        n_terms = self.rows.shape[1] + 4
        return lowest * (self.scale * (1 - n_terms * EPS64))

    def _rounding(self, norms):
        """Return a bound of the rounding errors of keys.

        As on the processor, twice over: matrix units cut sums off where a processor
        would round them.
        """
        info = torch.finfo(self.offsets.dtype)
        share = 2 * (self.rows.shape[1] + 4) * info.eps
        return share * (norms + self.norm).square() + self.rows.shape[1] * info.tiny


class RelativeTable:
    """Keys ``sum (q - x)^2 / (q + x)``, rounded in the precision of the items."""

    is_fused = False

    def __init__(self, device, rows, dtype, group):
        self.rows, self.group = rows, group
        padding = -len(rows) % group
        self.items = torch.nn.functional.pad(rows, (0, 0, 0, padding))
        self.offsets = rows.new_zeros(len(self.items))
        self.offsets[len(rows) :] = torch.inf

    def convert(self, rows):
        """Return the rows as they are; nothing is lost, and norms are not needed."""
        nothing = rows.new_zeros(len(rows), dtype=torch.float64)
        return rows, nothing, nothing

    def minima(self, queries):
        """Return the smallest key of every group."""
        return plain.relative_minima(queries, self.items, self.offsets, self.group)

    def nearest_dropped(self, worst, norms, errors):
        """Return lower bounds of the distances of items whose keys are no less.

        No term is negative, so that rounding is a share of the sum itself.
        """
        share = (self.rows.shape[1] + 8) * torch.finfo(self.rows.dtype).eps
        return (worst.double() * max(1 - share, 0.0)).sqrt()


def _padded_width(n_columns):
    """Return a number of features that matrix units take."""
    narrow = [width for width in (16, 32, 64, 128) if n_columns <= width]
    return narrow[0] if narrow else -(-n_columns // 64) * 64
