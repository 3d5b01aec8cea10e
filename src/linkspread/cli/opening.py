"""Opening models for commands: their judgements, views and contents of items."""

from __future__ import annotations

import getpass
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkspread.cli.output import notice
from linkspread.ground.errors import (
    LinkspreadError,
    MissingDependencyError,
    ModelError,
    StoreError,
    UnknownItemError,
)

if TYPE_CHECKING:
    from linkspread.manifests import FeatureSet
    from linkspread.models import ModelFolder
    from linkspread.models.following import AppliedCounts

# Bytes of a run.toml, far more than any has.
MAX_RUN = 1 << 20


def open_folder(path: Path, store: str | None = None) -> ModelFolder:
    """Open the folder of a model; shards are refused."""
    from linkspread.cluster.sharded_model import is_sharded
    from linkspread.models import ModelFolder

    if is_sharded(path):
        raise ModelError(
            f"`MODEL` must be a model that is loaded whole, and {str(path)!r} holds "
            "shards. Use `linkspread search` or `linkspread info`, or fit without "
            "--shards."
        )
    return ModelFolder(path, store=store)


def open_model(path: Path, store: str | None = None) -> tuple[ModelFolder, Any]:
    """Load a model, and report pending judgements."""
    folder = open_folder(path, store)
    model = folder.model
    report_pending(folder)
    return folder, model


def open_searched(
    path: Path, store: str | None = None
) -> tuple[ModelFolder | None, Any]:
    """Load a model to search, or open shards, which have no model folder."""
    from linkspread.cluster.sharded_model import is_sharded, open_shards

    if is_sharded(path):
        return None, open_shards(path)
    return open_model(path, store)


def is_model(folder: Path) -> bool:
    """Return whether a folder holds a model, and not features or other files."""
    from linkspread.storage.folder import read_manifest

    try:
        read_manifest(folder, whole=False)
    except LinkspreadError:
        return False
    return True


def report_pending(folder: ModelFolder) -> None:
    """Report how many judgements are pending.

    A store that cannot be read does not stop a command that only reads the model.
    """
    try:
        n_pending = folder.pending()
    except (StoreError, MissingDependencyError) as error:
        text = "it is unknown whether the model has all judgements"
        notice(f"linkspread: {text}: {error}")
        return
    if n_pending:
        are = "judgement is" if n_pending == 1 else "judgements are"
        notice(
            f"linkspread: {n_pending:,} {are} not in the model yet; "
            f"`linkspread links apply {folder.path}` applies them."
        )


def apply_judgements(folder: ModelFolder, *, repair: bool = False) -> AppliedCounts:
    """Apply pending judgements, and report what changed."""
    counts = folder.repair() if repair else folder.apply()
    removed = f", {counts.removed:,} removed" if counts.removed else ""
    notice(f"The model is up to date: {counts.added:,} added{removed}.")
    if counts.unknown:
        notice(
            f"linkspread: {counts.unknown:,} judged pairs have unknown items and were "
            "left out."
        )
    return counts


def read_features(folder: ModelFolder) -> FeatureSet | None:
    """Return the features that a model was fitted to, if `run.toml` names a folder."""
    from linkspread.manifests import load_features

    named = read_run(folder).get("features", "")
    if not isinstance(named, str):
        raise ModelError(
            f"`features` of run.toml must be the path of a folder, got {named!r:.60}. "
            "Correct it, or fit the model again."
        )
    # Paths in the file are relative to its own folder.
    return load_features(folder.path / named) if named else None


def read_run(folder: ModelFolder) -> dict[str, Any]:
    """Return the options in `run.toml`, none without the file."""
    from linkspread.storage.files import read_small

    try:
        text = read_small(folder.path, "run.toml", max_bytes=MAX_RUN).decode()
        return tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"run.toml of {str(folder.path)!r} must be a TOML file, got another "
            f"({error!s:.120}). Correct it, or fit the model again."
        ) from error


