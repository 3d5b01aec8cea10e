"""Everything that the routes of one worker share."""

import threading
from typing import Any

from linkspread.ground.cores import count_threads
from linkspread.links import Items
from linkspread.storage import LinkStore
from linkspread.web.asking import Asker
from linkspread.web.contents import Contents, FeatureContents, PictureCache
from linkspread.web.glyph_contents import GlyphContents, are_glyphs
from linkspread.web.live_model import LiveModel
from linkspread.web.score_curve import ScoreCurve
from linkspread.web.settings import Settings
from linkspread.web.telemetry import Telemetry
from linkspread.web.title_index import TitleIndex
from linkspread.web.uploads import Uploads


class Site:
    """A model with its store and contents, ready to be shown."""

    def __init__(
        self,
        model: Any,
        store: LinkStore,
        contents: Contents,
        absorbed: int,
        settings: Settings,
    ) -> None:
        self.settings, self.contents = settings, contents
        self.live = LiveModel(model, store, absorbed=absorbed)
        self.items: dict[str, Items] = model.items_
        self.views: tuple[str, ...] = tuple(model.view_names_)
        self.pictures, self.telemetry = PictureCache(), Telemetry()
        self.uploads = None
        if settings.uploads:
            limit = settings.max_upload_pixels
            self.uploads = Uploads(settings.uploads, max_pixels=limit)
        self.asker = Asker(self.live)
        self.curve = ScoreCurve(self.live, contents, self.directions())
        # More searches at once than cores are no faster, and the thread that takes up
        # judgements would have to wait behind all of them.
        self.searching = threading.BoundedSemaphore(count_threads(None))
        self._titles: dict[str, TitleIndex] = {}
        self._indexing = threading.Lock()
        # Maps of the items, with the number of the store they were drawn at.
        self.drawing = threading.Lock()
        self.maps: dict[tuple[str, str], tuple[int, str]] = {}

    def start(self) -> None:
        """Begin to follow the store."""
        self.live.start()
        self.curve.start()

    def stop(self) -> None:
        """End all threads and close the store."""
        self.curve.stop()
        self.live.stop()
        self.live.store.close()

    def titles(self, view: str) -> TitleIndex:
        """Return the titles of a view, gathered when they are first asked for."""
        with self._indexing:
            if view not in self._titles:
                self._titles[view] = TitleIndex(self.contents, view)
            return self._titles[view]

    def directions(self) -> list[tuple[str, str]]:
        """Return which view can be searched from which, texts to others first."""
        model = self.live.shown.model
        pairs = {frozenset(pair) for pair in model.pairs_}
        found = [
            (s, t)
            for s in self.views
            for t in self.views
            if {s, t} in pairs or model.links_.connects(s, t)
        ]
        return sorted(found, key=self._usefulness, reverse=True)

    def takes_pictures(self) -> bool:
        """Tell whether people may search with pictures of their own."""
        readable = [v for v in self.views if self.contents.can_read(v)]
        return self.uploads is not None and any(
            self.contents.has_pictures(view) for view in readable
        )

    def _usefulness(self, direction: tuple[str, str]) -> tuple[bool, bool, bool]:
        """Return what makes a direction a good one to begin with."""
        source, target = direction
        can_type = self.contents.can_read(source) and self.contents.has_texts(source)
        return source != target, can_type, self.contents.has_pictures(target)


def choose_contents(items: dict[str, Items], features: Any = None) -> Contents:
    """Return what is known of the items of a model."""
    if features is not None:
        return FeatureContents(items, features)
    return GlyphContents(items) if are_glyphs(items) else Contents(items)
