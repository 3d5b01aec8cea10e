"""Save fitted models to folders, and load them; see `linkspread.storage`.

Of a `LinkSpreading`, graphs, links and scores are stored. Of a `CrossViewSearch`: maps,
tables, links, scales and hub corrections of the targets, and landmarks among many
judged pairs. Its shared spaces are computed again from the tables and its cores from
the links: the same numbers, up to rounding after many pairs judged since the fit.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np
from scipy import sparse
from scipy.sparse import csr_array

from linkspread.compiled.lad import Report
from linkspread.graphs import L1Graph, NeighborGraph
from linkspread.graphs.l1 import L1Report
from linkspread.graphs.neighbors import check_n_neighbors
from linkspread.ground.errors import ModelError
from linkspread.learning import (
    Choice,
    ScoreFactors,
    Setting,
    Sides,
    ViewMap,
    fit_factors,
    maps,
)
from linkspread.learning.cores import LabelModel
from linkspread.learning.pairs import PairRows
from linkspread.learning.terms import MAPS_INTO, LabelTerm, PairsTerm, pair_columns
from linkspread.links import Items, LinkMatrix, Links
from linkspread.links.evidence import read_evidence
from linkspread.links.pairs import PairTable
from linkspread.models.cross_view_search import CrossViewSearch
from linkspread.models.link_spreading import LinkSpreading
from linkspread.models.search_pairs import make_sides
from linkspread.models.spreading import (
    AdjustedGraph,
    FitReport,
    GivenGraph,
    GraphReport,
    Spreading,
    SpreadReport,
    check_alphas,
    check_parameters,
    fitted_table,
)
from linkspread.models.view_spaces import choose_priors
from linkspread.propagation import Spread
from linkspread.propagation.rows import SpreadRows
from linkspread.storage.files import naming_file
from linkspread.storage.folder import MANIFEST, read_folder, write_folder
from linkspread.storage.schema import (
    AnyMatrix,
    IdArray,
    Matrix,
    Positions,
    Registry,
    Stored,
    Vector,
)
from linkspread.tables.validation import LARGEST, check_table

Array = np.ndarray
Graph = NeighborGraph | L1Graph | AdjustedGraph | GivenGraph
Pair = tuple[str, str]
# Views, weights, rows, columns, and whether by row.
Pairs = tuple[Pair, Vector, Positions, Positions, bool]
TERMS = ("prior", "displacement", "grid", *MAPS_INTO, "pairs", "labels")


# For both views: scales of each term, hub corrections, the models of the labels, and
# features of landmarks among the judged pairs.
Scales = tuple[Vector | None, ...]
Factors = tuple[
    tuple[Scales, Scales],
    tuple[Vector, Vector],
    tuple[LabelModel, LabelModel] | None,
    tuple[Matrix, Matrix] | None,
]


class SpreadingState(TypedDict):
    """The stored attributes of a `LinkSpreading`."""

    parameters: dict[str, Any]
    view_names_: tuple[str, ...]
    items_: dict[str, Items]
    links_: Links
    graphs_: dict[str, Graph]
    spreads_: dict[Pair, Spread]
    report_: FitReport
    _columns: dict[str, tuple[str, ...] | None]


class SearchState(TypedDict):
    """The stored attributes of a `CrossViewSearch`."""

    parameters: dict[str, Any]
    view_names_: tuple[str, ...]
    items_: dict[str, Items]
    links_: Links
    choices_: dict[Pair, Choice]
    _columns: dict[str, tuple[str, ...] | None]
    _tables: dict[str, AnyMatrix]
    _maps: dict[str, ViewMap]
    _chosen_at: dict[Pair, int]
    _factors: dict[Pair, Factors]


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a folder."""
    views = {v: {"n_items": model.items_[v].n_items} for v in model.view_names_}
    about = {"model": type(model).__name__, "views": views, "links": str(model.links_)}
    write_folder(path, REGISTRY.encode(model, about=about))


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Any:
    """Load a model that its method `save` wrote.

    Nothing is executed, and everything is checked before it is used: a damaged or
    forged folder is refused with a message that names the file.

    Parameters
    ----------
    path : str or Path
        The folder.
    verify : bool, default=True
        Compare the checksums of all files, which takes 1 to 2 s per GB.

    Returns
    -------
    model : CrossViewSearch or LinkSpreading
        The saved model. Its arrays are mapped into memory, read from the disk on
        demand, and shared by all processes that load the model.

    Examples
    --------
    >>> import tempfile
    >>> import linkspread as ls
    >>> data = ls.datasets.make_views(90, n_classes=3, random_state=0)
    >>> model = ls.LinkSpreading(n_neighbors=10).fit(data.views(), data.labels)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder)
    ...     again = ls.load(folder)
    >>> again.search(7, source="text", target="image", n_results=3)[0].shape
    (3,)
    """
    content = read_folder(path, verify=verify)
    with naming_file(MANIFEST):
        model = REGISTRY.decode(content, of=CrossViewSearch | LinkSpreading)
    with naming_file(content.arrays_file):
        _check_values(model)
        if isinstance(model, LinkSpreading):
            _complete(model)
    return model


