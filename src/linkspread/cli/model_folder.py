"""A model folder with its judgements: the model, the store, and what is in both.

A judgement is in the store before anything else happens. The model is brought up to
date afterwards; what is not in it yet is known at any time.
"""

import tomllib
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from linkspread.cli.absorbed_number import (
    LOCK,
    Absorbed,
    manifest_checksum,
    read_absorbed,
    write_absorbed,
)
from linkspread.cluster import is_sharded
from linkspread.ground.errors import LinkspreadError, ModelError, StoreError
from linkspread.models import load
from linkspread.models.stored_judgements import (
    TakenPairs,
    change_links,
    take_pairs,
)
from linkspread.storage import Judgement, Ledger, LinkStore
from linkspread.storage.files import locked
from linkspread.storage.ledger import not_said_before, pair_of
from linkspread.storage.manifest import MANIFEST

STORE, RUN = "judgements.db", "run.toml"
Pair = tuple[Any, Any, float]


class AbsorbedCounts(NamedTuple):
    """How many pairs a model took up."""

    added: int
    removed: int
    unknown: int


class ModelFolder:
    """A saved model, the store of its judgements, and how it was made."""

    def __init__(self, path: str | PathLike[str], *, store: str | None = None) -> None:
        self.path = Path(path)
        self._place = store
        self._loaded: str | None = None
        if is_sharded(self.path):
            raise ModelError(
                f"`MODEL` must be a model that is loaded whole, and {str(self.path)!r} "
                "holds shards. Use `linkspread search` or `linkspread info`, or fit "
                "without --shards."
            )
        if not (self.path / MANIFEST).is_file():
            raise ModelError(
                "`MODEL` must be the folder of a model, and there is none at "
                f"{str(self.path)!r}. Correct the path, or make one with "
                "`linkspread fit`."
            )

    def load(self) -> Any:
        """Return the estimator."""
        checksum = manifest_checksum(self.path)
        model = load(self.path)
        # The older of both: a save meanwhile must be noticed, not taken for this one.
        self._loaded = checksum
        return model

    def store(self) -> LinkStore:
        """Open the store of judgements, or create it; use it as a context."""
        return LinkStore.open(self._place or self.path / STORE)

    def keep_pairs(
        self,
        pairs: Iterable[Pair],
        between: tuple[str, str] = ("text", "image"),
        who: str = "import",
    ) -> list[str]:
        """Store judged pairs: left id, right id, weight; below 0 means cannot.

        What `who` said of a pair already is not stored again, also where it was taken
        back. Returns the ids of the new judgements.
        """
        given = [_judgement(pair, between, who) for pair in pairs]
        with self.store() as store:
            known = store.judgements(active_only=False)
            return store.add_many(not_said_before(given, known))

    @property
    def absorbed(self) -> int:
        """Number of the last row of the store that is in the saved model."""
        return read_absorbed(self.path).number

    def set_absorbed(self, number: int) -> None:
        """Say that all rows of the store up to this one are in the saved model."""
        state = Absorbed()
        if number:
            with self.store() as store:
                state = Absorbed(number, _row_id(store, number))
        write_absorbed(self.path, state)

    def pending(self) -> int:
        """Return how many rows of the store are not in the saved model yet."""
        if not self.has_store():
            return 0
        with self.store() as store:
            state = self._state(store)
            return store.last_number() - state.number

    def has_store(self) -> bool:
        """Tell whether there is a store, without making one."""
        if self._place is not None and "://" in self._place:
            return True
        return Path(self._place or self.path / STORE).is_file()

    def said_beside_the_model(self) -> set[frozenset[tuple[str, str]]]:
        """Return the pairs, as views and ids, that only the store knows are judged.

        Somebody is unsure of them, or they are not absorbed yet.
        """
        if not self.has_store():
            return set()
        with self.store() as store:
            number = self._state(store).number
            return {
                frozenset(pair_of(own))
                for own in store.judgements()
                if own.verdict == "unsure" or (own.number or 0) > number
            }

    def absorb(self, model: Any) -> AbsorbedCounts:
        """Bring a model up to date with the store, and save it."""
        with locked(self.path / LOCK, wait=True), self.store() as store:
            self._check_newest()
            state = self._state(store)
            ledger, rows = Ledger(), list(store.changes(after=state.number))
            ledger.take(store.changes(limit=state.number))
            ledger.settle()
            ledger.take(rows)
            coming = Absorbed(rows[-1].number or 0, rows[-1].id) if rows else state
            changes = ledger.changes()
            added = take_pairs(changes.added, model.items_)
            removed = take_pairs(changes.removed, model.items_)
            if added.n_pairs or removed.n_pairs:
                self._change(model, added, removed)
                write_absorbed(self.path, state, coming=coming)
                model.save(self.path)
            write_absorbed(self.path, coming)
            self._loaded = manifest_checksum(self.path)
        return AbsorbedCounts(added.n_pairs, removed.n_pairs, added.n_unknown)

    def features(self) -> Any:
        """Return the FeatureSet that run.toml names, or None."""
        named = self._run().get("features")
        if not named:
            return None
        from linkspread.manifests import load_features

        # Paths in the file are taken from its own folder.
        return load_features(self.path / named)

    def quality(self) -> dict[str, Any] | None:
        """Return what the fit found out about its quality, or None."""
        quality = self._run().get("quality")
        has_summary = isinstance(quality, dict) and "summary" in quality
        return quality if has_summary else None

    def _run(self) -> dict[str, Any]:
        """Return what run.toml says, nothing where there is none."""
        if not (self.path / RUN).is_file():
            return {}
        try:
            return tomllib.loads((self.path / RUN).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelError(
                f"{RUN} must be a TOML file, and {str(self.path / RUN)!r} is none "
                f"({error}). Mend it, or fit the model again."
            ) from error

    def _state(self, store: LinkStore) -> Absorbed:
        """Return which rows are in the model, which must be rows of this store."""
        state = read_absorbed(self.path)
        if state.number and state.row not in ("", _row_id(store, state.number)):
            raise StoreError(
                "the store must be the one whose judgements the model has, and row "
                f"{state.number:,} of this one is another judgement. Name the store "
                f"with `--store`, or {self._rebuild()}."
            )
        return state

    def _check_newest(self) -> None:
        """Refuse to save over what another process saved since the model was loaded."""
        if self._loaded not in (None, manifest_checksum(self.path)):
            raise ModelError(
                "a model must be up to date before judgements are absorbed, and "
                f"another process has saved {str(self.path)!r} meanwhile. Load it "
                "again; the judgements are in the store."
            )

    def _change(self, model: Any, added: TakenPairs, removed: TakenPairs) -> None:
        """Add links and remove others, both or none."""
        try:
            change_links(model, added.links, removed.links)
        except LinkspreadError as error:
            raise ModelError(
                "a model must take links live to absorb judgements, and this one does "
                f"not ({str(error).partition('. ')[0]}). The judgements are kept: "
                f"{self._rebuild()}."
            ) from error

    def _rebuild(self) -> str:
        """Return how to make the model anew, as the end of a sentence."""
        if (self.path / RUN).is_file():
            command = f"linkspread fit --config {self.path / RUN} --overwrite"
            return f"rebuild the model with `{command}`"
        return "fit the model again"


def _judgement(pair: Pair, between: tuple[str, str], who: str) -> Judgement:
    """Return a judged pair as a judgement."""
    left, right, weight = pair
    return Judgement(
        who=who,
        left_view=between[0],
        left_id=left,
        right_view=between[1],
        right_id=right,
        verdict="must" if weight > 0 else "cannot",
        weight=abs(float(weight)),
    )


def _row_id(store: LinkStore, number: int) -> str:
    """Return the id of a row of a store, or nothing where there is no such row."""
    rows = store.changes(after=number - 1, limit=1) if number else iter(())
    return next((row.id for row in rows), "none")
