"""The methods of the tables, each with the grid its parameters are chosen from.

Grids are stages: each starts from the best setting of those before (see
`selection.tune`). Rivals are tuned over as many choices as our own rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkspread.ground.errors import LinkspreadError
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

OURS, PAPER_RIVAL, MODERN_RIVAL = "paper", "paper's rivals", "further rivals"
ALPHAS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95)
BETAS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
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


@dataclass(frozen=True)
class Method:
    """A row of a table."""

    name: str
    group: str
    model: Any
    grid: Sequence[Grid] = ()
    matched: bool = False
    after: str = ""
    inherited: tuple[str, ...] = ()


# The paper's method, and the learner, which chooses everything itself: nothing is left
# to choose by cross-validation.
OWN, LEARNER = "LinkSpreading", "CrossViewSearch"
LEARNT = Method(LEARNER, OURS, CrossViewSearch())


def table_methods(
    metrics: Mapping[str, Sequence[str]],
    widths: Mapping[str, Sequence[Any]],
    *,
    quick: bool = False,
) -> list[Method]:
    """Return the rows of the paper's tables and fair rivals."""
    return [
        *(_correlation(kind, quick=quick) for kind in ("pls", "cfa", "cca")),
        *_inter_cp(metrics, widths, quick=quick),
        _correlation("cca", quick=quick, roots=True),
        *label_methods(metrics, quick=quick)[1:],
    ]


def label_methods(
    metrics: Mapping[str, Sequence[str]], *, quick: bool = False
) -> list[Method]:
    """Return what can be learnt from labels; the first is ours."""
    views, guess = list(metrics), _best_guess(metrics)
    neighbors: Grid = {"n_neighbors": _each(views, [10, 30, 90])}
    smoothing: Grid = {"alpha": _each(views, [0.05, 0.2, 0.5, 0.8, 0.95])}
    spreading: list[Grid] = [{"metric": _lists(metrics)}, neighbors, smoothing]
    if quick:
        spreading = [{"n_neighbors": [30, 90], "alpha": [0.2, 0.5]}]
    return [
        _link_spreading(metrics, quick=quick),
        LEARNT,
        Method(
            "SM (logistic)",
            MODERN_RIVAL,
            SemanticMatching(),
            [
                {"scaling": _each(views, ["standard", "sqrt"])},
                {"C": _each(views, [0.01, 0.1, 1.0, 10.0])},
                {"score": ["correlation", "dot"]},
            ],
        ),
        _support_vectors(metrics, quick=quick),
        Method(
            "LabelSpreading",
            MODERN_RIVAL,
            LabelSpreadingMatching(metric=guess),
            [*spreading, {"score": ["dot", "correlation"]}],
        ),
        Method("CMCP", MODERN_RIVAL, RowThenColumn(metric=guess), spreading),
    ]


def _link_spreading(metrics: Mapping[str, Sequence[str]], *, quick: bool) -> Method:
    """Return our estimator with k-NN graphs, as a user would tune it."""
    views = list(metrics)
    some: Grid = {"alpha": [0.1, 0.5], "beta": [0.8]}
    stages: list[Grid] = [
        {"metric": _lists(metrics), **some},
        {"n_neighbors": [10, 30, 90], **some},
        {"bandwidth": ["local", "0.3 mean", "0.5 mean"], **some},
        {"alpha": _each(views, ALPHAS[1:]), "beta": [0.1, 0.5, 0.8, 0.95]},
    ]
    model = LinkSpreading(metric=_best_guess(metrics))
    return Method(OWN, OURS, model, stages[1::2] if quick else stages)


def _support_vectors(metrics: Mapping[str, Sequence[str]], *, quick: bool) -> Method:
    """Return semantic matching with support vector machines."""
    views, kernels = list(metrics), _kernels(metrics)
    stages: list[Grid] = [
        {"kernel": kernels},
        {"C": _each(views, [1.0, 10.0]), "width": _each(views, [0.25, 0.5, 1.0])},
        {"score": ["correlation", "dot"]},
    ]
    guess = {view: own[-1] for view, own in kernels.items()}
    model = SemanticMatching(classifier="svm", kernel=guess, cv=3)
    return Method("SM (SVM)", MODERN_RIVAL, model, [] if quick else stages)


