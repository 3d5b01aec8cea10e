"""A folder of shards: what it holds, how it is replaced, how it is opened again.

::

    output/
      head/       a folder as of a model: ids, links, cores, which files are the shards
      vectors/    the shards, each named after its checksum

Replacing the manifest in `head` is what makes new shards the model; older ones go
afterwards.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from linkspread.cluster.sharded_model import ShardedModel, ShardedPair, ShardedView
from linkspread.cluster.vector_shards import (
    ShardFile,
    VectorShards,
    are_plain,
    check_shards,
)
from linkspread.cluster.views import ChunkedView, open_view
from linkspread.graphs.distances import METRICS
from linkspread.graphs.weights import WEIGHTS
from linkspread.ground.errors import ModelError, ViewError
from linkspread.links import Items, Links
from linkspread.models.stored_graphs import PAIR, STORED_GRAPHS
from linkspread.storage import Registry, Stored, read_folder, write_folder
from linkspread.storage.files import naming_file
from linkspread.storage.kinds import (
    COUNT,
    NUMBER,
    TEXT,
    Kind,
    array,
    instance,
    mapping,
    sequence,
)
from linkspread.storage.manifest import MANIFEST

SHARDS = "linkspread shards"
HEAD, VECTORS = "head", "vectors"
METRIC = Kind("a metric", lambda value: isinstance(value, str) and value in METRICS)
WEIGHTING = Kind("weights", lambda value: isinstance(value, str) and value in WEIGHTS)
STATE = {
    "items": mapping(instance(Items)),
    "links": instance(Links),
    "pairs": mapping(instance(ShardedPair), keys=PAIR),
    "views": mapping(instance(ShardedView)),
}


def _fits_pair(pair: ShardedPair) -> bool:
    """Tell whether cores join the vectors of both sides."""
    shape = pair.left.width, pair.right.width
    cores = pair.core, pair.unseen_left, pair.unseen_right
    return all(core.shape == shape for core in cores)


REGISTRY = Registry(
    (
        *STORED_GRAPHS,
        Stored(
            ShardFile,
            {"name": TEXT, "n_rows": COUNT, "n_bytes": COUNT, "sha256": TEXT},
        ),
        Stored(
            VectorShards,
            {"files": sequence(instance(ShardFile)), "width": COUNT, "precision": TEXT},
            check=are_plain,
        ),
        Stored(
            ShardedPair,
            {
                "left": instance(VectorShards),
                "right": instance(VectorShards),
                "core": array(2),
                "unseen_left": array(2),
                "unseen_right": array(2),
                "error": NUMBER,
            },
            check=_fits_pair,
        ),
        Stored(
            ShardedView,
            {
                "graph": TEXT,
                "n_neighbors": COUNT,
                "metric": METRIC,
                "bandwidth": TEXT | NUMBER,
                "weights": WEIGHTING,
                "n_features": COUNT,
                "widths": array(1) | NUMBER,
                "degrees": array(1),
            },
        ),
    )
)


def check_output(path: str | os.PathLike[str]) -> Path:
    """Refuse to write shards where something else is.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    folder : Path
        Absolute, as workers may run elsewhere.
    """
    folder = Path(path).absolute()
    is_other = folder.exists() and not folder.is_dir()
    names = set() if is_other or not folder.exists() else set(os.listdir(folder))
    if is_other or not names <= {HEAD, VECTORS}:
        raise ModelError(
            f"`output` must be a new folder, an empty one or one of shards, and "
            f"{str(folder)!r} holds something else. Give another path."
        )
    return folder


def is_sharded(path: str | os.PathLike[str]) -> bool:
    """Tell whether a folder holds shards.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    sharded : bool
    """
    return Path(path, HEAD, MANIFEST).is_file()


def write_head(
    folder: Path,
    items: Mapping[str, Items],
    links: Links,
    pairs: Mapping[tuple[str, str], ShardedPair],
    views: Mapping[str, ShardedView],
) -> None:
    """Make shards that were written the model of a folder."""
    state = {
        "items": dict(items),
        "links": links,
        "pairs": dict(pairs),
        "views": dict(views),
    }
    about = {view: {"n_items": own.n_items} for view, own in items.items()}
    write_folder(
        folder / HEAD, REGISTRY.encode(state, about={"views": about}), kind=SHARDS
    )
    kept = {file.name for pair in pairs.values() for file in _files(pair)}
    for entry in list(os.scandir(folder / VECTORS)):
        if entry.name not in kept:
            with suppress(OSError):
                os.unlink(entry.path)


def open_shards(
    path: str | os.PathLike[str],
    *,
    views: Mapping[str, Any] | None = None,
    client: Any = None,
    verify: bool = False,
) -> ShardedModel:
    """Open what `fit_shards` wrote, to search in it.

    Parameters
    ----------
    path : str or Path
        The folder.
    views : mapping from str to path or ChunkedView, default=None
        The tables of the fit, for searches with new items.
    client : distributed.Client, default=None
        Its workers, which must see the folder, search the shards at the same time;
        None searches here, one shard after the other.
    verify : bool, default=False
        Compare the checksums of all shards, which reads every byte.

    Returns
    -------
    sharded : ShardedModel
    """
    folder = Path(path).absolute()
    content = read_folder(folder / HEAD, kind=SHARDS)
    with naming_file(MANIFEST):
        state = REGISTRY.decode(content, finish=_check_state)
    for pair in state["pairs"].values():
        for shards in (pair.left, pair.right):
            check_shards(shards, folder / VECTORS, verify=verify)
    tables = _open_tables(views or {}, state["items"], state["views"])
    return ShardedModel(folder / VECTORS, client=client).hold(
        state["items"], state["links"], state["pairs"], state["views"], tables=tables
    )


def _files(pair: ShardedPair) -> tuple[ShardFile, ...]:
    """Return all files of two views."""
    return (*pair.left.files, *pair.right.files)


def _check_state(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a head holds, if all its parts are there and of the same items."""
    if set(state) != set(STATE) or not all(
        kind.accepts(state[name]) for name, kind in STATE.items()
    ):
        raise ModelError(
            f"shards must have {', '.join(STATE)}, got {', '.join(state)!s:.80}. Fit "
            "again."
        )
    sizes = {view: items.n_items for view, items in state["items"].items()}
    fits = set(state["views"]) == set(sizes)
    for view, own in state["views"].items():
        widths = getattr(own.widths, "size", sizes.get(view))
        fits &= len(own.degrees) == widths == sizes.get(view)
    for (left, right), pair in state["pairs"].items():
        found = pair.left.n_items, pair.right.n_items
        fits &= found == (sizes.get(left), sizes.get(right))
    if not fits:
        raise ModelError(
            "shards must be of the views of their folder and of all their items, and "
            "are not. Fit again."
        )
    return state


def _open_tables(
    views: Mapping[str, Any],
    items: Mapping[str, Items],
    sharded: Mapping[str, ShardedView],
) -> dict[str, ChunkedView]:
    """Open the tables of a fit, if they are still those."""
    tables = {}
    for view, own in views.items():
        table = own if isinstance(own, ChunkedView) else open_view(own, name=view)
        if view not in items:
            raise ViewError(
                f"`views` must be those of the shards, {list(items)}, got {view!r}. "
                "Correct the name."
            )
        expected = items[view].n_items, sharded[view].n_features
        if table.shape != expected:
            raise ViewError(
                f"view {view!r} must be the table of the fit, of shape {expected}, got "
                f"{table.shape}. Give its path."
            )
        tables[view] = table
    return tables
