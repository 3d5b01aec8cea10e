"""The same fit beyond one machine, by the workers of a Dask cluster."""

from linkspread.cluster.connecting import connect
from linkspread.cluster.fitting import ClusterReport, fit
from linkspread.cluster.planning import ClusterPlan, plan
from linkspread.cluster.session import Usage
from linkspread.cluster.views import ChunkedView, open_view

__all__ = [
    "ChunkedView",
    "ClusterPlan",
    "ClusterReport",
    "Usage",
    "connect",
    "fit",
    "open_view",
    "plan",
]
