"""CrossViewSearch: start from the cosine of a shared space, learn from judgements."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.ground.cores import hold_blas
from linkspread.ground.errors import LinkError, ViewError
from linkspread.judging.doubts import Doubt
from linkspread.judging.explanation import Shares
from linkspread.judging.held_out_quality import Progress
from linkspread.judging.suggestion import OpenPairs
from linkspread.learning import (
    Choice,
    Rows,
    ScoreFactors,
    ViewMap,
    change_factors,
    make_map,
)
from linkspread.learning.maps import MapWork, unit_rows
from linkspread.links import Items, Links
from linkspread.links.evidence import read_changes, read_evidence
from linkspread.models.live_search import (
    ByView,
    ItemChange,
    LiveSearch,
    changed_map,
    changed_units,
    check_growth,
)
from linkspread.models.matching import match_views
from linkspread.models.search_judgements import find_doubts, find_progress, next_pairs
from linkspread.models.search_pairs import (
    Chained,
    Direction,
    Pair,
    check_still_linked,
    explain_pair,
    fit_pair,
    leading_features,
    make_sides,
    renew_pair,
    searched_pairs,
    summarize,
    unjudged_factors,
)
from linkspread.models.vector_search import (
    changing,
    check_views_known,
    find_chain,
    reading,
)
from linkspread.models.view_replacement import ViewReplacement, read_replacement
from linkspread.models.view_spaces import choose_metrics, choose_priors
from linkspread.search.matches import Matches
from linkspread.tables import Table
from linkspread.tables.validation import (
    Views,
    check_columns,
    check_table,
    check_varied,
    check_views,
)

Array = np.ndarray

# Items of each view whose scores show whether a change is sound.
N_PROBES = 8


class CrossViewSearch(LiveSearch):
    """Search one view from another, with or without judgements.

    Each view gets one map. Views with the same columns are searched by their cosine
    before anything is judged. Labels, matched rows and judged pairs change small cores
    only; which terms count, and how much, is chosen on held-out judgements, with the
    cosine as the baseline.

    Parameters
    ----------
    metric : {"auto", "euclidean", "cosine", "hellinger"} or dict by view, \
