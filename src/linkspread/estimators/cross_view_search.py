"""Search between views from what they share, better with every judgement."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from linkspread.estimators.link_choice import check_views_known
from linkspread.estimators.vector_search import VectorSearch
from linkspread.exceptions import LinkError, ViewError
from linkspread.kernels.threads import on_own_threads
from linkspread.learning import (
    Choice,
    Evidence,
    Rows,
    ScoreFactors,
    Setting,
    Sides,
    ViewMap,
    choose,
    fit_factors,
    make_map,
    read_evidence,
)
from linkspread.learning.maps import unit_rows
from linkspread.links import Items, Links
from linkspread.parameter_checks import check_name
from linkspread.validation import (
    check_columns,
    check_table,
    check_varied,
    check_views,
    per_view,
)

__all__ = ["CrossViewSearch"]

Array = np.ndarray
Pair = tuple[str, str]

METRICS = ("auto", "euclidean", "cosine", "hellinger")
# Rows whose squared length is this near to 1 were scaled by an encoder.
UNIT = 1e-3
# Kernels by which items of one view are alike before anything is judged.
OWN_MIXTURE = "linear + gaussian"
# Items of a view between two others through which these are searched.
N_BETWEEN = 1000
# Scores that are computed at once, in bytes.
BLOCK_BYTES = 2**26


class CrossViewSearch(VectorSearch):
    """Search one view from another, starting from what they share.

    Every view gets one map, once. Views with the same columns are searched by their
    cosine before anything is judged. Labels, matched rows and judged pairs move small
    cores; how much each counts is chosen on judgements that are held out, against the
    cosine.

    Parameters
    ----------
    metric : {"auto", "euclidean", "cosine", "hellinger"} or dict by view, \
