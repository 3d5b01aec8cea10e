"""Any model of several views with paired rows, such as those of cca-zoo."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from linkspread.baselines.correspondences import correspondences, sample_pairs
from linkspread.baselines.matching import Chosen, PairMatching
from linkspread.baselines.preparation import prepare_dense
from linkspread.baselines.side import Side, unit_rows
from linkspread.exceptions import LinkspreadError, require
from linkspread.links import Links
from linkspread.parameter_checks import check_count

__all__ = ["OneView", "ZooMatching"]

Array = np.ndarray


class OneView:
    """Transform one view with a model that transforms two together."""

    def __init__(
        self, model: Any, prepared: Pipeline, place: int, other: Array
    ) -> None:
        self.model = model
        self.prepared = prepared
        self.place = place
        self.other = other

    def __call__(self, rows: Any) -> Array:
        """Return unit vectors of shape (n_rows, n_dimensions)."""
        own = self.prepared.transform(rows)
        both = [own, np.repeat(self.other, len(own), axis=0)]
        views = both if self.place == 0 else both[::-1]
        return unit_rows(np.asarray(self.model.transform(views)[self.place]))


class ZooMatching(PairMatching):
    """Match by any model that is fitted to a list of views with paired rows.

    What goes together is told by must-links between single items, or else by the
    classes, as in `CorrelationMatching`; since such models take rows and no weights,
    the pairs are written out. Items are compared by the cosine of their vectors.

    Parameters
    ----------
    model : object, default=None
        Has ``fit(views)`` and ``transform(views)`` for a list of two tables with as
        many rows; cloned where it can be. None is canonical correlation analysis from
        the package cca-zoo.
    max_pairs : int, default=20000
        Draw so many pairs where there are more.
    scaling : {"standard", "sqrt", "none"} or dict by view, default="standard"
        "sqrt" suits histograms.
    max_features : int or dict by view, default=256
        A view with more columns is first reduced to so many principal components.
    random_state : int, default=0
        Of the pairs drawn and of that reduction.

    Attributes
    ----------
    view_names_ : tuple of str
    items_ : dict from str to Items
    links_ : Links
    sides_ : dict from pairs of str to pairs of Side

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread.baselines import ZooMatching
    >>> class FirstTwo:
    ...     def fit(self, views):
    ...         return self
    ...     def transform(self, views):
    ...         return [view[:, :2] for view in views]
    >>> data = ls.datasets.make_views(60, n_classes=3, random_state=0)
    >>> model = ZooMatching(model=FirstTwo()).fit(data.views(), data.labels)
    >>> model.scores("text", "image").shape
    (60, 60)
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("scaling", "max_features")

    def __init__(
        self,
        *,
        model: Any = None,
        max_pairs: int = 20_000,
        scaling: Any = "standard",
        max_features: Any = 256,
        random_state: int = 0,
    ) -> None:
        self.model = model
        self.max_pairs = max_pairs
        self.scaling = scaling
        self.max_features = max_features
        self.random_state = random_state

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> tuple[Side, Side]:
        model = _choose_model(self.model)
        left, right = (
            prepare_dense(tables[v], v, random_state=self.random_state, **chosen[v])
            for v in (a, b)
        )
        X, Y = left.transform(tables[a]), right.transform(tables[b])
        rows, columns = self._sample(links, a, b)
        model.fit([X[rows], Y[columns]])
        return (
            Side.of(tables[a], OneView(model, left, 0, Y[columns[:1]])),
            Side.of(tables[b], OneView(model, right, 1, X[rows[:1]])),
        )

    def _sample(self, links: Links, a: str, b: str) -> tuple[Array, Array]:
        """Return the pairs that the model is fitted to."""
        remedy = "The default is 20000."
        n_pairs = check_count(self.max_pairs, name="max_pairs", remedy=remedy)
        Z = correspondences(links, a, b)
        return sample_pairs(Z, n_pairs, random_state=self.random_state)


def _choose_model(model: Any) -> Any:
    """Return a fresh copy of a model, or the one of cca-zoo."""
    if model is None:
        zoo = require("cca_zoo.linear", extra="zoo", purpose="ZooMatching")
        return zoo.CCA()
    if not (hasattr(model, "fit") and hasattr(model, "transform")):
        raise LinkspreadError(
            "`model` must have `fit` and `transform` for a list of views, got "
            f"{type(model).__name__}. Give an estimator such as `cca_zoo.linear.CCA()`."
        )
    return clone(model, safe=False)
