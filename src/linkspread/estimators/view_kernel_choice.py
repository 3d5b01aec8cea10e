"""The kernel of each view, as the parameters of a model name it."""

from collections.abc import Mapping
from typing import Any

from scipy import sparse

from linkspread.estimators.similar_items import SimilarItems
from linkspread.exceptions import LinkspreadError
from linkspread.fitting.kernel_choice import affinity_kernel, linear_kernel
from linkspread.fitting.view_kernels import GraphKernel, MixedKernel, ViewKernel
from linkspread.parameter_checks import naming
from linkspread.validation import per_view

__all__ = ["KERNELS", "choose_kernels"]

KERNELS = ("affinity", "graph", "linear")
# Width of the affinity kernel where the graph has a width for each neighbourhood.
WIDTH = 0.5


def choose_kernels(
    model: Any,
    tables: Mapping[str, Any],
    graphs: Mapping[str, Any],
    normalized: Mapping[str, sparse.csr_array],
    alphas: Mapping[str, float],
) -> dict[str, ViewKernel]:
    """Return the kernel of each view.

    Parameters
    ----------
    model : LinkSpreading
        Its `kernel`, `metric` and `unit_diagonal` are read.
    tables : mapping from str to ndarray or csr_array
    graphs : mapping from str to object with `affinity_` and `extend`
    normalized : mapping from str to csr_array
        The graphs, normalised.
    alphas : mapping from str to float

    Returns
    -------
    kernels : dict from str to ViewKernel
    """
    chosen = per_view(model.kernel, tables, name="kernel")
    metrics = per_view(model.metric, tables, name="metric")

    def named(name: Any, view: str) -> ViewKernel:
        if name == "graph":
            if alphas[view] == 0:
                raise LinkspreadError(
                    "`alpha` must be above 0 for kernel='graph', got 0, with which "
                    "items are alike to themselves only. Give a larger one."
                )
            similar = SimilarItems(graphs[view], view)
            return GraphKernel(
                normalized[view],
                alphas[view],
                similar=similar,
                unit_diagonal=model.unit_diagonal,
            )
        has_features = not _is_graph(model.graph, view)
        if name == "affinity" and has_features:
            return affinity_kernel(tables[view], metric=metrics[view], width=WIDTH)
        if name == "linear" and has_features:
            return linear_kernel(tables[view])
        if name in ("affinity", "linear"):
            raise LinkspreadError(
                f"`kernel` must be 'graph' where the table is a graph, got {name!r}. "
                "Give features to compare items by others."
            )
        raise LinkspreadError(
            f"`kernel` must be {', '.join(map(repr, KERNELS))}, several of them joined "
            f"by '+', or a function of the table, got {name!r:.60}. Use 'graph' if in "
            "doubt."
        )

    def choose(view: str) -> ViewKernel:
        kernel = chosen[view]
        if callable(kernel):
            return _check_kernel(kernel(tables[view]), tables[view])
        names = kernel.split("+") if isinstance(kernel, str) else [kernel]
        parts = [named(name, view) for name in names]
        share = [1 / len(parts)] * len(parts)
        return parts[0] if len(parts) == 1 else MixedKernel(parts, share)

    kernels = {}
    for view in tables:
        with naming(view):
            kernels[view] = choose(view)
    return kernels


def _is_graph(graph: Any, view: str) -> bool:
    """Tell whether the table of a view is its graph, and holds no features."""
    own = graph.get(view) if isinstance(graph, Mapping) else graph
    return isinstance(own, str) and own == "precomputed"


def _check_kernel(kernel: Any, X: Any) -> ViewKernel:
    """Return what a function of the user made, if it is a kernel of this table."""
    if not isinstance(kernel, ViewKernel) or kernel.n_items != X.shape[0]:
        raise LinkspreadError(
            f"a function given as `kernel` must return a ViewKernel of "
            f"{X.shape[0]:,} items, got {kernel!r:.60}. Derive it from "
            "`linkspread.fitting.view_kernels.ViewKernel`."
        )
    return kernel
