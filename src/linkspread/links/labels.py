"""Labels of the items of each view, as memberships in common classes."""

import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from linkspread.ground.checks import check_sparse
from linkspread.ground.errors import LinkError
from linkspread.links.matrix import Balance, balance_classes
from linkspread.links.pairs import Items

Array = np.ndarray
Labels = Mapping[str, Any]  # memberships by view

# Texts of unknown labels, as NumPy and pandas write missing values.
UNKNOWN = ("", "-1", "nan", "<na>")
WHOLE = re.compile(r"-?\d+(?=\.0+$)")


def memberships_of(labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return the membership matrix of each view, over the same classes."""
    if not isinstance(labels, Mapping) or not labels:
        raise LinkError(
            f"`labels` must map each view's name to its labels, got {labels!r:.60}. "
            'Write {"text": y_text, "image": y_image}.'
        )
    arrays = {view: _as_array(values, view) for view, values in labels.items()}
    soft = {v: _check_soft(a, v) for v, a in arrays.items() if a.ndim == 2}
    hard = {v: a for v, a in arrays.items() if a.ndim != 2}
    if soft:
        widths = {view: array.shape[1] for view, array in soft.items()}
        n_classes = next(iter(widths.values()))
        if set(widths.values()) != {n_classes}:
            raise LinkError(
                f"memberships of all views must have the same classes, got {widths} "
                "columns. Give each view a column for every class."
            )
        numbers = {v: _column_numbers(a, n_classes, v) for v, a in hard.items()}
    else:
        numbers = number_classes(hard)
        n_classes = 1 + max(own.max(initial=-1) for own in numbers.values())
    memberships = {
        v: soft[v] if v in soft else _one_hot(numbers[v], n_classes) for v in labels
    }
    if not any(m.sum() for m in memberships.values()):
        raise LinkError(
            f"at least one item must have a label, and none of views {list(labels)} "
            "has. Label a few items of each view."
        )
    return memberships


def number_classes(labels: Mapping[str, Any]) -> dict[str, Array]:
    """Return labels of any kind as numbers that all views share, -1 for unknown."""
    if not labels:
        return {}
    names = {view: _plain_labels(own, view) for view, own in labels.items()}
    unknown: Any = -1
    if any(own.dtype.kind == "U" for own in names.values()):
        unknown = ""
        names = {
            view: own if own.dtype.kind == "U" else class_names(own, view=view)
            for view, own in names.items()
        }
    used = np.unique(np.concatenate(list(names.values())))
    used = used[used != unknown]
    return {
        view: np.where(own == unknown, -1, np.searchsorted(used, own))
        for view, own in names.items()
    }


def class_names(labels: Any, *, view: str) -> Array:
    """Return labels as texts, "" for unknown; 3, 3.0, "3" and "3.0" are one class."""
    return np.array([_class_name(own, view) for own in labels], dtype=str)


def label_factors(
    label_sets: Sequence[Mapping[str, Any]], views: tuple[str, str], balance: Balance
) -> tuple[Any, Array, Any] | None:
    """Return the links that labels give two views as ``left @ core @ right.T``."""
    blocks = [
        tuple(labels[view] for view in views)
        for labels in label_sets
        if set(views) <= labels.keys()
    ]
    if not blocks:
        return None
    lefts, rights = zip(*blocks, strict=True)
    sizes = (
        [np.asarray(m.sum(axis=0)).ravel() for m in side] for side in (lefts, rights)
    )
    cores = [balance_classes(a, b, balance) for a, b in zip(*sizes, strict=True)]
    return join_columns(lefts), block_diag(*cores), join_columns(rights)


def describe_labels(labels: Mapping[str, Any]) -> str:
    """Return a description of the number of labelled items."""
    n_classes = next(iter(labels.values())).shape[1]
    counts = ", ".join(
        f"{np.count_nonzero(m.sum(axis=1)):,} of {m.shape[0]:,} {view}"
        for view, m in labels.items()
    )
    classes = "1 class" if n_classes == 1 else f"{n_classes:,} classes"
    return f"labels of {counts} items in {classes}"


def join_columns(blocks: Sequence[Any]) -> Any:
    """Join memberships of several label sets column by column."""
    if len(blocks) == 1:
        return blocks[0]
    return sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr")


def check_labels_fit(labels: Mapping[str, Any], items: Mapping[str, Items]) -> None:
    """Refuse labels of views that have more or fewer items."""
    for view, memberships in labels.items():
        if memberships.shape[0] != items[view].n_items:
            raise LinkError(
                f"labels of view {view!r} must fit its items, got "
                f"{memberships.shape[0]:,} labels for {items[view].n_items:,} items. "
                "Give one label per row, -1 for unknown."
            )


def without_rows(memberships: Any, hidden: Array) -> Any:
    """Return memberships with some rows set to zero, in the same format."""
    shown = np.ones(memberships.shape[0])
    shown[hidden] = 0
    if sparse.issparse(memberships):
        return sparse.csr_array(sparse.diags_array(shown) @ memberships)
    return memberships * shown[:, None]


def grow_rows(memberships: Any, n_items: int) -> Any:
    """Return memberships with rows of zeros at the end."""
    n_more = n_items - memberships.shape[0]
    if n_more == 0:
        return memberships
    shape = n_more, memberships.shape[1]
    if sparse.issparse(memberships):
        none = sparse.csr_array(shape, dtype=memberships.dtype)
        return sparse.vstack([memberships, none], format="csr")
    return np.vstack([memberships, np.zeros(shape, dtype=memberships.dtype)])


def _as_array(labels: Any, view: str) -> Any:
    """Return labels as an array; sparse memberships stay sparse."""
    if sparse.issparse(labels):
        return sparse.csr_array(check_sparse(labels, name=f"labels of view {view!r}"))
    try:
        return np.asarray(labels)
    except ValueError as error:
        raise LinkError(
            f"labels of view {view!r} must be a flat list or a table, got rows of "
            "different lengths. Give each item one label, or a value for every class."
        ) from error


def _column_numbers(labels: Any, n_classes: int, view: str) -> Array:
    """Return labels of one view as column numbers of another's memberships."""
    names = class_names(_plain_labels(labels, view), view=view)
    wrong = [own for own in names[names != ""].tolist()
             if not own.isdecimal() or int(own) >= n_classes]  # fmt: skip
    if wrong:
        raise LinkError(
            f"labels beside memberships of {n_classes} classes must be below "
            f"{n_classes}, the numbers of their columns, got {wrong[0]!r} in view "
            f"{view!r}. Add columns to the memberships, or give all views labels."
        )
    return np.where(names == "", "-1", names).astype(np.int64)


def _plain_labels(labels: Any, view: str) -> Array:
    """Return labels as booleans, as integers of at least -1, or as texts."""
    array = _as_array(labels, view)
    if array.ndim != 1:
        raise LinkError(
            f"labels of view {view!r} must be a flat list, or memberships with a "
            f"column for each class, got shape {array.shape}. Give one label per item."
        )
    if array.dtype.kind not in "biuf":
        return class_names(array, view=view)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), -1, array)
        whole = np.isfinite(array) & (array == np.floor(array))
        if not whole.all():
            _refuse(array[~whole][0], view)
    if len(array) and array.min() < -1:
        _refuse(array.min(), view)
    return array if array.dtype.kind == "b" else array.astype(np.int64)


