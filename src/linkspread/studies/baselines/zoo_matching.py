"""Any model of several views with paired rows, such as those of cca-zoo."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkspreadError, require
from linkspread.links import Links
from linkspread.studies.baselines.correspondences import correspondences, sample_pairs
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.preparation import prepare_dense
from linkspread.studies.baselines.side import Side, unit_rows

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
