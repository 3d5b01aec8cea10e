"""Search between views from what they share, better with every judged pair."""

from collections.abc import Mapping
from itertools import combinations
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
    ScoreFactors,
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


class CrossViewSearch(VectorSearch):
    """Search one view from another, starting from what they share.

    Every view gets one map, once. Views with the same columns are searched by their
    cosine before anything is judged. Matched rows and judged pairs move small cores;
    how much each counts is chosen on judgements that are held out, against the cosine.
    Labels are not learnt from yet: use `LinkSpreading` for them.

    Parameters
    ----------
    metric : {"auto", "euclidean", "cosine", "hellinger"} or dict by view, \
default="auto"
        The distance that suits the columns. "auto" takes the cosine for sparse rows
        and for rows of length 1, hellinger for rows that sum to 1.
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
    summary_ : str
        What was known, what counted and how good it is.

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
            Matched rows and judged pairs; None searches what the views share.
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
        resolved = _check_pairs(Links() if links is None else links).resolve(items)
        priors = self._choose_priors(tables)
        pairs = [
            pair
            for pair in combinations(tables, 2)
            if _share_space(priors, *pair) or resolved.connects(*pair)
        ]
        if not pairs:
            widths = {view: X.shape[1] for view, X in tables.items()}
            raise LinkError(
                "links must join two views that share no space, got none for views "
                f"with {widths} columns. Judge a few pairs (`Links.from_pairs`), or "
                "give `prior`, tables of one width."
            )
        maps = self._make_maps(tables, metrics, resolved)
        sides = {pair: _sides(maps, priors, *pair) for pair in pairs}
        evidence = {pair: read_evidence(resolved, *pair) for pair in pairs}
        choices = {
            pair: choose(sides[pair], evidence[pair], seed=self.random_state)
            for pair in pairs
        }
        factors = {
            pair: fit_factors(sides[pair], evidence[pair], choices[pair])
            for pair in pairs
        }
        # Kept only now, so that a fit that fails leaves an earlier one whole.
        self.view_names_ = tuple(tables)
        self.items_, self.links_ = items, resolved
        self._columns = read.columns
        self._maps, self._priors, self._sides = maps, priors, sides
        self.choices_, self._factors = choices, factors
        self.summary_ = _summary(evidence, choices, sides)
        return self

    @on_own_threads
    def add_links(self, links: Links) -> Self:
        """Learn from more judged pairs, with the same maps, choices and hubs.

        Parameters
        ----------
        links : Links
            Judged pairs of views that were searched before.

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
        return _check_pairs(links).resolve(self.items_)

    def _relink(self, links: Links) -> Self:
        """Fit the cores of views whose links changed; choose for newly joined views."""
        sides, choices, factors = dict(self._sides), dict(self.choices_), {}
        for pair in combinations(self.view_names_, 2):
            evidence = read_evidence(links, *pair)
            if _same(evidence, read_evidence(self.links_, *pair)):
                continue
            _check_left(evidence, pair, has_prior=pair in sides and sides[pair].prior)
            if pair not in choices:
                sides[pair] = _sides(self._maps, self._priors, *pair)
                choices[pair] = choose(sides[pair], evidence, seed=self.random_state)
            before = self._factors.get(pair)
            factors[pair] = fit_factors(
                sides[pair], evidence, choices[pair], before=before
            )
        self.links_, self._sides, self.choices_ = links, sides, choices
        self._factors = {**self._factors, **factors}
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
        return {
            view: make_map(
                X,
                metric=metrics[view],
                first=_judged_items(links, view, tables),
                random_state=self.random_state,
                n_jobs=self.n_jobs,
            )
            for view, X in tables.items()
        }

    def _factors_of(self, source: str, target: str) -> tuple[ScoreFactors, int]:
        """Return the factors of two views, and on which side the source is."""
        check_views_known(self.view_names_, source, target)
        if (source, target) in self._factors:
            return self._factors[source, target], 0
        if (target, source) in self._factors:
            return self._factors[target, source], 1
        raise LinkError(
            f"views {source!r} and {target!r} must share a space or have links to be "
            "searched from each other, got neither. Judge a few pairs of them."
        )

    def _own_vectors(self, view: str) -> Array:
        """Return unit vectors for searches within a view, from its map."""
        return unit_rows(self._maps[view].features("linear + gaussian"))

    def _vectors_of_fitted(self, positions: Array, source: str, target: str) -> Array:
        return self._vectors_found_at(positions, target, source)

    def _vectors_found(self, source: str, target: str) -> Array:
        if source == target:
            return self._own_vectors(source)
        factors, side = self._factors_of(source, target)
        return factors.right if side == 0 else factors.left

    def _vectors_of_new(self, rows: Any, source: str, target: str) -> Array:
        rows = check_columns(rows, self._columns[source], view=source)
        n_features = self._maps[source].n_features
        rows = check_table(rows, view=source, n_features=n_features)
        if source == target:
            return unit_rows(self._maps[source].transform(rows, "linear + gaussian"))
        factors, side = self._factors_of(source, target)
        prior = None
        if self._sides[(source, target) if side == 0 else (target, source)].prior:
            if self.prior != "auto":
                raise ViewError(
                    f"new items of view {source!r} must have a row in `prior` too, "
                    "which was given as tables. Fit again with these items."
                )
            prior = unit_rows(rows)
        return factors.vectors_of_new(rows, prior, side)


