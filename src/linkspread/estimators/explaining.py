"""Why an item was found: what each link and each neighbour adds to a score."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from linkspread.estimators.auto_objective import AutoObjective
from linkspread.estimators.graph_choice import similarities
from linkspread.estimators.link_choice import check_linked
from linkspread.estimators.objective import FittingObjective
from linkspread.estimators.queries import read_queries
from linkspread.estimators.ridge_objective import RidgeObjective
from linkspread.estimators.spread_objective import SpreadObjective
from linkspread.exceptions import LinkspreadError
from linkspread.fitting.embeddings import Changed, Joined
from linkspread.fitting.fitted_pair import FittedPair, PairEmbedding
from linkspread.kernels.threads import on_own_threads
from linkspread.links import Items
from linkspread.parameter_checks import check_count
from linkspread.retrieval.explanation import Explanation
from linkspread.retrieval.explanation_kernels import Asked
from linkspread.retrieval.explanation_labels import LabelSide, explain_labels
from linkspread.retrieval.explanation_logits import LabelledRows
from linkspread.retrieval.explanation_members import MemberSide, explain_members
from linkspread.retrieval.explanation_pairs import PairTerm, explain_pairs
from linkspread.retrieval.explanation_shares import Parts, join_parts, make_split
from linkspread.retrieval.explanation_spread import explain_spread
from linkspread.validation import check_columns, check_table

__all__ = ["Explaining"]

Array = np.ndarray


class Explaining:
    """What a fitted model says of single scores; a part of LinkSpreading."""

    @on_own_threads
    def explain(
        self: Any,
        source_item: Any,
        target_item: Any,
        *,
        source: str,
        target: str,
        n_links: int | None = None,
    ) -> Explanation:
        """Tell which links, through which neighbours, make up one score.

        Parameters
        ----------
        source_item : id, feature row, or table of one feature row
            The item that searches; features are of a new one, as in :meth:`search`.
        target_item : id
            The item that was found.
        source : str
            View of the first.
        target : str
            View of the second.
        n_links : int, default=None
            How many parts are named in each split, the largest ones; None names all.

        Returns
        -------
        explanation : Explanation
            Its `contributions` and `rest` add up to its `score`; printed, it reads as
            a few sentences. Labels are split by labelled item of the source, and a
            second time by that of the target and by classes. Where objective="auto" or
            mass="posterior" turns labels into probabilities, the exact parts are
            classes, and labelled items have only an influence on them, which is no
            part of the score.

        Examples
        --------
        >>> import linkspread as ls
        >>> data = ls.datasets.make_views(60, n_classes=3, random_state=0)
        >>> links = ls.Links.from_matched(("text", "image"), 20)
        >>> model = ls.LinkSpreading(n_neighbors=5).fit(data.views(), links)
        >>> why = model.explain(40, 3, source="text", target="image", n_links=2)
        >>> sum(part.amount for part in why.contributions) + why.rest == why.score
        True
        """
        check_is_fitted(self)
        check_linked(self.links_, self.view_names_, source, target)
        if n_links is not None:
            remedy = "None names all."
            n_links = check_count(n_links, name="n_links", remedy=remedy)
        i = _read_source(source_item, self.items_[source])
        if i.position is None:
            i = Asked(None, check_columns(i.rows, self._columns[source], view=source))
        j = _read_target(target_item, self.items_[target])
        found = np.array([j])
        if i.position is None:
            search_score = self._block_of_new(i.rows, found, source, target)
        else:
            own = np.array([i.position])
            search_score = self._block(own, found, source, target)
        explain = _EXPLAINERS[type(self._objective)]
        parts = explain(self, source, target, i, Asked(j))
        ids = self.items_[source].ids, self.items_[target].ids
        splits = {k: make_split(own, *ids, n_links=n_links) for k, own in parts.items()}
        return Explanation(
            source=source,
            target=target,
            source_item=None if i.position is None else ids[0][i.position].item(),
            target_item=ids[1][j].item(),
            score=splits["links"].total,
            search_score=float(search_score[0, 0]),
            **splits,
        )


def _spread_parts(model: Any, source: str, target: str, i: Asked, j: Asked) -> Parts:
    """Return the parts of a spread score."""
    objective: SpreadObjective = model._objective
    S_x, Z, S_y = objective._arrows(source, target)
    start: Any = i.position
    if i.position is None:
        start = similarities(objective.graphs[source], i.rows, view=source)
    settings = objective._filter(source, target)
    end = j.position
    assert end is not None
    return explain_spread(S_x, Z, S_y, start, end, **settings, within=source == target)


def _fitted_parts(model: Any, source: str, target: str, i: Asked, j: Asked) -> Parts:
    """Return the parts of a fitted score: what labels and judged pairs say."""
    objective: FittingObjective = model._objective
    if i.position is None:
        n_features = objective.n_features[source]
        i = Asked(None, check_table(i.rows, view=source, n_features=n_features))
    parts: list[Parts] = []
    known = [objective.known(source, target)[1], objective.known(target, source)[1]]
    if all(own is not None and own.sum() > 0 for own in known):
        by_labels = _LABELS[type(objective)]
        parts.append(by_labels(objective, source, target, i, j))
    pairs = objective.links.judged(source, target)
    if pairs.nnz:
        fitted = explain_pairs(
            _pair_terms(model, source, target, pairs),
            pairs,
            i,
            j,
            mass=objective.pair_mass(pairs),
            within=source == target,
        )
        parts.append(fitted)
    return join_parts(*parts)


def _ridge_labels(
    objective: RidgeObjective, source: str, target: str, i: Asked, j: Asked
) -> Parts:
    """Return what labels say that were fitted by one kernel of each view."""
    core = objective.label_scores(source, target).core
    left = LabelSide(*objective._memberships(source, target), i)
    right = LabelSide(*objective._memberships(target, source), j)
    return explain_labels(left, core, right)


def _auto_labels(
    objective: AutoObjective, source: str, target: str, i: Asked, j: Asked
) -> Parts:
    """Return what labels say that became probabilities."""
    shares = [
        objective._members(*views).shares
        for views in ((source, target), (target, source))
    ]
    left = _member_side(objective, source, target, i)
    right = _member_side(objective, target, source, j)
    return explain_members(left, right, chance=float(shares[0] @ shares[1]))


def _member_side(
    objective: AutoObjective, view: str, other: str, item: Asked
) -> MemberSide:
    """Return an item with the probabilities of its view."""
    embed = objective._members(view, other).embed
    near = (
        embed.near(item.rows)
        if item.position is None
        else objective.normalized[view][[item.position]]
    )
    known = objective.known(view, other)[1]
    return MemberSide(
        item=item,
        near=sparse.csr_array(near).toarray()[0].astype(np.float64),
        alpha=embed.alpha,
        spread=embed.spread,
        logits=embed.logits,
        labelled=LabelledRows.of(objective.tables[view], known),
    )


def _pair_terms(model: Any, source: str, target: str, pairs: Any) -> list[PairTerm]:
    """Return the fits of judged pairs, from the source to the target."""
    is_turned = (source, target) not in model.spreads_
    pair = (target, source) if is_turned else (source, target)
    terms = _kept_terms(model, pair)
    if terms is None:
        # A loaded model has no more of its fits than searches need.
        objective = replace(model._objective, story=copy(model._objective.story))
        scores = objective.pair_scores(*pair, (pairs.T if is_turned else pairs).tocsr())
        terms = _known_terms(scores)
        assert terms is not None
    found = [PairTerm(*term) for term in terms]
    return [term.T if is_turned else term for term in found]


def _kept_terms(model: Any, pair: tuple[str, str]) -> list[Any] | None:
    """Return the coefficients and kernels of fits that a model still has."""
    if isinstance(model._objective, RidgeObjective):
        fit = model._objective.pairs[pair]
        return [(fit.coefficients, *fit.kernels)]
    return _known_terms(model.spreads_[pair])


def _known_terms(scores: FittedPair) -> list[Any] | None:
    """Return what new rows get from judged pairs, beside what labels give."""
    embed: Any = scores.embed_left
    beside = embed.parts if isinstance(embed, Joined) else (embed,)
    plain = [own.embed if isinstance(own, Changed) else own for own in beside]
    found = [own for own in plain if isinstance(own, PairEmbedding)]
    return found[0].operator.terms if found else None


def _read_source(item: Any, items: Items) -> Asked:
    """Return the item that searches, an id or a row of features."""
    try:
        wanted = read_queries(item)
    except LinkspreadError as error:
        raise _not_one("source_item", item) from error
    n_wanted = wanted.rows.shape[0] if wanted.ids is None else len(wanted.ids)
    if n_wanted != 1:
        raise _not_one("source_item", item)
    if wanted.ids is None:
        return Asked(None, wanted.rows)
    return Asked(int(items.positions(wanted.ids, what="`source_item`")[0]))


def _read_target(item: Any, items: Items) -> int:
    """Return the position of the item that was found."""
    if np.ndim(item) or np.asarray(item).dtype.kind not in "iuUSOT":
        raise _not_one("target_item", item)
    return int(items.positions([item], what="`target_item`")[0])


def _not_one(name: str, item: Any) -> LinkspreadError:
    """Return the sentence about what is not one item."""
    new = ", or the features of a new one" if name == "source_item" else ""
    return LinkspreadError(
        f"`{name}` must be the id of one item{new}, got {item!r:.60}. Ask for one "
        "score at a time."
    )


_LABELS: dict[type, Callable[..., Parts]] = {
    AutoObjective: _auto_labels,
    RidgeObjective: _ridge_labels,
}
_EXPLAINERS: dict[type, Callable[..., Parts]] = {
    AutoObjective: _fitted_parts,
    RidgeObjective: _fitted_parts,
    SpreadObjective: _spread_parts,
}
