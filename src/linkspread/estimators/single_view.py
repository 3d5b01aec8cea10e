"""The form with one table and its labels, as scikit-learn's searches know it."""

from collections.abc import Mapping
from typing import Any

from sklearn.utils.validation import check_is_fitted

from linkspread.estimators.link_choice import hard_labels
from linkspread.exceptions import LinkspreadError
from linkspread.links import Links
from linkspread.metrics import mean_average_precision

__all__ = ["labels_of_one_view", "score_new_items"]


def labels_of_one_view(links: Any) -> Any:
    """Return the labels of a single view as they were given, None of other links."""
    if isinstance(links, Mapping) and len(links) == 1:
        (links,) = links.values()
    return None if isinstance(links, Links | Mapping) else links


def score_new_items(model: Any, X: Any, y: Any) -> float:
    """Tell how well new items of a single view find fitted ones of their class.

    It is what scikit-learn's searches over parameters, such as `GridSearchCV`, compare.

    Parameters
    ----------
    X : table of shape (n, n_features)
        New items of the view.
    y : array-like of shape (n,)
        Their labels, -1 for unknown.

    Returns
    -------
    precision : float
        Mean average precision among the fitted items that have a label.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from linkspread import LinkSpreading
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> grid = {"alpha": [0.1, 0.5]}
    >>> search = GridSearchCV(LinkSpreading(n_neighbors=5), grid).fit(X, y)
    >>> sorted(search.best_params_)
    ['alpha']
    """
    check_is_fitted(model)
    labels = getattr(model, "_labels", None)
    if labels is None:
        raise LinkspreadError(
            "`score` must have a model that was fitted to one table and its labels, "
            f"got views {', '.join(map(repr, model.items_))}. Choose parameters with "
            "`linkspread.selection.tune`, which takes any views and links."
        )
    (view,) = model.items_
    # Together, so that the same label is the same class.
    both = Links.from_labels({"fitted": labels, "new": y})
    known = hard_labels(both, "fitted")
    block = model.scores(view, view, rows=X, cols=known >= 0)
    return mean_average_precision(block, hard_labels(both, "new"), known[known >= 0])
