"""A fitted model as a folder, and back; see `linkspread.storage`."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from linkspread.ground.errors import ModelError
from linkspread.links import Items, Links
from linkspread.models.spreading import (
    FitReport,
    Spreading,
    check_alphas,
    check_parameters,
)
from linkspread.models.stored_graphs import GRAPH, PAIR, STORED_GRAPHS
from linkspread.models.view_graphs import GivenGraph
from linkspread.propagation import Spread
from linkspread.propagation.rows import SpreadRows
from linkspread.storage import Registry, Stored, write_folder
from linkspread.storage.kinds import (
    ANYTHING,
    COUNT,
    NOTHING,
    NUMBER,
    POSITIVE,
    SHARE,
    TEXT,
    Kind,
    csr,
    instance,
    mapping,
    sequence,
)

STORED_SPREADING = Stored(
    Spreading,
    {
        "links": instance(Links),
        "graphs": mapping(GRAPH),
        "normalized": mapping(csr()),
        "alphas": mapping(SHARE),
        "beta": SHARE,
        "balance": TEXT | NUMBER,
        "rank": COUNT | NOTHING,
        "tol": POSITIVE,
    },
)
REGISTRY = Registry((*STORED_GRAPHS, STORED_SPREADING))
# What a fitted model has, by the names of its attributes.
FITTED = {
    "view_names_": sequence(TEXT),
    "items_": mapping(instance(Items)),
    "links_": instance(Links),
    "graphs_": mapping(GRAPH),
    "spreads_": mapping(instance(Spread), keys=PAIR),
    "report_": instance(FitReport),
    "_spreading": instance(Spreading),
    "_columns": mapping(sequence(TEXT) | NOTHING),
}


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a folder."""
    # Parameters first: a function among them is what cannot be stored of most models.
    state = {"parameters": model.get_params(deep=False)}
    state |= {name: getattr(model, name) for name in FITTED}
    # Rows on demand are made of graphs and links, which are stored anyway.
    state["spreads_"] = {
        pair: scores
        for pair, scores in model.spreads_.items()
        if not isinstance(scores, SpreadRows)
    }
    views = {v: {"n_items": model.items_[v].n_items} for v in model.view_names_}
    about = {"model": type(model).__name__, "views": views, "links": str(model.links_)}
    write_folder(path, REGISTRY.encode(state, about=about))


def restore_model(make: Any, state: Mapping[str, Any]) -> Any:
    """Return a fitted model, if all its parts are of the same views."""
    check_state(state, FITTED)
    model = make(**state["parameters"])
    check_parameters(model)
    check_alphas(model.alpha, state["items_"])
    for name in FITTED:
        setattr(model, name, state[name])
    for what in _misfits(model):
        raise ModelError(
            f"{what} must be of the views of the model and of all their items, and "
            "are not. Save the model again."
        )
    for pair, report in model.report_.spreads.items():
        if report.rank is None:
            model.spreads_[pair] = model._spreading.rows(*pair)
    return model


def check_state(state: Mapping[str, Any], fitted: Mapping[str, Kind]) -> None:
    """Refuse a state that lacks something, or has something else in its place."""
    kinds = {"parameters": mapping(ANYTHING), **fitted}
    if set(state) != set(kinds):
        raise ModelError(
            f"a model must have {', '.join(kinds)}, got {', '.join(state)!s:.80}. Save "
            "the model again."
        )
    for name, kind in kinds.items():
        if not kind.accepts(state[name]):
            raise ModelError(
                f"`{name}` must be {kind.name}, got {type(state[name]).__name__}. Save "
                "the model again."
            )


def _misfits(model: Any) -> Iterator[str]:
    """Yield the parts of a model that are not of its views and items."""
    sizes = {view: items.n_items for view, items in model.items_.items()}
    if tuple(sizes) != model.view_names_ or not sizes:
        yield "items"
    if any(items.view != view for view, items in model.items_.items()):
        yield "items"
    if {v: g.affinity_.shape[0] for v, g in model.graphs_.items()} != sizes:
        yield "graphs"
    if {v: items.n_items for v, items in model.links_._items.items()} != sizes:
        yield "links"
    if not set(model.links_.views) <= set(sizes):
        yield "links"
    for (source, target), scores in model.spreads_.items():
        wanted = sizes.get(source), sizes.get(target)
        if (len(scores.left), len(scores.right)) != wanted:
            yield "vectors"
    if not _columns_fit(model):
        yield "names of columns"
    if set(model.report_.graphs) != set(sizes):
        yield "reports"
    by_row = {p for p, own in model.report_.spreads.items() if own.rank is None}
    if any(view not in sizes for pair in by_row for view in pair):
        yield "reports"
    yield from _misfits_of_spreading(model, sizes)


def _columns_fit(model: Any) -> bool:
    """Tell whether names of columns are as many as there are features, or one."""
    if set(model._columns) != set(model.view_names_):
        return False
    return all(
        names is None
        or isinstance(graph := model.graphs_[view], GivenGraph)
        or len(names) in (1, graph.n_features_in_)  # a column of lists, or all
        for view, names in model._columns.items()
    )


def _misfits_of_spreading(model: Any, sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield what makes scores and is not of the views and items."""
    spreading = model._spreading
    if spreading.links is not model.links_:
        yield "links that are spread"
    if {v: g.affinity_.shape[0] for v, g in spreading.graphs.items()} != sizes:
        yield "graphs that links spread over"
    if {v: S.shape for v, S in spreading.normalized.items()} != {
        view: (n_items, n_items) for view, n_items in sizes.items()
    }:
        yield "normalised graphs"
    if set(spreading.alphas) != set(sizes):
        yield "`alphas`"
