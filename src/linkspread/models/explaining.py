"""Why an item was found: what each link and each neighbour adds to a score."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.threads import on_own_threads
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkspreadError
from linkspread.judging.explanation import Explanation, Shares, make_split
from linkspread.judging.spread_shares import spread_shares
from linkspread.links import Items
from linkspread.models.graph_choice import similarities
from linkspread.models.link_choice import check_linked
from linkspread.models.queries import read_queries
from linkspread.models.spreading import Spreading
from linkspread.tables.validation import check_columns


class _Asked(NamedTuple):
    """The item that searches: a fitted one by position, or a new one by its row."""

    position: int | None
    rows: Any = None


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
        """Tell which links, through which neighbours, make up one score."""
        check_is_fitted(self)
        check_linked(self.links_, self.view_names_, source, target)
        if n_links is not None:
            remedy = "None names all."
            n_links = check_count(n_links, name="n_links", remedy=remedy)
        i = read_source(source_item, self.items_[source])
        if i.position is None:
            i = _Asked(None, check_columns(i.rows, self._columns[source], view=source))
        j = read_target(target_item, self.items_[target])
        found = np.array([j])
        if i.position is None:
            search_score = self._block_of_new(i.rows, found, source, target)
        else:
            own = np.array([i.position])
            search_score = self._block(own, found, source, target)
        parts = _explain(self._spreading, source, target, i, j)
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


def _explain(
    spreading: Spreading, source: str, target: str, i: _Asked, j: int
) -> dict[str, list[Shares]]:
    """Return the parts of a score."""
    S_x, Z, S_y = spreading.arrows(source, target)
    start: Any = i.position
    if i.position is None:
        start = similarities(spreading.graphs[source], i.rows, view=source)
    settings = spreading.settings(source, target)
    return spread_shares(S_x, Z, S_y, start, j, **settings, within=source == target)


def read_source(item: Any, items: Items) -> _Asked:
    """Return the item that searches, an id or a row of features."""
    try:
        wanted = read_queries(item)
    except LinkspreadError as error:
        raise _not_one("source_item", item) from error
    n_wanted = wanted.rows.shape[0] if wanted.ids is None else len(wanted.ids)
    if n_wanted != 1:
        raise _not_one("source_item", item)
    if wanted.ids is None:
        return _Asked(None, wanted.rows)
    return _Asked(int(items.positions(wanted.ids, what="`source_item`")[0]))


def read_target(item: Any, items: Items) -> int:
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
