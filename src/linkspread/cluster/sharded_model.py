"""A model with its vectors on disk: fitted by workers, searched shard by shard.

::

    output/
      head/       like a model folder: ids, links, cores, names of the shards
      vectors/    the shards, each named after its checksum

New shards replace the old ones when the manifest in `head` is replaced; old files are
deleted afterwards.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from linkspread.cluster.block_graphs import BlockGraph
from linkspread.cluster.fitting import SpreadingFit
from linkspread.cluster.neighbors import nearest_in_chunks
from linkspread.cluster.session import Session
from linkspread.cluster.shards import (
    ShardFile,
    ShardIndex,
    VectorShards,
    run_each,
    write_shard,
)
from linkspread.cluster.views import ChunkedView, check_files, open_view, open_views
from linkspread.graphs import normalize_rows
from linkspread.graphs.distances import METRICS
from linkspread.graphs.knn import WEIGHTS, weigh_new
from linkspread.ground.checks import check_name, naming
from linkspread.ground.errors import LinkspreadError, ModelError, ViewError
from linkspread.links import Items, Links
from linkspread.models import LinkSpreading
from linkspread.models.persistence import PARTS, Pair
from linkspread.models.spreading import check_parameters
from linkspread.models.vector_search import VectorSearch, check_linked
from linkspread.propagation.exact import warn_of_error
from linkspread.storage.files import naming_file
from linkspread.storage.folder import MANIFEST, read_folder, write_folder
from linkspread.storage.schema import Matrix, Registry, Stored, Vector
from linkspread.tables.validation import check_table

Array = np.ndarray
# Graphs in which new items have neighbours as fitted ones do.
EXTENSIBLE = ("knn", "cwa")
SHARDS = "linkspread shards"
HEAD, VECTORS = "head", "vectors"


@dataclass(frozen=True)
class ShardedView:
    """The graph parameters of a view, to find neighbours of new items."""

    graph: str
    n_neighbors: int
    metric: str
    bandwidth: str | float
    weights: str
    n_features: int
    widths: Vector | float
    degrees: Vector


@dataclass(frozen=True)
class ShardedPair:
    """The scores of two views: `propagation.Spread`, with its vectors in files."""

    left: VectorShards
    right: VectorShards
    core: Matrix
    unseen_left: Matrix
    unseen_right: Matrix
    error: float

    @property
    def files(self) -> tuple[ShardFile, ...]:
        """The files of both views."""
        return (*self.left.files, *self.right.files)

    @property
    def T(self) -> "ShardedPair":
        """The same scores with the views exchanged."""
        cores = self.core.T, self.unseen_right.T, self.unseen_left.T
        return ShardedPair(self.right, self.left, *cores, self.error)


@dataclass(frozen=True)
class Head:
    """The content of the folder `head`."""

    items: dict[str, Items]
    links: Links
    pairs: dict[Pair, ShardedPair]
    views: dict[str, ShardedView]


class ShardedModel(VectorSearch):
    """Search between views whose vectors are in shards on the disk.

    Made by `fit_shards` or `open_shards`. Scores are those of the model that
    `cluster.fit` returns. Memory holds the ids, three numbers of each item, and one
    shard at a time.

    Parameters
    ----------
    folder : str or Path
        Folder of the shards.
    client : distributed.Client, default=None
        Its workers search; None searches here.

    Attributes
    ----------
    view_names_ : tuple of str
    items_ : dict from str to Items
    links_ : Links
    pairs_ : dict from pairs of str to ShardedPair
    """

    def __init__(self, folder: str | os.PathLike[str], *, client: Any = None) -> None:
        self.folder = folder
        self.client = client

    def fit(self, views: Any, links: Any) -> None:
        """Refuse: shards are written by `fit_shards`.

        Parameters
        ----------
        views, links : object
        """
        raise LinkspreadError(
            "shards must be fitted by `cluster.fit_shards`, got a call of `fit`. Call "
            "that, or use `LinkSpreading` on one machine."
        )

    def index(self, source: str, target: str, *, method: str = "auto") -> Any:
        """Return the index of the shards of a view, which are searched exactly.

        Parameters
        ----------
        source, target : str
            View that searches and view that is searched.
        method : {"exact", "auto"}, default="auto"

        Returns
        -------
        index : ShardIndex
        """
        check_name(method, ("exact", "auto"), name="method")
        return ShardIndex(self._pair(source, target).right, self.folder, self.client)

    def _vectors_of_fitted(self, positions: Array, source: str, target: str) -> Array:
        pair = self._pair(source, target)
        return pair.left.take(positions, self.folder) @ pair.core

    def _vectors_of_new(self, rows: Any, source: str, target: str) -> Array:
        pair = self._pair(source, target)
        near = self._similarities(rows, source)
        used = np.unique(near.indices)
        vectors = pair.left.take(used, self.folder)
        return near[:, used] @ vectors @ pair.unseen_left

    def _vectors_found(self, source: str, target: str) -> Array:
        found = self._pair(source, target).right
        return self._vectors_found_at(np.arange(found.n_items), source, target)

    def _vectors_found_at(self, positions: Array, source: str, target: str) -> Array:
        return self._pair(source, target).right.take(positions, self.folder)

    def _pair(self, source: str, target: str) -> ShardedPair:
        """Return the scores of two views; refuse views without any."""
        check_is_fitted(self, "pairs_")
        if (source, target) in self.pairs_:
            return self.pairs_[source, target]
        if (target, source) in self.pairs_:
            return self.pairs_[target, source].T
        check_linked(self.links_, self.view_names_, source, target)
        pairs = ", ".join(" and ".join(pair) for pair in self.pairs_)
        raise LinkspreadError(
            f"shards must hold the scores of the two views that are searched, {pairs}, "
            f"got {source!r} and {target!r}. Search these, or fit on one machine."
        )

    def _similarities(self, rows: Any, view: str) -> sparse.csr_array:
        """Return the normalised similarities of new items to the fitted ones."""
        own = self._sharded[view]
        rows = check_table(rows, view=view, n_features=own.n_features)
        if own.graph not in EXTENSIBLE:
            raise LinkspreadError(
                f"view {view!r} must have graph {' or '.join(EXTENSIBLE)} for new "
                f"items to search in shards, got {own.graph!r}. Search with ids, or "
                "fit on one machine."
            )
        if view not in self._tables:
            raise LinkspreadError(
                f"the table of view {view!r} must be given to search with new items, "
                "got none. Open the shards with "
                f"`open_shards(folder, views={{{view!r}: path}})`."
            )
        table = self._tables[view]
        found = nearest_in_chunks(
            table, rows, n_neighbors=own.n_neighbors, metric=own.metric
        )
        affinities = weigh_new(
            found, own, own.widths, dtype=table.dtype, n_items=table.shape[0]
        )
        return normalize_rows(affinities, own.degrees)


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
    """Fit by the workers of a Dask cluster, which write the vectors to shards.

    For collections whose graphs and vectors do not fit on one machine: the client gets
    neither, only ids and three numbers of each item. The result searches, but takes no
    further links and explains no scores.

    Parameters
    ----------
    model : LinkSpreading
        Its parameters are read.
    views : mapping from str to path, ChunkedView or table
        As for `fit`, like all but `output`.
    links : Links, or mapping from str to labels
    client : distributed.Client
    output : str or Path
        A new or empty folder, or one of shards, which are replaced in one step; on a
        disk that all workers share.
    ids : mapping from str to array-like of shape (n_items,), default=None
    folder : str or Path, default=None
    method : {"exact", "approximate", "auto"}, default="auto"

    Returns
    -------
    sharded : ShardedModel
        The workers search it; `open_shards` opens it again. Its `cluster_report_` has
        the measured cost.
    """
    if not isinstance(model, LinkSpreading):
        raise LinkspreadError(
            "`model` must be a LinkSpreading to be written in shards, got "
            f"{type(model).__name__}. `cluster.fit` fits both models."
        )
    check_parameters(model)
    target = check_output(output)
    session = Session(client, verbose=model.verbose)
    with open_views(views, ids, folder) as opened:
        check_files(session, opened.chunked)
        work = SpreadingFit(model, session, opened, links, method)
        for view, chosen in work.choices.items():
            if not isinstance(chosen["metric"], str):
                raise LinkspreadError(
                    f"view {view!r}: `metric` must be one of {', '.join(METRICS)} for "
                    "shards, got a function, which cannot be stored. Use `cluster.fit`."
                )
        (target / VECTORS).mkdir(parents=True, exist_ok=True)
        sharded, graphs = {}, {}
        for view in opened.chunked:
            with naming(view):
                sharded[view], graphs[view] = _build(work, view)
        pairs = {pair: _spread(work, graphs, pair, target) for pair in work.pairs}
        head = Head(dict(work.items), work.links, pairs, sharded)
        _write_head(target, head)
    report = session.report()
    # The checksums of what was just written need not be computed again.
    result = open_shards(target, views=opened.lasting, client=client, verify=False)
    result.cluster_report_ = report
    return result


def open_shards(
    path: str | os.PathLike[str],
    *,
    views: Mapping[str, Any] | None = None,
    client: Any = None,
    verify: bool = True,
) -> ShardedModel:
    """Open shards that `fit_shards` wrote.

    Parameters
    ----------
    path : str or Path
        The folder.
    views : mapping from str to path or ChunkedView, default=None
        The tables of the fit, for searches with new items.
    client : distributed.Client, default=None
        Its workers, which must see the folder, check and search the shards in
        parallel; None does so here, one by one.
    verify : bool, default=True
        Compare the checksums of all shards, which reads every byte; `client` shares
        the work. False compares sizes only.

    Returns
    -------
    sharded : ShardedModel
    """
    folder = Path(path).absolute()
    content = read_folder(folder / HEAD, kind=SHARDS)
    with naming_file(MANIFEST):
        head = REGISTRY.decode(content, of=Head)
    checks = [
        (shards, k, str(folder / VECTORS), verify)
        for pair in head.pairs.values()
        for shards in (pair.left, pair.right)
        for k in range(len(shards.files))
    ]
    run_each(client if verify else None, VectorShards.check, checks)
    model = ShardedModel(folder / VECTORS, client=client)
    model.view_names_, model.items_ = tuple(head.items), head.items
    model.links_, model.pairs_ = head.links, head.pairs
    model._sharded = head.views
    model._tables = {}
    for view, table in (views or {}).items():
        if view not in head.items:
            raise ViewError(
                f"`views` must be those of the shards, {list(head.items)}, got "
                f"{view!r}. Correct the name."
            )
        if not isinstance(table, ChunkedView):
            table = open_view(table, name=view)
        expected = head.items[view].n_items, head.views[view].n_features
        if table.shape != expected:
            raise ViewError(
                f"view {view!r} must be the table of the fit, of shape {expected}, got "
                f"{table.shape}. Give its path."
            )
        model._tables[view] = table
    return model


def is_sharded(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds shards."""
    return Path(path, HEAD, MANIFEST).is_file()


