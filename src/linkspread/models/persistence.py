"""Save fitted models to folders, and load them; see `linkspread.storage`.

Of a `LinkSpreading`, graphs, links and scores are stored. Of a `CrossViewSearch`: maps,
tables, links, scales and hub corrections of the targets, and landmarks among many
judged pairs. Its shared spaces are computed again from the tables and its cores from
the links: the same numbers, up to rounding after many pairs judged since the fit.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from platformdirs import user_cache_path
from scipy import sparse

from linkspread.graphs.normalize import ROUNDING_UNITS
from linkspread.ground.errors import ModelError
from linkspread.learning import (
    Choice,
    ScoreFactors,
    Sides,
    ViewMap,
    fit_factors,
    read_evidence,
)
from linkspread.learning.cores import LabelModel
from linkspread.learning.pairs import PairRows
from linkspread.learning.terms import LabelTerm, PairsTerm, pair_columns
from linkspread.links import Items, Links
from linkspread.models.cross_view_search import CrossViewSearch, choose_priors
from linkspread.models.link_spreading import LinkSpreading
from linkspread.models.search_pairs import make_sides
from linkspread.models.spreading import (
    FitReport,
    Spreading,
    check_alphas,
    check_parameters,
)
from linkspread.models.stored_parts import PARTS, Graph, Pair
from linkspread.models.view_graphs import GivenGraph, fitted_table
from linkspread.propagation import Spread
from linkspread.propagation.rows import SpreadRows
from linkspread.storage import Registry, Stored, read_folder, write_folder
from linkspread.storage.files import naming_file
from linkspread.storage.manifest import MANIFEST, read_manifest
from linkspread.storage.schema import AnyMatrix, Matrix, Vector
from linkspread.tables.validation import LARGEST, check_table

# Empty files, named by the models that were checked on this machine; the last of them.
CHECKED = user_cache_path("linkspread", appauthor=False) / "checked models"
N_MARKS = 1000

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
    content = REGISTRY.encode(model, about=about)
    write_folder(path, content)
    manifest = read_manifest(Path(path))
    _remember(manifest["content"], manifest["arrays"]["name"])


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Any:
    """Load a model that its method `save` wrote.

    Nothing is executed, and everything is checked before it is used: a damaged or
    forged folder is refused with a message that names the file. Whether graphs are
    symmetric and not negative is checked once on each machine, and not at all where the
    folder was written; it takes a second for 10 million edges.

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
    # Without the checksums the files need not be those that were checked before.
    if not (verify and _mark(content.tree, content.arrays_file).exists()):
        with naming_file(content.arrays_file):
            _check_values(model)
        if verify:
            _remember(content.tree, content.arrays_file)
    if isinstance(model, LinkSpreading):
        with naming_file(MANIFEST):
            _complete(model)
    return model


def _mark(tree: Any, arrays_file: str) -> Path:
    """Return the file that marks a model as checked on this machine."""
    text = json.dumps([tree, arrays_file], sort_keys=True)
    return CHECKED / hashlib.sha256(text.encode()).hexdigest()


def _remember(tree: Any, arrays_file: str) -> None:
    """Mark a model as checked, unless the cache of the user cannot be written."""
    with suppress(OSError):
        CHECKED.mkdir(parents=True, exist_ok=True)
        _mark(tree, arrays_file).touch()
        marks = sorted(CHECKED.iterdir(), key=lambda own: own.stat().st_mtime)
        for oldest in marks[:-N_MARKS]:
            oldest.unlink(missing_ok=True)


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
        if not W.has_sorted_indices or W.data.min(initial=0) < 0 or _is_skew(W):
            raise ModelError(
                "a graph must be symmetric and its edges at least 0 and in order, got "
                f"another of {W.shape[0]:,} items. Save the model again."
            )
    for table in [*tables, *edges]:
        values = getattr(table, "data", table) if sparse.issparse(table) else table
        if values is not None and np.abs(values).max(initial=0) > LARGEST:
            raise ModelError(
                f"numbers of a model must be at most {LARGEST:.0e}, got "
                f"{np.abs(values).max():.3g}. Save the model again."
            )


