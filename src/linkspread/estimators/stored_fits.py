"""How kernels, fits, embeddings and objectives are stored."""

from typing import Any

import numpy as np

from linkspread.estimators.auto_objective import (
    AutoObjective,
    MemberEmbedding,
    Memberships,
)
from linkspread.estimators.ridge_objective import RidgeObjective
from linkspread.estimators.similar_items import SimilarItems
from linkspread.estimators.spread_objective import SpreadObjective
from linkspread.estimators.stored_graphs import GRAPH, PAIR, TABLE, is_square, joins
from linkspread.fitting.embeddings import Added, Changed, Joined, Shifted, WithColumn
from linkspread.fitting.extensions import (
    DenseExtension,
    FeatureExtension,
    GraphExtension,
    HeatExtension,
)
from linkspread.fitting.fitted_pair import FittedPair, PairEmbedding
from linkspread.fitting.gaussian_kernel import GaussianKernel
from linkspread.fitting.kernel_choice import AffinityKernel
from linkspread.fitting.labels import LabelFit
from linkspread.fitting.mass import CHANGES, MassChange
from linkspread.fitting.pairs import PairFit
from linkspread.fitting.ridge import RidgeFit
from linkspread.fitting.row_features import LandmarkFeatures, LinearFeatures
from linkspread.fitting.view_kernels import FeatureKernel, GraphKernel, MixedKernel
from linkspread.graphs.distances import METRICS
from linkspread.links import Links
from linkspread.storage import Stored
from linkspread.storage.kinds import (
    COUNT,
    FLAG,
    NOTHING,
    NUMBER,
    POSITIVE,
    SHARE,
    TEXT,
    Kind,
    array,
    csr,
    instance,
    mapping,
    sequence,
)

__all__ = ["METRIC", "STAND_INS", "STORED_FITS"]

Array = np.ndarray

KERNEL = instance(AffinityKernel, FeatureKernel, GraphKernel, MixedKernel)
EMBEDDING = instance(
    Added, Changed, DenseExtension, FeatureExtension, GraphExtension, HeatExtension,
    Joined, MemberEmbedding, Shifted, WithColumn,
)  # fmt: skip
METRIC = Kind("a metric", lambda value: isinstance(value, str) and value in METRICS)
MASS = Kind("a mass", lambda value: isinstance(value, str) and value in CHANGES)
# What embeddings are lazy about must be stored with all that it needs.
STAND_INS: dict[type, Any] = {PairEmbedding: lambda embedding: embedding.prepared}


def _take_ridge_fit(fit: RidgeFit) -> dict[str, Any]:
    """Return a fit; what was never left out, NaN, is kept apart from the numbers."""
    is_known = ~np.isnan(fit.held_out)
    return {
        "coefficients": fit.coefficients,
        "held_out": np.where(is_known, fit.held_out, 0.0).astype(fit.held_out.dtype),
        "is_held_out": is_known,
        "error": fit.error,
        "ridge": fit.ridge,
        "residual": fit.residual,
    }


def _make_ridge_fit(*, held_out: Array, is_held_out: Array, **others: Any) -> RidgeFit:
    """Return a fit."""
    unknown = held_out.dtype.type(np.nan)
    if held_out.shape != is_held_out.shape:
        raise ValueError("what was left out must be known of each value")
    return RidgeFit(held_out=np.where(is_held_out, held_out, unknown), **others)


def _check_label_fit(fit: LabelFit) -> bool:
    """Tell whether a fit is of the items of its kernel."""
    n_items, n_classes = fit.kernel.n_items, fit.targets.shape[1]
    return (
        fit.values.shape == fit.coefficients.shape == (n_items, n_classes)
        and fit.fit.held_out.shape == fit.targets.shape
        and len(fit.weights) == len(fit.rows) == len(fit.targets)
        and _are_inside(fit.rows, n_items)
    )


def _check_pair_fit(fit: PairFit) -> bool:
    """Tell whether a fit is of the items of its kernels."""
    shape = tuple(kernel.n_items for kernel in fit.kernels)
    return (
        fit.coefficients.shape == shape
        and len(fit.rows) == len(fit.columns) == len(fit.fit.held_out)
        and _are_inside(fit.rows, shape[0])
        and _are_inside(fit.columns, shape[1])
    )


def _are_inside(positions: Array, n_items: int) -> bool:
    """Tell whether positions are of a view with so many items."""
    return bool(positions.min(initial=0) >= 0 and positions.max(initial=-1) < n_items)


def _take_graph_kernel(kernel: GraphKernel) -> dict[str, Any]:
    """Return what a kernel is made of, without its entries."""
    names = ("S", "alpha", "similar", "tol", "lengths", "plain_diagonal")
    return {name: getattr(kernel, name) for name in names}


