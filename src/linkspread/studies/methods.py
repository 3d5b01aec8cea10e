"""The methods of the studies, each with the grid of its parameters.

Grids have stages: each starts from the best setting of earlier ones (see
`selection.tune`). Baselines are tuned over as many choices as our methods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from linkspread.models import CrossViewSearch, LinkSpreading
from linkspread.studies.baselines import (
    AnchorSimilarity,
    BilinearRidge,
    CanonicalSimilarity,
    CorrelationMatching,
    CorrelationSemantics,
    KernelSmoother,
    LabelSpreadingMatching,
    RidgeMap,
    RidgeToIdentity,
    RowThenColumn,
    SemanticMatching,
    SpectralMatching,
)

Grid = Mapping[str, Any]
# By view: names of metrics, or bandwidths.
Choices = Mapping[str, Sequence[Any]]

OURS, OF_THE_PAPER, FURTHER = "paper", "paper's baselines", "further baselines"
ALPHAS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95)
BETAS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
RIDGES = (1e-3, 0.01, 0.1, 1.0, 10.0)
WIDTHS = [0.15, 0.3, 0.5, 1.0]
CORRELATION_GRID: list[Grid] = [
    {"scaling": ["standard", "sqrt"], "reg": [0.01, 0.1, 1.0]},
    {"n_components": [3, 8, 20, None], "power": [0.0, 1.0]},
]
# The printed (image to text, text to image, average) of table 1 of [Lu2015].
PRINTED = {
    "CA+SA (PLS)": (0.250, 0.190, 0.220),
    "CA+SA (CFA)": (0.272, 0.221, 0.247),
    "CA+SA (CCA)": (0.277, 0.226, 0.252),
    "Inter-CP (k-NN)": (0.329, 0.256, 0.293),
    "Inter-CP (SR)": (0.336, 0.259, 0.298),
    "Inter-CP (CWA)": (0.337, 0.260, 0.299),
    "Inter-CP (CSR)": (0.343, 0.268, 0.306),
}
# The kernel of support vector machines for each metric.
KERNELS = {
    "euclidean": "rbf",
    "cosine": "rbf",
    "hellinger": "hellinger",
    "chi2": "chi2",
}


@dataclass(frozen=True)
class Method:
    """A row of a table; it may inherit parameters chosen for another."""

    name: str
    group: str
    model: Any
    grid: Sequence[Grid] = ()
    matched: bool = False
    after: str = ""
    inherited: tuple[str, ...] = ()


# The paper's method, and the learner, which chooses its parameters in its fit and needs
# no cross-validation.
OWN, LEARNER, CHANCE = "LinkSpreading", "CrossViewSearch", "chance"
LEARNT = Method(LEARNER, OURS, CrossViewSearch())


class Chance:
    """Score every pair at random."""

    def fit(self, views: Mapping[str, Any], links: Any) -> Self:
        """Keep the sizes of the views."""
        self.sizes_ = {view: X.shape[0] for view, X in views.items()}
        return self

    def scores(
        self, source: str, target: str, *, rows: Any = None, cols: Any = None
    ) -> np.ndarray:
        """Return random scores of some items, or of all."""
        n = self.sizes_[source] if rows is None else len(rows)
        m = self.sizes_[target] if cols is None else len(cols)
        return np.random.default_rng(0).random((n, m))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return no parameters."""
        return {}


def demo_methods() -> list[Method]:
    """Return the rows of the demo."""
    return [
        LEARNT,
        _further("LabelSpreading", LabelSpreadingMatching()),
        _further(CHANCE, Chance()),
    ]


def table_methods(
    metrics: Choices, widths: Choices, *, quick: bool = False
) -> list[Method]:
    """Return the rows of the paper's tables and further baselines."""
    return [
        *(_correlation(kind, quick=quick) for kind in ("pls", "cfa", "cca")),
        *_inter_cp(metrics, widths, quick=quick),
        _correlation("cca", quick=quick, roots=True),
        *label_methods(metrics, quick=quick)[1:],
    ]


