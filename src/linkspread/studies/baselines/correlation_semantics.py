"""Correlation analysis, then semantic matching on its components."""

from typing import Any, ClassVar

from linkspread.ground.checks import check_positive
from linkspread.links import Links
from linkspread.studies.baselines.classes import labelled_rows
from linkspread.studies.baselines.correlation_matching import (
    Projection,
    learn_projections,
)
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.posteriors import Posteriors, fit_posteriors, logistic
from linkspread.studies.baselines.preparation import prepare
from linkspread.studies.baselines.side import Side, centred_units
from linkspread.studies.baselines.steps import Steps


class CorrelationSemantics(PairMatching):
    """Match by posteriors on correlated components: CA+SA in [Rasiwasia2010].

    The views are projected as in `CorrelationMatching`; on the components, each
    scaled to variance 1, multinomial logistic regression gives every item its class
    posteriors, which are compared by normalised correlation. This is the rival of
    [Lu2015]. Needs labels in both views; what goes together is told by must-links
    between single items, or by the labels where there are none.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("scaling", "max_features")

    def __init__(
        self,
        *,
        method: str = "cca",
        n_components: int | None = None,
        reg: float = 0.1,
        C: float = 1.0,
        scaling: Any = "standard",
        max_features: Any = 256,
        random_state: int = 0,
    ) -> None:
        self.method = method
        self.n_components = n_components
        self.reg = reg
        self.C = C
        self.scaling = scaling
        self.max_features = max_features
        self.random_state = random_state

    # The classifiers weigh the components themselves.
    power: ClassVar[float] = 0.0

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> tuple[Side, Side]:
        left, right = learn_projections(self, tables, links, chosen, a, b)
        return (
            self._abstract(tables[a], left, links, a),
            self._abstract(tables[b], right, links, b),
        )

    def _abstract(
        self, X: Any, projection: Projection, links: Links, view: str
    ) -> Side:
        """Return the posteriors of one view, learnt on its components."""
        rows, classes, n_classes = labelled_rows(links, view)
        C = check_positive(self.C, name="C", remedy="The default is 1.")
        scaled = prepare(projection.project(X), scaling="standard")
        steps = Steps(projection.project, scaled.transform)
        fitted = fit_posteriors(logistic(C), steps(X[rows]), classes, cv=2)
        return Side.of(X, Steps(Posteriors(fitted, steps, n_classes), centred_units))
