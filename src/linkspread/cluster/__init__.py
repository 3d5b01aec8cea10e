"""Fit models by the workers of a Dask cluster."""

from linkspread.cluster.fitting import ClusterReport, fit
from linkspread.cluster.planning import ClusterPlan, plan
from linkspread.cluster.session import Usage, connect
from linkspread.cluster.sharded_model import (
    ShardedModel,
    check_output,
    fit_shards,
    is_sharded,
    open_shards,
)
from linkspread.cluster.views import ChunkedView, open_view

__all__ = [
    "ChunkedView",
    "ClusterPlan",
    "ClusterReport",
    "ShardedModel",
    "Usage",
    "check_output",
    "connect",
    "fit",
    "fit_shards",
    "is_sharded",
    "open_shards",
    "open_view",
    "plan",
]