def check_output(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a folder; refuse to write shards over other files."""
    folder = Path(path).absolute()
    is_other = folder.exists() and not folder.is_dir()
    names = set() if is_other or not folder.exists() else set(os.listdir(folder))
    if is_other or not names <= {HEAD, VECTORS}:
        raise ModelError(
            f"`output` must be a new folder, an empty one or one of shards, got "
            f"{str(folder)!r} with other files. Give another path."
        )
    return folder


def _build(work: SpreadingFit, view: str) -> tuple[ShardedView, BlockGraph]:
    """Build the graph of a view; return what new items need, and the graph."""
    built, _ = work.build(view)
    names = ("graph", "n_neighbors", "metric", "bandwidth", "weights")
    sharded = ShardedView(
        **{name: built.near.chosen[name] for name in names},
        n_features=built.near.view.n_features,
        widths=built.near.widths,
        degrees=built.affinity.row_sums(),
    )
    return sharded, built.affinity.normalized()


def _spread(
    work: SpreadingFit,
    graphs: Mapping[str, BlockGraph],
    pair: tuple[str, str],
    target: Path,
) -> ShardedPair:
    """Propagate the links of two views, and let the workers write the vectors."""
    found, folder = work.spread(graphs, pair), str(target / VECTORS)
    core, for_left, for_right = found.cores
    if work.model.rank is None:
        # Shards hold vectors only, so exact rows cannot be computed.
        warn_of_error(found.error, work.model.tol, core)

    def write(view: str, parts: list[Any], width: int) -> VectorShards:
        if isinstance(parts[0], np.ndarray):  # wide links are propagated by the client
            files = [write_shard(part, folder) for part in parts]
        else:
            tasks = work.session.map(write_shard, parts, folder=folder)
            work.session.finish(tasks, f"vectors of {view}")
            files = work.session.fetch(tasks)
        return VectorShards(tuple(files), width, core.dtype.name)

    left = write(pair[0], found.left, core.shape[0])
    right = write(pair[1], found.right, core.shape[1])
    return ShardedPair(left, right, core, for_left, for_right, found.error)


def _write_head(folder: Path, head: Head) -> None:
    """Write the head, which makes the written shards the model of a folder."""
    about = {view: {"n_items": own.n_items} for view, own in head.items.items()}
    content = REGISTRY.encode(head, about={"views": about})
    write_folder(folder / HEAD, content, kind=SHARDS)
    kept = {file.name for pair in head.pairs.values() for file in pair.files}
    for entry in list(os.scandir(folder / VECTORS)):
        if entry.name not in kept:
            with suppress(OSError):
                os.unlink(entry.path)


def _fits_pair(pair: ShardedPair) -> bool:
    """Return whether cores join the vectors of both sides."""
    shape = pair.left.width, pair.right.width
    cores = pair.core, pair.unseen_left, pair.unseen_right
    return all(core.shape == shape for core in cores)


def _fits_all(head: Head) -> bool:
    """Return whether all parts of a folder are of the same items."""
    sizes = {view: items.n_items for view, items in head.items.items()}
    fits = set(head.views) == set(sizes)
    for view, own in head.views.items():
        widths = getattr(own.widths, "size", sizes.get(view))
        fits &= len(own.degrees) == widths == sizes.get(view)
    for (left, right), pair in head.pairs.items():
        found = pair.left.n_items, pair.right.n_items
        fits &= found == (sizes.get(left), sizes.get(right))
    return fits


REGISTRY = Registry(
    (
        *PARTS,
        ShardFile,
        Stored(VectorShards, check=lambda shards: shards.is_plain),
        Stored(ShardedPair, check=_fits_pair),
        Stored(
            ShardedView,
            check=lambda view: view.metric in METRICS and view.weights in WEIGHTS,
        ),
        Stored(Head, check=_fits_all),
    )
)
