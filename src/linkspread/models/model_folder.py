"""A saved model and the judgements of people: stored first, then applied once each.

The model and the number of its last judgement cannot be replaced in one step. So the
next number is written before the model is saved, with the checksum of the manifest that
the save will replace. Later, another checksum shows that the save was completed, and
the same checksum that it was not.
"""

import hashlib
import json
import os
import shutil
import signal
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from linkspread.ground.errors import (
    LinkspreadError,
    MissingDependencyError,
    ModelError,
    StoreError,
)
from linkspread.links import Links
from linkspread.models.persistence import load
from linkspread.models.stored_judgements import change_links, known_pairs
from linkspread.storage import Judgement, Ledger, LinkStore
from linkspread.storage.files import (
    locked,
    read_small,
    sync_folder,
    write_file,
    writing,
)
from linkspread.storage.ledger import drop_repeated
from linkspread.storage.manifest import MANIFEST, parse_json

STORE, RUN = "judgements.db", "run.toml"
APPLIED, LOCK = "absorbed.json", ".absorbing.lock"
MAX_STATE = 1 << 16
# Author of the pairs of files, and note of those that a model was fitted to.
IMPORTED, FITTED = "import", "in the files of the fit"

ViewPair = tuple[str, str]
Pair = tuple[Any, Any, float]
PairsOfViews = Mapping[ViewPair, Iterable[Pair]]
StrPath = str | os.PathLike[str]


class AppliedCounts(NamedTuple):
    """Pairs added to a model and removed, and pairs with items it does not have."""

    added: int
    removed: int
    unknown: int