default="auto"
        The distance that suits the columns. "auto" takes the cosine for sparse rows
        and for rows of length 1, hellinger for rows of histograms.
    prior : "auto", None or mapping from str to table, default="auto"
        Where views are compared before anything is judged. "auto" takes views with
        the same columns as they are; None compares none; tables of one width, one for
        each view, are compared in place of the views.
    random_state : int, default=0
        Of landmarks and folds.
    n_jobs : int, default=None
        Threads of graphs; None takes every core.

    Attributes
    ----------
    view_names_ : tuple of str
    items_ : dict from str to Items
    links_ : Links
        The links by position.
    choices_ : dict from pairs of str to Choice
        What was chosen for two views, and its held-out quality.

    Examples
    --------
    >>> import linkspread as ls
    >>> views = {"text": [[1.0, 0.0], [0.0, 1.0]], "image": [[0.1, 1.0], [1.0, 0.2]]}
    >>> model = ls.CrossViewSearch().fit(views)
    >>> ids, scores = model.search([0, 1], source="text", target="image", n_results=1)
    >>> ids.ravel().tolist()
    [1, 0]
    """

    view_names_: tuple[str, ...]
    links_: Links

    def __init__(
        self,
        *,
        metric: Any = "auto",
        prior: Any = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.metric = metric
        self.prior = prior
        self.random_state = random_state
        self.n_jobs = n_jobs

    @on_own_threads
    def fit(
        self,
        views: Any,
        links: Links | None = None,
        *,
        ids: Mapping[str, Any] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> Self:
        """Make the maps, and learn from links if there are any.

        Parameters
        ----------
        views : mapping from str to table of shape (n_items, n_features)
            Arrays, sparse matrices or DataFrames; sizes may differ between views.
        links : Links, default=None
            Labels, matched rows and judged pairs; None searches what views share.
        ids : mapping from str to array-like of shape (n_items,), default=None
            Ids of the items; where missing, the column `id` of a DataFrame, then the
            index of pandas if it was set, else positions.
        columns : mapping from str to list of str, default=None
            Columns of DataFrames to take, or to leave out with a minus before each
            name.

        Returns
        -------
        self : CrossViewSearch
        """
        read = check_views(views, ids, columns)
        read.tell()
        tables = read.tables
        if len(tables) < 2:
            raise ViewError(
                f"`views` must be two or more to search one from another, got "
                f"{list(tables)}. Add a view."
            )
        for view, X in tables.items():
            check_varied(X, view=view)
        metrics = self._choose_metrics(tables)
        items = {view: Items(read.ids[view], view=view) for view in tables}
        resolved = _check_links(Links() if links is None else links).resolve(items)
        priors = self._choose_priors(tables)
        pairs = _searched_pairs(tables, priors, resolved)
        if all(a == b for a, b in pairs):
            widths = {view: X.shape[1] for view, X in tables.items()}
            raise LinkError(
                "links must join two views that share no space, got none for views "
                f"with {widths} columns. Judge a few pairs (`Links.from_pairs`), or "
                "give `prior`, tables of one width."
            )
        maps = self._make_maps(tables, metrics, resolved)
        evidence = {pair: read_evidence(resolved, *pair) for pair in pairs}
        fits = {
            pair: _fit_pair(maps, priors, evidence[pair], pair, self) for pair in pairs
        }
        # Kept only now, so that a fit that fails leaves an earlier one whole.
        self.view_names_ = tuple(tables)
        self.items_, self.links_ = items, resolved
        self._columns = read.columns
        self._maps, self._priors = maps, priors
        self.choices_ = {pair: choice for pair, (choice, _) in fits.items()}
        self._factors = {pair: factors for pair, (_, factors) in fits.items()}
        self._chosen_at = {pair: own.n_pairs for pair, own in evidence.items()}
        return self

    @property
    def summary_(self) -> str:
        """What was known, what counted and how good it is."""
        check_is_fitted(self)
        return _summary(self)

    @on_own_threads
    def add_links(self, links: Links) -> Self:
        """Learn from more judged pairs, with the same maps and choices.

        Parameters
        ----------
        links : Links
            Judged pairs.

        Returns
        -------
        self : CrossViewSearch
        """
        check_is_fitted(self)
        return self._relink(self.links_ + self._by_position(links))

    @on_own_threads
    def remove_links(self, links: Links) -> Self:
        """Take back judged pairs.

        Parameters
        ----------
        links : Links
            Pairs with the weights that they were given.

        Returns
        -------
        self : CrossViewSearch
        """
        check_is_fitted(self)
        return self._relink(self.links_ - self._by_position(links))

    def _by_position(self, links: Links) -> Links:
        links = _check_links(links)
        if links.has_labels:
            raise LinkError(
                f"live links must be single pairs, got {links!r:.60}. Fit again with "
                "more labels."
            )
        return links.resolve(self.items_)

    def _relink(self, links: Links) -> Self:
        """Fit the cores of views whose links changed.

        What counts how much is chosen again each time their number has doubled.
        """
        choices, factors = dict(self.choices_), dict(self._factors)
        chosen_at = dict(self._chosen_at)
        for pair in combinations_with_replacement(self.view_names_, 2):
            evidence = read_evidence(links, *pair)
            if _same(evidence, read_evidence(self.links_, *pair)):
                continue
            before = factors.get(pair)
            has_prior = before is not None and before.sides.prior is not None
            _check_left(evidence, pair, has_prior=has_prior)
            if before is None or evidence.n_pairs >= 2 * max(chosen_at[pair], 1):
                own = _fit_pair(self._maps, self._priors, evidence, pair, self)
                choices[pair], factors[pair] = own
                chosen_at[pair] = evidence.n_pairs
            else:
                factors[pair] = fit_factors(
                    before.sides, evidence, choices[pair], before=before
                )
        self.links_, self.choices_, self._factors = links, choices, factors
        self._chosen_at = chosen_at
        return self

    def _choose_priors(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """Return unit rows of the views in spaces that may be shared."""
        if self.prior is None:
            return {}
        if isinstance(self.prior, str) and self.prior == "auto":
            return {view: unit_rows(X) for view, X in tables.items()}
        if not isinstance(self.prior, Mapping):
            raise ViewError(
                "`prior` must be 'auto', None or tables by view, got "
                f"{type(self.prior).__name__}. Leave it out for 'auto'."
            )
        given = {view: check_table(X, view=view) for view, X in self.prior.items()}
        for view, X in given.items():
            if view not in tables or X.shape[0] != tables[view].shape[0]:
                size = tables[view].shape[0] if view in tables else "no"
                raise ViewError(
                    f"`prior` of view {view!r} must have a row for each item, got "
                    f"{X.shape[0]} rows for {size} items. Give one row per item."
                )
        return {view: unit_rows(X) for view, X in given.items()}

    def _choose_metrics(self, tables: Mapping[str, Any]) -> dict[str, str]:
        """Return the distance of each view, which its values must allow."""
        given = per_view(self.metric, tables, name="metric")
        chosen = {}
        for view, X in tables.items():
            name = check_name(given[view], METRICS, name="metric")
            chosen[view] = _suited_metric(X) if name == "auto" else name
            if chosen[view] == "hellinger" and X.min() < 0:
                raise ViewError(
                    f"view {view!r} must have no negative values for the metric "
                    f"'hellinger', got {X.min():.3g}. Use 'euclidean' or 'cosine'."
                )
        return chosen

    def _make_maps(
        self, tables: Mapping[str, Any], metrics: Mapping[str, str], links: Links
    ) -> dict[str, ViewMap]:
        """Return the map of each view, judged items as landmarks first."""
        maps = {}
        for view, X in tables.items():
            judged, n_labelled = _judged_items(links, view, tables)
            # A graph tells classes: without a judgement nothing could be learnt by it.
            has_graph = len(judged) > 0 and X.shape[0] > 2
            maps[view] = make_map(
                X,
                metric=metrics[view],
                blocks=("linear", "gaussian", "graph")[: 3 if has_graph else 2],
                judged=judged,
                n_labelled=n_labelled,
                random_state=self.random_state,
                n_jobs=self.n_jobs,
            )
        return maps

    def _direction(self, source: str, target: str) -> "_Direction | _Chained":
        """Return what scores queries of one view with items of another."""
        check_views_known(self.view_names_, source, target)
        for side, pair in enumerate(((source, target), (target, source))):
            if pair in self._factors:
                return _Direction(self._factors[pair], side)
        if source == target:
            return _Direction(_alike(self._maps[source]), 0)
        chain = _shortest_chain(self._factors, source, target)
        if chain is None:
            raise LinkError(
                f"views {source!r} and {target!r} must share a space or have links to "
                "be searched from each other, got neither. Judge a few pairs of them."
            )
        *firsts, last = [self._direction(*step) for step in chain]
        for first in reversed(firsts):
            last = _Chained(first, last)  # type: ignore[arg-type]
        return last

    def _exact_rows(self, source: str, target: str) -> Any:
        return self._direction(source, target)

    def _similarities(self, rows: Any, view: str) -> Rows:
        """Return the features of new items."""
        rows = check_columns(rows, self._columns[view], view=view)
        rows = check_table(rows, view=view, n_features=self._maps[view].n_features)
        values = self._maps[view].transform(rows)
        prior = None
        if isinstance(self.prior, str) and view in self._priors:
            prior = unit_rows(rows)
        return Rows(values, prior)

    def _vectors_of_fitted(self, positions: Array, source: str, target: str) -> Array:
        return self._vectors(source, target)[0][positions]

    def _vectors_found(self, source: str, target: str) -> Array:
        return self._vectors(source, target)[1]

    def _vectors_of_new(self, rows: Any, source: str, target: str) -> Array:
        direction, turn = self._direction(source, target), self._vectors(source, target)
        return direction.query_vectors(self._similarities(rows, source)) @ turn[2]

    def _vectors(self, source: str, target: str) -> tuple[Array, Array, Array]:
        """Return the vectors of two views, made once for what is known now."""
        made = self.__dict__.setdefault("_made_vectors", {})
        kept = made.get((source, target))
        if kept is None or kept[0] is not self._factors:
            kept = self._factors, self._direction(source, target).vectors()
            made[source, target] = kept
        return kept[1]

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_made_vectors", None)
        return state


@dataclass(frozen=True)
class _Direction:
    """Searches of one view from another."""

    factors: ScoreFactors
    side: int

    @property
    def shape(self) -> tuple[int, int]:
        sizes = [own.n_items for own in self.factors.sides.maps]
        return sizes[self.side], sizes[1 - self.side]

    @property
    def dtype(self) -> Any:
        return self.factors.dtype

    @property
    def rows_at_a_time(self) -> int:
        return max(1, BLOCK_BYTES // (4 * self.shape[1]))

    def rows(self, i: Array) -> Array:
        return self.block(i, slice(None))

    def block(self, i: Array, j: Any) -> Array:
        return self.factors.scores(self.side, self.factors.fitted(self.side, i), j)

    def unseen_rows(self, rows: Rows) -> Array:
        return self.factors.scores(self.side, self._known(rows))

    def query_vectors(self, rows: Rows) -> Array:
        return self.factors.query_vectors(self.side, self._known(rows))

    def vectors(self) -> tuple[Array, Array, Array]:
        return self.factors.vectors(self.side)

    def _known(self, rows: Rows) -> Rows:
        """Return new items with what the terms need."""
        if self.factors.sides.prior is None:
            return replace(rows, prior=None)
        if self.factors.sides.maps[0] is self.factors.sides.maps[1]:
            return replace(rows, prior=_own_prior(self.factors.sides.maps[0], rows))
        if rows.prior is None:
            raise ViewError(
                "new items must have a row in `prior` too, which was given as tables. "
                "Fit again with these items."
            )
        return rows


@dataclass(frozen=True)
class _Chained:
    """Searches through views between: by how alike the scores with their items are."""

    first: _Direction
    second: "_Direction | _Chained"

    @property
    def shape(self) -> tuple[int, int]:
        return self.first.shape[0], self.second.shape[1]

    @property
    def dtype(self) -> Any:
        return self.first.dtype

    @property
    def rows_at_a_time(self) -> int:
        return max(1, BLOCK_BYTES // (4 * self.shape[1]))

    @property
    def _between(self) -> Array:
        rng = np.random.default_rng(0)
        return np.sort(rng.permutation(self.first.shape[1])[:N_BETWEEN])

    def _centred(self, scores: Array) -> Array:
        return (scores - scores.mean(axis=1, keepdims=True)) / len(self._between)

    def rows(self, i: Array) -> Array:
        return self.block(i, slice(None))

    def block(self, i: Array, j: Any) -> Array:
        near = self._centred(self.first.block(i, self._between))
        return near @ self.second.block(self._between, j)

    def unseen_rows(self, rows: Rows) -> Array:
        return self.query_vectors(rows) @ self.second.rows(self._between)

    def query_vectors(self, rows: Rows) -> Array:
        return self._centred(self.first.unseen_rows(rows)[:, self._between])

    def vectors(self) -> tuple[Array, Array, Array]:
        everyone = np.arange(self.shape[0])
        searching = self._centred(self.first.block(everyone, self._between))
        found = np.ascontiguousarray(self.second.rows(self._between).T)
        return searching, found, np.eye(len(self._between), dtype=np.float32)


def _check_links(links: Any) -> Links:
    """Refuse what holds no links."""
    if not isinstance(links, Links):
        raise LinkError(
            f"`links` must be Links, got {links!r:.60}. Make them with "
            "`Links.from_pairs`, `from_labels` or `from_matched`."
        )
    return links


def _check_left(evidence: Evidence, pair: Pair, *, has_prior: bool) -> None:
    """Refuse to take back all that two views are searched by."""
    if not has_prior and not evidence.n_pairs and evidence.labels is None:
        raise LinkError(
            f"links must leave a pair of {pair[0]!r} and {pair[1]!r}, which share no "
            "space, got none left. Keep one, or fit again."
        )


def _searched_pairs(
    tables: Mapping[str, Any], priors: Mapping[str, Any], links: Links
) -> list[Pair]:
    """Return the views that share a space or have links, and those linked within."""
    return [
        (a, b)
        for a, b in combinations_with_replacement(tables, 2)
        if links.connects(a, b) or (a != b and _share_space(priors, a, b))
    ]


def _fit_pair(
    maps: Mapping[str, ViewMap],
    priors: Mapping[str, Any],
    evidence: Evidence,
    pair: Pair,
    model: CrossViewSearch,
) -> tuple[Choice, ScoreFactors]:
    """Choose what counts for two views, or for one, and fit it."""
    a, b = pair
    if a == b:
        sides = _alike(maps[a]).sides
    else:
        shared = (priors[a], priors[b]) if _share_space(priors, a, b) else None
        sides = Sides((maps[a], maps[b]), shared)
    choice = choose(sides, evidence, seed=model.random_state)
    return choice, fit_factors(sides, evidence, choice)


def _alike(map_: ViewMap) -> ScoreFactors:
    """Return how alike the items of one view are before anything is judged."""
    prior = _own_prior(map_, Rows(map_.values))
    sides = Sides((map_, map_), (prior, prior))
    plain = Choice((Setting("prior"),), 0.0, 0, {})
    nothing = np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0)
    return fit_factors(sides, Evidence(nothing, nothing), plain)


def _own_prior(map_: ViewMap, rows: Rows) -> Array:
    """Return unit rows by which items of one view are compared."""
    return unit_rows(rows.values[:, map_.columns(OWN_MIXTURE)])


def _shortest_chain(
    pairs: Any, source: str, target: str
) -> list[tuple[str, str]] | None:
    """Return the steps of the shortest way between two views, or None."""
    near: dict[str, list[str]] = {}
    for a, b in pairs:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    ways, seen = [[source]], {source}
    while ways:
        way = ways.pop(0)
        for view in near.get(way[-1], []):
            if view == target:
                return list(pairwise([*way, view]))
            if view not in seen:
                seen.add(view)
                ways.append([*way, view])
    return None


def _judged_items(
    links: Links, view: str, tables: Mapping[str, Any]
) -> tuple[Array, int]:
    """Return the items of a view that any link judges, and how many have labels."""
    judged = np.zeros(tables[view].shape[0], dtype=bool)
    for other in tables:
        if links.connects(view, other):
            judged[links.judged(view, other).tocoo().row] = True
    memberships = links.memberships(view)
    n_labelled = 0
    if memberships is not None:
        labelled = np.asarray(memberships.sum(axis=1)).ravel() > 0
        judged |= labelled
        n_labelled = int(labelled.sum())
    return np.flatnonzero(judged), n_labelled


def _share_space(priors: Mapping[str, Any], a: str, b: str) -> bool:
    """Tell whether two views have rows of one width to compare."""
    return a in priors and b in priors and priors[a].shape[1] == priors[b].shape[1]


def _suited_metric(X: Any) -> str:
    """Return the distance that the rows of a view look made for."""
    if sp.issparse(X):
        return "cosine"
    lengths = np.einsum("ij,ij->i", X, X)
    if np.all(np.abs(lengths - 1) < UNIT):
        return "cosine"
    totals = X.sum(axis=1)
    # One histogram, or several of them side by side.
    if X.min() >= 0 and np.all(np.abs(totals - totals[0]) < UNIT * totals[0]):
        return "hellinger"
    return "euclidean"


def _same(one: Evidence, other: Evidence) -> bool:
    parts = zip((*one.must, *one.cannot), (*other.must, *other.cannot), strict=True)
    return all(np.array_equal(a, b) for a, b in parts)


def _summary(model: CrossViewSearch) -> str:
    """Say for each two views what was known, what counted and how good it is."""
    sentences = []
    for pair, choice in model.choices_.items():
        evidence = read_evidence(model.links_, *pair)
        factors = model._factors[pair]
        sentences.append(_known(pair, evidence, factors.sides))
        sentences.append(_counted(choice))
        if choice.n_held_out:
            prior = choice.quality.get("prior")
            beside = "" if prior is None else f", {prior:.2f} by the cosine alone"
            sentences.append(
                f"{choice.n_held_out} held-out partners: mean reciprocal rank "
                f"{choice.quality['model']:.2f}{beside}."
            )
    return " ".join(sentences)


def _known(pair: Pair, evidence: Evidence, sides: Sides) -> str:
    """Say what was known of two views."""
    a, b = pair
    n_must, n_cannot = len(evidence.must[0]), len(evidence.cannot[0])
    if a == b:
        n_must, n_cannot = n_must // 2, n_cannot // 2
        start = f"Within {a} items are compared by their columns"
    else:
        start = f"{a} and {b} share {'a' if sides.prior is not None else 'no'} space"
    labelled = ""
    if evidence.labels is not None:
        counts = [np.count_nonzero(np.diff(own.indptr)) for own in evidence.labels]
        n_classes = evidence.labels[0].shape[1]
        of = f"{counts[0]:,}" if a == b else f"{counts[0]:,} and {counts[1]:,}"
        labelled = f"; {of} items have labels of {n_classes:,} classes"
    return (
        f"{start}{labelled}; {n_must:,} pairs are known to belong together, "
        f"{n_cannot:,} not to."
    )


def _counted(choice: Choice) -> str:
    """Say which terms count, in words."""
    names = {
        "prior": "the cosine",
        "displacement": "the cosine, corrected by known pairs",
        "grid": "likeness to known pairs",
        "pairs": "regression on judged pairs",
        "labels": "the classes",
    }
    words = []
    for term in choice.terms:
        word = "the cosine" if _is_plain(term) else names[term.kind]
        by = " by the graph" if term.mixture == "graph" else ""
        words.append(word + by)
    hubs = f"; hub correction {choice.hubs:g}" if choice.hubs else ""
    return f"What counts: {', '.join(words)}{hubs}."


def _is_plain(term: Setting) -> bool:
    return term.kind in ("prior", "displacement") and np.isinf(term.ridge)
