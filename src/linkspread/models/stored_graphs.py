"""How items, links, graphs and reports are stored: their fields, and nothing else."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkspread.compiled.lad import Report
from linkspread.graphs import L1Graph, NeighborGraph
from linkspread.graphs.l1 import L1Report
from linkspread.graphs.neighbors import check_n_neighbors
from linkspread.links import Items, LinkMatrix, Links
from linkspread.links.tables import PairTable
from linkspread.models.spreading import FitReport, GraphReport, SpreadReport
from linkspread.models.view_graphs import AdjustedGraph, GivenGraph
from linkspread.propagation import Spread
from linkspread.storage import Ids, Stored
from linkspread.storage.kinds import (
    ANYTHING,
    COUNT,
    FLAG,
    NOTHING,
    NUMBER,
    TEXT,
    array,
    csr,
    fields,
    instance,
    mapping,
    sequence,
)

Array = np.ndarray

TABLE = array(2) | csr()
IDS = array(1, "iU")
PAIR = sequence(TEXT, length=2)
# Views, weights, rows, columns, whether by row, and ids where the items tell others.
PAIR_TABLE = fields(
    PAIR, array(1), array(1, "i"), array(1, "i"), FLAG, IDS | NOTHING, IDS | NOTHING
)
PARAMETERS = mapping(ANYTHING)
GRAPH = instance(NeighborGraph, L1Graph, AdjustedGraph, GivenGraph)


def is_square(matrix: Any, n_items: int) -> bool:
    """Tell whether a matrix joins so many items with each other."""
    return matrix.shape == (n_items, n_items)


def joins(scores: Any) -> bool:
    """Tell whether the core of scores fits the vectors that it joins."""
    return scores.core.shape == (scores.left.shape[1], scores.right.shape[1])


def _take_items(items: Items) -> dict[str, Any]:
    """Return the ids of a view, or their number where these are positions."""
    ids = Ids(items.ids) if items.has_ids else None
    return {"view": items.view, "n_items": items.n_items, "ids": ids}


def _make_items(view: str, n_items: int, ids: Any) -> Items:
    """Return the items of a view."""
    if ids is not None and len(ids) != n_items:
        raise ValueError(f"view {view!r:.60} must have one id for each item")
    return Items(n_items if ids is None else ids, view=view)


def _take_links(links: Links) -> dict[str, Any]:
    """Return resolved links; ids that the items tell are left out."""
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
    """Return ids as they were given, or None if they are those of the items."""
    own = _ids_at(items, positions)
    if own.dtype.kind == ids.dtype.kind and np.array_equal(own, ids):
        return None
    return Ids(ids) if ids.dtype.kind == "U" else ids


def _ids_at(items: Items, positions: Array) -> Array:
    """Return the ids at some positions, which may be the positions themselves."""
    return items.ids[positions] if items.has_ids else positions


def _make_links(labels: Any, pairs: Any, items: Mapping[str, Items]) -> Links:
    """Return resolved links."""
    tables = []
    for views, weights, rows, columns, by_row, left, right in pairs:
        _check_positions(rows, items[views[0]], len(weights))
        _check_positions(columns, items[views[1]], len(weights))
        left = _ids_at(items[views[0]], rows) if left is None else left
        right = _ids_at(items[views[1]], columns) if right is None else right
        if len(left) != len(weights) or len(right) != len(weights):
            raise ValueError("pairs must have an id on each side")
        table = PairTable(left, right, weights, (rows, columns), by_row=by_row)
        tables.append((views, table))
    return Links(labels=labels, pairs=tables, items=items)


def _check_positions(positions: Array, items: Items, n_pairs: int) -> None:
    """Refuse positions outside the view."""
    inside = positions.min(initial=0) >= 0 and positions.max(initial=-1) < items.n_items
    if not inside or len(positions) != n_pairs:
        raise ValueError(f"pairs must be of items of view {items.view!r}")


def _check_labels(links: Links) -> bool:
    """Tell whether labels are of all items of their views, over the same classes."""
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
    parameters: Any, items: Any, affinity: Any, bandwidths: Any, recall: Any
) -> NeighborGraph:
    """Return a fitted graph, without a new search."""
    graph = NeighborGraph(**parameters).resume(items, affinity, bandwidths)
    graph.recall_ = recall
    return graph


def _check_neighbors(graph: NeighborGraph) -> bool:
    """Tell whether edges and widths are of all items."""
    n_items, widths = graph._index.items.shape[0], graph.bandwidths_
    return is_square(graph.affinity_, n_items) and np.shape(widths) in ((), (n_items,))


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
    parameters: Any, items: Any, affinity: Any, widths: Array, links: Any, report: Any
) -> L1Graph:
    """Return a fitted graph of sparse codes, without coding any item anew."""
    graph = L1Graph(**parameters)
    n_items = items.shape[0]
    check_n_neighbors(graph.n_neighbors, n_items, include_self=False)
    is_linked = links is None or links.shape == (n_items, n_items)
    if not is_linked or widths.shape != (n_items,) or affinity.shape[0] != n_items:
        raise ValueError("edges, widths and links must be of all items")
    return graph.resume(items, affinity, widths, links=links, report=report)


def _make_given(affinity: Any) -> GivenGraph:
    """Return a graph that was checked when it was given."""
    graph = GivenGraph.__new__(GivenGraph)
    graph.affinity_, graph.n_features_in_ = affinity, affinity.shape[0]
    return graph


def _check_link_matrix(Z: LinkMatrix) -> bool:
    """Tell whether the parts of a matrix of links are of the same items."""
    return joins(Z) and Z.pairs.shape == Z.shape


def _is_graph(graph: Any) -> bool:
    """Tell whether a graph joins the items of one view with each other."""
    return is_square(graph.affinity_, graph.affinity_.shape[0])


STORED_GRAPHS = (
    Stored(
        Items,
        {"view": TEXT, "n_items": COUNT, "ids": IDS | NOTHING},
        take=_take_items,
        make=_make_items,
    ),
    Stored(
        Links,
        {
            "labels": sequence(mapping(TABLE)),
            "pairs": sequence(PAIR_TABLE),
            "items": mapping(instance(Items)),
        },
        take=_take_links,
        make=_make_links,
        check=_check_labels,
    ),
    Stored(
        NeighborGraph,
        {
            "parameters": PARAMETERS,
            "items": TABLE,
            "affinity": csr(),
            "bandwidths": array(1) | NUMBER,
            "recall": NUMBER | NOTHING,
        },
        take=_take_neighbors,
        make=_make_neighbors,
        check=_check_neighbors,
    ),
    Stored(
        LinkMatrix,
        {"left": TABLE, "core": array(2), "right": TABLE, "pairs": csr()},
        check=_check_link_matrix,
    ),
    Stored(
        Report,
        {
            **dict.fromkeys(("n_rows", "n_retried", "n_fallback", "n_pivots"), COUNT),
            "largest_gap": NUMBER,
            "seconds": NUMBER,
        },
    ),
    Stored(
        L1Report,
        {
            "solver": instance(Report),
            "n_duplicated": COUNT,
            "n_empty": COUNT,
            "mean_length": NUMBER,
        },
    ),
    Stored(
        L1Graph,
        {
            "parameters": PARAMETERS,
            "items": TABLE,
            "affinity": csr(),
            "widths": array(1),
            "links": instance(LinkMatrix) | NOTHING,
            "report": instance(L1Report),
        },
        take=_take_codes,
        make=_make_codes,
        check=_is_graph,
    ),
    Stored(
        AdjustedGraph,
        {"neighbors": instance(NeighborGraph), "affinity": csr()},
        take=lambda own: {"neighbors": own.neighbors, "affinity": own.affinity_},
        check=lambda own: own.affinity_.shape == own.neighbors.affinity_.shape,
    ),
    Stored(
        GivenGraph,
        {"affinity": csr()},
        take=lambda own: {"affinity": own.affinity_},
        make=_make_given,
        check=_is_graph,
    ),
    Stored(
        Spread,
        {
            **dict.fromkeys(("left", "right", "core"), array(2)),
            **dict.fromkeys(("unseen_left", "unseen_right"), array(2) | NOTHING),
            "error": NUMBER,
        },
        check=lambda own: (
            joins(own)
            and all(
                core is None or core.shape == own.core.shape
                for core in (own.unseen_left, own.unseen_right)
            )
        ),
    ),
    Stored(
        GraphReport,
        {
            **dict.fromkeys(("n_items", "n_edges", "n_isolated"), COUNT),
            "mean_degree": NUMBER,
            "seconds": NUMBER,
        },
    ),
    Stored(SpreadReport, {"rank": COUNT | NOTHING, "error": NUMBER, "seconds": NUMBER}),
    Stored(
        FitReport,
        {
            "graphs": mapping(instance(GraphReport)),
            "spreads": mapping(instance(SpreadReport), keys=PAIR),
            "columns": mapping(TEXT),
        },
    ),
)
