"""A model with its store and contents, as pages and API use them."""

import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from linkspread.ground.errors import LinkspreadError, StoreError
from linkspread.judging import Explanation, explanation_picture
from linkspread.links import Items
from linkspread.models import ModelFolder
from linkspread.storage import Judgement, KeptItem
from linkspread.storage.judgements import PairKey, check_uuid, pair_key
from linkspread.web.contents import TitleIndex, choose_contents
from linkspread.web.doubts import Doubts
from linkspread.web.live_model import PATIENCE, LiveModel
from linkspread.web.overview import Atlas, ScoreCurve
from linkspread.web.refit import Refit
from linkspread.web.searching import Searches, Turns
from linkspread.web.server import Settings
from linkspread.web.telemetry import Telemetry
from linkspread.web.uploads import PictureCache, Uploads

PAGE = 24
MAX_PAGES = 50
# Pairs that are suggested together.
N_QUEUE = 25
# Parts of an explanation that are shown.
N_PARTS = 6
# Beginnings of the ids of judged queries.
WORDS, PICTURE = "words:", "picture:"
# Seconds for which a question put to one person is not put to others.
ASKED_FOR = 600.0
VERDICT_WORDS = {"must": "belongs", "cannot": "does not belong", "unsure": "unsure"}
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
    "prior": "cosine of both",
    "hubs": "hub correction",
}


@dataclass(frozen=True)
class Query:
    """A query, as in the address of a page."""

    source: str
    target: str
    item: str = ""
    q: str = ""
    upload: str = ""


class Asked(NamedTuple):
    """A query as the model takes it: an id, or the features of a new item."""

    queries: Any
    position: int | None
    title: str
    text: str = ""
    picture: str = ""
    judged_as: str = ""  # the id that judgements are stored under, "" for none
    content: str | bytes = ""  # of a query that is kept once it is judged


@dataclass(frozen=True)
class Hit:
    """One result, a card of the list."""

    id: str
    rank: int
    score: float
    strength: float  # of the score, from 0 for chance to 1 for a usual best result
    title: str
    caption: str
    text: str
    picture: str
    mine: str  # the visitor's verdict
    others: tuple[str, ...]  # verdicts of others, in words
    undo: str  # id of the visitor's judgement
    was: str  # former rank, if it changed


@dataclass(frozen=True)
class Question:
    """A pair to judge, and the share of the uncertainty that an answer removes."""

    left: str
    right: str
    gain: float


@dataclass(frozen=True)
class Part:
    """A part of a score; those of one split add up to it."""

    split: str
    kind: str
    source: str
    target: str
    amount: float


class Why(NamedTuple):
    """The explanation of a score, with its picture and table."""

    explanation: Explanation
    picture: str
    parts: list[Part]


class NotAllowed(LinkspreadError):
    """An editor must do this."""