def _check_values(model: Any) -> None:
    """Refuse graphs that are none, and numbers so large that scores overflow."""
    graphs: list[Any] = []
    if isinstance(model, LinkSpreading):
        graphs += model.graphs_.values()
        tables = [fitted_table(graph) for graph in graphs]
        spread = [own for own in model.spreads_.values() if isinstance(own, Spread)]
        tables += [table for own in spread for table in (own.left, own.core, own.right)]
        edges = [graph.affinity_ for graph in graphs]
    else:
        maps = [(own, own.blocks.get("graph")) for own in model._maps.values()]
        edges = [block.graph.affinity_ for _, block in maps if block is not None]
        tables = [own.values for own, _ in maps]
        for factors in model._factors.values():
            tables += [*factors.bias, *(s for own in factors.scales for s in own)]
    for W in edges:
        if W.data.min(initial=0) < 0:
            raise ModelError(
                f"edges of a graph must be at least 0, got {W.data.min():.3g} among "
                f"{W.shape[0]:,} items. Save the model again."
            )
    for table in [*tables, *edges]:
        values = getattr(table, "data", table) if sparse.issparse(table) else table
        if values is not None and np.abs(values).max(initial=0) > LARGEST:
            raise ModelError(
                f"numbers of a model must be at most {LARGEST:.0e}, got "
                f"{np.abs(values).max():.3g}. Save the model again."
            )


def _take_spreading(model: LinkSpreading) -> dict[str, Any]:
    """Return the parameters, and the scores that are not computed on demand."""
    scores = {
        pair: own
        for pair, own in model.spreads_.items()
        if not isinstance(own, SpreadRows)
    }
    return {"parameters": model.get_params(deep=False), "spreads_": scores}


def _make_spreading(parameters: dict[str, Any], **fitted: Any) -> LinkSpreading:
    """Return a fitted model; refuse parts of different views."""
    model = LinkSpreading(**parameters)
    check_parameters(model)
    check_alphas(model.alpha, fitted["items_"])
    model.__dict__.update(fitted)
    _check_spreading(model)
    return model


def _complete(model: LinkSpreading) -> None:
    """Make what follows from the stored parts: normalised graphs, scores on demand."""
    alphas = check_alphas(model.alpha, model.items_)
    model._spreading = Spreading.of(model, model.links_, model.graphs_, alphas)
    for pair, report in model.report_.spreads.items():
        if report.rank is None:
            model.spreads_[pair] = model._spreading.rows(*pair)


def _take_search(model: CrossViewSearch) -> dict[str, Any]:
    """Return the parameters, with tables checked as views are, and the factors."""
    parameters = model.get_params(deep=False)
    if isinstance(model.prior, Mapping):
        given = {view: check_table(X, view=view) for view, X in model.prior.items()}
        parameters["prior"] = given
    factors = {pair: _take_factors(own) for pair, own in model._factors.items()}
    return {"parameters": parameters, "_factors": factors}


def _make_search(
    parameters: dict[str, Any], _factors: dict[Pair, Factors], **fitted: Any
) -> CrossViewSearch:
    """Return a fitted search; refuse parts of different views."""
    model = CrossViewSearch(**parameters)
    model.__dict__.update(fitted)
    _check_search(model, _factors)
    for view, X in model._tables.items():
        check_table(X, view=view)
    model._priors = choose_priors(model.prior, model._tables)
    model._factors = {
        pair: _make_factors(model, pair, own) for pair, own in _factors.items()
    }
    return model


