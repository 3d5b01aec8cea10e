"""Dense local descriptors of the gradients around each place of a picture.

Like SIFT: 4 x 4 cells of 4 pixels, 8 directions in each, for each of three opponent
colours. Roots of shares are compared, as in the Hellinger distance.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

_CELL = 4  # pixels
_SIDE = 4  # cells
_DIRECTIONS = 8
N_VALUES = 3 * _DIRECTIONS * _SIDE**2
# Gradient per pixel below which a place counts as flat rather than as textured: the
# shares of its directions would be those of noise.
_FLAT = 1.0


def local_descriptors(channels: np.ndarray) -> np.ndarray:
    """Return the descriptors of opponent channels, laid out as in the picture."""
    cells = _cell_sums(channels)
    mass = _windows(cells.sum(axis=2)).sum(axis=(2, 3)) + _FLAT * (_CELL * _SIDE) ** 2
    # Rooting cells instead of descriptors is the same and takes a 16th of the roots.
    windows = np.moveaxis(_windows(np.sqrt(cells)), 2, 4)
    # Values of a cell stay together, which makes this copy twice as fast.
    descriptors = windows.reshape(*mass.shape, N_VALUES)
    return descriptors / np.sqrt(mass)[:, :, np.newaxis]


def _windows(cells: np.ndarray) -> np.ndarray:
    """Return every square of cells, as two new axes at the end."""
    return sliding_window_view(cells, (_SIDE, _SIDE), axis=(0, 1))


def _cell_sums(channels: np.ndarray) -> np.ndarray:
    """Return the gradient in each direction by cell, shape (rows, columns, 24)."""
    n_rows, n_columns = (length // _CELL for length in channels.shape[1:])
    channels = channels[:, : n_rows * _CELL, : n_columns * _CELL]
    down, right = np.gradient(channels, axis=(1, 2))
    # A direction gets what lies within 45 degrees of it, less the farther away, so
    # that a gradient between two directions counts for both and none jumps.
    threshold = np.sqrt(down**2 + right**2) * np.float32(np.cos(np.pi / 4))
    sums = np.empty((_DIRECTIONS, 3, n_rows, n_columns), dtype=np.float32)
    for direction, angle in enumerate(np.arange(_DIRECTIONS) * 2 * np.pi / _DIRECTIONS):
        part = right * np.float32(np.cos(angle)) + down * np.float32(np.sin(angle))
        part -= threshold
        np.maximum(part, 0, out=part)
        lines = part.reshape(3, n_rows, _CELL, -1).sum(axis=2)
        lines.reshape(3, n_rows, n_columns, _CELL).sum(axis=3, out=sums[direction])
    return np.ascontiguousarray(sums.reshape(-1, n_rows, n_columns).transpose(1, 2, 0))