def _class_name(label: Any, view: str) -> str:
    """Return the name of a class, or "" for unknown."""
    if isinstance(label, bool | np.bool_):
        return str(label)
    if isinstance(label, Real) and label == label:
        if label < -1 or (not isinstance(label, Integral) and label % 1 != 0):
            _refuse(label, view)
        label = int(label)  # type: ignore[call-overload]
    if isinstance(label, list | tuple | set | dict | np.ndarray):
        _refuse(label, view)
    if isinstance(label, bytes):
        label = label.decode(errors="replace")
    name = "" if label is None else str(label).strip()
    whole = WHOLE.match(name)
    name = whole[0] if whole else name
    return "" if name.lower() in UNKNOWN or name == "NaT" else name


def _refuse(label: Any, view: str) -> NoReturn:
    """Raise the error about an invalid label."""
    raise LinkError(
        f"labels of view {view!r} must be texts or integers of at least 0, got "
        f"{label!s:.60}. Give each item the name of its class, and None or -1 for "
        "unknown."
    )


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
    if memberships.shape[1] == 1 and values.max(initial=0) > 1:
        raise LinkError(
            f"labels of view {view!r} must be a flat list, got one column of numbers "
            f"up to {values.max():g}. Write `labels.ravel()`."
        )
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        raise LinkError(
            f"memberships of view {view!r} must be finite and at least 0, got "
            f"{values[bad][0]}. Use a row of zeros for an unknown item."
        )
    return memberships


def _one_hot(numbers: Array, n_classes: int) -> sparse.csr_array:
    """Return a sparse matrix with a 1 in the class of each labelled item."""
    known = np.flatnonzero(numbers >= 0)
    shape = (len(numbers), n_classes)
    return sparse.csr_array((np.ones(len(known)), (known, numbers[known])), shape=shape)