def _take_factors(factors: ScoreFactors) -> tuple[Any, ...]:
    """Return scales and hub corrections of targets, models of labels, landmarks."""
    labels = landmarks = None
    for term, _ in factors.terms:
        if isinstance(term, LabelTerm):
            labels = term.models
        if isinstance(term, PairsTerm) and term.landmarks is not None:
            both = term.rows.left, term.rows.right
            landmarks = tuple(own.astype(np.float32) for own in both)
    return factors.scales, factors.bias, labels, landmarks


def _make_factors(model: Any, pair: Pair, own: Factors) -> ScoreFactors:
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
                f"terms of {pair[0]!r} and {pair[1]!r} must be ones that these views "
                f"can have, got {term.kind!r}. Save the model again."
            )


def _require(**parts: bool) -> None:
    """Refuse a model with parts that are not of its views and items."""
    for what, fits in parts.items():
        if not fits:
            raise ModelError(
                f"{what.replace('_', ' ')} must be of the views of the model and of "
                "all their items, got others. Save the model again."
            )


def _check_items(model: Any) -> dict[str, int]:
    """Return the sizes of the views; refuse items, links and columns of others."""
    sizes = {view: items.n_items for view, items in model.items_.items()}
    of_links = {view: own.n_items for view, own in model.links_._items.items()}
    _require(
        items=tuple(sizes) == model.view_names_
        and bool(sizes)
        and all(items.view == view for view, items in model.items_.items()),
        links=of_links == sizes and set(model.links_.views) <= set(sizes),
        names_of_columns=set(model._columns) == set(sizes),
    )
    return sizes


def _are_names_of(names: tuple[str, ...] | None, n_features: int) -> bool:
    """Return whether names are of so many columns, or of one column of lists."""
    return names is None or len(names) in (1, n_features)


def _check_spreading(model: LinkSpreading) -> None:
    """Refuse parts of a `LinkSpreading` that are not of its views and items."""
    sizes = _check_items(model)
    edges = {view: own.affinity_.shape[0] for view, own in model.graphs_.items()}
    _require(graphs=edges == sizes)
    by_row = {p for p, own in model.report_.spreads.items() if own.rank is None}
    _require(
        vectors=all(
            (len(own.left), len(own.right)) == (sizes.get(pair[0]), sizes.get(pair[1]))
            for pair, own in model.spreads_.items()
        ),
        names_of_columns=all(
            isinstance(graph, GivenGraph)
            or _are_names_of(model._columns[view], graph.n_features_in_)
            for view, graph in model.graphs_.items()
        ),
        reports=set(model.report_.graphs) == set(sizes)
        and {view for pair in by_row for view in pair} <= set(sizes),
    )


def _check_search(model: CrossViewSearch, factors: Mapping[Pair, Factors]) -> None:
    """Refuse parts of a `CrossViewSearch` that are not of its views and items."""
    sizes, pairs = _check_items(model), set(model.choices_)
    _require(
        items=len(sizes) > 1,
        maps={view: own.n_items for view, own in model._maps.items()} == sizes,
    )
    shapes = {view: (n, model._maps[view].n_features) for view, n in sizes.items()}
    places = {view: k for k, view in enumerate(model.view_names_)}
    _require(
        tables={view: X.shape for view, X in model._tables.items()} == shapes,
        names_of_columns=all(
            _are_names_of(names, shapes[view][1])
            for view, names in model._columns.items()
        ),
        choices=set(factors) == set(model._chosen_at) == pairs
        and all(set(pair) <= set(places) for pair in pairs)
        and all(places[a] <= places[b] for a, b in pairs),
    )
    for pair, (scales, bias, labels, landmarks) in factors.items():
        terms = model.choices_[pair].terms
        is_labelled = any(term.kind == "labels" for term in terms)
        n_classes = {len(own.b) for own in labels or ()}
        n_landmarks = {len(own) for own in landmarks or ()}
        _require(
            labels=is_labelled == (labels is not None) and len(n_classes) < 2,
            landmarks=len(n_landmarks) < 2,
        )
        for side, view in enumerate(pair):
            n_items, width = sizes[view], model._maps[view].values.shape[1]
            _require(
                scales=len(scales[side]) == len(terms)
                and all(own is None or len(own) == n_items for own in scales[side]),
                hub_corrections=len(bias[side]) == n_items,
                labels=labels is None or labels[side].W.shape[0] == width,
                landmarks=landmarks is None or landmarks[side].shape[1] == width,
            )


def _take_items(items: Items) -> dict[str, Any]:
    """Return the ids of a view, or None where items are known by position."""
    return {"ids": items.ids if items.has_ids else None}