class Site:
    """The state that all routes of a worker share."""

    def __init__(self, folder: ModelFolder, features: Any, settings: Settings) -> None:
        self.settings, self.refit = settings, Refit(folder)
        self.live = LiveModel.of_folder(folder)
        model = self.live.shown.model
        self.contents = contents = choose_contents(model.items_, features)
        self.views: tuple[str, ...] = tuple(model.view_names_)
        self.pictures, self.telemetry = PictureCache(), Telemetry()
        self.uploads: Uploads | None = None
        if settings.uploads:
            limit = settings.max_upload_pixels
            self.uploads = Uploads(settings.uploads, max_pixels=limit)
        self.curve = ScoreCurve(self.live, contents, self.directions())
        self.atlas = Atlas(self.live, contents)
        self.searches, self.doubts = Searches(self.live), Doubts(self.live)
        # Explanations, suggestions and uploads take time or much memory, maps seconds.
        self.heavy, self.mapping = Turns(1, n_waiting=8), Turns(1, n_waiting=8)
        self.drawing = Turns(2, n_waiting=50)
        self._titles: dict[str, TitleIndex] = {}
        self._indexing, self._asking = threading.Lock(), threading.Lock()
        # One queue for each direction, shared by all people, and who was asked what.
        self._questions: dict[tuple[str, str], list[Question]] = {}
        self._asked: dict[PairKey, tuple[str, float]] = {}

    def start(self) -> None:
        """Start to follow the store."""
        self.live.start()
        self.curve.start()

    def stop(self) -> None:
        """Stop all threads and close the store."""
        self.curve.stop()
        self.live.stop()
        self.live.store.close()

    def url(self, path: str = "/", query: Query | None = None, **more: Any) -> str:
        """Return the address of a page, perhaps about a query."""
        given = asdict(query) if query else {}
        given = {name: value for name, value in given.items() if value} | more
        words = f"?{urlencode(given)}" if given else ""
        return f"{self.settings.root}{path}{words}"

    @property
    def items(self) -> dict[str, Items]:
        """The items of the model, judged queries among them."""
        items: dict[str, Items] = self.live.shown.model.items_
        if items is not self.contents.items:
            self._read_kept(items)
        return items

    def titles(self, view: str) -> TitleIndex:
        """Return the titles of a view, indexed at the first call."""
        with self._indexing:
            if view not in self._titles:
                self._titles[view] = TitleIndex(self.contents, view)
            return self._titles[view]

    def directions(self) -> list[tuple[str, str]]:
        """Return pairs of source and target, searches from texts first."""
        model = self.live.shown.model
        pairs = {frozenset(pair) for pair in model.pairs_}

        def usefulness(direction: tuple[str, str]) -> tuple[bool, ...]:
            source, target = direction
            types = self.contents.can_read(source) and self.contents.has_texts(source)
            return source != target, types, self.contents.has_pictures(target)

        found = [
            (s, t)
            for s in self.views
            for t in self.views
            if {s, t} in pairs or model.links_.connects(s, t)
        ]
        return sorted(found, key=usefulness, reverse=True)

    def ways(self) -> list[tuple[str, str]]:
        """Return pairs of source and target that can be searched, also within views."""
        directions = self.directions()
        within = [(v, v) for v in self.views if (v, v) not in directions]
        return directions + within if directions else []

    def way_name(self, source: str, target: str) -> str:
        """Return how people call a search: "images by words", "images like this"."""
        found = target if target.endswith("s") else f"{target}s"
        if source == target:
            return f"{found} like this"
        reads = self.contents.can_read(source) and self.contents.has_texts(source)
        return f"{found} by {'words' if reads else source}"

    def choose_views(self, source: str, target: str) -> tuple[str, str]:
        """Return the views to search between, by default the most useful ones."""
        directions = self.directions()
        if not directions:
            raise LinkspreadError(
                "views must be linked to be searched, and this model has no links. Fit "
                "it with a few links."
            )
        for s, t in self.ways():
            if source in ("", s) and target in ("", t):
                return s, t
        # The model refuses views that it does not have.
        return source, target or source

    def picture_view(self) -> str:
        """Return the view that uploaded pictures search from, "" for none."""
        contents = self.contents
        views = (v for v in self.views if contents.has_pictures(v))
        found = next((v for v in views if contents.can_read(v)), "")
        return found if self.uploads is not None else ""

    def picture_url(self, view: str, id: Any) -> str:
        """Return the address of an item's picture, "" if it has none."""
        if not self.contents.has_pictures(view):
            return ""
        return self.url("/picture", view=view, id=id)

    def resolve(self, query: Query) -> Asked | None:
        """Return the query as the model takes it, None if empty or ambiguous."""
        view, contents = query.source, self.contents
        items = self.live.open(view, query.target).items_[view]
        if query.item:
            return self._asked_item(view, int(items.positions([query.item])[0]))
        if query.upload:
            if self.uploads is None:
                raise LinkspreadError(
                    "a search by pictures needs a view that reads pictures, and this "
                    "model has none. Search by one of its items."
                )
            kept = self._kept_item(view, f"{PICTURE}{query.upload}", "Your picture")
            if kept is not None:
                return kept
            rows = contents.rows(view, self.uploads.open(query.upload))
            address = self.url(f"/upload/{query.upload}")
            name = f"{PICTURE}{query.upload}" if self._takes_queries(view) else ""
            png = self.uploads.read(query.upload)
            return Asked(rows, None, "Your picture", "", address, name, png)
        words = " ".join(query.q.split())
        if not words:
            return None
        place = self.titles(view).exact(words)
        if place is not None:
            return self._asked_item(view, place)
        if contents.can_read(view) and contents.has_texts(view):
            kept = self._kept_item(view, WORDS + words, f"“{words}”")
            if kept is not None:
                return kept
            name = WORDS + words if self._takes_queries(view) else ""
            rows = contents.rows(view, query.q)
            return Asked(rows, None, f"“{words}”", judged_as=name, content=words)
        return None

    def find_hits(
        self,
        query: Query,
        asked: Asked,
        *,
        who: str = "",
        start: int = 0,
        stop: int = PAGE,
        seen: Sequence[str] = (),
    ) -> list[Hit]:
        """Return results of some ranks; `seen` are the ids of the former list."""
        source, target, contents = query.source, query.target, self.contents
        n = min(stop, PAGE * MAX_PAGES)
        ids, scores = self.searches.search(
            asked.queries, source=source, target=target, n=n
        )
        usual = self.searches.usual(source, target)
        before = {id: rank for rank, id in enumerate(seen, start=1)}
        positions = self.items[target].positions(ids[start:stop]).tolist()
        hits = []
        for k, position in enumerate(positions, start=start):
            id = str(self.items[target].ids[position])
            words: dict[str, Judgement] = {}
            if asked.judged_as:
                key = pair_key((source, asked.judged_as), (target, id))
                words = self.live.ledger.latest(key)
            mine = words.pop(who, None)
            hit = Hit(
                id=id,
                rank=k + 1,
                score=float(scores[k]),
                strength=round(usual.strength(float(scores[k])), 3),
                title=contents.title(target, position),
                caption=contents.caption(target, position),
                text=contents.text(target, position),
                picture=self.picture_url(target, id),
                mine=mine.verdict if mine else "",
                others=tuple(
                    f"{name}: {VERDICT_WORDS[word.verdict]}"
                    for name, word in words.items()
                ),
                undo=mine.id if mine else "",
                was=_was(id, k + 1, before),
            )
            hits.append(hit)
        return hits

    def check(self) -> None:
        """Search once; raise an error if the store or the search fails."""
        self.live.store.last_number()
        if self.live.problem:
            raise StoreError(f"the last judgement is not stored: {self.live.problem}")
        for source, target in self.directions()[:1]:
            model, first = self.live.shown.model, self.items[source].ids[0].item()
            scores = model.search(first, source=source, target=target, n_results=1)[1]
            if not np.isfinite(scores).all():
                raise LinkspreadError("scores must be finite, and some are not. Refit.")

    def judge(
        self,
        *,
        who: str,
        source: tuple[str, str],
        target: tuple[str, str],
        verdict: str,
        key: str = "",
        note: str = "",
        patience: float = PATIENCE,
    ) -> tuple[str, bool]:
        """Store a judgement of two items, each a view and an id.

        Returns the id of the judgement, and whether it is in the model. The same `key`
        with the same content is one judgement, however often it is sent. The model has
        `patience` seconds to apply it.
        """
        left, right = (
            self._known_id(*item, what="a judgement") for item in (source, target)
        )
        content = "\n".join((verdict, source[0], str(left), target[0], str(right)))
        base = uuid.UUID(check_uuid(key, "key")) if key else uuid.uuid4()
        judgement = Judgement(
            who=who,
            left_view=source[0],
            left_id=left,
            right_view=target[0],
            right_id=right,
            verdict=verdict,
            note=note,
            id=str(uuid.uuid5(base, content)),
        )
        id = self.live.write(self.live.store.add, judgement)
        return self._stored(id, verdict, patience)

    def take_back(
        self, id: str, *, who: str, is_editor: bool = True, patience: float = PATIENCE
    ) -> tuple[str, bool]:
        """Take a judgement back; return the id of the undo, and if it is applied."""
        row = None if is_editor else self.live.store.find(id)
        if row is not None and row.who != who:
            raise NotAllowed(
                "judges may take back judgements of their own, and this one is "
                f"{row.who}'s. Ask an editor."
            )
        id = self.live.write(self.live.store.undo, id, who=who)
        return self._stored(id, "undo", patience)

    def questions(
        self, source: str, target: str, who: str, *, n: int = 1
    ) -> list[Question]:
        """Return suggested pairs that the person has not judged, the best first.

        The first `n` are put to this person, so others get them last.
        """

        def is_unjudged(own: Question) -> bool:
            key = pair_key((source, own.left), (target, own.right))
            words = self.live.ledger.latest(key)
            return who not in words and all(
                word.verdict == "unsure" for word in words.values()
            )

        def is_free(own: Question) -> bool:
            name, at = self._asked.get(
                pair_key((source, own.left), (target, own.right)), (who, 0.0)
            )
            return name == who or time.monotonic() - at > ASKED_FOR

        def find() -> list[Question]:
            known = self._questions.get((source, target), [])
            return list(filter(is_unjudged, known))

        with self._asking:
            has_free = any(map(is_free, find()))
        if not has_free:
            with self.heavy:
                # Another person may have waited for the same.
                with self._asking:
                    has_free = any(map(is_free, find()))
                if not has_free:
                    self._questions[source, target] = self._suggest(source, target)
        with self._asking:
            found = find()
            # Pairs that somebody else looks at now come last.
            found.sort(key=is_free, reverse=True)
            for own in found[:n]:
                key = pair_key((source, own.left), (target, own.right))
                self._asked[key] = who, time.monotonic()
            while len(self._asked) > 10_000:
                del self._asked[next(iter(self._asked))]
        return found

    def explain(self, query: Query, asked: Asked, found: str) -> Why:
        """Explain the score of a query and an item that it found."""
        target = self._known_id(query.target, found, what="`found`")
        own = self.live.open(query.source, query.target).explain(
            asked.queries,
            target,
            source=query.source,
            target=query.target,
            n_links=N_PARTS,
        )
        titles: dict[str, dict[Any, str]] = {query.source: {}, query.target: {}}
        pictures: dict[str, dict[Any, str]] = {query.source: {}, query.target: {}}
        for view, id in _named(own):
            if id is not None:
                titles[view][id] = self.contents.name(view, id)
                if self.contents.has_pictures(view):
                    pictures[view][id] = self.picture_url(view, id)
        # A new text or picture has no id.
        titles[query.source][None] = asked.title
        picture = explanation_picture(
            own, n_links=N_PARTS, titles=titles, pictures=pictures
        )
        return Why(own, picture, list(_parts(own, titles)))

    def _asked_item(self, view: str, position: int) -> Asked:
        """Return a fitted item as a query."""
        contents, id = self.contents, self.items[view].ids[position].item()
        title, text = contents.title(view, position), contents.text(view, position)
        about = text if text != title else contents.caption(view, position)
        return Asked(id, position, title, about, self.picture_url(view, id), str(id))

    def keep(self, query: Query) -> str:
        """Return the id that judgements of a query are stored under; keep the query."""
        asked = self.resolve(query)
        if asked is None or not asked.judged_as:
            raise LinkspreadError(
                "results can be judged for an item, or for words and pictures where "
                "items have ids that are texts; this query is neither. Pick an item."
            )
        if asked.position is None:
            view, id, content = query.source, asked.judged_as, asked.content
            self.live.store.kept.add(KeptItem(view, id, content, asked.queries))
            self.contents.kept[view, id] = content
        return asked.judged_as

    def _takes_queries(self, view: str) -> bool:
        """Return whether queries may become items of a view: its ids are texts."""
        return bool(self.items[view].ids.dtype.kind == "U")

    def _kept_item(self, view: str, id: str, title: str) -> Asked | None:
        """Return a judged query as an item of the model, None if it is none yet."""
        items = self.items[view]
        if not self._takes_queries(view) or not items.contains([id])[0]:
            return None
        asked = self._asked_item(view, int(items.positions([id])[0]))
        return asked._replace(title=title, text="")

    def _read_kept(self, items: dict[str, Items]) -> None:
        """Let the contents follow the items, and read those that the store keeps."""
        for view, own in items.items():
            if own.ids.dtype.kind != "U":
                continue
            n_before = self.contents.items[view].n_items
            new = [str(id) for id in own.ids[n_before:]]
            wanted = [id for id in new if (view, id) not in self.contents.kept]
            for kept in self.live.store.kept.read(view, wanted):
                self.contents.kept[view, kept.id] = kept.content
        self.contents.items = items

    def _known_id(self, view: str, id: str, *, what: str) -> str | int:
        """Return the id of an item in the type that the model has."""
        if view not in self.items:
            raise LinkspreadError(
                f"{what} must name views of the model, {list(self.views)}, got "
                f"{view[:60]!r}. Correct the name."
            )
        items = self.items[view]
        # A judged query is an item as soon as it is stored.
        if (view, id) in self.contents.kept:
            return id
        return items.ids[items.positions([id], what=what)[0]].item()

    def _stored(self, id: str, event: str, patience: float) -> tuple[str, bool]:
        """Count a stored row, and wait until it is applied, up to a limit."""
        self.telemetry.count("judgements", event)
        is_in_model = self.live.catch_up(id=id, patience=patience)
        return id, is_in_model and not self.live.refusal

    def _suggest(self, source: str, target: str) -> list[Question]:
        """Return pairs that the model suggests."""
        model = self.live.open(source, target)
        # Unsure pairs make no links, so the model would suggest them again.
        n = N_QUEUE + self.live.ledger.verdicts["unsure"]
        left, right = model.suggest_pairs(n, source=source, target=target)
        if not len(left):
            return []
        gains = model.expected_gains(left, right, source=source, target=target)
        rows = zip(left.tolist(), right.tolist(), gains.tolist(), strict=True)
        return [Question(str(i), str(j), gain) for i, j, gain in rows]


