"""A fitted search as a folder, and back; see `linkspread.storage`.

Maps, tables and links are stored, what the items are as targets, and landmarks among
many judged pairs. Spaces that views share are made of the tables again, and cores of
the links: both are as they were, after live judgements of many pairs to rounding.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from linkspread.graphs import NeighborGraph
from linkspread.ground.errors import ModelError
from linkspread.learning import (
    Choice,
    ScoreFactors,
    Setting,
    Sides,
    ViewMap,
    fit_factors,
    maps,
    read_evidence,
)
from linkspread.learning.cores import LabelModel
from linkspread.learning.pairs import PairRows
from linkspread.learning.terms import MAPS_INTO, LabelTerm, PairsTerm, pair_columns
from linkspread.links import Items, Links
from linkspread.models.saving import REGISTRY, check_state
from linkspread.models.search_pairs import make_sides
from linkspread.models.stored_graphs import PAIR, TABLE
from linkspread.storage import Registry, Stored, write_folder
from linkspread.storage.kinds import (
    COUNT,
    NOTHING,
    NUMBER,
    POSITIVE,
    TEXT,
    array,
    fields,
    instance,
    mapping,
    sequence,
)
from linkspread.tables.validation import check_table

Array = np.ndarray
Pair = tuple[str, str]

# Of the folder: what else there is, LinkSpreading, does not name itself.
SEARCH = "CrossViewSearch"
KINDS = ("prior", "displacement", "grid", *MAPS_INTO, "pairs", "labels")
BLOCK_KINDS = instance(maps._Linear, maps._Gaussian, maps._Graph)
# Of both views: scales of each term, hub correction, the models of the labels, and
# features of landmarks among the judged pairs.
SCALES = sequence(sequence(array(1) | NOTHING), length=2)
BIAS = sequence(array(1), length=2)
LABELS = sequence(instance(LabelModel), length=2)
LANDMARKS = sequence(array(2), length=2)
FACTORS = fields(SCALES, BIAS, LABELS | NOTHING, LANDMARKS | NOTHING)


def _take_setting(setting: Setting) -> dict[str, Any]:
    """Return what was chosen of a term; no ridge is None."""
    ridge = None if np.isinf(setting.ridge) else setting.ridge
    own = {"kind": setting.kind, "mixture": setting.mixture, "weight": setting.weight}
    return {**own, "ridge": ridge}


def _make_setting(kind: str, mixture: str, ridge: Any, weight: float) -> Setting:
    """Return a setting of a known kind."""
    if kind not in KINDS or mixture not in maps.MIXTURES:
        raise ValueError(f"terms must be of a known kind, got {kind!r:.20}")
    return Setting(kind, mixture, np.inf if ridge is None else ridge, weight)


def _take_labels(model: LabelModel) -> dict[str, Any]:
    """Return a model of labels; a quality that nothing tells is None."""
    quality = None if np.isnan(model.quality) else model.quality
    own = {name: getattr(model, name) for name in ("W", "b", "shares", "weights")}
    return {**own, "quality": quality}


def _make_labels(quality: Any, **own: Any) -> LabelModel:
    """Return a model of labels."""
    return LabelModel(**own, quality=np.nan if quality is None else quality)


def _take_map(own: ViewMap) -> dict[str, Any]:
    """Return a map; what its graph says of the items is stored once."""
    blocks = dict(own.blocks)
    graph = blocks.get("graph")
    if graph is not None:
        columns = own.columns("graph")
        if np.array_equal(graph.values, own.values[:, columns]):
            blocks["graph"] = replace(graph, values=own.values[:0, columns])
    return {
        "metric": own.metric,
        "blocks": blocks,
        "values": own.values,
        "n_features": own.n_features,
    }


def _make_map(
    metric: str, blocks: dict[str, Any], values: Array, n_features: int
) -> ViewMap:
    """Return a map whose blocks are of its columns."""
    made = ViewMap(metric, blocks, values, n_features)
    graph = blocks.get("graph")
    if graph is not None and len(graph.values) == 0:
        graph.values = values[:, made.columns("graph")]
    return made


def _check_map(own: ViewMap) -> bool:
    """Tell whether the blocks of a map are of one view."""
    kinds = {"linear": maps._Linear, "gaussian": maps._Gaussian, "graph": maps._Graph}
    if not own.blocks or not set(own.blocks) <= set(kinds):
        return False
    if any(type(block) is not kinds[name] for name, block in own.blocks.items()):
        return False
    widths = {name: len(block.mean) for name, block in own.blocks.items()}
    if sum(widths.values()) != own.values.shape[1]:
        return False
    shapes = {
        "linear": lambda block: (
            (len(block.mean),) if block.components is None else block.components.shape
        ),
        "gaussian": lambda block: (*block.landmarks.shape, *block.factor.shape),
        "graph": lambda block: (
            block.graph.n_features_in_,
            block.graph.affinity_.shape[0],
            block.values.shape[1],
        ),
    }
    d = own.n_features
    for name, block in own.blocks.items():
        k = widths[name]
        wanted = {
            "linear": {(k,), (d, k)} if k == d else {(d, k)},
            "gaussian": {(k, d, k, k)},
            "graph": {(d, len(getattr(block, "values", ())), k)},
        }
        if shapes[name](block) not in wanted[name]:
            return False
    return True


STORED_SEARCH = (
    Stored(
        Setting,
        {"kind": TEXT, "mixture": TEXT, "ridge": NUMBER | NOTHING, "weight": NUMBER},
        take=_take_setting,
        make=_make_setting,
    ),
    Stored(
        Choice,
        {
            "terms": sequence(instance(Setting)),
            "hubs": NUMBER,
            "n_held_out": COUNT,
            "quality": mapping(NUMBER),
        },
    ),
    Stored(
        LabelModel,
        {
            "W": array(2),
            "b": array(1),
            "shares": array(1),
            "weights": mapping(NUMBER),
            "quality": NUMBER | NOTHING,
        },
        take=_take_labels,
        make=_make_labels,
        check=lambda own: own.W.shape[1:] == own.b.shape == own.shares.shape,
    ),
    Stored(
        maps._Linear,
        {"components": array(2) | NOTHING, "mean": array(1), "size": POSITIVE},
    ),
    Stored(
        maps._Gaussian,
        {
            "landmarks": array(2),
            "width": POSITIVE,
            "factor": array(2),
            "mean": array(1),
            "size": POSITIVE,
        },
    ),
    Stored(
        maps._Graph,
        {
            "graph": instance(NeighborGraph),
            "values": array(2),
            "mean": array(1),
            "size": POSITIVE,
        },
        make=lambda graph, **own: maps._Graph(graph, graph._index.items, **own),
    ),
    Stored(
        ViewMap,
        {
            "metric": TEXT,
            "blocks": mapping(BLOCK_KINDS),
            "values": array(2),
            "n_features": COUNT,
        },
        take=_take_map,
        make=_make_map,
        check=_check_map,
    ),
)
SEARCH_REGISTRY = Registry((*REGISTRY.by_name.values(), *STORED_SEARCH))
# What a fitted search has, by the names of its attributes.
FITTED = {
    "view_names_": sequence(TEXT),
    "items_": mapping(instance(Items)),
    "links_": instance(Links),
    "choices_": mapping(instance(Choice), keys=PAIR),
    "_columns": mapping(sequence(TEXT) | NOTHING),
    "_tables": mapping(TABLE),
    "_maps": mapping(instance(ViewMap)),
    "_chosen_at": mapping(COUNT, keys=PAIR),
}


def save_search(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted search to a folder."""
    state = {"model": SEARCH, "parameters": _parameters(model)}
    state |= {name: getattr(model, name) for name in FITTED}
    state["factors"] = {
        pair: _take_factors(own) for pair, own in model._factors.items()
    }
    views = {v: {"n_items": model.items_[v].n_items} for v in model.view_names_}
    about = {"model": SEARCH, "views": views, "links": str(model.links_)}
    write_folder(path, SEARCH_REGISTRY.encode(state, about=about))