def label_methods(metrics: Choices, *, quick: bool = False) -> list[Method]:
    """Return the methods that learn from labels; the first is ours."""
    views, guess = list(metrics), _usual(metrics)
    some: Grid = {"alpha": [0.1, 0.5], "beta": [0.8]}
    own: list[Grid] = [
        {"metric": metrics, **some},
        {"n_neighbors": [10, 30, 90], **some},
        {"bandwidth": ["local", "0.3 mean", "0.5 mean"], **some},
        {"alpha": _each(views, ALPHAS[1:]), "beta": [0.1, 0.5, 0.8, 0.95]},
    ]
    spreading: list[Grid] = [
        {"metric": metrics},
        {"n_neighbors": _each(views, [10, 30, 90])},
        {"alpha": _each(views, [0.05, 0.2, 0.5, 0.8, 0.95])},
    ]
    kernels = {
        view: list(dict.fromkeys(KERNELS[name] for name in names))
        for view, names in metrics.items()
    }
    machines = SemanticMatching(classifier="svm", kernel=_usual(kernels), cv=3)
    machine_grid: list[Grid] = [
        {"kernel": kernels},
        {"C": _each(views, [1.0, 10.0]), "width": _each(views, [0.25, 0.5, 1.0])},
        {"score": ["correlation", "dot"]},
    ]
    if quick:
        own, machine_grid = own[1::2], []
        spreading = [{"n_neighbors": [30, 90], "alpha": [0.2, 0.5]}]
    return [
        Method(OWN, OURS, LinkSpreading(metric=guess), own),
        LEARNT,
        _further(
            "SM (logistic)",
            SemanticMatching(),
            {"scaling": _each(views, ["standard", "sqrt"])},
            {"C": _each(views, [0.01, 0.1, 1.0, 10.0])},
            {"score": ["correlation", "dot"]},
        ),
        _further("SM (SVM)", machines, *machine_grid),
        _further(
            "LabelSpreading",
            LabelSpreadingMatching(metric=guess),
            *spreading,
            {"score": ["dot", "correlation"]},
        ),
        _further("CMCP", RowThenColumn(metric=guess), *spreading),
    ]


def link_methods(metrics: Choices) -> list[Method]:
    """Return the methods that learn from judged pairs; the first is ours."""
    guess = _usual(metrics)
    spreading = {"n_neighbors": [30, 90], "alpha": [0.3, 0.9], "rank": [16, 64]}
    own = [spreading, {"beta": [0.5], "rank": [16, 64]}]
    return [
        Method(OWN, OURS, LinkSpreading(metric=guess), own),
        LEARNT,
        _further("CMCP", RowThenColumn(metric=guess), spreading),
        _further("CCA", CorrelationMatching(), *CORRELATION_GRID),
        _further(
            "bilinear ridge",
            BilinearRidge(),
            {"scaling": ["standard", "sqrt"], "ridge": [0.01, 0.1]},
            {"n_components": [4, 8, 16, 32], "ridge": [1e-3, 0.01, 0.1, 1.0]},
        ),
        _further(
            "kernel smoother",
            KernelSmoother(metric=guess),
            {"width": _each(list(metrics), WIDTHS), "normalize": [True, False]},
        ),
    ]


def matched_methods(metrics: Choices) -> list[Method]:
    """Return the methods that learn from matched rows; the first is ours."""
    methods = [m for m in link_methods(metrics) if m.name != "bilinear ridge"]
    others = [
        Method(
            kind.upper(),
            OF_THE_PAPER,
            CorrelationMatching(method=kind),
            CORRELATION_GRID,
        )
        for kind in ("pls", "cfa")
    ]
    return [*methods, *others]


def partner_methods(
    metrics: Mapping[str, str], *, shared_space: bool, with_cannot: bool
) -> list[Method]:
    """Return the methods that learn to find partners; the first is ours."""
    metric, ridges = dict(metrics), list(RIDGES)
    spaces = ["both", *metrics]
    scalings = ["none"] if shared_space else ["none", "standard"]
    methods = [
        Method(LEARNER, OURS, CrossViewSearch(metric=metric)),
        Method(OWN, OURS, LinkSpreading(metric=metric)),
        _further(
            "ridge map",
            RidgeMap(),
            {"ridge": ridges, "scaling": scalings},
            {"space": spaces},
        ),
        _further(
            "CCA",
            CorrelationMatching(scaling="none"),
            {"reg": ridges, "scaling": scalings},
            {"n_components": [8, 32, 128, None], "power": [0.0, 1.0]},
        ),
        _further(
            "CSA",
            CanonicalSimilarity(),
            {"reg": ridges, "scaling": scalings},
            {"n_components": [8, 32, 128, None]},
        ),
        _further(
            "ASIF",
            AnchorSimilarity(),
            {"n_neighbors": [5, 20, 80, None], "power": [1.0, 2.0, 4.0, 8.0]},
            {"centered": [True, False]},
        ),
        _further(
            "spectral + CCA",
            SpectralMatching(metric=metric),
            {"n_components": [30, 90], "reg": [0.1, 1.0]},
        ),
        _further(
            "kernel smoother",
            KernelSmoother(metric=metric),
            {"width": WIDTHS, "normalize": [True, False]},
        ),
    ]
    if with_cannot:
        bilinear = {"n_components": [8, 32], "ridge": [1e-3, 0.01, 0.1]}
        methods.append(_further("bilinear ridge", BilinearRidge(), bilinear))
    if shared_space:
        near = {"ridge": [0.1, 1.0, 10.0, 100.0, 1e3]}
        methods.append(
            _further("ridge to identity", RidgeToIdentity(), near, {"space": spaces})
        )
    return methods