def ordinal(n: int) -> str:
    """Return a number as in "7th"."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    is_teen = 10 < n % 100 < 14
    return f"{n}{'th' if is_teen else endings.get(n % 10, 'th')}"


def _was(id: str, rank: int, before: dict[str, int]) -> str:
    """Return the former rank of a result in words, "" if it has not moved."""
    if not before or before.get(id) == rank:
        return ""
    return f"was {ordinal(before[id])}" if id in before else "new here"


def _named(own: Explanation) -> Iterator[tuple[str, Any]]:
    """Yield view and id of every item that an explanation names."""
    named: list[Any] = [own]
    named += [part for split in own.splits.values() for part in split.parts]
    for about in named:
        yield own.source, about.source_item
        yield own.target, about.target_item


def _parts(own: Explanation, titles: dict[str, dict[Any, str]]) -> Iterator[Part]:
    """Yield the lines of the table."""
    for name, split in own.splits.items():
        for part in split.parts:
            yield Part(
                HEADINGS[name],
                KINDS.get(part.kind, part.kind),
                _title(titles[own.source], part.source_item),
                _title(titles[own.target], part.target_item),
                part.amount,
            )
        if split.n_rest:
            rest = f"{split.n_rest:,} others"
            yield Part(HEADINGS[name], rest, "", "", split.rest)


def _title(titles: dict[Any, str], id: Any) -> str:
    """Return the title of an item, "" for none."""
    return "" if id is None else titles[id]