def _make_items(view: str, n_items: int, ids: IdArray | None) -> Items:
    """Return the items of a view."""
    if ids is not None and len(ids) != n_items:
        raise ValueError(f"view {view!r:.60} must have one id for each item")
    return Items(n_items if ids is None else ids, view=view)


def _take_links(links: Links) -> dict[str, Any]:
    """Return resolved links; the ids of pairs are those of the items."""
    pairs = [
        (views, table.weights, *table.known_positions(views), table.by_row)
        for views, table in links.pair_tables
    ]
    return {"labels": links._labels, "pairs": tuple(pairs), "items": links._items}


def _make_links(
    labels: tuple[dict[str, AnyMatrix], ...],
    pairs: tuple[Pairs, ...],
    items: dict[str, Items],
) -> Links:
    """Return resolved links."""
    tables = []
    for views, weights, rows, columns, by_row in pairs:
        ids = []
        for view, own in zip(views, (rows, columns), strict=True):
            n_items = items[view].n_items
            inside = own.min(initial=0) >= 0 and own.max(initial=-1) < n_items
            if not inside or len(own) != len(weights):
                raise ValueError(f"pairs must be of items of view {view!r}")
            ids.append(own if by_row else items[view].ids[own])
        left, right = ids
        table = PairTable(left, right, weights, (rows, columns), by_row=by_row)
        tables.append((views, table))
    return Links(labels=labels, pairs=tables, items=items)


def _check_labels(links: Links) -> bool:
    """Return whether labels are of all items of their views, over the same classes."""
    for labels in links._labels:
        if len({memberships.shape[1] for memberships in labels.values()}) != 1:
            return False
        for view, memberships in labels.items():
            if memberships.shape[0] != links._items[view].n_items:
                return False
    return True


def _take_neighbors(graph: NeighborGraph) -> dict[str, Any]:
    """Return the parameters, the items and the edges of a graph."""
    return {
        "parameters": graph.get_params(deep=False),
        "items": graph._index.items,
        "affinity": graph.affinity_,
        "bandwidths": graph.bandwidths_,
        "recall": graph.recall_,
    }


def _make_neighbors(
    parameters: dict[str, Any],
    items: AnyMatrix,
    affinity: csr_array,
    bandwidths: Vector | float,
    recall: float | None,
) -> NeighborGraph:
    """Return a fitted graph, without a new search."""
    graph = NeighborGraph(**parameters).resume(items, affinity, bandwidths)
    graph.recall_ = recall
    return graph


def _check_neighbors(graph: NeighborGraph) -> bool:
    """Return whether edges and widths are of all items."""
    n_items, widths = graph._index.items.shape[0], graph.bandwidths_
    is_square = graph.affinity_.shape == (n_items, n_items)
    return is_square and np.shape(widths) in ((), (n_items,))


def _take_codes(graph: L1Graph) -> dict[str, Any]:
    """Return the parameters, the items, the links and the edges of a graph."""
    return {
        "parameters": graph.get_params(deep=False),
        "items": graph._index.items,
        "affinity": graph.affinity_,
        "widths": np.array(graph._kernels.widths),
        "links": None if graph._roots_ is None else graph._roots_.Z,
        "report": graph.report_,
    }


def _make_codes(
    parameters: dict[str, Any],
    items: AnyMatrix,
    affinity: csr_array,
    widths: Vector,
    links: LinkMatrix | None,
    report: L1Report,
) -> L1Graph:
    """Return a fitted graph of sparse codes, without solving again."""
    graph = L1Graph(**parameters)
    n_items = items.shape[0]
    check_n_neighbors(graph.n_neighbors, n_items)
    is_linked = links is None or links.shape == (n_items, n_items)
    if not is_linked or widths.shape != (n_items,) or affinity.shape[0] != n_items:
        raise ValueError("edges, widths and links must be of all items")
    return graph.resume(items, affinity, widths, links=links, report=report)


def _make_given(affinity: csr_array) -> GivenGraph:
    """Return a graph that was checked when it was given."""
    graph = GivenGraph.__new__(GivenGraph)
    graph.affinity_, graph.n_features_in_ = affinity, affinity.shape[0]
    return graph


def _is_square(graph: Any) -> bool:
    """Return whether a graph joins the items of one view with each other."""
    return graph.affinity_.shape[0] == graph.affinity_.shape[1]


