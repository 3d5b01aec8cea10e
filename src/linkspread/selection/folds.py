"""Folds: what is hidden from a fit, and asked for afterwards."""

import warnings
from collections.abc import Iterator, Mapping
from itertools import combinations, permutations
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import RepeatedStratifiedKFold

from linkspread.ground.errors import FewLinksError
from linkspread.links import Links
from linkspread.models.link_choice import hard_labels
from linkspread.selection.questions import (
    ItemQuestion,
    PairQuestion,
    PartnerQuestion,
    Question,
    Trial,
)

Array = np.ndarray
UNKNOWN = -1


class LabelFolds:
    """Split labelled items into folds of equal classes; unknown ones stay in all.

    A splitter for scikit-learn: unlabelled items, -1, are in every training part and
    in no test part.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds; fewer where no class has so many labels.
    n_repeats : int, default=1
        How often all folds are drawn anew.
    random_state : int, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.selection import LabelFolds
    >>> y = np.array([0, 0, 1, 1, -1])
    >>> [(4 in train, len(test)) for train, test in LabelFolds(2).split(y, y)]
    [(True, 2), (True, 2)]
    """

    def __init__(
        self, n_splits: int = 5, *, n_repeats: int = 1, random_state: int = 0
    ) -> None:
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits, all repeats together.

        Parameters
        ----------
        X : object, default=None
            Not used.
        y : array-like of int of shape (n,), default=None
            Labels, -1 for unknown; None takes them as plenty.
        groups : object, default=None
            Not used.

        Returns
        -------
        n_splits : int
        """
        n_splits = self.n_splits if y is None else self._fitting(np.asarray(y))
        return n_splits * self.n_repeats

    def split(
        self, X: Any, y: Any, groups: Any = None
    ) -> Iterator[tuple[Array, Array]]:
        """Yield the positions of each training and test part.

        Parameters
        ----------
        X : object
            Not used.
        y : array-like of int of shape (n,)
            Labels, -1 for unknown.
        groups : object, default=None
            Not used.

        Yields
        ------
        train, test : ndarray of int
        """
        y = np.asarray(y)
        known = np.flatnonzero(y != UNKNOWN)
        folds = RepeatedStratifiedKFold(
            n_splits=self._fitting(y),
            n_repeats=self.n_repeats,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():
            # A class with fewer labels than folds is not in every test part.
            warnings.filterwarnings("ignore", message="The least populated class")
            for _, test in folds.split(known, y[known]):
                yield np.setdiff1d(np.arange(len(y)), known[test]), known[test]

    def _fitting(self, y: Array) -> int:
        """Return the number of folds that the labels allow."""
        counts = np.bincount(y[y != UNKNOWN]) if np.any(y != UNKNOWN) else [0]
        if max(counts) < 2:
            raise FewLinksError(
                "folds must leave labels of a class on both sides, and no class has "
                f"more than {max(counts)}. Label two items of each class, or keep the "
                "default parameters."
            )
        return int(min(self.n_splits, max(counts)))


def item_trials(
    views: Mapping[str, Any], links: Links, folds: LabelFolds, *, protocol: str
) -> list[list[Trial]]:
    """Return for each fold the fits to make, with the labels of a fold hidden."""
    labels = {v: hard_labels(links, v) for v in views if _is_labelled(links, v)}
    hidden = hidden_items(labels, folds)
    if protocol == "transductive":
        return [[_transductive(views, links, labels, h)] for h in hidden]
    return [
        [_inductive(views, links, labels, h, *way) for way in permutations(h, 2)]
        for h in hidden
    ]


def link_trials(
    views: Mapping[str, Any],
    links: Links,
    *,
    n_splits: int,
    n_repeats: int,
    random_state: int,
) -> list[list[Trial]]:
    """Return for each fold one fit to make, with the pairs of a fold held out."""
    groups = _pair_groups(links)
    is_must = _is_must(links, groups)
    rarest = np.unique(is_must, return_counts=True)[1].min(initial=len(is_must))
    if rarest < 2:
        raise FewLinksError(
            "folds must leave pairs of each kind on both sides, got "
            f"{int(is_must.sum())} must and {int((~is_must).sum())} cannot. Judge a "
            "few more, or keep the default parameters."
        )
    splitter = RepeatedStratifiedKFold(
        n_splits=min(n_splits, int(rarest)),
        n_repeats=n_repeats,
        random_state=random_state,
    )
    trials = []
    for _, test in splitter.split(is_must, is_must):
        held_out = np.isin(groups, test)
        shown = links.pick(~held_out)
        questions = _pair_questions(links.pick(held_out), shown)
        trials.append([Trial(views, shown, questions)])
    return trials


def judged_pairs(links: Links, between: tuple[str, str]) -> tuple[Array, Array, Array]:
    """Return rows, columns and weights of judged pairs, of those within a view once."""
    pairs = links.judged(*between)
    pairs = (sparse.triu(pairs) if between[0] == between[1] else pairs).tocoo()
    return pairs.row, pairs.col, pairs.data


def deal_items(
    i: Array, j: Array, weights: Array, n_folds: int, *, is_within: bool
) -> tuple[Array, Array]:
    """Return the fold of each pair's row item, and of its column item.

    Items that pairs connect, near or far, go into one fold, so that no other pair is
    lost with them. Where too many are connected they are dealt one by one.
    """
    rng, n_rows = np.random.default_rng(0), int(i.max()) + 1
    nodes = i, j if is_within else j + n_rows
    n_nodes = int(max(own.max() for own in nodes)) + 1
    edges = sparse.coo_array((np.ones(len(i)), nodes), shape=(n_nodes, n_nodes))
    parts = connected_components(edges, directed=False)[1]
    of_pair = parts[i]
    sizes = np.bincount(of_pair, minlength=parts.max() + 1)
    n_must = np.bincount(of_pair, weights > 0, minlength=len(sizes))
    # Parts of one size and kind stand together, so that folds get as many of each.
    order = np.lexsort((rng.random(len(sizes)), n_must, -sizes))
    fold_of_part = np.empty(len(sizes), dtype=np.int64)
    fold_of_part[order] = np.arange(len(sizes)) % n_folds
    folds = fold_of_part[parts]
    for side in (np.unique(nodes[0]), np.unique(nodes[1])):
        large = side[sizes[parts[side]] > len(i) / n_folds]
        folds[large] = rng.permutation(np.arange(len(large)) % n_folds)
    return folds[nodes[0]], folds[nodes[1]]


def _is_labelled(links: Links, view: str) -> bool:
    """Tell whether items of a view have labels."""
    return links.memberships(view) is not None


def hidden_items(
    labels: Mapping[str, Array], folds: LabelFolds
) -> list[dict[str, Array]]:
    """Return the items of each view that every fold hides.

    Where rows of all views are the same things with the same labels, they are hidden
    together: the picture of a text must not tell what the text is about.
    """
    first, *others = labels.values()
    if all(np.array_equal(first, other) for other in others):
        return [dict.fromkeys(labels, test) for _, test in folds.split(first, first)]
    parts = [[test for _, test in folds.split(y, y)] for y in labels.values()]
    return [
        dict(zip(labels, tests, strict=True)) for tests in zip(*parts, strict=False)
    ]


def _transductive(
    views: Mapping[str, Any],
    links: Links,
    labels: Mapping[str, Array],
    hidden: Mapping[str, Array],
) -> Trial:
    """Return a fit to all items, the labels of some hidden."""
    questions = tuple(
        ItemQuestion(
            a, b, hidden[a], hidden[b], labels[a][hidden[a]], labels[b][hidden[b]]
        )
        for a, b in (combinations(hidden, 2) if len(hidden) > 1 else _itself(hidden))
    )
    return Trial(views, links.hide(hidden), questions)


def _inductive(
    views: Mapping[str, Any],
    links: Links,
    labels: Mapping[str, Array],
    hidden: Mapping[str, Array],
    source: str,
    target: str,
) -> Trial:
    """Return a fit without the queries; the items they search are unlabelled."""
    queries, items = hidden[source], hidden[target]
    kept = np.setdiff1d(np.arange(len(labels[source])), queries)
    question = ItemQuestion(
        source,
        target,
        views[source][queries],
        items,
        labels[source][queries],
        labels[target][items],
        both_ways=False,
    )
    seen = {**views, source: views[source][kept]}
    shown = links.hide({target: items}).select({source: kept})
    return Trial(seen, shown, (question,))


def _itself(hidden: Mapping[str, Array]) -> list[tuple[str, str]]:
    """Return the pair of a single view with itself."""
    return [(view, view) for view in hidden]


def _pair_groups(links: Links) -> Array:
    """Give every pair a number, the same to pairs of the same two items."""
    names = sorted(links.views)
    keys = [np.zeros((0, 4), dtype=np.int64)]
    for between, table in links.pair_tables:
        places = zip(map(names.index, between), table.known_positions(between),
                     strict=True)  # fmt: skip
        (a, i), (b, j) = sorted(places, key=lambda place: place[0])
        n_pairs = len(table)
        keys.append(np.column_stack([np.full(n_pairs, a), np.full(n_pairs, b), i, j]))
    return np.unique(np.vstack(keys), axis=0, return_inverse=True)[1].ravel()


def _is_must(links: Links, groups: Array) -> Array:
    """Tell of each distinct pair whether it is a must-link, all judgements added."""
    weights = [table.weights for _, table in links.pair_tables]
    return np.bincount(groups, np.concatenate([*weights, np.zeros(0)])) > 0


def _pair_questions(held_out: Links, shown: Links) -> tuple[Question, ...]:
    """Return a question for every two views that pairs were held out of.

    Without any cannot-link between them, partners are searched among all items that
    the fit has no link of: a handful of held-out partners any score tells apart.
    """
    return tuple(
        _partner_question(between, *table.known_positions(between), shown)
        if table.weights.min() > 0 and shown.judged(*between).data.min(initial=1) > 0
        else PairQuestion(*between, *table.known_positions(between), table.weights)
        for between, table in held_out.pair_tables
        if len(table)
    )


def _partner_question(
    between: tuple[str, str], i: Array, j: Array, shown: Links
) -> PartnerQuestion:
    """Return the question for held-out partners of two views."""
    judged = shown.judged(*between).tocoo()
    n, m = judged.shape
    rows = np.union1d(np.setdiff1d(np.arange(n), judged.row), i)
    cols = np.union1d(np.setdiff1d(np.arange(m), judged.col), j)
    return PartnerQuestion(*between, (i, j), rows, cols)
