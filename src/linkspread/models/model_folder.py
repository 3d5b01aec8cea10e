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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from linkspread.ground.errors import (
    LinkspreadError,
    MissingDependencyError,
    ModelError,
    StoreError,
    warn_caller,
)
from linkspread.links import Links
from linkspread.models.following import (
    AppliedCounts,
    Follower,
    Pair,
    ViewPair,
    conflicts_add_up,
    count_pairs,
    known_pairs,
    links_of,
    list_pairs,
)
from linkspread.models.persistence import load
from linkspread.storage import Judgement, LinkStore
from linkspread.storage.files import (
    locked,
    read_small,
    sync_folder,
    write_file,
    writing,
)
from linkspread.storage.folder import DATA_NAME, MANIFEST
from linkspread.storage.judgements import drop_repeated
from linkspread.storage.tensors import parse_json

STORE, RUN = "judgements.db", "run.toml"
APPLIED, LOCK = "absorbed.json", ".absorbing.lock"
# Files that a backup has, beside arrays and store.
COPIED = (MANIFEST, RUN, APPLIED)
# Bytes of the file with the number of the last row.
MAX_STATE = 1 << 16
# Author of the pairs of files, and note of those that a model was fitted to; author of
# the pairs that a model has and its restored store has not.
IMPORTED, FITTED, RESTORED = "import", "in the files of the fit", "restored"
# In place of the id of a row that does not exist.
NO_ROW = "none"
# How often model and last row are read again if another process saves meanwhile.
N_TRIES = 20