def restore_search(make: Any, state: Mapping[str, Any]) -> Any:
    """Return a fitted search, if all its parts are of the same views."""
    kinds = {"model": TEXT, **FITTED, "factors": mapping(FACTORS, keys=PAIR)}
    check_state(state, kinds)
    model = make(**state["parameters"])
    for name in FITTED:
        setattr(model, name, state[name])
    _refuse(_misfits(model))
    _refuse(_misfits_of_pairs(model, state["factors"]))
    model._priors = model._choose_priors(model._tables)
    model._factors = {
        pair: _make_factors(model, pair, own) for pair, own in state["factors"].items()
    }
    return model


def _refuse(misfits: Iterator[str]) -> None:
    """Refuse a model whose parts are of other items."""
    for what in misfits:
        raise ModelError(
            f"{what} must be of the views of the model and of all their items, and "
            "are not. Save the model again."
        )


def _parameters(model: Any) -> dict[str, Any]:
    """Return the parameters; tables among them in the form of views."""
    parameters = model.get_params(deep=False)
    if isinstance(model.prior, Mapping):
        given = {view: check_table(X, view=view) for view, X in model.prior.items()}
        parameters["prior"] = given
    return parameters


def _take_factors(factors: ScoreFactors) -> tuple[Any, ...]:
    """Return what the items are as targets, models of labels, and landmarks."""
    labels = landmarks = None
    for term, _ in factors.terms:
        if isinstance(term, LabelTerm):
            labels = term.models
        if isinstance(term, PairsTerm) and term.landmarks is not None:
            both = term.rows.left, term.rows.right
            landmarks = tuple(own.astype(np.float32) for own in both)
    return factors.scales, factors.bias, labels, landmarks


