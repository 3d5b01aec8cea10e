"""A model whose vectors stay on the disk, searched shard by shard."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from linkspread.cluster.neighbors import nearest_in_chunks
from linkspread.cluster.shard_index import ShardIndex
from linkspread.cluster.vector_shards import VectorShards
from linkspread.cluster.views import ChunkedView
from linkspread.graphs import normalize_rows
from linkspread.graphs.weights import weigh_new
from linkspread.ground.checks import check_name
from linkspread.ground.errors import LinkspreadError
from linkspread.links import Items, Links
from linkspread.models.link_choice import check_linked
from linkspread.models.vector_search import VectorSearch
from linkspread.tables.validation import check_table

Array = np.ndarray
# Graphs in which a new item has the neighbours that a fitted one would have.
EXTENSIBLE = ("knn", "cwa")


@dataclass(frozen=True)
class ShardedView:
    """What places new items of a view."""

    graph: str
    n_neighbors: int
    metric: str
    bandwidth: Any
    weights: str
    n_features: int
    widths: Any
    degrees: Array


@dataclass(frozen=True)
class ShardedPair:
    """The scores of two views: `propagation.Spread`, with its vectors in files."""

    left: VectorShards
    right: VectorShards
    core: Array
    unseen_left: Array
    unseen_right: Array
    error: float

    @property
    def T(self) -> "ShardedPair":
        """The same scores with the views exchanged."""
        return ShardedPair(
            self.right,
            self.left,
            self.core.T,
            self.unseen_right.T,
            self.unseen_left.T,
            self.error,
        )


class ShardedModel(VectorSearch):
    """Search between views whose vectors are in shards on the disk.

    Made by `fit_shards` or `open_shards`. Scores are those of the model that
    `cluster.fit` would return; memory is needed for one shard at a time, for the ids
    and for three numbers of each item.

    Parameters
    ----------
    folder : str or Path
        Of the files of vectors.
    client : distributed.Client, default=None
        Whose workers search.

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

    def hold(
        self,
        items: Mapping[str, Items],
        links: Links,
        pairs: Mapping[tuple[str, str], ShardedPair],
        sharded: Mapping[str, ShardedView],
        *,
        tables: Mapping[str, ChunkedView],
    ) -> Self:
        """Take up what a folder holds.

        Parameters
        ----------
        items : mapping from str to Items
        links : Links
        pairs : mapping from pairs of str to ShardedPair
        sharded : mapping from str to ShardedView
        tables : mapping from str to ChunkedView

        Returns
        -------
        self : ShardedModel
        """
        self.view_names_ = tuple(items)
        self.items_, self.links_, self.pairs_ = dict(items), links, dict(pairs)
        self._sharded, self._tables = dict(sharded), dict(tables)
        return self

    def fit(self, views: Any, links: Any) -> Self:
        """Refuse: shards are written by `fit_shards`.

        Parameters
        ----------
        views, links : object
        """
        raise LinkspreadError(
            "shards must be fitted by `cluster.fit_shards`, got a call of `fit`. Use "
            "that, or `LinkSpreading` on one machine."
        )

    def index(
        self, source: str, target: str, *, method: str = "auto"
    ) -> Any:  # of the face of an ItemIndex
        """Return what searches the shards of a view.

        Parameters
        ----------
        source : str
            View that searches.
        target : str
            View that is searched.
        method : {"exact", "auto"}, default="auto"
            Shards are searched exactly.

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
        """Return the scores of two views, or say that there are none."""
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
                f"the table of view {view!r} must be given for new items to be placed "
                "in it, and it was not. Open the shards with "
                f"`open_shards(folder, views={{{view!r}: path}})`."
            )
        table = self._tables[view]
        ids, distances = nearest_in_chunks(
            table, rows, n_neighbors=own.n_neighbors, metric=own.metric
        )
        affinities = weigh_new(
            ids,
            distances,
            own.widths,
            local=own.bandwidth == "local",
            weights=own.weights,
            metric=own.metric,
            dtype=table.dtype,
            n_items=table.shape[0],
        )
        return normalize_rows(affinities, own.degrees)
