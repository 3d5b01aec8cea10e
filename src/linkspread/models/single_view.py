"""The form with one table and its labels, as scikit-learn's searches know it."""

from collections.abc import Mapping
from typing import Any

from sklearn.utils.validation import check_is_fitted

from linkspread.ground.errors import LinkspreadError
from linkspread.links import Links
from linkspread.metrics import mean_average_precision
from linkspread.models.link_choice import hard_labels


def labels_of_one_view(links: Any) -> Any:
    """Return the labels of a single view as they were given, None of other links."""
    if isinstance(links, Mapping) and len(links) == 1:
        (links,) = links.values()
    return None if isinstance(links, Links | Mapping) else links


def score_new_items(model: Any, X: Any, y: Any) -> float:
    """Tell how well new items of a single view find fitted ones of their class.

    It is what scikit-learn's searches over parameters, such as `GridSearchCV`, compare.
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