default="auto"
        "auto" takes cosine for sparse rows and rows of unit norm, hellinger for
        histograms, else euclidean.
    prior : "auto", None or mapping from str to table, default="auto"
        Space in which views are compared before anything is judged. "auto" compares
        views with the same columns; None compares none; tables of one width, one for
        each view, are compared in place of the views.
    random_state : int, default=0
        Seed of landmarks and folds.
    n_jobs : int, default=None
        Threads for graphs; None uses every core.
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        "auto" takes a GPU where there is one and it pays; see docs/gpu.md.

    Attributes
    ----------
    view_names_ : tuple of str
    items_ : dict from str to Items
    links_ : Links
        The links by position.
    choices_ : dict from pairs of str to Choice
        The terms chosen for two views, and their held-out quality.

    Examples
    --------
    >>> import linkspread as ls
    >>> views = {"text": [[1.0, 0.0], [0.0, 1.0]], "image": [[0.1, 1.0], [1.0, 0.2]]}
    >>> model = ls.CrossViewSearch().fit(views)
    >>> ids, scores = model.search([0, 1], source="text", target="image", n_results=1)
    >>> ids.ravel().tolist()
    [1, 0]
    """

    choices_: dict[Pair, Choice]
    _tables: dict[str, Any]
    _maps: dict[str, ViewMap]
    _priors: dict[str, Any]
    _factors: dict[Pair, ScoreFactors]
    _chosen_at: dict[Pair, int]

    def __init__(
        self,
        *,
        metric: str | Mapping[str, str] = "auto",
        prior: str | Mapping[str, Any] | None = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
        backend: str = "auto",
    ) -> None:
        self.metric = metric
        self.prior = prior
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.backend = backend

    @changing
    def fit(
        self,
        views: Any,
        links: Links | None = None,
        *,
        ids: ByView = None,
        columns: ByView = None,
        unknown: str = "raise",
    ) -> Self:
        """Make the maps, and learn from links if there are any.

        Parameters
        ----------
        views : mapping from str to table of shape (n_items, n_features)
            Arrays, sparse matrices, DataFrames or paths of files, as `read_table`
            takes them; sizes may differ between views.
        links : Links, default=None
            Labels, matched rows and judged pairs; None uses the shared space alone.
        ids : mapping from str to array-like of shape (n_items,), default=None
            Ids of the items; where missing, the column `id` of a DataFrame, then the
            index of pandas if it was set, else positions.
        columns : mapping from str to list of str, default=None
            Columns of DataFrames to take, or to leave out with a minus before each
            name.
        unknown : {"raise", "skip"}, default="raise"
            What to do with links of unknown items; see :meth:`Links.resolve`.

        Returns
        -------
        self : CrossViewSearch
        """
        read = check_views(views, ids, columns)
        read.report_columns()
        return self._learn(read, links, unknown=unknown)

    def _learn(
        self,
        read: Views,
        links: Links | None,
        *,
        unknown: str = "raise",
        work_for: Callable[[str, str], MapWork] | None = None,
        kept: Mapping[str, ViewMap] | None = None,
    ) -> Self:
        """Fit checked views; `work_for` returns what computes the map of a view.

        Views in `kept` keep their maps.
        """
        tables, seed = read.tables, self.random_state
        if len(tables) < 2:
            raise ViewError(
                f"`views` must be two or more to search one from another, got "
                f"{list(tables)}. Add a view."
            )
        for view, X in tables.items():
            check_varied(X, view=view)
        metrics = choose_metrics(self.metric, tables)
        items = {view: Items(read.ids[view], view=view) for view in tables}
        links = Links() if links is None else links
        if not isinstance(links, Links):
            raise LinkError(
                f"`links` must be Links, got {links!r:.60}. Make them with "
                "`Links.from_pairs`, `from_labels` or `from_matched`."
            )
        resolved = links.resolve(items, unknown=unknown)
        priors = choose_priors(self.prior, tables)
        pairs = searched_pairs(tables, priors, resolved)
        if not pairs:
            widths = {view: X.shape[1] for view, X in tables.items()}
            raise LinkError(
                "views without a shared space must be joined by links, got none for "
                f"views with {widths} columns. Judge a few pairs (`Links.from_pairs`), "
                "or give `prior`, tables of one width."
            )
        maps: dict[str, ViewMap] = {}
        for view, X in tables.items():
            if kept is not None and view in kept:
                maps[view] = kept[view]
                continue
            judged, n_labelled = _judged_items(resolved, view, tables)
            # A graph separates classes, which only judgements define.
            has_graph = len(judged) > 0 and X.shape[0] > 2
            maps[view] = make_map(
                X,
                metric=metrics[view],
                blocks=("linear", "gaussian", "graph")[: 3 if has_graph else 2],
                judged=judged,
                n_labelled=n_labelled,
                random_state=seed,
                n_jobs=self.n_jobs,
                work=work_for(view, metrics[view]) if work_for else None,
            )
        evidence = {pair: read_evidence(resolved, *pair) for pair in pairs}
        fits = {
            pair: fit_pair(make_sides(maps, priors, pair), evidence[pair], seed=seed)
            for pair in pairs
        }
        self.__dict__.update(
            view_names_=tuple(tables),
            items_=items,
            links_=resolved,
            choices_={pair: choice for pair, (choice, _) in fits.items()},
            _columns=read.columns,
            _tables=tables,
            _maps=maps,
            _priors=priors,
            _factors={pair: factors for pair, (_, factors) in fits.items()},
            _chosen_at={pair: own.n_pairs for pair, own in evidence.items()},
        )
        return self

    @reading
    def match(
        self,
        source: str,
        target: str,
        *,
        partners: str = "one-to-one",
        n_candidates: int = 10,
        precision: float | None = None,
        threshold: float | None = None,
        compare: Mapping[str, Any] | None = None,
    ) -> Matches:
        """Find which items of two views are the same.

        The best assignment among the candidates of a search. Judged pairs calibrate
        the probability of each match, and are kept or excluded; with fewer than ten
        judged candidates there are no probabilities.

        Parameters
        ----------
        source, target : str
            Two views.
        partners : {"one-to-one", "one-to-many", "many-to-one"}, default="one-to-one"
            "one-to-many": an item of `source` may have several partners.
        n_candidates : int, default=10
            Best items of each item that may be its partner.
        precision : float, default=None
            Expected share of matches that are right; as many are taken as reach it.
        threshold : float, default=None
            Smallest probability of a match. Without both, the expected F1 is largest.
        compare : mapping from str to pair of tables, default=None
            More similarities, one for each name: rows of one width for the items of
            both views, compared by cosine, or two columns of numbers.

        Returns
        -------
        matches : Matches

        Examples
        --------
        >>> import linkspread as ls
        >>> views = {"a": [[1.0, 0.0], [0.0, 1.0]], "b": [[0.1, 1.0], [1.0, 0.2]]}
        >>> matches = ls.CrossViewSearch().fit(views).match("a", "b")
        >>> matches.target_ids.tolist(), matches.probabilities
        ([0, 1], None)
        """
        return match_views(
            self,
            source,
            target,
            partners=partners,
            n_candidates=n_candidates,
            precision=precision,
            threshold=threshold,
            compare=compare,
        )

    @changing
    def replace_view(
        self, view: str, table: Any, *, ids: Any = None, columns: Any = None
    ) -> ViewReplacement:
        """Give a view another table, as of a new encoder; judgements stay.

        Its map is made anew, those of other views stay, and what counts is chosen anew.
        Judged pairs of items that the table lacks are dropped.

        Parameters
        ----------
        view : str
        table : table of shape (n_items, n_features)
            As for :meth:`fit`; columns may differ from those before.
        ids : array-like of shape (n_items,), default=None
            Ids of the rows; None takes those of the table, or else those before.
        columns : list of str, default=None
            Columns to take, or to leave out with a minus before each name.

        Returns
        -------
        report : ViewReplacement
            Items and columns that came and went, and held-out quality; print it.
        """
        self._check_view(view, has_rows=True)
        known = {
            name: Table(
                self._tables[name],
                self._columns[name],
                own.ids if own.has_ids else None,
                chosen=True,
            )
            for name, own in self.items_.items()
        }
        given = known, self.items_, self.links_, view, table, ids, columns
        read, links, report = read_replacement(*given)
        before = {pair: own.quality.get("model") for pair, own in self.choices_.items()}
        kept = {name: own for name, own in self._maps.items() if name != view}
        self._learn(read, links, kept=kept)
        now = {pair: own.quality.get("model") for pair, own in self.choices_.items()}
        changed = {p: (before.get(p), q) for p, q in now.items() if view in p}
        return replace(report, quality=changed)

    @property
    def summary_(self) -> str:
        """Sentences on what is known, which terms count and how good they are."""
        check_is_fitted(self)
        now = self._as_it_is()
        return summarize(now.choices_, now._factors, now.links_)

    @property
    def pairs_(self) -> tuple[Pair, ...]:
        """Pairs of views that are searched directly, not through others."""
        check_is_fitted(self)
        return tuple(self._factors)

    @reading
    def doubts(self, n: int = 20, *, source: str, target: str) -> list[Doubt]:
        """Return the judgements that are probably wrong, the most doubtful first.

        Each is predicted by a fit to the others, without it.

        Parameters
        ----------
        n : int, default=20
            Number of judgements.
        source, target : str
            Views of the first and the second item of each pair; may be the same.

        Returns
        -------
        doubts : list of Doubt
            Each with the probability that the verdict is wrong, and the judgements
            that contradict it.
        """
        return find_doubts(self, (source, target), n)

    @reading
    def progress(self, *, source: str, target: str) -> Progress:
        """Estimate how good searches are, and what more judgements would bring.

        Parameters
        ----------
        source, target : str
            Two views; the second is searched from the first.

        Returns
        -------
        progress : Progress
            Measures with 90 % intervals, and whether to stop; print it.
        """
        return find_progress(self, (source, target))

    @property
    def facts_(self) -> dict[str, dict[str, Any]]:
        """Items, columns and metric of each view."""
        check_is_fitted(self)
        return {
            view: {"items": m.n_items, "columns": m.n_features, "metric": m.metric}
            for view, m in self._maps.items()
        }

    @property
    def notes_(self) -> list[str]:
        """Warnings about the scores: none, as they are exact."""
        check_is_fitted(self)
        return []

    def _exact_rows(self, source: str, target: str) -> Direction | Chained:
        """Return what scores queries of one view against items of another."""
        check_views_known(self.view_names_, source, target)
        for side, pair in enumerate(((source, target), (target, source))):
            if pair in self._factors:
                return Direction(self._factors[pair], side)
        if source == target:
            return Direction(self._within(source), 0)
        chain = find_chain(
            lambda a, b: a != b and bool({(a, b), (b, a)} & self._factors.keys()),
            self.view_names_,
            source,
            target,
        )
        if chain is None:
            raise LinkError(
                f"views {source!r} and {target!r} must share a space or have links to "
                "be searched from each other, got neither. Judge a few pairs of them."
            )
        *firsts, last = [self._exact_rows(*step) for step in pairwise(chain)]
        for first in reversed(firsts):
            last = Chained(first, last)
        return last

    def _within(self, view: str) -> ScoreFactors:
        """Return the scores within one view, fitted on first use."""
        own, pair = self._maps[view], (view, view)
        if not self.links_.connects(*pair):
            key = ("within", view)
            return self._cached(key, [own], partial(unjudged_factors, own))
        evidence = read_evidence(self.links_, *pair)
        sides = make_sides(self._maps, self._priors, pair)
        choice, factors = fit_pair(sides, evidence, seed=self.random_state)
        self._keep(
            choices_={**self.choices_, pair: choice},
            _chosen_at={**self._chosen_at, pair: evidence.n_pairs},
            _factors={**self._factors, pair: factors},
        )
        return factors

    def _similarities(self, rows: Any, view: str) -> Rows:
        """Return the features of new items."""
        rows = check_columns(rows, self._columns[view], view=view)
        rows = check_table(rows, view=view, n_features=self._maps[view].n_features)
        has_prior = isinstance(self.prior, str) and view in self._priors
        prior = unit_rows(rows) if has_prior else None
        return Rows(self._maps[view].transform(rows), prior)

    def _vectors_of_fitted(self, positions: Array, source: str, target: str) -> Array:
        return self._vectors(source, target)[0][positions]

    def _vectors_found(self, source: str, target: str) -> Array:
        return self._vectors(source, target)[1]

    def _vectors_of_new(self, rows: Any, source: str, target: str) -> Array:
        near, turn = self._similarities(rows, source), self._vectors(source, target)[2]
        return self._exact_rows(source, target).query_vectors(near) @ turn

    def _vectors(self, source: str, target: str) -> tuple[Array, Array, Array]:
        """Return the vectors of two views, kept until their factors change."""
        direction = self._exact_rows(source, target)
        key = ("vectors", source, target)
        return self._cached(key, [self._factors], direction.vectors)

    def _relink(self, links: Links, given: Links) -> dict[str, Any]:
        """Fit the cores of views whose links changed.

        Terms are chosen again when the number of pairs has doubled. The cost of other
        judgements does not depend on the size of a view.
        """
        choices, factors = dict(self.choices_), dict(self._factors)
        chosen_at = dict(self._chosen_at)
        for pair, cells in _judged_cells(given, self.view_names_).items():
            before = factors.get(pair)
            if before is None and pair[0] == pair[1]:
                continue  # Fitted on first use.
            changes = read_changes(self.links_, links, cells, *pair)
            if not changes:
                continue
            if before is not None:
                known = partial(read_evidence, links, *pair, labels=False)
                # The products are short: threads would cost more than they save.
                with hold_blas(1):
                    now = change_factors(before, choices[pair], changes, known)
                    _check_scores(before, now, cells, pair)
                if now.n_pairs == 0:
                    has_prior = now.sides.prior is not None
                    check_still_linked(
                        read_evidence(links, *pair), pair, has_prior=has_prior
                    )
                factors[pair] = now
                if now.n_pairs < 2 * max(chosen_at[pair], 1):
                    continue
            sides = make_sides(self._maps, self._priors, pair)
            evidence = read_evidence(links, *pair)
            own = fit_pair(sides, evidence, seed=self.random_state)
            if before is not None:
                _check_scores(before, own[1], cells, pair)
            choices[pair], factors[pair] = own
            chosen_at[pair] = evidence.n_pairs
        return {
            "links_": links,
            "choices_": choices,
            "_factors": factors,
            "_chosen_at": chosen_at,
        }

    def _table(self, view: str) -> Any:
        return self._tables[view]

    def _check_changeable(self, view: str, *, has_rows: bool) -> None:
        if not isinstance(self.prior, str) and view in self._priors:
            raise ViewError(
                f"items of view {view!r} can change only where `prior` is no table: "
                "it would need rows for them too. Fit again with these items."
            )

    def _change_items(self, change: ItemChange) -> dict[str, Any]:
        """Return the map and the scores of a changed view, with the same kernels."""
        view = change.view
        maps = {**self._maps, view: changed_map(self._maps[view], change)}
        priors = dict(self._priors)
        if view in priors:
            priors[view] = changed_units(priors[view], change)
        choices, factors = dict(self.choices_), dict(self._factors)
        for pair in self._factors:
            if view not in pair:
                continue
            a, b = (
                change.places if own == view else np.arange(maps[own].n_items)
                for own in pair
            )
            sides = make_sides(maps, priors, pair)
            before, now = (
                read_evidence(own, *pair) for own in (self.links_, change.links)
            )
            check_still_linked(now, pair, has_prior=sides.prior is not None)
            choices[pair], factors[pair] = renew_pair(
                factors[pair],
                sides,
                choices[pair],
                (a, b),
                (before, now),
                seed=self.random_state,
            )
        return {
            "choices_": choices,
            "_factors": factors,
            "_maps": maps,
            "_priors": priors,
            "_tables": {**self._tables, view: change.X},
        }

    def _check_pairs(self, source: str, target: str, *, explained: bool) -> None:
        way = self._exact_rows(source, target)
        if explained and not isinstance(way, Direction):
            raise LinkError(
                f"views {source!r} and {target!r} must share a space or have links of "
                "their own to be explained, got a search through other views. Explain "
                "each of its steps."
            )

    def _parts(
        self, query: Any, own: int | None, j: int, source: str, target: str
    ) -> dict[str, list[Shares]]:
        way = self._exact_rows(source, target)
        assert isinstance(way, Direction)
        if own is None:
            rows = way.known(self._similarities(query, source))
        else:
            rows = way.factors.fitted(way.side, [own])
        pair = (source, target) if way.side == 0 else (target, source)
        return {"links": explain_pair(way, read_evidence(self.links_, *pair), rows, j)}

    def _features(self, view: str, seed: int) -> Array:
        return leading_features(self._maps[view])

    def _next_pairs(
        self, pairs: OpenPairs, n: int, source: str, target: str, seed: int
    ) -> tuple[Array, Array]:
        way = self._exact_rows(source, target)
        if not isinstance(way, Direction):
            return super()._next_pairs(pairs, n, source, target, seed)
        return next_pairs(self, way, pairs, n, (source, target), seed=seed)


def _check_scores(
    before: ScoreFactors, now: ScoreFactors, cells: tuple[Array, Array], pair: Pair
) -> None:
    """Refuse a change after which scores are not finite, or lose what was there."""
    probes = []
    for own, judged in zip(now.sides.maps, cells, strict=True):
        first = np.arange(min(N_PROBES, own.n_items))
        probes.append(np.union1d(first, judged[:N_PROBES]))
    known, found = (Direction(own, 0).block(*probes) for own in (before, now))
    check_growth(known, found, pair)


def _judged_cells(
    links: Links, views: tuple[str, ...]
) -> dict[Pair, tuple[Array, Array]]:
    """Return the positions of judged pairs, by their views in the order of the fit."""
    found: dict[Pair, list[Any]] = {}
    for between, table in links.pair_tables:
        pair = tuple(sorted(between, key=views.index))
        i, j = table.known_positions(between)
        places = (i, j) if pair == between else (j, i)
        found.setdefault((pair[0], pair[1]), []).append(places)
        if between[0] == between[1]:
            found[between].append((j, i))
    return {
        pair: (np.concatenate([i for i, _ in own]), np.concatenate([j for _, j in own]))
        for pair, own in found.items()
    }


def _judged_items(
    links: Links, view: str, tables: Mapping[str, Any]
) -> tuple[Array, int]:
    """Return the items of a view that have links, and how many have labels."""
    judged = np.zeros(tables[view].shape[0], dtype=bool)
    for other in tables:
        if links.connects(view, other):
            judged[links.judged(view, other).tocoo().row] = True
    labelled = links.labelled(view)
    if labelled is None:
        return np.flatnonzero(judged), 0
    return np.flatnonzero(judged | labelled), int(labelled.sum())
