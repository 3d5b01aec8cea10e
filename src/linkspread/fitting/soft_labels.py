"""Memberships for items that nobody labelled, from any classifier.

Links made of them are soft: an item may belong to several classes in part, and to
none where the classifier is not sure.
"""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from linkspread.exceptions import LinkError, LinkspreadError
from linkspread.fitting.posteriors import Posteriors, fit_posteriors, logistic
from linkspread.fitting.preparation import prepare
from linkspread.parameter_checks import check_count, naming
from linkspread.validation import check_views

__all__ = ["soften_labels"]

Array = np.ndarray


def soften_labels(
    views: Mapping[str, Any],
    labels: Mapping[str, Any],
    classifier: Any = None,
    *,
    floor: float = 0.5,
    cv: int = 5,
) -> dict[str, Array]:
    """Return memberships of all items: labels where known, posteriors elsewhere.

    Posteriors are calibrated across folds where the classifier gives none itself.
    They are of items that it was not trained on, so that none repeats its own label.

    Parameters
    ----------
    views : mapping from str to table of shape (n_items, n_features)
    labels : mapping from str to array-like of int of shape (n_items,)
        Classes from 0, -1 for unknown; views that are not named stay without.
    classifier : scikit-learn classifier, default=None
        None is multinomial logistic regression of scaled features.
    floor : float, default=0.5
        Items whose largest posterior is below get no membership: a row of zeros.
    cv : int, default=5
        Folds of the calibration.

    Returns
    -------
    memberships : dict from str to ndarray of shape (n_items, n_classes)
        For :meth:`Links.from_labels`.

    Examples
    --------
    >>> import numpy as np
    >>> import linkspread as ls
    >>> from linkspread.fitting.soft_labels import soften_labels
    >>> data = ls.datasets.make_views(60, n_classes=3, random_state=0)
    >>> known = {v: np.where(np.arange(60) < 30, y, -1) for v, y in data.labels.items()}
    >>> soft = soften_labels(data.views(), known)
    >>> soft["text"].shape, float(soft["text"][0].max())
    ((60, 3), 1.0)
    """
    if not isinstance(floor, Real) or not 0 <= floor <= 1:
        raise LinkspreadError(
            f"`floor` must be a probability from 0 to 1, got {floor!r:.60}. The "
            "default is 0.5."
        )
    if classifier is not None and not hasattr(classifier, "predict"):
        raise LinkspreadError(
            "`classifier` must be a classifier of scikit-learn or None, got "
            f"{classifier!r:.60}. None is logistic regression."
        )
    cv = check_count(cv, name="cv", remedy="The default is 5.", at_least=2)
    tables = check_views(views).tables
    known = {view: _check_labels(labels[view], tables, view) for view in labels}
    n_classes = 1 + max(int(own.max(initial=-1)) for own in known.values())
    soft = {}
    for view, own in known.items():
        with naming(view):
            posteriors = _posteriors(tables[view], own, classifier, n_classes, cv)
        posteriors[posteriors.max(axis=1) < floor] = 0
        labelled = np.flatnonzero(own >= 0)
        posteriors[labelled] = np.eye(n_classes)[own[labelled]]
        soft[view] = posteriors
    return soft


def _posteriors(
    X: Any, labels: Array, classifier: Any, n_classes: int, cv: int
) -> Array:
    """Return the posteriors of all items by what is learnt of the labelled ones."""
    rows = np.flatnonzero(labels >= 0)
    if len(np.unique(labels[rows])) < 2:
        raise LinkError(
            "labels must be of at least 2 classes to train a classifier, got "
            f"{len(np.unique(labels[rows]))}. Label items of another class."
        )
    prepared = prepare(X, scaling="standard")
    chosen = logistic(1.0) if classifier is None else classifier
    fitted = fit_posteriors(chosen, prepared.transform(X[rows]), labels[rows], cv=cv)
    return Posteriors(fitted, prepared.transform, n_classes)(X)


def _check_labels(labels: Any, tables: Mapping[str, Any], view: str) -> Array:
    """Return labels of a view that is there, one for each item."""
    if view not in tables:
        raise LinkError(
            f"labels must be of the views {list(tables)}, got {view!r}. Correct the "
            "name."
        )
    own = np.asarray(labels)
    n_items = tables[view].shape[0]
    if own.shape != (n_items,) or own.dtype.kind not in "iu" or own.min() < -1:
        raise LinkError(
            f"labels of view {view!r} must be {n_items:,} integers from -1, got "
            f"{own.dtype} of shape {own.shape}. Write -1 for unknown."
        )
    return own