def _check_graph_kernel(kernel: GraphKernel) -> bool:
    """Tell whether a kernel's parts are of the same items."""
    n_items = kernel.n_items
    sizes = (len(kernel.lengths), len(kernel.plain_diagonal))
    return is_square(kernel.S, n_items) and sizes == (n_items, n_items)


def _check_linear(features: LinearFeatures) -> bool:
    """Tell whether a scaling has all it needs, for the same columns."""
    sizes = {len(own) for own in (features.mean, features.scale) if own is not None}
    components = features.components
    if components is None:
        sizes.add(len(features.centre))
    else:
        sizes.add(components.shape[1])
    is_scaled = features.scaling == "sqrt" or features.scale is not None
    is_short = components is None or len(components) == len(features.centre)
    return is_scaled and is_short and len(sizes) == 1


def _check_fitted_pair(pair: FittedPair) -> bool:
    """Tell whether vectors, old and new, can be multiplied with each other."""
    new = pair.embed_left.width, pair.embed_right.width  # type: ignore[attr-defined]
    return joins(pair) and new == (pair.right.shape[1], pair.left.shape[1])


def _check_added(added: Added) -> bool:
    """Tell whether all parts of a sum have the same width."""
    is_weighed = len(added.parts) == len(added.weights)
    return is_weighed and len({part.width for part in added.parts}) == 1


def _check_members(embed: MemberEmbedding) -> bool:
    """Tell whether memberships are of the items of the graph and of its classes."""
    n_items = embed.near.graph.affinity_.shape[0]
    return embed.spread.shape == (n_items, embed.logits.width)


def _check_graph_extension(extension: GraphExtension | HeatExtension) -> bool:
    """Tell whether values are of the items of the graph."""
    sizes = {len(extension.reached)}
    if isinstance(extension, GraphExtension):
        sizes.add(len(extension.diagonal))
    if isinstance(extension.similar, SimilarItems):
        sizes.add(extension.similar.graph.affinity_.shape[0])
    return len(sizes) == 1


def _take_auto(objective: AutoObjective) -> dict[str, Any]:
    """Return an objective without the kernels of pairs, which are made when needed."""
    names = (*OBJECTIVE, *OVER_GRAPHS, "n_features", "tables", "metrics", "story")
    taken = {name: getattr(objective, name) for name in names}
    return {**taken, "memberships": objective._memberships}


def _make_auto(memberships: Any, **others: Any) -> AutoObjective:
    """Return an objective."""
    return AutoObjective(**others, _memberships=memberships)


OBJECTIVE = {
    "links": instance(Links),
    "balance": TEXT | NUMBER,
    "rank": COUNT | NOTHING,
    "tol": POSITIVE,
}
OVER_GRAPHS = {"graphs": mapping(GRAPH), "normalized": mapping(csr())}