def _make_factors(model: Any, pair: Pair, own: tuple[Any, ...]) -> ScoreFactors:
    """Return the scores of two views, their cores fitted to the links again."""
    scales, bias, labels, landmarks = own
    choice, evidence = model.choices_[pair], read_evidence(model.links_, *pair)
    sides = make_sides(model._maps, model._priors, pair)
    _check_terms(choice, sides, pair, has_labels=evidence.labels is not None)
    terms: tuple[Any, ...] = ()
    classes: Any = (None, None)
    if labels is not None:
        term = LabelTerm(labels)
        terms = ((term, 1.0),)
        classes = tuple(term.classes(k, sides.rows(k, slice(None))) for k in (0, 1))
    if landmarks is not None:
        both = (own.astype(np.float64) for own in landmarks)
        rows = PairRows(pair_columns(sides), *both)
        terms += ((PairsTerm(rows, np.zeros(0), 1.0, rows.factor()), 1.0),)
    before = ScoreFactors(sides, terms, scales, bias, classes)
    return fit_factors(sides, evidence, choice, before=before)


def _check_terms(choice: Choice, sides: Sides, pair: Pair, *, has_labels: bool) -> None:
    """Refuse terms for which there is nothing to fit."""
    for term in choice.terms:
        is_shared = term.kind in ("prior", "displacement")
        has_kernels = all(own.has(term.mixture) for own in sides.maps)
        if (
            (is_shared and sides.prior is None)
            or (term.kind == "labels" and not has_labels)
            or not has_kernels
        ):
            raise ModelError(
                f"terms of {pair[0]!r} and {pair[1]!r} must be of what these views "
                f"have, got {term.kind!r}. Save the model again."
            )


def _misfits(model: Any) -> Iterator[str]:
    """Yield the parts of a search that are not of its views and items."""
    sizes = {view: items.n_items for view, items in model.items_.items()}
    if tuple(sizes) != model.view_names_ or len(sizes) < 2:
        yield "items"
    if any(items.view != view for view, items in model.items_.items()):
        yield "items"
    if {view: own.n_items for view, own in model._maps.items()} != sizes:
        yield "maps"
    shapes = {view: (n, model._maps[view].n_features) for view, n in sizes.items()}
    if {view: X.shape for view, X in model._tables.items()} != shapes:
        yield "tables"
    if {view: own.n_items for view, own in model.links_._items.items()} != sizes:
        yield "links"
    if not set(model.links_.views) <= set(sizes):
        yield "links"
    if set(model._columns) != set(sizes) or any(
        names is not None and len(names) not in (1, shapes[view][1])
        for view, names in model._columns.items()
    ):
        yield "names of columns"


def _misfits_of_pairs(model: Any, factors: Mapping[Pair, Any]) -> Iterator[str]:
    """Yield what makes scores and is not of the views and items."""
    places = {view: k for k, view in enumerate(model.view_names_)}
    pairs = set(model.choices_)
    if set(factors) != pairs or set(model._chosen_at) != pairs:
        yield "choices"
    if any(
        a not in places or b not in places or places[a] > places[b] for a, b in pairs
    ):
        yield "choices"
    for pair, (scales, bias, labels, landmarks) in factors.items():
        n_terms = len(model.choices_[pair].terms)
        has_labels = any(t.kind == "labels" for t in model.choices_[pair].terms)
        if has_labels != (labels is not None):
            yield "labels"
        for side, view in enumerate(pair):
            n_items = model.items_[view].n_items
            own = [scale for scale in scales[side] if scale is not None]
            if len(scales[side]) != n_terms or any(len(s) != n_items for s in own):
                yield "scales"
            if len(bias[side]) != n_items:
                yield "hub corrections"
            width = model._maps[view].values.shape[1]
            if labels is not None and labels[side].W.shape[0] != width:
                yield "labels"
            if landmarks is not None and landmarks[side].shape != (
                len(landmarks[0]),
                width,
            ):
                yield "landmarks"
        if labels is not None and len(labels[0].b) != len(labels[1].b):
            yield "labels"