def link_methods(metrics: Mapping[str, Sequence[str]]) -> list[Method]:
    """Return what can be learnt from single judged pairs; the first is ours."""
    views = list(metrics)
    return [
        Method(
            OWN,
            OURS,
            LinkSpreading(metric=_best_guess(metrics)),
            [
                {"n_neighbors": [30, 90], "alpha": [0.3, 0.9], "rank": [16, 64]},
                {"beta": [0.5], "rank": [16, 64]},
            ],
        ),
        LEARNT,
        Method(
            "CMCP",
            MODERN_RIVAL,
            RowThenColumn(metric=_best_guess(metrics)),
            [{"n_neighbors": [30, 90], "alpha": [0.3, 0.9], "rank": [16, 64]}],
        ),
        Method(
            "CCA",
            MODERN_RIVAL,
            CorrelationMatching(),
            [
                {"scaling": ["standard", "sqrt"], "reg": [0.01, 0.1, 1.0]},
                {"n_components": [3, 8, 20, None], "power": [0.0, 1.0]},
            ],
        ),
        Method(
            "bilinear ridge",
            MODERN_RIVAL,
            BilinearRidge(),
            [
                {"scaling": ["standard", "sqrt"], "ridge": [0.01, 0.1]},
                {"n_components": [4, 8, 16, 32], "ridge": [1e-3, 0.01, 0.1, 1.0]},
            ],
        ),
        Method(
            "kernel smoother",
            MODERN_RIVAL,
            KernelSmoother(metric=_best_guess(metrics)),
            [
                {
                    "width": _each(views, [0.15, 0.3, 0.5, 1.0]),
                    "normalize": [True, False],
                }
            ],
        ),
    ]


def matched_methods(metrics: Mapping[str, Sequence[str]]) -> list[Method]:
    """Return what can be learnt from rows that match; the first is ours."""
    wanted = (OWN, LEARNER, "CMCP", "CCA", "kernel smoother")
    methods = [method for method in link_methods(metrics) if method.name in wanted]
    grid = next(method.grid for method in methods if method.name == "CCA")
    others = [
        Method(kind.upper(), PAPER_RIVAL, CorrelationMatching(method=kind), grid)
        for kind in ("pls", "cfa")
    ]
    return [*methods, *others]


def partner_methods(
    metrics: Mapping[str, str], *, shared_space: bool, with_cannot: bool
) -> list[Method]:
    """Return what can learn to find partners; the first is ours."""
    ridges = [1e-3, 0.01, 0.1, 1.0, 10.0]
    spaces = ["both", *metrics]
    scalings = ["none"] if shared_space else ["none", "standard"]
    methods = [
        Method(LEARNER, OURS, CrossViewSearch(metric=dict(metrics))),
        Method(OWN, OURS, LinkSpreading(metric=dict(metrics))),
        Method(
            "ridge map",
            MODERN_RIVAL,
            RidgeMap(),
            [{"ridge": ridges, "scaling": scalings}, {"space": spaces}],
        ),
        Method(
            "CCA",
            MODERN_RIVAL,
            CorrelationMatching(scaling="none"),
            [
                {"reg": ridges, "scaling": scalings},
                {"n_components": [8, 32, 128, None], "power": [0.0, 1.0]},
            ],
        ),
        Method(
            "CSA",
            MODERN_RIVAL,
            CanonicalSimilarity(),
            [
                {"reg": ridges, "scaling": scalings},
                {"n_components": [8, 32, 128, None]},
            ],
        ),
        Method(
            "ASIF",
            MODERN_RIVAL,
            AnchorSimilarity(),
            [
                {"n_neighbors": [5, 20, 80, None], "power": [1.0, 2.0, 4.0, 8.0]},
                {"centered": [True, False]},
            ],
        ),
        Method(
            "spectral + CCA",
            MODERN_RIVAL,
            SpectralMatching(metric=dict(metrics)),
            [{"n_components": [30, 90], "reg": [0.1, 1.0]}],
        ),
        Method(
            "kernel smoother",
            MODERN_RIVAL,
            KernelSmoother(metric=dict(metrics)),
            [{"width": [0.15, 0.3, 0.5, 1.0], "normalize": [True, False]}],
        ),
    ]
    if with_cannot:
        bilinear: Grid = {"n_components": [8, 32], "ridge": [1e-3, 0.01, 0.1]}
        methods.append(
            Method("bilinear ridge", MODERN_RIVAL, BilinearRidge(), [bilinear])
        )
    if shared_space:
        near: list[Grid] = [{"ridge": [0.1, 1.0, 10.0, 100.0, 1e3]}, {"space": spaces}]
        methods.append(
            Method("ridge to identity", MODERN_RIVAL, RidgeToIdentity(), near)
        )
    return methods