def _further(name: str, model: Any, *grid: Grid) -> Method:
    """Return a baseline that is not of the paper."""
    return Method(name, FURTHER, model, list(grid))


def _correlation(kind: str, *, quick: bool, roots: bool = False) -> Method:
    """Return correlation analysis followed by semantic abstraction."""
    sizes = [5, 10, None] if quick else [3, 5, 7, 10, 20, None]
    stages: list[Grid] = [{"C": [0.1, 1.0, 10.0], "n_components": sizes}]
    if kind == "cca" and not quick:
        stages.append({"reg": [1e-3, 0.01, 0.1, 1.0]})
    # The paper's rows use the features as they are, not their square roots.
    name = f"CA+SA ({kind.upper()}{', square roots' if roots else ''})"
    group = FURTHER if roots else OF_THE_PAPER
    model = CorrelationSemantics(method=kind, scaling="sqrt" if roots else "standard")
    return Method(name, group, model, stages, matched=True)


def _inter_cp(metrics: Choices, widths: Choices, *, quick: bool) -> list[Method]:
    """Return the paper's method with each of its four graphs."""
    views = list(metrics)
    some: Grid = {"alpha": [0.05, 0.2, 0.5], "beta": [0.8]}
    kinds: Grid = {"metric": metrics, **some}
    near: Grid = {"n_neighbors": _each(views, [15, 30, 60]), **some}
    width: Grid = {"bandwidth": widths, **some}
    # Sparse codes need widths that are the same for all items.
    fixed = {v: [w for w in own if w != "local"] for v, own in widths.items()}
    middle = {view: own[len(own) // 2] for view, own in fixed.items()}
    codes: Grid = {"n_neighbors": [60, 90], "bandwidth": fixed, **some}
    one_width: list[Grid] = [
        {
            "bandwidth": {v: fixed[v] if v == view else [middle[v]] for v in fixed},
            **some,
        }
        for view in views
    ]
    adjustments = [{"alpha": a, "beta": 0.95} for a in (0.1, 0.5, 0.9)]
    adjust: Grid = {"adjustment": adjustments, **some}
    fine: Grid = {"alpha": _each(views, ALPHAS), "beta": list(BETAS)}
    coarse: Grid = {"alpha": _each(views, ALPHAS[1:8:2]), "beta": [0.3, 0.8, 0.95]}

    def row(
        name: str, model: Any, few: list[Grid], many: list[Grid], **start: Any
    ) -> Method:
        grid = [*few, coarse] if quick else [*many, fine]
        return Method(f"Inter-CP ({name})", OURS, model, grid, **start)

    def coded(kind: str) -> LinkSpreading:
        # Sparse codes need more neighbours.
        return LinkSpreading(graph=kind, n_neighbors=90, bandwidth=middle)

    # Each graph starts from what was chosen for a simpler one, on the same labels.
    plain, adjusted = "Inter-CP (k-NN)", {"alpha": 0.1, "beta": 0.95}
    same = ("metric", "n_neighbors", "bandwidth")
    nearest = LinkSpreading(metric=_usual(metrics))
    return [
        row("k-NN", nearest, [near], [kinds, near, width]),
        row("SR", coded("sr"), [], [codes], after=plain, inherited=("metric",)),
        row(
            "CWA",
            LinkSpreading(graph="cwa", adjustment=adjusted),
            [],
            [adjust],
            after=plain,
            inherited=same,
        ),
        row("CSR", coded("csr"), [], one_width, after="Inter-CP (SR)", inherited=same),
    ]


def _each(views: Sequence[str], values: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the same choices for each view."""
    return {view: list(values) for view in views}


def _usual(choices: Choices) -> dict[str, Any]:
    """Return the default choice of each view, the last of its list."""
    return {view: own[-1] for view, own in choices.items()}
