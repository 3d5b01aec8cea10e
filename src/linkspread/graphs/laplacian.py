"""Roots of the Laplacian that links give a neighbourhood, for constrained graphs.

The neighbours of an item, joined by ``1 + Z`` (2 for must, 1 for unknown, 0 for
cannot), have the normalised Laplacian ``L = I - D^-1/2 (1 + Z) D^-1/2``. Constrained
sparse representation penalises ``||L^1/2 a||_1``.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.links import LinkMatrix, as_link_matrix

Array = np.ndarray


class LinkedNeighborhoods:
    """Laplacian roots of neighbourhoods, a batch at a time."""

    def __init__(self, Z: Any, *, root: str = "symmetric") -> None:
        self.Z = as_link_matrix(Z)
        self.root = root
        self._groups = _hard_groups(self.Z)

    def roots(self, ids: Array) -> Array:
        """Return the root of each neighbourhood's Laplacian."""
        if self._groups is not None and self.root == "symmetric":
            return _group_roots(self._groups[ids], self.Z.left.shape[1])
        return ROOTS[self.root](_laplacians(self.affinities(ids)))

    def affinities(self, ids: Array) -> Array:
        """Return ``1 + Z`` among the items of each neighbourhood."""
        left, right = _dense_rows(self.Z.left, ids), _dense_rows(self.Z.right, ids)
        links = left @ self.Z.core @ right.transpose(0, 2, 1)
        if self.Z.pairs.nnz:
            k = ids.shape[1]
            rows = np.repeat(ids, k, axis=1).ravel()
            columns = np.tile(ids, (1, k)).ravel()
            links += np.asarray(self.Z.pairs[rows, columns]).reshape(links.shape)
        return 1 + np.clip(links, -1, 1)


def _dense_rows(memberships: Any, ids: Array) -> Array:
    """Return memberships of the items of each neighbourhood, (n_rows, k, c)."""
    rows = memberships[ids.ravel()]
    rows = rows.toarray() if sp.issparse(rows) else rows
    return rows.reshape(*ids.shape, memberships.shape[1])


def _hard_groups(Z: LinkMatrix) -> Array | None:
    """Return the class of each item, the number of classes where unknown.

    None if links are more than plain labels, so that neighbours do not fall into a
    few groups that all behave alike.
    """
    n_items, n_classes = Z.left.shape
    literal = 2 * np.eye(n_classes) - 1
    if Z.pairs.nnz or Z.core.shape != literal.shape or not np.allclose(Z.core, literal):
        return None
    memberships = sp.csr_array(Z.left)
    counts = np.diff(memberships.indptr)
    if counts.max(initial=0) > 1 or not np.all(memberships.data == 1):
        return None
    groups = np.full(n_items, n_classes)
    groups[counts == 1] = memberships.indices
    return groups


def _group_roots(groups: Array, n_classes: int) -> Array:
    """Return symmetric roots in closed form, through one small matrix per row.

    Neighbours of one class are exchangeable: with E the unit-length indicators of the
    groups, ``L = I - E A E'``, and ``L^1/2 = I - E (I - (I - A)^1/2) E'``.
    """
    n_rows, k = groups.shape
    n_groups = n_classes + 1
    counts = np.zeros((n_rows, n_groups))
    np.add.at(counts, (np.arange(n_rows)[:, None], groups), 1)
    between = 2 * np.eye(n_groups)
    between[-1] = between[:, -1] = 1  # nothing is known about the last group
    degrees = counts @ between
    scale = np.sqrt(counts / np.maximum(degrees, 1))
    inner = np.eye(n_groups) - scale[:, :, None] * between * scale[:, None, :]
    change = _symmetric_roots(inner) - np.eye(n_groups)
    lengths = np.sqrt(np.maximum(counts, 1))
    change /= lengths[:, :, None] * lengths[:, None, :]
    row = np.arange(n_rows)[:, None, None]
    roots = change[row, groups[:, :, None], groups[:, None, :]]
    roots[:, np.arange(k), np.arange(k)] += 1
    return roots


def _laplacians(affinities: Array) -> Array:
    """Return the normalised Laplacian of each matrix of affinities."""
    degrees = affinities.sum(axis=2)
    # Soft labels may say that a neighbour is like nobody, not even itself.
    scale = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0)
    k = affinities.shape[1]
    return np.eye(k) - scale[:, :, None] * affinities * scale[:, None, :]


def _symmetric_roots(matrices: Array) -> Array:
    """Return ``V s^1/2 V'`` of each positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrices)
    scaled = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
    return scaled @ vectors.transpose(0, 2, 1)


def _literal_roots(matrices: Array) -> Array:
    """Return ``s^1/2 V'`` of each positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.sqrt(np.maximum(values, 0))[:, None, :]).transpose(0, 2, 1)


ROOTS = {"symmetric": _symmetric_roots, "literal": _literal_roots}