def default_who(who: str | None) -> str:
    """Return who judges: as given, or the login name."""
    try:
        return who or getpass.getuser()
    except (KeyError, OSError, ImportError) as error:
        raise LinkspreadError(
            "`--who` must say who judges, and this system has no login name. Give "
            "--who NAME or set LINKSPREAD_WHO."
        ) from error


def choose_views(
    model: Any, source: str | None, target: str | None, ids: Sequence[str] = ()
) -> tuple[str, str]:
    """Return source and target.

    Both may be None for a model of two views, if the ids are of one view only.
    """
    names, items = model.view_names_, model.items_
    for option, view in (("--source", source), ("--target", target)):
        if view is not None and view not in names:
            raise LinkspreadError(
                f"`{option}` must be a view of the model, which has "
                f"{', '.join(map(repr, names))}, got {view!r}. Choose one of these."
            )
    found = [v for v in names if ids and items[v].contains(list(ids)).all()]
    if source is None and len(found) == 1:
        source = found[0]
    if source is None and found == []:
        _check_known(model, ids)
    # Of two views, one decides the other.
    if len(names) == 2:
        other = {names[0]: names[1], names[1]: names[0]}
        source = source or (other[target] if target else None)
        target = target or (other[source] if source else None)
    for option, view in (("--source", source), ("--target", target)):
        if view is None:
            got = ", ".join(map(repr, found)) or f"one of {len(names)} views"
            raise LinkspreadError(
                f"`{option}` must be given if ids and other options do not decide the "
                f"view, got {got}. Add {option} with one of {', '.join(names)}."
            )
    return str(source), str(target)


def check_items(model: Any, view: str, ids: Sequence[str], *, option: str) -> None:
    """Refuse an id that a view does not have, and name similar ids."""
    items = model.items_[view]
    for item, known in zip(ids, items.contains(list(ids)), strict=True):
        if not known:
            near = items.similar_ids(item)
            some = ", ".join(map(repr, near or items.ids[:3].tolist()))
            hint = f"Similar: {some}" if near else f"Its ids are like {some}"
            raise UnknownItemError(
                f"`{option}` must be an item of view {view!r}, which has none called "
                f"{item!r}. {hint}; correct the id."
            )


def _check_known(model: Any, ids: Sequence[str]) -> None:
    """Refuse an id that no view has, and name similar ids."""
    views = {view: model.items_[view] for view in model.view_names_}
    for item in ids:
        if not any(own.contains([item]).all() for own in views.values()):
            near = [
                f"{own!r} ({view})"
                for view, items in views.items()
                for own in items.similar_ids(item, n=2)
            ]
            hint = f"Similar: {', '.join(near)}" if near else "No id is similar"
            raise UnknownItemError(
                f"`--id` must be an item of the model, whose views have none called "
                f"{item!r}. {hint}; correct the id."
            )


class ItemContents:
    """The texts of items and the paths of their pictures, by view and id."""

    def __init__(self, features: Any = None) -> None:
        self._features = features
        self._rows: dict[str, dict[str, int]] = {}

    def known(self, view: str) -> bool:
        """Return whether items of a view have contents."""
        return self._features is not None and view in self._features.contents

    def is_picture(self, view: str) -> bool:
        """Return whether items of a view are pictures."""
        return self.known(view) and self._features.kinds.get(view) == "picture"

    def find(self, view: str, item: Any) -> str | None:
        """Return the text of an item or the path of its picture, None if unknown."""
        if not self.known(view):
            return None
        if view not in self._rows:
            ids = map(str, self._features.ids[view])
            self._rows[view] = {item: row for row, item in enumerate(ids)}
        row = self._rows[view].get(str(item))
        if row is None:
            return None
        content = str(self._features.contents[view][row])
        # An absolute path stays as it is.
        is_path = self.is_picture(view)
        return str(Path(self._features.root) / content) if is_path else content


def read_contents(folder: ModelFolder | None) -> ItemContents:
    """Return the contents of items; without any, report why and go on."""
    try:
        return ItemContents(folder and read_features(folder))
    except (LinkspreadError, ImportError) as error:
        notice(f"linkspread: texts and pictures are not shown: {error}")
        return ItemContents()
