"""Labels of the items of each view, as memberships in common classes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from linkspread.exceptions import LinkError
from linkspread.links.balance import Balance, balance_classes

__all__ = ["describe_labels", "join_columns", "label_factors", "memberships_of"]

Array = np.ndarray


def memberships_of(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return the membership matrix of each view, over the same classes.

    Parameters
    ----------
    labels : mapping from str to array-like of shape (n,) or (n, c)
        Integers with -1 for unknown, or memberships of at least 0, dense or sparse,
        whose rows are zero where nothing is known.

    Returns
    -------
    memberships : dict from str to csr_array or ndarray of shape (n, c)
    """
    if not isinstance(labels, Mapping) or not labels:
        raise LinkError(
            f"`labels` must map each view's name to its labels, got {labels!r:.60}. "
            'Write {"text": y_text, "image": y_image}.'
        )
    arrays = {view: _as_array(values, view) for view, values in labels.items()}
    soft = {v: _check_soft(a, v) for v, a in arrays.items() if a.ndim == 2}
    hard = {v: _check_hard(a, v) for v, a in arrays.items() if a.ndim != 2}
    classes = _classes(soft, hard)
    memberships = {
        v: soft[v] if v in soft else _one_hot(hard[v], classes) for v in labels
    }
    if not any(m.sum() for m in memberships.values()):
        raise LinkError(
            f"at least one item must have a label, and none of views {list(labels)} "
            "has. Label a few items of each view."
        )
    return memberships


def label_factors(
    label_sets: Sequence[Mapping[str, Any]], views: tuple[str, str], balance: Balance
) -> tuple[Any, Array, Any] | None:
    """Return the links that labels give two views as ``left @ core @ right.T``.

    Parameters
    ----------
    label_sets : sequence of mappings from str to memberships of shape (n, c)
        Each set has classes of its own.
    views : tuple of two str
        Views of the rows and of the columns.
    balance : {"auto", "literal"} or float
        See :func:`linkspread.links.balance.balance_classes`.

    Returns
    -------
    factors : tuple of (left, core, right), or None where no set has both views
    """
    blocks = [
        tuple(labels[view] for view in views)
        for labels in label_sets
        if set(views) <= labels.keys()
    ]
    if not blocks:
        return None
    cores = [balance_classes(_mass(a), _mass(b), balance) for a, b in blocks]
    lefts, rights = zip(*blocks, strict=True)
    return join_columns(lefts), block_diag(*cores), join_columns(rights)


def describe_labels(labels: Mapping[str, Any]) -> str:
    """Return a phrase about how many items have labels."""
    n_classes = next(iter(labels.values())).shape[1]
    counts = ", ".join(
        f"{np.count_nonzero(m.sum(axis=1)):,} of {m.shape[0]:,} {view}"
        for view, m in labels.items()
    )
    classes = "1 class" if n_classes == 1 else f"{n_classes:,} classes"
    return f"labels of {counts} items in {classes}"


def join_columns(blocks: Sequence[Any]) -> Any:
    """Join memberships of several label sets column by column.

    Parameters
    ----------
    blocks : sequence of memberships of shape (n, c)

    Returns
    -------
    memberships : ndarray or csr_array of shape (n, sum of c)
    """
    if len(blocks) == 1:
        return blocks[0]
    return sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr")


def _mass(memberships: Any) -> Array:
    """Return the total membership of each class."""
    return np.asarray(memberships.sum(axis=0)).ravel()


def _as_array(labels: Any, view: str) -> Any:
    """Return labels as an array, or memberships that are sparse as they are."""
    if sparse.issparse(labels):
        return sparse.csr_array(labels)
    try:
        return np.asarray(labels)
    except ValueError as error:
        raise LinkError(
            f"labels of view {view!r} must be a flat list or a table, got rows of "
            "different lengths. Give each item one label, or a value for every class."
        ) from error


def _classes(soft: dict[str, Any], hard: dict[str, Array]) -> Array:
    """Return the class numbers that the columns of all memberships stand for."""
    widths = {view: array.shape[1] for view, array in soft.items()}
    if len(set(widths.values())) > 1:
        raise LinkError(
            f"memberships of all views must have the same classes, got {widths} "
            "columns. Give each view a column for every class."
        )
    used = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *hard.values()]))
    used = used[used >= 0]
    if not soft:
        return used
    n_classes = next(iter(widths.values()))
    if len(used) and used[-1] >= n_classes:
        raise LinkError(
            f"labels beside memberships of {n_classes} classes must be below "
            f"{n_classes}, got {used[-1]}. Add columns to the memberships."
        )
    return np.arange(n_classes)


def _check_hard(labels: Array, view: str) -> Array:
    """Return labels as integers of at least -1."""
    if labels.ndim != 1:
        raise LinkError(
            f"labels of view {view!r} must be a flat list, or memberships with a "
            f"column for each class, got shape {labels.shape}. Give one label per item."
        )
    numeric = labels.dtype.kind in "iufb"
    whole = np.isfinite(labels) & (labels == np.floor(labels)) if numeric else False
    if not np.all(whole):
        got = labels[~whole][0] if numeric else f"{labels[0]!r:.60}"
        raise LinkError(
            f"labels of view {view!r} must be integers, got {got}. Number the classes "
            "with `np.unique(labels, return_inverse=True)[1]` and write -1 for unknown."
        )
    labels = labels.astype(np.int64)
    if len(labels) and labels.min() < -1:
        raise LinkError(
            f"labels of view {view!r} must be at least -1, got {labels.min()}. "
            "Write -1 for unknown."
        )
    return labels


def _check_soft(memberships: Any, view: str) -> Any:
    """Return memberships, dense or sparse, as finite numbers of at least 0."""
    try:
        memberships = memberships.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise LinkError(
            f"memberships of view {view!r} must be numbers ({error}). "
            "Give an array of shape (n_items, n_classes)."
        ) from error
    values = memberships.data if sparse.issparse(memberships) else memberships
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        raise LinkError(
            f"memberships of view {view!r} must be finite and at least 0, got "
            f"{values[bad][0]}. Use a row of zeros for an unknown item."
        )
    return memberships


def _one_hot(labels: Array, classes: Array) -> sparse.csr_array:
    """Return a sparse matrix with a 1 in the class of each labelled item."""
    known = np.flatnonzero(labels >= 0)
    columns = np.searchsorted(classes, labels[known])
    shape = (len(labels), len(classes))
    return sparse.csr_array((np.ones(len(known)), (known, columns)), shape=shape)
