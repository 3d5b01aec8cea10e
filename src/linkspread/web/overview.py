"""What a model is made of, in numbers and as a map."""

from typing import Any, NamedTuple

import numpy as np

from linkspread.web.charts import line_chart, scatter_map
from linkspread.web.searching import Query
from linkspread.web.site import Site

# Items of each view that a map shows.
N_MAPPED = 200
SEED = 0
SHAPES = ("round", "square")


class ViewCounts(NamedTuple):
    """A view in numbers."""

    name: str
    n_items: int
    facts: dict[str, Any]
    kind: str


class LinkCounts(NamedTuple):
    """The links between two views in numbers."""

    between: tuple[str, str]
    n_must: int
    n_cannot: int
    has_labels: bool


class Overview(NamedTuple):
    """A model in numbers."""

    views: list[ViewCounts]
    links: list[LinkCounts]
    n_labelled: dict[str, int]
    n_conflicts: int
    n_disagreements: int
    verdicts: dict[str, int]
    n_unknown: int
    number: int
    summary: str
    inexact: list[str]


def look(site: Site) -> Overview:
    """Count views, items and links."""
    model, ledger = site.live.shown.model, site.live.ledger
    links = model.links_
    return Overview(
        views=[_view_counts(site, model, view) for view in site.views],
        links=[_link_counts(links, own) for own in _joined(site, links)],
        n_labelled={view: _n_labelled(links, view) for view in site.views},
        n_conflicts=len(links.conflicts()),
        n_disagreements=sum(1 for _ in ledger.disagreements()),
        verdicts={name: n for name, n in ledger.verdicts.items() if n},
        n_unknown=site.live.n_unknown,
        number=site.live.shown.number,
        summary=getattr(model, "summary_", ""),
        inexact=model.notes_,
    )


def item_map(site: Site, source: str, target: str) -> str:
    """Draw some items of two views near those whose scores are like theirs."""
    number = site.live.shown.number
    with site.drawing:
        # Drawn again after ten judgements: a map that jumps with each shows nothing.
        kept = site.maps.get((source, target))
        if kept is None or number - kept[0] >= 10:
            kept = site.maps[source, target] = number, _draw_map(site, source, target)
    return kept[1]


def recall_chart(site: Site) -> str:
    """Draw precision against recall, "" where no labels are known."""
    curve = site.curve.precision_recall()
    if curve is None:
        return ""
    precision, recall = curve
    points = list(zip(recall.tolist(), precision.tolist(), strict=True))
    return line_chart(
        points,
        title="Precision against recall",
        x_label="recall",
        y_label="precision",
        from_zero=True,
    )


def _draw_map(site: Site, source: str, target: str) -> str:
    """Place items of both views in the plane and draw them."""
    model = site.live.open(source, target)
    rng = np.random.default_rng(SEED)
    searching, found = model.embeddings(source, target)
    blocks: list[np.ndarray] = []
    views: list[str] = []
    places: list[int] = []
    for view, vectors in ((source, searching), (target, found)):
        own = np.sort(
            rng.choice(len(vectors), min(N_MAPPED, len(vectors)), replace=False)
        )
        blocks.append(_unit(vectors[own]))
        views += [view] * len(own)
        places += own.tolist()
    other = {source: target, target: source}
    ids = [str(site.items[v].ids[k]) for v, k in zip(views, places, strict=True)]
    titles = [
        f"{view}: {site.contents.title(view, place)}"
        for view, place in zip(views, places, strict=True)
    ]
    urls = [
        Query(view, other[view], item=id).url()
        for view, id in zip(views, ids, strict=True)
    ]
    shapes = {source: SHAPES[0], target: SHAPES[source != target]}
    points = _plane(np.concatenate(blocks))
    return scatter_map(points, views, titles, urls, shapes=shapes)


def _plane(vectors: np.ndarray) -> np.ndarray:
    """Return points of the plane, near each other where vectors point alike."""
    # Imported here because only this page needs it.
    from sklearn.manifold import TSNE

    if len(vectors) < 10:
        return np.random.default_rng(SEED).random((len(vectors), 2))
    flat = TSNE(
        perplexity=min(30.0, (len(vectors) - 1) / 3),
        init="random",
        # Clusters stand by then, and somebody is waiting.
        max_iter=300,
        random_state=SEED,
        n_jobs=1,
    )
    return flat.fit_transform(np.asarray(vectors, dtype=np.float32))


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors at length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1.0)


def _view_counts(site: Site, model: Any, view: str) -> ViewCounts:
    """Count the items of a view, and say what the model tells of it."""
    facts = dict(model.facts_[view])
    n_items = facts.pop("items")
    kind = "pictures" if site.contents.has_pictures(view) else "ids"
    kind = "texts" if site.contents.has_texts(view) else kind
    return ViewCounts(view, n_items, facts, kind)


def _link_counts(links: Any, between: tuple[str, str]) -> LinkCounts:
    """Count the single pairs between two views."""
    pairs = links.judged(*between)
    shared = links.memberships(between[0], shared_with=between[1]) is not None
    return LinkCounts(between, int((pairs > 0).sum()), int((pairs < 0).sum()), shared)


def _joined(site: Site, links: Any) -> list[tuple[str, str]]:
    """Return the pairs of views that links join, each once."""
    views = site.views
    return [
        (views[i], views[j])
        for i in range(len(views))
        for j in range(i, len(views))
        if links.connects(views[i], views[j])
    ]


def _n_labelled(links: Any, view: str) -> int:
    """Count the items of a view that have labels."""
    memberships = links.memberships(view)
    if memberships is None:
        return 0
    return int((np.asarray(memberships.sum(axis=1)).ravel() > 0).sum())