STORED_FITS = (
    Stored(SimilarItems, {"graph": GRAPH, "view": TEXT}),
    Stored(
        GaussianKernel,
        {"anchors": TABLE, "metric": METRIC, "width": POSITIVE},
        make=GaussianKernel.resume,
    ),
    Stored(
        LandmarkFeatures,
        {"compare": instance(GaussianKernel), "turn": array(2)},
        check=lambda own: own.compare.anchors.shape[0] == len(own.turn),
    ),
    Stored(
        LinearFeatures,
        {
            "scaling": TEXT,
            "centre": array(1),
            "length": POSITIVE,
            "constant": FLAG,
            "mean": array(1) | NOTHING,
            "scale": array(1) | NOTHING,
            "components": array(2) | NOTHING,
        },
        check=_check_linear,
    ),
    Stored(AffinityKernel, {"compare": instance(GaussianKernel)}),
    Stored(
        FeatureKernel,
        {"features": array(2), "embed": instance(LinearFeatures, LandmarkFeatures)},
        check=lambda own: own.features.shape[1] == own.embed.width,
    ),
    Stored(
        GraphKernel,
        {
            "S": csr(),
            "alpha": SHARE,
            "similar": instance(SimilarItems) | NOTHING,
            "tol": POSITIVE,
            "lengths": array(1),
            "plain_diagonal": array(1),
        },
        take=_take_graph_kernel,
        make=GraphKernel.resume,
        check=_check_graph_kernel,
    ),
    Stored(
        MixedKernel,
        {"kernels": sequence(KERNEL), "weights": sequence(NUMBER)},
        check=lambda own: (
            len({kernel.n_items for kernel in own.kernels}) == 1
            and len(own.kernels) == len(own.weights)
        ),
    ),
    Stored(
        GraphExtension,
        {
            "similar": instance(SimilarItems) | NOTHING,
            "alpha": SHARE,
            "diagonal": array(1),
            "reached": array(2),
        },
        check=_check_graph_extension,
    ),
    Stored(
        HeatExtension,
        {"similar": instance(SimilarItems) | NOTHING, "reached": array(2)},
        check=_check_graph_extension,
    ),
    Stored(
        DenseExtension,
        {
            "compare": instance(GaussianKernel),
            "used": array(1, "i"),
            "coefficients": array(2),
        },
        check=lambda own: (
            len(own.used) == len(own.coefficients)
            and _are_inside(own.used, own.compare.anchors.shape[0])
        ),
    ),
    Stored(
        FeatureExtension,
        {
            "features": instance(LinearFeatures, LandmarkFeatures),
            "coefficients": array(2),
        },
        check=lambda own: own.features.width == len(own.coefficients),
    ),
    Stored(
        Added,
        {"parts": sequence(EMBEDDING), "weights": sequence(NUMBER)},
        check=_check_added,
    ),
    Stored(
        Shifted,
        {"embed": EMBEDDING, "shift": array(1)},
        check=lambda own: own.embed.width == len(own.shift),
    ),
    Stored(Joined, {"parts": sequence(EMBEDDING)}),
    Stored(
        MassChange,
        {"mass": MASS, "shares": array(1) | NOTHING, "sharpness": NUMBER},
    ),
    Stored(
        Changed,
        {"embed": EMBEDDING, "change": instance(MassChange), "turn": array(2)},
        check=lambda own: (
            own.embed.width == len(own.turn)
            and (own.change.shares is None or len(own.change.shares) == len(own.turn))
        ),
    ),
    Stored(WithColumn, {"embed": EMBEDDING, "value": NUMBER}),
    Stored(
        MemberEmbedding,
        {
            "logits": instance(Added),
            "near": instance(SimilarItems),
            "alpha": SHARE,
            "spread": array(2),
        },
        check=_check_members,
    ),
    Stored(
        Memberships,
        {"values": array(2), "embed": instance(MemberEmbedding), "shares": array(1)},
        check=lambda own: (
            own.values.shape == own.embed.spread.shape
            and len(own.shares) == own.values.shape[1]
        ),
    ),
    Stored(
        FittedPair,
        {
            **dict.fromkeys(("left", "right", "core"), array(2)),
            **dict.fromkeys(("embed_left", "embed_right"), EMBEDDING),
            "error": NUMBER,
        },
        check=_check_fitted_pair,
    ),
    Stored(
        RidgeFit,
        {
            "coefficients": array(2),
            "held_out": array(2),
            "is_held_out": Kind(
                "truth values",
                lambda value: isinstance(value, np.ndarray) and value.dtype == bool,
            ),
            **dict.fromkeys(("error", "ridge", "residual"), NUMBER),
        },
        take=_take_ridge_fit,
        make=_make_ridge_fit,
        check=lambda own: own.coefficients.shape == own.held_out.shape,
    ),
    Stored(
        LabelFit,
        {
            "kernel": KERNEL,
            "rows": array(1, "i"),
            "fit": instance(RidgeFit),
            "weights": array(1),
            **dict.fromkeys(("targets", "coefficients", "values"), array(2)),
        },
        check=_check_label_fit,
    ),
    Stored(
        PairFit,
        {
            "kernels": sequence(KERNEL, length=2),
            "coefficients": csr(),
            "fit": instance(RidgeFit),
            "rows": array(1, "i"),
            "columns": array(1, "i"),
        },
        check=_check_pair_fit,
    ),
    Stored(
        SpreadObjective,
        {**OBJECTIVE, **OVER_GRAPHS, "alphas": mapping(SHARE), "beta": SHARE},
    ),
    Stored(
        RidgeObjective,
        {
            **OBJECTIVE,
            "n_features": mapping(COUNT),
            "kernels": mapping(KERNEL),
            "ridge": POSITIVE | TEXT,
            "mass": MASS,
            "labels": mapping(instance(LabelFit)),
            "pairs": mapping(instance(PairFit), keys=PAIR),
        },
    ),
    Stored(
        AutoObjective,
        {
            **OBJECTIVE,
            **OVER_GRAPHS,
            "n_features": mapping(COUNT),
            "tables": mapping(TABLE),
            "metrics": mapping(METRIC),
            "story": mapping(TEXT),
            "memberships": mapping(instance(Memberships)),
        },
        take=_take_auto,
        make=_make_auto,
    ),
)
