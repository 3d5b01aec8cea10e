"""Make features of a collection: hash all items, fit transformers, transform.

A vocabulary is learnt from all texts, a codebook from a sample of the pictures. The
sample depends on the hashes of the contents, not on files that cannot be read.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from linkspread.features import TRANSFORMERS
from linkspread.features.pictures import read_picture
from linkspread.ground.checks import naming
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import UnreadablePicture
from linkspread.ground.progress import announce, track
from linkspread.manifests.cache import RowCache
from linkspread.manifests.collection import ItemCollection, ViewItems
from linkspread.manifests.contents import (
    ContentHash,
    Problem,
    UnreadableContent,
    hash_content,
    is_unchanged,
    read_text,
    refuse,
)
from linkspread.manifests.feature_set import FeatureSet
from linkspread.manifests.rows import RowFile, Texts, pack_rows
from linkspread.manifests.transformers import (
    PACKED,
    choose_transformers,
    fingerprint,
    is_fitted,
    pack,
    recipe,
    unpack,
    with_speed_of,
)

# Files that are submitted to threads at once: futures of a million files would take a
# gigabyte.
N_TOGETHER = 1024
# Pictures in the sample; more do not make a better codebook.
N_LEARNT = 1000
# Pictures that are decoded at once when some of a sample cannot be read.
N_DECODED = 32
# Items whose rows are made and cached at once. Texts are many and small, and each call
# of a transformer of texts has a fixed cost.
BATCH = {"picture": 64, "text": 2048}
# Characters of a text that are kept for display.
MAX_SHOWN = 2000


def featurize(
    collection: ItemCollection,
    *,
    transformers: Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    folder: str | os.PathLike[str] | None = None,
) -> FeatureSet:
    """Return the features of all items that can be read.

    Rows are written to a temporary file, so a collection may be larger than memory.
    Items that cannot be read are left out and listed in `problems`; they do not
    influence the features of the others.

    Parameters
    ----------
    collection : ItemCollection
    transformers : mapping from str to transformer, default=None
        Transformers in place of the default ones. Fitted ones are used as they are,
        others are fitted to the view.
    cache : str or Path, default=None
        File that keeps rows and fitted transformers for later calls; None keeps
        nothing.
    random_state : int, default=0
        Seed of the default transformers.
    n_jobs : int, default=None
        Threads; None and -1 mean every core.
    verbose : bool, default=False
        Show progress.
    folder : str or Path, default=None
        Folder for temporary files; None takes that of the system.

    Returns
    -------
    features : FeatureSet

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from linkspread.manifests import ItemCollection, ViewItems, featurize
    >>> texts = ViewItems("text", np.array(["a", "b"]), ["one fish", "two fish"])
    >>> featurize(ItemCollection({"title": texts}, Path())).metrics
    {'title': 'cosine'}
    """
    chosen = choose_transformers(
        collection, transformers, random_state=random_state, n_jobs=n_jobs
    )
    n_threads = count_threads(n_jobs)
    features = FeatureSet(
        views={},
        ids={},
        labels={},
        metrics={},
        kinds={},
        contents={},
        digests={},
        root=collection.root.absolute(),
        transformers={},
        problems=[],
    )
    with nullcontext() if cache is None else RowCache(cache) as rows:
        for view, items in collection.views.items():
            work = ViewWork(view, items, rows, n_threads=n_threads, verbose=verbose)
            work.hash_contents()
            with naming(view):
                fitted = work.learn(chosen[view])
                described = work.describe(fitted, features.root, folder)
            features.problems.extend(work.problems)
            if described is None:
                continue
            features.views[view], places, features.contents[view] = described
            features.ids[view] = items.ids[places]
            if items.labels is not None:
                features.labels[view] = items.labels[places]
            features.metrics[view] = fitted.metric_
            features.kinds[view] = items.kind
            if items.kind == "picture":
                digests = b"".join(work.seen[place].digest for place in places)
                features.digests[view] = np.frombuffer(digests, np.uint8).reshape(
                    -1, 32
                )
            features.transformers[view] = fitted
    return features


class ViewWork:
    """Hash the items of one view, fit its transformer and transform the items."""

    def __init__(
        self,
        view: str,
        items: ViewItems,
        cache: RowCache | None = None,
        *,
        n_threads: int = 1,
        verbose: bool = False,
    ) -> None:
        self.view = view
        self.items = items
        self.cache = cache
        self.n_threads = n_threads
        self.verbose = verbose
        self.seen: dict[int, ContentHash] = {}  # the items that can be read so far
        self.problems: list[Problem] = []  # what is wrong with the others

    def hash_contents(self) -> None:
        """Hash the contents, a few files at a time."""

        def hash_one(place: int) -> ContentHash | UnreadableContent:
            try:
                return hash_content(self.items.contents[place], self.items.kind)
            except UnreadableContent as error:
                return error
            except OSError:  # a disk that fails in the middle of a file
                return refuse(self.items.contents[place], "unreadable")

        n = len(self.items.ids)
        starts = range(0, n, N_TOGETHER)
        parts = (range(start, min(start + N_TOGETHER, n)) for start in starts)
        with ThreadPoolExecutor(self.n_threads) as pool:
            found = (own for part in parts for own in pool.map(hash_one, part))
            for place, own in enumerate(self._track(found, n, "reading")):
                if isinstance(own, ContentHash):
                    self.seen[place] = own
                else:
                    self._leave_out(place, own)

    def learn(self, transformer: Any) -> Any:
        """Return a fitted transformer: the given one, from the cache, or fitted now."""
        if is_fitted(transformer):
            return transformer
        if self.items.kind == "text":
            return self._learn_from(transformer, self.seen)
        drawn = sorted(self.seen, key=lambda place: self._key(b"sample", place))
        if self.cache is not None:
            # First those that an earlier run could not read.
            keys = {place: self._key(b"unreadable", place) for place in drawn}
            known = self.cache.get(keys.values())
            self._decode([place for place in drawn if keys[place] in known])
            drawn = [place for place in drawn if place in self.seen]
        try:
            return self._learn_from(transformer, drawn[:N_LEARNT])
        except UnreadablePicture:
            # Not decoded beforehand, as that would double the cost without errors.
            readable: list[int] = []
            for start in range(0, len(drawn), N_DECODED):
                part = drawn[start : start + N_DECODED]
                self._decode(part)
                readable += [place for place in part if place in self.seen]
                if len(readable) >= N_LEARNT:
                    break
            return self._learn_from(transformer, readable[:N_LEARNT])

    def describe(
        self, fitted: Any, root: Path, folder: str | os.PathLike[str] | None = None
    ) -> tuple[Any, np.ndarray, Texts] | None:
        """Return the rows of items, their places and their previews, or None."""
        if not self.seen:
            return None
        made_by = fingerprint(fitted) if self.cache is not None else b""
        seen, size = list(self.seen), BATCH[self.items.kind]
        batches = [seen[start : start + size] for start in range(0, len(seen), size)]
        places: list[int] = []
        with RowFile(None if folder is None else Path(folder)) as rows:
            for batch in self._track(batches, len(batches), "features"):
                found = self._rows_of(batch, fitted, made_by)
                for place in (place for place in batch if place in found):
                    rows.append(found[place], self._preview(place, root))
                    places.append(place)
            if not places:
                return None
            X, shown = rows.finish()
        return X, np.array(places), shown

    def _track(self, steps: Iterable[Any], total: int, label: str) -> Iterable[Any]:
        """Return the steps, showing progress."""
        label = f"{self.view}: {label}"
        return track(steps, total=total, label=label, verbose=self.verbose)

    def _leave_out(self, place: int, error: Exception) -> None:
        """Note why an item cannot be read, for pictures in the cache too."""
        if self.cache is not None and isinstance(error, UnreadablePicture):
            self.cache.put({self._key(b"unreadable", place): b"unreadable"})
        kind = str(getattr(error, "kind", "unreadable"))
        sentence = " ".join(str(error).split())
        name = str(self.items.ids[place])
        self.problems.append(Problem(name, self.view, kind, sentence))
        self.seen.pop(place, None)

    def _key(self, made_by: bytes, place: int) -> bytes:
        """Return the key in the cache of what is made from a content."""
        return hashlib.sha256(made_by + self.seen[place].digest).digest()

    def _decode(self, places: list[int]) -> None:
        """Decode pictures, and leave out those that cannot be read."""

        def decode(place: int) -> UnreadablePicture | None:
            try:
                read_picture(self.items.contents[place])
            except UnreadablePicture as error:
                return error
            return None

        with ThreadPoolExecutor(self.n_threads) as pool:
            for place, error in zip(places, pool.map(decode, places), strict=True):
                if error is not None:
                    self._leave_out(place, error)

    def _learn_from(self, transformer: Any, places: Iterable[int]) -> Any:
        """Return a transformer fitted to items, now or earlier; None for no items."""
        # In the order of the collection, as `fit` would get them.
        places = sorted(places)
        if not places:
            return None
        hashed = hashlib.sha256(PACKED + recipe(transformer).encode())
        for place in places:
            hashed.update(self.seen[place].digest)
        key = hashed.digest()
        packed = None if self.cache is None else self.cache.get([key]).get(key)
        if packed is not None:
            return with_speed_of(unpack(packed), transformer)
        n_learnt = f"{self.view}: learning from {len(places):,} items"
        announce(n_learnt, verbose=self.verbose)
        contents = [self.items.contents[place] for place in places]
        is_text = self.items.kind == "text"
        fitted = clone(transformer).fit(
            map(read_text, contents) if is_text else contents
        )
        if self.cache is not None and type(fitted) in TRANSFORMERS.values():
            self.cache.put({key: pack(fitted)})
        return fitted

    def _rows_of(
        self, batch: list[int], fitted: Any, made_by: bytes
    ) -> dict[int, bytes]:
        """Return the row of each item of a batch that can be read."""
        keys = {place: self._key(made_by, place) for place in batch}
        known = {} if self.cache is None else self.cache.get(keys.values())
        made = self._make_rows([p for p in batch if keys[p] not in known], fitted)
        for place in list(made):
            content = self.items.contents[place]
            if not is_unchanged(content, self.seen[place]):
                self._leave_out(place, refuse(content, "changed"))
                del made[place]
        if self.cache is not None:
            self.cache.put({keys[place]: row for place, row in made.items()})
        return made | {p: known[keys[p]] for p in batch if keys[p] in known}

    def _make_rows(self, places: list[int], fitted: Any) -> dict[int, bytes]:
        """Return rows of items; if one of them fails, each is tried by itself."""
        if not places:
            return {}
        contents = [self.items.contents[place] for place in places]
        try:
            if self.items.kind == "text":
                contents = [read_text(content) for content in contents]
            rows = pack_rows(fitted.transform(contents))
            return dict(zip(places, rows, strict=True))
        except (UnreadablePicture, UnreadableContent, OSError) as error:
            if len(places) == 1:
                self._leave_out(places[0], error)
                return {}
        return {
            p: r for own in places for p, r in self._make_rows([own], fitted).items()
        }

    def _preview(self, place: int, root: Path) -> str:
        """Return the beginning of a text, or the path of a picture."""
        content = self.items.contents[place]
        if self.items.kind == "text":
            return read_text(content)[:MAX_SHOWN]
        path = content.absolute()
        return (
            path.relative_to(root).as_posix()
            if path.is_relative_to(root)
            else str(path)
        )