def _correlation(kind: str, *, quick: bool, roots: bool = False) -> Method:
    """Return correlation analysis followed by semantic abstraction."""
    sizes = [5, 10, None] if quick else [3, 5, 7, 10, 20, None]
    stages: list[Grid] = [{"C": [0.1, 1.0, 10.0], "n_components": sizes}]
    if kind == "cca" and not quick:
        stages.append({"reg": [1e-3, 0.01, 0.1, 1.0]})
    # The paper's rows have the features as they are; square roots are a later trick.
    name = f"CA+SA ({kind.upper()}{', square roots' if roots else ''})"
    group = MODERN_RIVAL if roots else PAPER_RIVAL
    model = CorrelationSemantics(method=kind, scaling="sqrt" if roots else "standard")
    return Method(name, group, model, stages, matched=True)


def _inter_cp(
    metrics: Mapping[str, Sequence[str]],
    widths: Mapping[str, Sequence[Any]],
    *,
    quick: bool,
) -> list[Method]:
    """Return the paper's method with each of its four graphs."""
    views, guess = list(metrics), _best_guess(metrics)
    some: Grid = {"alpha": [0.05, 0.2, 0.5], "beta": [0.8]}
    kinds: Grid = {"metric": _lists(metrics), **some}
    near: Grid = {"n_neighbors": _each(views, [15, 30, 60]), **some}
    width: Grid = {"bandwidth": _lists(widths), **some}
    fixed = _fixed(widths)
    codes: Grid = {"n_neighbors": [60, 90], "bandwidth": fixed, **some}
    adjust: Grid = {
        "adjustment": [{"alpha": a, "beta": 0.95} for a in (0.1, 0.5, 0.9)],
        **some,
    }
    fine: Grid = {"alpha": _each(views, ALPHAS), "beta": list(BETAS)}
    coarse: Grid = {"alpha": _each(views, ALPHAS[1:8:2]), "beta": [0.3, 0.8, 0.95]}
    adjusted = LinkSpreading(graph="cwa", adjustment={"alpha": 0.1, "beta": 0.95})
    middle = {view: own[len(own) // 2] for view, own in fixed.items()}
    # Each graph starts from what was chosen for a simpler one, on the same labels.
    plain = {"after": "Inter-CP (k-NN)", "inherited": ("metric",)}
    same = {**plain, "inherited": ("metric", "n_neighbors", "bandwidth")}
    coded = {"after": "Inter-CP (SR)", "inherited": same["inherited"]}
    one_width: list[Grid] = [
        {"bandwidth": _each_alone(fixed, view), **some} for view in views
    ]
    rows: list[tuple[str, LinkSpreading, list[Grid], list[Grid], dict[str, Any]]] = [
        ("k-NN", LinkSpreading(metric=guess), [near], [kinds, near, width, fine], {}),
        ("SR", _codes("sr", middle), [], [codes, fine], plain),
        (
            "CWA",
            adjusted,
            [],
            [adjust, fine],
            same,
        ),
        ("CSR", _codes("csr", middle), [], [*one_width, fine], coded),
    ]
    return [
        Method(
            f"Inter-CP ({name})",
            OURS,
            model,
            [*few, coarse] if quick else many,
            **start,
        )
        for name, model, few, many, start in rows
    ]


def _codes(kind: str, width: Mapping[str, Any]) -> LinkSpreading:
    """Return a model with graphs of sparse codes, which need more neighbours."""
    return LinkSpreading(graph=kind, n_neighbors=90, bandwidth=dict(width))


def _fixed(widths: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the widths that are the same for all items."""
    return {v: [w for w in own if w != "local"] for v, own in widths.items()}


def _each(views: Sequence[str], values: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the same choices for each view."""
    return {view: list(values) for view in views}


def _each_alone(choices: Mapping[str, Sequence[Any]], view: str) -> dict[str, Any]:
    """Return the choices of one view, with the middle one of every other."""
    return {
        v: list(own) if v == view else [own[len(own) // 2]]
        for v, own in choices.items()
    }


def _lists(choices: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the choices of each view as lists."""
    return {view: list(own) for view, own in choices.items()}


def _kernels(metrics: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the kernels of support vector machines that go with the distances."""
    names = {
        "euclidean": "rbf",
        "cosine": "rbf",
        "hellinger": "hellinger",
        "chi2": "chi2",
    }
    return {v: list(dict.fromkeys(names[m] for m in own)) for v, own in metrics.items()}


def _best_guess(metrics: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the distance that suits each view's features, the last of its list."""
    for view, own in metrics.items():
        if not own:
            raise LinkspreadError(
                f"view {view!r} must have a distance to choose, got none. Name one."
            )
    return {view: own[-1] for view, own in metrics.items()}
