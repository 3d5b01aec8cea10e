"""Label spreading in each view, then the inner product of what comes out."""

from typing import Any, ClassVar

import numpy as np

from linkspread.graphs import normalize
from linkspread.ground.checks import check_name
from linkspread.links import Links
from linkspread.models.spreading import check_alphas
from linkspread.propagation.parameters import check_tol
from linkspread.propagation.smoothing import smooth_over_graph
from linkspread.studies.baselines.classes import class_memberships
from linkspread.studies.baselines.graph_fits import GRAPH_PARAMETERS, fit_graphs
from linkspread.studies.baselines.matching import Chosen, ViewMatching
from linkspread.studies.baselines.side import SCORES, Side, share_rows
from linkspread.studies.baselines.steps import Steps

Array = np.ndarray


class NeighborAverage:
    """Describe new items by the mean of their fitted neighbours."""

    def __init__(self, graph: Any, distributions: Array) -> None:
        self.graph = graph
        self.distributions = distributions

    def __call__(self, rows: Any) -> Array:
        """Return distributions of shape (n_rows, n_classes), weighed by affinity."""
        return share_rows(self.graph.extend(rows) @ self.distributions)


class LabelSpreadingMatching(ViewMatching):
    """Match by labels spread within each view [Zhou2004].

    Labels spread over the graph of each view, ``(1 - alpha) (I - alpha S)^-1 U``. The
    rows are scaled to sum 1 and compared by their inner product, the probability that
    two items are of the same class. This is scikit-learn's `LabelSpreading` on the
    graphs of `LinkSpreading`, in closed form. A new item has the mean distribution of
    its neighbours, weighed by affinity.
    """

    BEFORE: ClassVar[tuple[str, ...]] = (*GRAPH_PARAMETERS, "alpha")

    def __init__(
        self,
        *,
        graph: Any = "knn",
        n_neighbors: Any = 30,
        metric: Any = "euclidean",
        bandwidth: Any = "local",
        weights: Any = "gaussian",
        alpha: Any = 0.2,
        score: str = "dot",
        tol: float = 1e-8,
        n_jobs: int | None = None,
    ) -> None:
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.bandwidth = bandwidth
        self.weights = weights
        self.alpha = alpha
        self.score = score
        self.tol = tol
        self.n_jobs = n_jobs

    def _choose(self, tables: Any) -> Chosen:
        check_name(self.score, SCORES, name="score")
        check_tol(self.tol)
        alphas = check_alphas(self.alpha, tables)
        return {view: {"alpha": alphas[view]} for view in tables}

    def _learn(self, tables: dict[str, Any], links: Links) -> dict[Any, Any]:
        alphas = {view: own["alpha"] for view, own in self._choose(tables).items()}
        return super()._learn(fit_graphs(self, tables, links, alphas), links)

    def _learn_view(self, X: Any, links: Links, view: str, **chosen: Any) -> Side:
        # X is the graph of the view here.
        compare = SCORES[self.score]
        labels = class_memberships(links, view)
        S = normalize(X.affinity_)
        distributions = share_rows(smooth_over_graph(S, labels, tol=self.tol, **chosen))
        embed = Steps(NeighborAverage(X, distributions), compare)
        return Side(compare(distributions), embed, X.n_features_in_)
