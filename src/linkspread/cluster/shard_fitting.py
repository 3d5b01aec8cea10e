"""A fit on a cluster whose result is written by the workers, in shards."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.fitting import ClusterReport
from linkspread.cluster.graph_builder import GraphBuilder, open_fit
from linkspread.cluster.planning import check_spreading
from linkspread.cluster.products import BlockGraph
from linkspread.cluster.session import Session, alone
from linkspread.cluster.shard_folder import (
    VECTORS,
    check_output,
    open_shards,
    write_head,
)
from linkspread.cluster.sharded_model import ShardedModel, ShardedPair, ShardedView
from linkspread.cluster.spreading import spread_blocks
from linkspread.cluster.tables import OpenViews
from linkspread.cluster.vector_shards import VectorShards, write_shard
from linkspread.cluster.view_graphs import BuiltGraph
from linkspread.graphs.distances import METRICS
from linkspread.graphs.normalize import row_sums
from linkspread.ground.checks import naming
from linkspread.ground.errors import LinkspreadError
from linkspread.ground.progress import announce
from linkspread.models import LinkSpreading
from linkspread.models.link_choice import (
    linked_pairs,
)
from linkspread.models.spreading import check_alphas, check_parameters
from linkspread.propagation.exact import spread_responses, warn_of_error

Array = np.ndarray


def fit_shards(
    model: LinkSpreading,
    views: Any,
    links: Any,
    *,
    client: Any,
    output: str | os.PathLike[str],
    ids: Mapping[str, Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
    method: str = "auto",
) -> ShardedModel:
    """Fit by the workers of a Dask cluster, and let them write the vectors.

    As `fit`, for collections whose graphs and vectors no single machine holds: neither
    comes to the client, which keeps ids and three numbers of each item. The result
    searches, and is no full model: links cannot be added to it, nor results explained.

    Parameters
    ----------
    model : LinkSpreading
        Its parameters are read.
    views : mapping from str to path, ChunkedView or table
        As for `fit`, like all but `output`.
    links : Links, or mapping from str to labels
    client : distributed.Client
    output : str or Path
        A new or empty folder, or one of shards, on a disk that all workers share.
        Shards there are replaced in one step, when all are written.
    ids : mapping from str to array-like of shape (n_items,), default=None
    folder : str or Path, default=None
    method : {"exact", "approximate", "auto"}, default="auto"

    Returns
    -------
    sharded : ShardedModel
        Its workers search; `open_shards` opens it again. Its `cluster_report_` tells
        what was moved and held.
    """
    check_spreading(model)
    check_parameters(model)
    target = check_output(output)
    session = Session(client, verbose=model.verbose)
    given: dict[str, Any] = {"ids": ids, "folder": folder, "method": method}
    with open_fit(model, session, views, links, **given) as opened:
        builder = opened.builder
        _check_metrics(builder)
        (target / VECTORS).mkdir(parents=True, exist_ok=True)
        sharded, blocks = _build_all(builder)
        pairs = {
            pair: _spread_pair(model, builder.links, blocks, pair, target / VECTORS)
            for pair in linked_pairs(builder.links, builder.opened.chunked)
        }
        write_head(target, opened.items, builder.links, pairs, sharded)
    report = ClusterReport(opened.expected, session.usage())
    announce(str(report.usage), verbose=model.verbose)
    result = open_shards(target, views=_lasting(builder.opened), client=client)
    result.cluster_report_ = report
    return result


def _check_metrics(builder: GraphBuilder) -> None:
    """Refuse functions, which cannot be stored, before anything is built."""
    for view, chosen in builder.choices.items():
        if not isinstance(chosen["metric"], str):
            raise LinkspreadError(
                f"view {view!r}: `metric` must be one of {', '.join(METRICS)} for "
                "shards, got a function, which cannot be stored. Use `cluster.fit`."
            )


def _build_all(
    builder: GraphBuilder,
) -> tuple[dict[str, ShardedView], dict[str, BlockGraph]]:
    """Build all graphs, and return what places new items beside each."""
    sharded, blocks = {}, {}
    for view, own in builder.opened.chunked.items():
        with naming(view):
            built, _, _ = builder.build(view)
            blocks[view] = built.normalized()
            near = built.near
            names = ("graph", "n_neighbors", "metric", "bandwidth", "weights")
            chosen = {name: near.chosen[name] for name in names}
            sharded[view] = ShardedView(
                **chosen,
                n_features=own.shape[1],
                widths=near.widths,
                degrees=_degrees(built),
            )
    return sharded, blocks


def _degrees(built: BuiltGraph) -> Array:
    """Return the row sums of a graph."""
    session = built.near.session
    sums = session.submit_each(built.near.blocks, _row_sums, built.affinity)
    return np.concatenate(session.fetch(sums))


@alone
def _row_sums(W: sparse.csr_array) -> Array:
    """Return the row sums of a block."""
    return row_sums(W)


def _spread_pair(
    model: LinkSpreading,
    links: Any,
    blocks: Mapping[str, BlockGraph],
    pair: tuple[str, str],
    folder: Path,
) -> ShardedPair:
    """Spread the links of two views, and write the vectors of both."""
    alphas = check_alphas(model.alpha, blocks)
    Z = links.between(*pair, balance=model.balance)
    x, y = (blocks[view] for view in pair)
    found = spread_blocks(
        x,
        Z,
        y,
        spread_responses((alphas[pair[0]], alphas[pair[1]]), model.beta),
        tol=model.tol,
        rank=model.rank,
    )
    core, unseen_left, unseen_right = found.cores
    if model.rank is None:
        # Shards are vectors and nothing else: exact rows cannot be had from them.
        warn_of_error(found.error, model.tol, core)
    left = _write_vectors(x, found.left, folder, core.shape[0])
    right = _write_vectors(y, found.right, folder, core.shape[1])
    return ShardedPair(left, right, core, unseen_left, unseen_right, found.error)


def _write_vectors(
    graph: BlockGraph, parts: list[Any], folder: Path, width: int
) -> VectorShards:
    """Let the workers write the vectors of a view, a file for each block."""
    write = partial(write_shard, folder=str(folder))
    if isinstance(parts[0], np.ndarray):  # wide links are spread by the client
        files = [write(part) for part in parts]
        return VectorShards(tuple(files), width, parts[0].dtype.name)
    session = graph.session
    files = session.submit_each(graph.blocks, write, parts)
    session.finish(files, f"vectors of {graph.name}")
    return VectorShards(tuple(session.fetch(files)), width, graph.dtype.name)


def _lasting(opened: OpenViews) -> dict[str, Any]:
    """Return the views that are on the disk after the fit, too."""
    return {v: own for v, own in opened.chunked.items() if v not in opened.tables}
