"""Fit models by the workers of a Dask cluster."""

from linkspread.cluster.fitting import fit
from linkspread.cluster.session import connect
from linkspread.cluster.sharded_model import ShardedModel, fit_shards, open_shards
from linkspread.cluster.views import ChunkedView, open_view

__all__ = [
    "ChunkedView",
    "ShardedModel",
    "connect",
    "fit",
    "fit_shards",
    "open_shards",
    "open_view",
]