PairsOfViews = Mapping[ViewPair, Iterable[Pair]]
StrPath = str | os.PathLike[str]


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
        self.place = store
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
        replaced in one step, and its store stays: judgements there that are not among
        the pairs are applied.

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
        with _whole(Path(path)) as folder, _lock_of_model(folder):
            saved = cls(folder, store=store) if (folder / MANIFEST).is_file() else None
            is_at = applied is not None or not pairs
            if saved is not None:
                coming = saved._state_at(applied or 0) if is_at else UNKNOWN
                # A damaged number is replaced after the save.
                with suppress(ModelError):
                    _write_state(folder, _read_state(folder), coming=coming)
            model.save(folder)
            if run:
                write_run(folder, run)
            saved = saved or cls(folder, store=store)
            state = (
                saved._state_at(applied or 0)
                if is_at
                else saved._store_fitted(pairs or {})
            )
            _write_state(folder, state)
            if state == UNKNOWN:
                # The store has judgements that the model was not fitted to.
                with saved.store() as opened:
                    saved._load()
                    saved._repair(opened)
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

    def load(self) -> tuple[Any, int]:
        """Load the model together with the number of the last row in it.

        Both are of one moment, also while another process applies judgements.

        Returns
        -------
        model : CrossViewSearch or LinkSpreading
        number : int
            Apply the rows of the store after it, and each has been applied once.
        """
        for _ in range(N_TRIES):
            before = _checksum(self.path), _read_state(self.path)
            if before[1] == UNKNOWN:
                # Perhaps another process is about to find out.
                with self.lock():
                    before = _checksum(self.path), _read_state(self.path)
            self._load()
            if before == (_checksum(self.path), _read_state(self.path)):
                return self._model, self._checked(before[1])
        raise ModelError(
            f"a model must stay the same while it is loaded, and that in "
            f"{str(self.path)!r} was saved again {N_TRIES} times. Try again."
        )

    def store(self) -> LinkStore:
        """Open or create the store of judgements; close it, or use it in `with`."""
        return LinkStore.open(self.place or self.path / STORE)

    def has_store(self) -> bool:
        """Return whether there is a store, without creating one."""
        place = str(self.place or self.path / STORE)
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
        with self._changing() as store:
            state = self._state(store)
            follower = Follower(self._model, store, applied=state.number)
            if not follower.read():
                return AppliedCounts(0, 0, 0)
            try:
                counts = follower.apply()
            except LinkspreadError as error:
                raise ModelError(
                    "judgements must be links that the model can add or remove, got "
                    f"one it refuses ({str(error).partition('. ')[0]}). The judgements "
                    f"are kept: {self._rebuild()}."
                ) from error
            coming = _State(follower.number, follower.row)
            self._save(state, coming, changed=counts.added + counts.removed > 0)
        return counts

    def repair(self) -> AppliedCounts:
        """Bring together a model and a store that is not its own, such as a backup.

        What only one of the two has is kept: judgements of the store are applied, and
        judged pairs of the model are stored as judgements of "restored".

        Returns
        -------
        counts : AppliedCounts
            Pairs that were `added` to the model, and that were `removed` because they
            were undone meanwhile.
        """
        with self._changing() as store:
            return self._repair(store)

    def _repair(self, store: LinkStore) -> AppliedCounts:
        """Bring the loaded model and a store together; the caller holds the lock."""
        with conflicts_add_up():
            items = self._model.items_
            own = count_pairs(self._model.links_)
            lost = own - known_pairs(store.pairs().columns, items).counted(items)
            store.add_many(
                judgement_of(pair, between, who=name, note="known to the model")
                for between, pairs in list_pairs(lost, items).items()
                for name, pair in _named(pairs)
            )
            # Others may have judged since.
            judged = store.pairs()
            known = known_pairs(judged.columns, items)
            stored = known.counted(items)
            changes = stored - own, own - stored
            added, removed = (links_of(counted, items) for counted in changes)
            if added is not None or removed is not None:
                self._model.change_links(added=added, removed=removed)
            row = _row_id(store, judged.number) if judged.number else ""
            coming = _State(judged.number, row)
            self._save(_read_state(self.path), coming, changed=any(changes))
        n_added, n_removed = (own.total() for own in changes)
        return AppliedCounts(n_added, n_removed, known.n_unknown)

    def backup(self, path: StrPath) -> None:
        """Copy the model and its store into a new folder, while others judge and apply.

        Parameters
        ----------
        path : str or Path
            A new folder. To restore, put it in the place of this one, while no process
            uses that.
        """
        target = Path(path)
        if target.exists():
            raise ModelError(
                f"`path` must be a new folder, and {str(target)!r} exists. Give "
                "another."
            )
        # The store last, so that it has every judgement that the model has.
        with _whole(target) as copy, self.lock():
            copy.mkdir()
            for own in self.path.iterdir():
                if own.name in COPIED or DATA_NAME.fullmatch(own.name):
                    shutil.copyfile(own, copy / own.name)
            if self.has_store():
                with self.store() as store:
                    store.backup(copy / STORE)

    def check_store(self) -> int:
        """Return the last row that is in the model; refuse a store of another model."""
        return self._checked(_read_state(self.path))

    def _checked(self, state: "_State") -> int:
        """Return the number of a row; refuse a store that has another there."""
        if self.has_store():
            with self.store() as store:
                return self._of_store(state, store).number
        if state.number:
            raise self._other_store(state.number)
        return 0

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Wait for the lock of the model, so that only one process changes it."""
        with _lock_of_model(self.path):
            yield

    def _store_fitted(self, pairs: PairsOfViews) -> "_State":
        """Store the pairs of a fit; return the last row, unknown if others judged."""
        try:
            n_stored = sum(
                len(self.judge_pairs(own, between=between, note=FITTED))
                for between, own in pairs.items()
            )
            with self.store() as store:
                number = store.last_number()
        except MissingDependencyError as error:
            text = f"the pairs are in the model, but in no store: {error}"
            warn_caller(text)
            return _State()
        return self._state_at(number) if number == n_stored else UNKNOWN

    def _state_at(self, number: int) -> "_State":
        """Return the state of a model with all rows of the store up to a number."""
        if not number:
            return _State()
        with self.store() as store:
            return _State(number, _row_id(store, number))

    @contextmanager
    def _changing(self) -> Iterator[LinkStore]:
        """Yield the store while this process alone changes the model, loaded anew."""
        with (
            writing(self.path),
            self.lock(),
            self.store() as store,
            conflicts_add_up(),
        ):
            if self._model is None or self._checksum != _checksum(self.path):
                self._load()
            try:
                yield store
            except BaseException:
                self._model = None  # to be loaded again
                raise

    def _save(self, state: "_State", coming: "_State", *, changed: bool) -> None:
        """Save the model, if it has changed, and then the number of its last row."""
        if changed:
            _write_state(self.path, state, coming=coming)
            self._model.save(self.path)
        _write_state(self.path, coming)
        self._checksum = _checksum(self.path)

    def _load(self) -> None:
        """Load the model, or load it again."""
        # Read first, so that a save during the loading is noticed.
        checksum = _checksum(self.path)
        self._model, self._checksum = load(self.path), checksum

    def _state(self, store: LinkStore) -> "_State":
        """Return which rows are in the model; refuse another store."""
        return self._of_store(_read_state(self.path), store)

    def _of_store(self, state: "_State", store: LinkStore) -> "_State":
        """Return a state, if its row is in the store."""
        row = _row_id(store, state.number) if state.number else ""
        # Older folders have the number alone.
        if row != state.row and (state.row or row == NO_ROW):
            raise self._other_store(state.number)
        return state

    def _other_store(self, number: int) -> StoreError:
        """Return the error for a store without the judgements of the model."""
        return StoreError(
            "the store must be the one whose judgements the model has, got one with "
            f"another judgement in row {number:,}, or with none. Name the right store "
            f"with `--store`, or run `linkspread links apply {self.path} --repair`, "
            "which keeps the judgements of both."
        )

    def _rebuild(self) -> str:
        """Return how to make the model again, as the end of a sentence."""
        if not (self.path / RUN).is_file():
            return "fit the model again"
        command = f"linkspread fit --config {self.path / RUN} --overwrite"
        return f"rebuild the model with `{command}`"


def write_run(folder: Path, text: str) -> None:
    """Write how the model of a folder was made, and its measured quality."""
    write_file(folder, lambda file: file.write(text.encode()), RUN)


class _State(NamedTuple):
    """The last row of a store that is in a model."""

    number: int = 0
    row: str = ""


# The folder asks for its repair.
UNKNOWN = _State(1, "unknown")


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
    """Return the id of a row of a store, or NO_ROW where there is none."""
    rows = store.changes(after=number - 1, limit=1) if number else iter(())
    return next((row.id for row in rows), NO_ROW)


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
def _lock_of_model(folder: Path) -> Iterator[None]:
    """Let no other process change the model of a folder, if there is one."""
    if not (folder / MANIFEST).is_file():
        yield
        return
    with locked(folder / LOCK, wait=True):
        yield


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


def _named(pairs: list[Pair]) -> Iterator[tuple[str, Pair]]:
    """Yield pairs with an author, another for each judgement of one pair."""
    seen: Counter[tuple[Any, Any]] = Counter()
    for pair in pairs:
        seen[pair[:2]] += 1
        n_times = seen[pair[:2]]
        yield RESTORED if n_times == 1 else f"{RESTORED} {n_times}", pair
