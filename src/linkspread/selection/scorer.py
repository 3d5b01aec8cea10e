"""A scorer for scikit-learn's own searches over the parameters of one view."""

from typing import Any

from linkspread.metrics import mean_average_precision
from linkspread.selection.folds import hard_labels

__all__ = ["score_search"]


def score_search(model: Any, X: Any, y: Any) -> float:
    """Search with new rows for fitted items, and tell how well classes are found.

    To be passed as ``scoring=score_search`` to `GridSearchCV` and the like, which
    know a single table and its labels.

    Parameters
    ----------
    model : LinkSpreading
        Fitted to a single table and its labels.
    X : table of shape (n, n_features)
        New items of the same view.
    y : array-like of int of shape (n,)
        Their labels, -1 for unknown.

    Returns
    -------
    precision : float
        Mean average precision of the fitted items that have a label.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from linkspread import LinkSpreading
    >>> from linkspread.selection import LabelFolds, score_search
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> search = GridSearchCV(LinkSpreading(n_neighbors=5), {"alpha": [0.1, 0.5]},
    ...                       scoring=score_search, cv=LabelFolds(2)).fit(X, y)
    >>> sorted(search.best_params_)
    ['alpha']
    """
    (view,) = model.view_names_
    known = hard_labels(model.links_, view)
    fitted = (known >= 0).nonzero()[0]
    block = model.scores(view, view, rows=X, cols=fitted)
    return mean_average_precision(block, y, known[fitted])