def _check_pairs(links: Any) -> Links:
    """Refuse what is not learnt from."""
    if not isinstance(links, Links) or links.has_labels:
        raise LinkError(
            f"`links` must be judged pairs or matched rows, got {links!r:.60}. Make "
            "them with `Links.from_pairs`; LinkSpreading learns from labels."
        )
    for between, _ in links.pair_tables:
        if between[0] == between[1]:
            raise LinkError(
                f"`links` must join two views, got pairs within {between[0]!r}. Leave "
                "them out; LinkSpreading learns from them."
            )
    return links


def _check_left(evidence: Evidence, pair: Pair, *, has_prior: Any) -> None:
    """Refuse to take back all that two views are searched by."""
    if not has_prior and not len(evidence.must[0]) + len(evidence.cannot[0]):
        raise LinkError(
            f"links must leave a pair of {pair[0]!r} and {pair[1]!r}, which share no "
            "space, got none left. Keep one, or fit again."
        )


def _judged_items(links: Links, view: str, tables: Mapping[str, Any]) -> Array:
    """Return the items of a view that any link judges."""
    judged = np.zeros(tables[view].shape[0], dtype=bool)
    for other in tables:
        if other != view and links.connects(view, other):
            judged[links.judged(view, other).tocoo().row] = True
    return np.flatnonzero(judged)


def _share_space(priors: Mapping[str, Any], a: str, b: str) -> bool:
    """Tell whether two views have rows of one width to compare."""
    return a in priors and b in priors and priors[a].shape[1] == priors[b].shape[1]


def _sides(
    maps: Mapping[str, ViewMap], priors: Mapping[str, Any], a: str, b: str
) -> Sides:
    shared = (priors[a], priors[b]) if _share_space(priors, a, b) else None
    return Sides((maps[a], maps[b]), shared)


def _suited_metric(X: Any) -> str:
    """Return the distance that the rows of a view look made for."""
    if sp.issparse(X):
        return "cosine"
    lengths = np.einsum("ij,ij->i", X, X)
    if np.all(np.abs(lengths - 1) < UNIT):
        return "cosine"
    totals = X.sum(axis=1)
    if X.min() >= 0 and np.all(np.abs(totals - 1) < UNIT):
        return "hellinger"
    return "euclidean"


def _same(one: Evidence, other: Evidence) -> bool:
    parts = zip((*one.must, *one.cannot), (*other.must, *other.cannot), strict=True)
    return all(np.array_equal(a, b) for a, b in parts)


def _summary(
    evidence: Mapping[Pair, Evidence],
    choices: Mapping[Pair, Choice],
    sides: Mapping[Pair, Sides],
) -> str:
    """Say for each two views what was known, what counted and how good it is."""
    sentences = []
    for pair, choice in choices.items():
        n_must, n_cannot = (
            len(part[0]) for part in (evidence[pair].must, evidence[pair].cannot)
        )
        shared = "share a space" if sides[pair].prior else "share no space"
        sentences.append(
            f"{pair[0]} and {pair[1]} {shared}; {n_must:,} pairs are known to belong "
            f"together, {n_cannot:,} not to."
        )
        sentences.append(_counted(choice))
        if choice.n_held_out:
            prior = choice.quality.get("prior")
            beside = "" if prior is None else f", {prior:.2f} by the cosine alone"
            sentences.append(
                f"{choice.n_held_out} held-out partners: mean reciprocal rank "
                f"{choice.quality['model']:.2f}{beside}."
            )
    return " ".join(sentences)


def _counted(choice: Choice) -> str:
    """Say which terms count, in words."""
    names = {
        "prior": "the cosine",
        "displacement": "the cosine, corrected by known pairs",
        "grid": "likeness to known pairs",
        "pairs": "regression on judged pairs",
    }
    words = [
        "the cosine" if np.isinf(term.ridge) else names[term.kind]
        for term in choice.terms
    ]
    hubs = f"; hub correction {choice.hubs:g}" if choice.hubs else ""
    return f"What counts: {' and '.join(words)}{hubs}."
