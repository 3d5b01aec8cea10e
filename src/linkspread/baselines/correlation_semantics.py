"""Correlation analysis, then semantic matching on its components."""

from typing import Any, ClassVar

from linkspread.baselines.classes import labelled_rows
from linkspread.baselines.correlation_matching import Projection, learn_projections
from linkspread.baselines.matching import Chosen, PairMatching
from linkspread.baselines.posteriors import Posteriors, fit_posteriors, logistic
from linkspread.baselines.preparation import prepare
from linkspread.baselines.side import Side, centred_units
from linkspread.baselines.steps import Steps
from linkspread.links import Links
from linkspread.parameter_checks import check_positive

__all__ = ["CorrelationSemantics"]


class CorrelationSemantics(PairMatching):
    """Match by posteriors on correlated components: CA+SA in [Rasiwasia2010].

    The views are projected as in `CorrelationMatching`; on the components, each
    scaled to variance 1, multinomial logistic regression gives every item its class
    posteriors, which are compared by normalised correlation. This is the rival of
    [Lu2015]. Needs labels in both views; what goes together is told by must-links
    between single items, or by the labels where there are none.

    Parameters
    ----------
    method : {"cca", "cfa", "pls"}, default="cca"
        As in `CorrelationMatching`.
    n_components : int, default=None
        None keeps as many as both views have.
    reg : float, default=0.1
        Ridge of "cca", in units of the mean variance of a feature.
    C : float, default=1.0
        Of the logistic regressions: larger fits the labels closer.
    scaling : {"standard", "sqrt", "none"} or dict by view, default="standard"
        "sqrt" suits histograms.
    max_features : int or dict by view, default=256
        A view with more columns is first reduced to so many principal components.
    random_state : int, default=0
        Of that reduction.

    Attributes
    ----------
    view_names_ : tuple of str
    items_ : dict from str to Items
    links_ : Links
    sides_ : dict from pairs of str to pairs of Side

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread.baselines import CorrelationSemantics
    >>> data = ls.datasets.make_views(60, n_classes=3, random_state=0)
    >>> model = CorrelationSemantics().fit(data.views(), data.labels)
    >>> model.transform(data.views()["text"][:5], "text").shape
    (5, 3)
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
