"""How items, links, graphs, maps and scores are stored.

Most classes are stored as their annotations say. For the others, functions here leave
out what follows from other parts, make it again, and check that parts fit each other.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from linkspread.compiled.lad import Report
from linkspread.graphs import L1Graph, NeighborGraph
from linkspread.graphs.l1 import L1Report
from linkspread.graphs.neighbors import check_n_neighbors
from linkspread.learning import Choice, Setting, ViewMap, maps
from linkspread.learning.cores import LabelModel
from linkspread.learning.terms import MAPS_INTO
from linkspread.links import Items, LinkMatrix, Links
from linkspread.links.pairs import PairTable
from linkspread.models.spreading import (
    FitReport,
    GraphReport,
    SpreadReport,
)
from linkspread.models.view_graphs import AdjustedGraph, GivenGraph
from linkspread.propagation import Spread
from linkspread.storage import Stored
from linkspread.storage.schema import AnyMatrix, IdArray, Matrix, Positions, Vector

Array = np.ndarray
Graph = NeighborGraph | L1Graph | AdjustedGraph | GivenGraph
Pair = tuple[str, str]
# Views, weights, rows, columns, whether by row, and ids where those of items differ.
Pairs = tuple[Pair, Vector, Positions, Positions, bool, IdArray | None, IdArray | None]
TERMS = ("prior", "displacement", "grid", *MAPS_INTO, "pairs", "labels")


def _take_items(items: Items) -> dict[str, Any]:
    """Return the ids of a view, or None where items are known by position."""
    return {"ids": items.ids if items.has_ids else None}


def _make_items(view: str, n_items: int, ids: IdArray | None) -> Items:
    """Return the items of a view."""
    if ids is not None and len(ids) != n_items:
        raise ValueError(f"view {view!r:.60} must have one id for each item")
    return Items(n_items if ids is None else ids, view=view)


def _take_links(links: Links) -> dict[str, Any]:
    """Return resolved links, without the ids that are those of the items."""
    items, pairs = links._items, []
    for views, table in links.pair_tables:
        rows, columns = table.known_positions(views)
        ids = (
            _given_ids(table.left, items[views[0]], rows),
            _given_ids(table.right, items[views[1]], columns),
        )
        pairs.append((views, table.weights, rows, columns, table.by_row, *ids))
    return {"labels": links._labels, "pairs": tuple(pairs), "items": items}


def _given_ids(ids: Array, items: Items, positions: Array) -> Any:
    """Return the ids of pairs, or None if they are those of the items."""
    own = _ids_at(items, positions)
    if own.dtype.kind == ids.dtype.kind and np.array_equal(own, ids):
        return None
    return ids


def _ids_at(items: Items, positions: Array) -> Array:
    """Return the ids at some positions, which may be the positions themselves."""
    return items.ids[positions] if items.has_ids else positions


def _make_links(
    labels: tuple[dict[str, AnyMatrix], ...],
    pairs: tuple[Pairs, ...],
    items: dict[str, Items],
) -> Links:
    """Return resolved links."""
    tables = []
    for views, weights, rows, columns, by_row, *given in pairs:
        ids: list[Any] = list(given)
        for k, own in enumerate((rows, columns)):
            view = items[views[k]]
            inside = own.min(initial=0) >= 0 and own.max(initial=-1) < view.n_items
            if not inside or len(own) != len(weights):
                raise ValueError(f"pairs must be of items of view {view.view!r}")
            ids[k] = _ids_at(view, own) if ids[k] is None else ids[k]
            if len(ids[k]) != len(weights):
                raise ValueError("pairs must have an id on each side")
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


def _take_setting(setting: Setting) -> dict[str, Any]:
    """Return the ridge of a term; None for none."""
    ridge = None if np.isinf(setting.ridge) else setting.ridge
    return {"ridge": ridge}


def _make_setting(
    kind: str, mixture: str, ridge: float | None, weight: float
) -> Setting:
    """Return a setting of a known kind."""
    if kind not in TERMS or mixture not in maps.MIXTURES:
        raise ValueError(f"terms must be of a known kind, got {kind!r:.20}")
    return Setting(kind, mixture, np.inf if ridge is None else ridge, weight)


def _take_labels(model: LabelModel) -> dict[str, Any]:
    """Return the quality of a model of labels; None where it is unknown."""
    return {"quality": None if np.isnan(model.quality) else model.quality}


def _make_labels(
    W: Matrix,
    b: Vector,
    shares: Vector,
    weights: dict[str, float],
    quality: float | None,
) -> LabelModel:
    """Return a model of labels."""
    return LabelModel(W, b, shares, weights, np.nan if quality is None else quality)


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
    Stored(Setting, take=_take_setting, make=_make_setting),
    Choice,
    Stored(
        LabelModel,
        take=_take_labels,
        make=_make_labels,
        check=lambda own: own.W.shape[1:] == own.b.shape == own.shares.shape,
    ),
    maps._Linear,
    maps._Gaussian,
    Stored(maps._Graph, make=_make_heat),
    Stored(ViewMap, take=_take_map, make=_make_map, check=_check_map),
)