def _is_skew(W: Any) -> bool:
    """Return whether a graph differs from its transpose by more than rounding."""
    transposed = sparse.csr_array(W.T)
    if not np.array_equal(transposed.indices, W.indices):
        return True
    gap = np.abs(transposed.data - W.data).max(initial=0)
    return bool(gap > ROUNDING_UNITS * np.finfo(W.dtype).eps * W.data.max(initial=0))


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
    _refuse(_misfits_of_items(model))
    _refuse(_misfits_of_spreading(model))
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
    _refuse(_misfits_of_items(model))
    _refuse(_misfits_of_search(model))
    _refuse(_misfits_of_factors(model, _factors))
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


def _refuse(misfits: Iterator[str]) -> None:
    """Refuse a model with parts that do not fit its items."""
    for what in misfits:
        raise ModelError(
            f"{what} must be of the views of the model and of all their items, got "
            "others. Save the model again."
        )


def _sizes(model: Any) -> dict[str, int]:
    """Return the number of items of each view."""
    return {view: items.n_items for view, items in model.items_.items()}


def _misfits_of_items(model: Any) -> Iterator[str]:
    """Yield the parts of any model that are not of its views and items."""
    sizes = _sizes(model)
    if tuple(sizes) != model.view_names_ or not sizes:
        yield "items"
    if any(items.view != view for view, items in model.items_.items()):
        yield "items"
    if {view: own.n_items for view, own in model.links_._items.items()} != sizes:
        yield "links"
    if not set(model.links_.views) <= set(sizes):
        yield "links"
    if set(model._columns) != set(sizes):
        yield "names of columns"


def _misfits_of_spreading(model: LinkSpreading) -> Iterator[str]:
    """Yield the parts of a `LinkSpreading` that are not of its views and items."""
    sizes = _sizes(model)
    if {v: own.affinity_.shape[0] for v, own in model.graphs_.items()} != sizes:
        yield "graphs"
    for (source, target), scores in model.spreads_.items():
        wanted = sizes.get(source), sizes.get(target)
        if (len(scores.left), len(scores.right)) != wanted:
            yield "vectors"
    for view, names in model._columns.items():
        graph = model.graphs_[view]
        # A column of lists, or all.
        if not isinstance(graph, GivenGraph) and _differ(names, graph.n_features_in_):
            yield "names of columns"
    by_row = {p for p, own in model.report_.spreads.items() if own.rank is None}
    if set(model.report_.graphs) != set(sizes) or not set(sizes).issuperset(
        view for pair in by_row for view in pair
    ):
        yield "reports"


def _differ(names: tuple[str, ...] | None, n_features: int) -> bool:
    """Return whether names of columns are neither one nor as many as features."""
    return names is not None and len(names) not in (1, n_features)


def _misfits_of_search(model: CrossViewSearch) -> Iterator[str]:
    """Yield the parts of a `CrossViewSearch` that are not of its views and items."""
    sizes = _sizes(model)
    if len(sizes) < 2:
        yield "items"
    if {view: own.n_items for view, own in model._maps.items()} != sizes:
        yield "maps"
    shapes = {view: (n, model._maps[view].n_features) for view, n in sizes.items()}
    if {view: X.shape for view, X in model._tables.items()} != shapes:
        yield "tables"
    if any(_differ(names, shapes[view][1]) for view, names in model._columns.items()):
        yield "names of columns"


def _misfits_of_factors(
    model: CrossViewSearch, factors: Mapping[Pair, Factors]
) -> Iterator[str]:
    """Yield the parts of the factors that are not of the views and items."""
    places = {view: k for k, view in enumerate(model.view_names_)}
    pairs = set(model.choices_)
    if set(factors) != pairs or set(model._chosen_at) != pairs:
        yield "choices"
    if any(
        a not in places or b not in places or places[a] > places[b] for a, b in pairs
    ):
        yield "choices"
    for pair, (scales, bias, labels, landmarks) in factors.items():
        terms = model.choices_[pair].terms
        if any(term.kind == "labels" for term in terms) != (labels is not None):
            yield "labels"
        for side, view in enumerate(pair):
            n_items = model.items_[view].n_items
            own = [scale for scale in scales[side] if scale is not None]
            if len(scales[side]) != len(terms) or any(len(s) != n_items for s in own):
                yield "scales"
            if len(bias[side]) != n_items:
                yield "hub corrections"
            width = model._maps[view].values.shape[1]
            if labels is not None and labels[side].W.shape[0] != width:
                yield "labels"
            if landmarks is not None and landmarks[side].shape != (
                len(landmarks[0]),
                width,
            ):
                yield "landmarks"
        if labels is not None and len(labels[0].b) != len(labels[1].b):
            yield "labels"


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