def _joins(scores: Any) -> bool:
    """Return whether the core of scores fits the vectors that it joins."""
    return scores.core.shape == (scores.left.shape[1], scores.right.shape[1])


def _check_spread(scores: Spread) -> bool:
    """Return whether all cores fit the vectors."""
    cores = scores.unseen_left, scores.unseen_right
    shape = scores.core.shape
    return _joins(scores) and all(own is None or own.shape == shape for own in cores)


def _make_heat(
    graph: NeighborGraph, values: Matrix, mean: Vector, size: float
) -> maps._Graph:
    """Return the graph block of a map, whose items are those of the graph."""
    return maps._Graph(graph, graph._index.items, values, mean, size)


def _take_map(own: ViewMap) -> dict[str, Any]:
    """Return the blocks of a map; the features of its graph are stored once."""
    blocks = dict(own.blocks)
    graph = blocks.get("graph")
    if graph is not None:
        columns = own.columns("graph")
        if np.array_equal(graph.values, own.values[:, columns]):
            blocks["graph"] = replace(graph, values=own.values[:0, columns])
    return {"blocks": blocks}


def _make_map(
    metric: str, blocks: dict[str, Any], values: Matrix, n_features: int
) -> ViewMap:
    """Return a map whose blocks are of its columns."""
    made = ViewMap(metric, blocks, values, n_features)
    graph = blocks.get("graph")
    if graph is not None and len(graph.values) == 0:
        graph.values = values[:, made.columns("graph")]
    return made


def _check_map(own: ViewMap) -> bool:
    """Return whether the blocks of a map are of one view."""
    kinds = {"linear": maps._Linear, "gaussian": maps._Gaussian, "graph": maps._Graph}
    if not own.blocks or not set(own.blocks) <= set(kinds):
        return False
    if any(type(block) is not kinds[name] for name, block in own.blocks.items()):
        return False
    if any(b.size <= 0 or b.mean.ndim != 1 for b in own.blocks.values()):
        return False
    if sum(len(b.mean) for b in own.blocks.values()) != own.values.shape[1]:
        return False
    return all(
        _check_block(block, len(block.mean), own.n_features)
        for block in own.blocks.values()
    )


def _check_block(block: Any, k: int, d: int) -> bool:
    """Return whether a block maps `d` columns of a table to `k` features."""
    if isinstance(block, maps._Linear):
        if block.components is None:
            return k == d
        return block.components.shape == (d, k)
    if isinstance(block, maps._Gaussian):
        shapes = (block.landmarks.shape, block.factor.shape)
        return block.width > 0 and shapes == ((k, d), (k, k))
    n_items = block.graph.affinity_.shape[0]
    return block.graph.n_features_in_ == d and block.values.shape == (n_items, k)


# All classes that may be stored or loaded.
PARTS = (
    Stored(Items, take=_take_items, make=_make_items),
    Stored(Links, take=_take_links, make=_make_links, check=_check_labels),
    Stored(LinkMatrix, check=lambda Z: _joins(Z) and Z.pairs.shape == Z.shape),
    Stored(
        NeighborGraph,
        take=_take_neighbors,
        make=_make_neighbors,
        check=_check_neighbors,
    ),
    Report,
    L1Report,
    Stored(L1Graph, take=_take_codes, make=_make_codes, check=_is_square),
    Stored(
        AdjustedGraph,
        take=lambda own: {"affinity": own.affinity_},
        check=lambda own: own.affinity_.shape == own.neighbors.affinity_.shape,
    ),
    Stored(
        GivenGraph,
        take=lambda own: {"affinity": own.affinity_},
        make=_make_given,
        check=_is_square,
    ),
    Stored(Spread, check=_check_spread),
    GraphReport,
    SpreadReport,
    FitReport,
    Stored(
        Setting, check=lambda own: own.kind in TERMS and own.mixture in maps.MIXTURES
    ),
    Choice,
    Stored(
        LabelModel,
        check=lambda own: own.W.shape[1:] == own.b.shape == own.shares.shape,
    ),
    maps._Linear,
    maps._Gaussian,
    Stored(maps._Graph, make=_make_heat),
    Stored(ViewMap, take=_take_map, make=_make_map, check=_check_map),
)

REGISTRY = Registry(
    (
        *PARTS,
        Stored(
            LinkSpreading,
            take=_take_spreading,
            make=_make_spreading,
            state=SpreadingState,
        ),
        Stored(
            CrossViewSearch, take=_take_search, make=_make_search, state=SearchState
        ),
    )
)
