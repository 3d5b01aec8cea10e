"""Items added to a fitted search, changed or removed, without another fit."""

import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.links import Items, Links
from linkspread.tables import Table

__all__ = ["SearchItems"]

Array = np.ndarray


class SearchItems:
    """What a fitted search does with items that come later, or go."""

    items_: dict[str, Items]
    links_: Links
    _tables: dict[str, Any]
    _columns: dict[str, Any]
    fit: Any

    def snapshot(self) -> Self:
        """Return the model as it is now, which later changes leave alone.

        One thread can change a model while others search its last snapshot. Arrays
        are shared, so that a snapshot takes hardly any memory.

        Returns
        -------
        model : CrossViewSearch

        Examples
        --------
        >>> import linkspread as ls
        >>> data = ls.datasets.make_views(60, n_classes=3, random_state=0)
        >>> links = ls.Links.from_matched(("text", "image"), 20)
        >>> model = ls.CrossViewSearch().fit(data.views(), links)
        >>> kept = model.snapshot()
        >>> more = ls.Links.from_pairs([(40, 40)], between=("text", "image"))
        >>> model.add_links(more).links_ == kept.links_
        False
        """
        check_is_fitted(self)
        # Changes replace what they change, so that both may share all they hold.
        return copy.copy(self)

    def rebuild(self) -> Self:
        """Fit again to all items and links that there are now.

        Returns
        -------
        self : CrossViewSearch
        """
        check_is_fitted(self)
        ids = {view: own.ids for view, own in self.items_.items() if own.has_ids}
        known = {
            view: Table(X, self._columns[view], chosen=True)
            for view, X in self._tables.items()
        }
        return self.fit(known, self.links_, ids=ids)