class ModelFolder:
    """A saved model with a store of judgements, which are applied to it once each.

    A judgement is stored on disk before anything else happens. `apply` brings the
    model up to date and saves it. Killed at any moment, no judgement is lost and none
    is applied twice. Several processes may judge and apply at once.

    Parameters
    ----------
    path : str or Path
        Folder of a model that its `save`, :meth:`create` or `linkspread fit` wrote.
    store : str or Path, default=None
        Place of the judgements, as `LinkStore.open` takes it; `judgements.db` in the
        folder if None.

    Examples
    --------
    >>> import tempfile
    >>> import linkspread as ls
    >>> data = ls.datasets.make_views(90, n_classes=3, random_state=0)
    >>> links = ls.Links.from_labels(data.labels)
    >>> place = tempfile.TemporaryDirectory()
    >>> ls.CrossViewSearch().fit(data.views(), links).save(f"{place.name}/model")
    >>> folder = ls.ModelFolder(f"{place.name}/model")
    >>> id = folder.judge(7, 3, "must", between=("text", "image"), who="ann")
    >>> folder.apply()
    AppliedCounts(added=1, removed=0, unknown=0)
    >>> place.cleanup()
    """

    def __init__(self, path: StrPath, *, store: StrPath | None = None) -> None:
        self.path = Path(path)
        self._place = store
        self._model: Any = None
        self._checksum = ""  # of the manifest that the model was loaded from
        if not (self.path / MANIFEST).is_file():
            raise ModelError(
                "`path` must be the folder of a model, and there is none at "
                f"{str(self.path)!r}. Correct the path, or make one with `model.save` "
                "or `linkspread fit`."
            )

    @classmethod
    def create(
        cls,
        path: StrPath,
        model: Any,
        *,
        pairs: PairsOfViews | None = None,
        applied: int | None = None,
        store: StrPath | None = None,
        run: str = "",
    ) -> Self:
        """Save a fitted model with the judged pairs it was fitted to, all or nothing.

        A new folder is written elsewhere and moved in one step. An older model is
        replaced in one step, and its store stays.

        Parameters
        ----------
        path : str or Path
            A new folder, an empty one, or that of a model, which is replaced.
        model : CrossViewSearch or LinkSpreading
            Fitted.
        pairs : mapping of (str, str) to pairs (left, right, weight), default=None
            Judged pairs that the model was fitted to, by their views, for the store; a
            weight below 0 means that the items do not belong together.
        applied : int, default=None
            Number of the last row of the store that the model was fitted to, where
            the pairs are there already.
        store : str or Path, default=None
            Place of the judgements; `judgements.db` in the folder if None.
        run : str, default=""
            Text of `run.toml`: how the model was made.

        Returns
        -------
        folder : ModelFolder
        """
        with _whole(Path(path)) as folder:
            if applied and (folder / MANIFEST).is_file():
                coming = cls(folder, store=store)._state_at(applied)
                # A damaged number is replaced after the save.
                with suppress(ModelError):
                    _write_state(folder, _read_state(folder), coming=coming)
            model.save(folder)
            if run:
                write_run(folder, run)
            saved = cls(folder, store=store)
            if applied is None:
                applied = saved._store_fitted(pairs) if pairs else 0
            _write_state(folder, saved._state_at(applied))
        return cls(path, store=store)

    @property
    def model(self) -> Any:
        """The model, loaded on first use."""
        if self._model is None:
            self._load()
        return self._model

    @property
    def applied(self) -> int:
        """Number of the last row of the store that is in the saved model."""
        return _read_state(self.path).number

    def store(self) -> LinkStore:
        """Open or create the store of judgements; close it, or use it in `with`."""
        return LinkStore.open(self._place or self.path / STORE)

    def has_store(self) -> bool:
        """Return whether there is a store, without creating one."""
        place = str(self._place or self.path / STORE)
        return "://" in place or Path(place).is_file()

    def judge(
        self,
        left: Any,
        right: Any,
        verdict: str = "must",
        *,
        between: ViewPair,
        who: str,
        weight: float = 1.0,
        note: str = "",
    ) -> str:
        """Store a judgement of two items; :meth:`apply` brings it into the model.

        Parameters
        ----------
        left, right : str or int
            Ids of items that the model has.
        verdict : {"must", "cannot", "unsure"}, default="must"
            Whether they belong together.
        between : tuple of (str, str)
            Views of the two items.
        who : str
            Who judges. Of each person the last judgement of a pair counts.
        weight : float, default=1.0
            How much the judgement counts.
        note : str, default=""

        Returns
        -------
        id : str
            Id of the judgement; it is on the disk.
        """
        pair = (left, right, weight)
        # The items alone: the store checks verdict and weight.
        Links.from_pairs([(left, right)], between=between).resolve(self.model.items_)
        with self.store() as store:
            return store.add(judgement_of(pair, between, verdict, who=who, note=note))

    def judge_pairs(
        self,
        pairs: Iterable[Pair],
        *,
        between: ViewPair,
        who: str = IMPORTED,
        note: str = "",
    ) -> list[str]:
        """Store many judged pairs at once, such as those of a file.

        A pair that `who` has judged is not stored again, even if that judgement was
        undone; so the same file can be given twice.

        Parameters
        ----------
        pairs : iterable of (left, right, weight)
            A weight below 0 means that the items do not belong together.
        between : tuple of (str, str)
            Views of the two items.
        who : str, default="import"
        note : str, default=""

        Returns
        -------
        ids : list of str
            Those of the new judgements.
        """
        given = [judgement_of(pair, between, who=who, note=note) for pair in pairs]
        with self.store() as store:
            known = store.judgements(active_only=False)
            return store.add_many(drop_repeated(given, known))

    def undo(self, id: str, *, who: str, note: str = "") -> str:
        """Undo a judgement; it stays in the store, and :meth:`apply` removes it.

        Parameters
        ----------
        id : str
            Id of the judgement.
        who : str
        note : str, default=""

        Returns
        -------
        id : str
            Id of the undo.
        """
        with self.store() as store:
            return store.undo(id, who=who, note=note)

    def pending(self) -> int:
        """Count the rows of the store that are not in the saved model yet."""
        if not self.has_store():
            return 0
        with self.store() as store:
            return store.last_number() - self._state(store).number

    def apply(self) -> AppliedCounts:
        """Bring the model up to date with the store, and save it.

        If another process saved the model meanwhile, it is loaded again first.

        Returns
        -------
        counts : AppliedCounts
            Pairs that were `added` and `removed`, and how many new ones are `unknown`,
            because the model lacks one of their items.
        """
        with writing(self.path), self.lock(), self.store() as store:
            if self._model is None or self._checksum != _checksum(self.path):
                self._load()
            state = self._state(store)
            ledger, rows = Ledger(), list(store.changes(after=state.number))
            ledger.read(store.changes(limit=state.number))
            ledger.mark_applied()
            ledger.read(rows)
            coming = _State(rows[-1].number or 0, rows[-1].id) if rows else state
            changes = ledger.changes()
            added = known_pairs(changes.added, self._model.items_)
            removed = known_pairs(changes.removed, self._model.items_)
            if added.n_pairs or removed.n_pairs:
                model, self._model = self._model, None
                self._change(model, added.links, removed.links)
                _write_state(self.path, state, coming=coming)
                model.save(self.path)
                self._model = model  # unless anything failed: then it is loaded again
            _write_state(self.path, coming)
            self._checksum = _checksum(self.path)
        return AppliedCounts(added.n_pairs, removed.n_pairs, added.n_unknown)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Wait for the lock of the model, so that only one process changes it."""
        with locked(self.path / LOCK, wait=True):
            yield

    def _store_fitted(self, pairs: PairsOfViews) -> int:
        """Store the pairs that the model was fitted to; return the last row."""
        try:
            for between, own in pairs.items():
                self.judge_pairs(own, between=between, note=FITTED)
            with self.store() as store:
                return store.last_number()
        except MissingDependencyError as error:
            text = f"the pairs are in the model, but in no store: {error}"
            warnings.warn(text, stacklevel=3)
            return 0

    def _state_at(self, number: int) -> "_State":
        """Return the state of a model with all rows of the store up to a number."""
        if not number:
            return _State()
        with self.store() as store:
            return _State(number, _row_id(store, number))

    def _load(self) -> None:
        """Load the model, or load it again."""
        # Read first, so that a save during the loading is noticed.
        checksum = _checksum(self.path)
        self._model, self._checksum = load(self.path), checksum

    def _state(self, store: LinkStore) -> "_State":
        """Return which rows are in the model; refuse another store."""
        state = _read_state(self.path)
        if state.number and state.row not in ("", _row_id(store, state.number)):
            raise StoreError(
                "the store must be the one whose judgements the model has, got one "
                f"with another judgement in row {state.number:,}. Name the right store "
                f"with `--store`, or {self._rebuild()}."
            )
        return state

    def _change(self, model: Any, added: Links | None, removed: Links | None) -> None:
        """Add links to the model and remove others, both or none."""
        try:
            change_links(model, added, removed)
        except LinkspreadError as error:
            raise ModelError(
                "judgements must be links that the model can add or remove, got one it "
                f"refuses ({str(error).partition('. ')[0]}). The judgements are kept: "
                f"{self._rebuild()}."
            ) from error

    def _rebuild(self) -> str:
        """Return how to make the model again, as the end of a sentence."""
        if (self.path / RUN).is_file():
            command = f"linkspread fit --config {self.path / RUN} --overwrite"
            return f"rebuild the model with `{command}`"
        return "fit the model again"


def write_run(folder: Path, text: str) -> None:
    """Write how the model of a folder was made, and its measured quality."""
    write_file(folder, lambda file: file.write(text.encode()), RUN)


class _State(NamedTuple):
    """The last row of a store that is in a model."""

    number: int = 0
    row: str = ""


def _read_state(folder: Path) -> _State:
    """Return which rows are in a saved model, also after an interrupted `apply`."""
    try:
        document = parse_json(read_small(folder, APPLIED, max_bytes=MAX_STATE))
        if "next" in document and document["before"] != _checksum(folder):
            document = document["next"]
        state = _State(document["number"], document.get("row", ""))
        is_row = isinstance(state.row, str)
        if type(state.number) is not int or state.number < 0 or not is_row:
            raise ValueError(state)
        return state
    except FileNotFoundError:
        return _State()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(
            f'{APPLIED} must hold {{"number": n}}, the last row of the store that is '
            f"in the model, got {error!s:.60}. Fit the model again to write the file."
        ) from error


def _write_state(folder: Path, state: _State, *, coming: _State | None = None) -> None:
    """Write which rows are in the model, and which will be after a coming save."""
    document: dict[str, Any] = state._asdict()
    if coming is not None:
        document |= {"next": coming._asdict(), "before": _checksum(folder)}
    data = json.dumps(document).encode()
    write_file(folder, lambda file: file.write(data), APPLIED)
    sync_folder(folder)


def _checksum(folder: Path) -> str:
    """Return what distinguishes one save of a model from another."""
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def _row_id(store: LinkStore, number: int) -> str:
    """Return the id of a row of a store, or "none" where there is no such row."""
    rows = store.changes(after=number - 1, limit=1) if number else iter(())
    return next((row.id for row in rows), "none")


def judgement_of(
    pair: Pair, between: ViewPair, verdict: str | None = None, **about: Any
) -> Judgement:
    """Return a judged pair as a judgement; the sign is the verdict if none is given."""
    (left_view, right_view), (left, right, weight) = between, pair
    if verdict is None:
        verdict, weight = "must" if weight > 0 else "cannot", abs(float(weight))
    views: dict[str, Any] = {"left_view": left_view, "right_view": right_view}
    items = {"left_id": left, "right_id": right, "weight": weight}
    return Judgement(verdict=verdict, **views, **items, **about)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a folder to write that ends up at a path; an error leaves it as it was."""
    with writing(path):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            stage = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}"
            try:
                yield stage
                os.rename(stage, path)
            finally:
                shutil.rmtree(stage, ignore_errors=True)
            return
        # An existing folder may be a mount point, which cannot be renamed over.
        was_empty = not any(path.iterdir())
        with _delayed_interrupt():
            try:
                yield path
            except BaseException:
                for entry in path.iterdir() if was_empty else ():
                    with suppress(OSError):
                        entry.unlink()
                raise


@contextmanager
def _delayed_interrupt() -> Iterator[None]:
    """Delay an interrupt until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts: list[Any] = []
    before: Callable[..., Any] | int | None = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda *given: interrupts.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        raise KeyboardInterrupt
