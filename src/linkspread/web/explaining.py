"""Why an item was found: a picture and a table of what its score is made of."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from linkspread.judging import Explanation
from linkspread.studies.report import explanation_picture
from linkspread.web.searching import Asked, Query, picture_url
from linkspread.web.site import Site

N_LINKS = 6
HEADINGS = {
    "links": "Links and labels",
    "source_neighbors": "Through neighbours of the query",
    "target_neighbors": "Through neighbours of the result",
    "target_labels": "Labels, by labelled result",
    "classes": "Labels, by classes",
}
KINDS = {
    "own": "the item itself",
    "neighbor": "neighbour",
    "prior": "how alike both are",
    "hubs": "correction for what everything finds",
}


class Part(NamedTuple):
    """A line of the table."""

    split: str
    kind: str
    source: str
    target: str
    amount: float


class Why(NamedTuple):
    """What a score is made of, for people."""

    explanation: Explanation
    picture: str
    parts: list[Part]


def explain(site: Site, query: Query, asked: Asked, found: str) -> Why:
    """Explain the score of a query and an item that it found."""
    model = site.live.open(query.source, query.target)
    items = site.items[query.target]
    target = items.ids[items.positions([found], what="`found`")[0]].item()
    explanation = model.explain(
        asked.queries,
        target,
        source=query.source,
        target=query.target,
        n_links=N_LINKS,
    )
    titles: dict[str, dict[Any, str]] = {query.source: {}, query.target: {}}
    pictures: dict[str, dict[Any, str]] = {query.source: {}, query.target: {}}
    for view, id in _named(explanation):
        if id is None:
            continue
        titles[view][id] = _title(site, view, id)
        if site.contents.has_pictures(view):
            pictures[view][id] = picture_url(site, view, str(id))
    # An item that was typed or sent has no id.
    titles[query.source][None] = asked.title
    picture = explanation_picture(
        explanation, n_links=N_LINKS, titles=titles, pictures=pictures
    )
    return Why(explanation, picture, list(_parts(explanation, titles)))


def _named(explanation: Explanation) -> Iterator[tuple[str, Any]]:
    """Yield view and id of every item that an explanation names."""
    yield explanation.source, explanation.source_item
    yield explanation.target, explanation.target_item
    for split in explanation.splits.values():
        for part in split.parts:
            yield explanation.source, part.source_item
            yield explanation.target, part.target_item


def _parts(
    explanation: Explanation, titles: dict[str, dict[Any, str]]
) -> Iterator[Part]:
    """Yield the lines of the table."""
    for name, split in explanation.splits.items():
        for part in split.parts:
            source, target = (
                "" if id is None else titles[view][id]
                for view, id in (
                    (explanation.source, part.source_item),
                    (explanation.target, part.target_item),
                )
            )
            kind = KINDS.get(part.kind, part.kind)
            yield Part(HEADINGS[name], kind, source, target, part.amount)
        if split.n_rest:
            rest = f"{split.n_rest:,} others"
            yield Part(HEADINGS[name], rest, "", "", split.rest)


def _title(site: Site, view: str, id: Any) -> str:
    """Return what an item is called, its text beside its id."""
    position = int(site.items[view].positions([id])[0])
    caption = site.contents.caption(view, position)
    return caption or site.contents.title(view, position)
