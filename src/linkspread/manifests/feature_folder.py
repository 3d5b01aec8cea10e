"""Features as a folder: arrays, ids and JSON through the room `storage`."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.ground.errors import ModelError, require
from linkspread.manifests.collection import KINDS
from linkspread.manifests.contents import Problem
from linkspread.manifests.feature_set import FeatureSet
from linkspread.manifests.packed_texts import PackedTexts, checked_texts, pack_texts
from linkspread.manifests.places import is_picture_name
from linkspread.manifests.states import make_transformer, take_state
from linkspread.storage import Ids, Registry, read_folder, write_folder
from linkspread.storage.folder import check_target
from linkspread.storage.kinds import TEXT, array, csr, instance, mapping
from linkspread.storage.manifest import FEATURES

# Nothing but numbers, texts, arrays and ids: no class needs to be known.
REGISTRY = Registry(())
FORMAT = "features 1"
IDS = instance(np.ndarray)
FIELDS = {
    "format": TEXT,
    "root": TEXT,
    "views": mapping(array(2) | csr()),
    "ids": mapping(IDS),
    "labels": mapping(IDS),
    "metrics": mapping(TEXT),
    "kinds": mapping(TEXT),
    "contents": mapping(mapping(IDS)),
    "transformers": mapping(mapping(TEXT | instance(dict))),
    "problems": mapping(mapping(IDS)),
}


def save_features(features: FeatureSet, path: str | os.PathLike[str]) -> None:
    """Write features to a folder, whole or not at all."""
    if not features.views:
        raise ModelError(
            "features to be saved must have at least one view, and these have none. "
            "Look at their `problems`."
        )
    check_features_target(path)
    columns = list(zip(*features.problems, strict=True)) or [()] * len(Problem._fields)
    problems = dict(zip(Problem._fields, columns, strict=True))
    state = {
        "format": FORMAT,
        "root": str(features.root),
        "views": features.views,
        "ids": {view: Ids(own) for view, own in features.ids.items()},
        "labels": {view: Ids(own) for view, own in features.labels.items()},
        "metrics": features.metrics,
        "kinds": features.kinds,
        "contents": {view: _packed(own) for view, own in features.contents.items()},
        "transformers": {
            v: take_state(own) for v, own in features.transformers.items()
        },
        "problems": {name: _packed(own) for name, own in problems.items()},
    }
    sizes = {view: {"n_items": X.shape[0]} for view, X in features.views.items()}
    about = {"features": sizes, "problems": features.count_problems()}
    write_folder(path, REGISTRY.encode(state, about=about), kind=FEATURES)


def load_features(path: str | os.PathLike[str], *, verify: bool = True) -> FeatureSet:
    """Load features that `linkspread featurize` or `FeatureSet.save` wrote.

    The folder is read as if it came from a stranger: nothing in it is executed, and
    everything is checked before it is used.

    Parameters
    ----------
    path : str or Path
    verify : bool, default=True
        Compare the checksums of all files: a second or two for each gigabyte.

    Returns
    -------
    features : FeatureSet
        Its arrays are mapped into memory and read when they are needed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from linkspread.manifests import featurize, load_features
    >>> from linkspread.manifests import ItemCollection, ViewItems
    >>> texts = ViewItems("text", np.array(["a", "b"]), ["one fish", "two fish"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     featurize(ItemCollection({"title": texts}, Path())).save(folder)
    ...     features = load_features(folder)
    >>> features, features.contents["title"][0]
    (FeatureSet(title: 2 x 3), 'one fish')
    """
    try:
        content = read_folder(path, kind=FEATURES, verify=verify)
        return REGISTRY.decode(content, finish=_restore)
    except ModelError as error:
        raise ModelError(
            f"{str(path)!r} must hold features as `linkspread featurize` writes them: "
            f"{error}"
        ) from error


def check_features_target(path: str | os.PathLike[str]) -> None:
    """Refuse a folder that holds a model or other files, before anything is done."""
    # Said now if it is missing, and not after an hour of work.
    require("pyarrow", extra="tables", purpose="A features folder")
    check_target(Path(path), kind=FEATURES)


def _restore(state: Mapping[str, Any]) -> FeatureSet:
    """Return features whose parts fit each other."""
    _check_fields(state)
    views, kinds = state["views"], state["kinds"]
    contents = {view: _unpacked(own) for view, own in state["contents"].items()}
    columns = [list(_unpacked(state["problems"][name])) for name in Problem._fields]
    transformers = {
        v: make_transformer(own) for v, own in state["transformers"].items()
    }
    for what in _misfits(state, contents):
        raise ModelError(
            f"{what} of features must be of all views and of all their items, and are "
            "not. Make the features again."
        )
    return FeatureSet(
        views=views,
        ids=state["ids"],
        labels=state["labels"],
        metrics=state["metrics"],
        kinds=kinds,
        contents={view: own for view, own in contents.items()},
        root=Path(state["root"]),
        transformers=transformers,
        problems=[Problem(*own) for own in zip(*columns, strict=True)],
    )


def _check_fields(state: Mapping[str, Any]) -> None:
    """Refuse what lacks something, or has something else in its place."""
    if set(state) != set(FIELDS) or state["format"] != FORMAT:
        raise ModelError(
            f"features must have {', '.join(FIELDS)} of {FORMAT!r}, got "
            f"{', '.join(state)!s:.80}. Give a folder of features, or make them again."
        )
    for name, kind in FIELDS.items():
        if not kind.accepts(state[name]):
            raise ModelError(
                f"`{name}` must be {kind.name}, got {type(state[name]).__name__}. Make "
                "the features again."
            )


def _misfits(state: Mapping[str, Any], contents: Mapping[str, PackedTexts]) -> Any:
    """Yield the parts that are not of the views and their items."""
    sizes = {view: X.shape[0] for view, X in state["views"].items()}
    if not sizes or min(sizes.values()) == 0:
        yield "rows"
    for name in ("ids", "metrics", "kinds", "transformers"):
        if set(state[name]) != set(sizes):
            yield name
    if not all(_are_texts(own, sizes.get(v)) for v, own in state["ids"].items()):
        yield "ids"
    if any(len(np.unique(own)) < len(own) for own in state["ids"].values()):
        yield "ids"
    if not all(_are_texts(own, sizes.get(v)) for v, own in state["labels"].items()):
        yield "labels"
    if {view: len(own) for view, own in contents.items()} != sizes:
        yield "contents"
    if not set(state["kinds"].values()) <= set(KINDS):
        yield "kinds"
    if any(_names_others(own) for v, own in contents.items() if _is_picture(state, v)):
        yield "paths of pictures"


def _are_texts(values: np.ndarray, n: int | None) -> bool:
    """Tell whether an array is of as many texts."""
    return values.ndim == 1 and values.dtype.kind == "U" and len(values) == n


def _is_picture(state: Mapping[str, Any], view: str) -> bool:
    """Tell whether a view is of pictures."""
    return bool(state["kinds"].get(view) == "picture")


def _names_others(paths: PackedTexts) -> bool:
    """Tell whether a path could make a page show something that is no picture."""
    return any(
        not is_picture_name(path) or ".." in path.split("/") or "\0" in path
        for path in paths
    )


def _packed(texts: Any) -> dict[str, np.ndarray]:
    """Return texts as two arrays."""
    packed = texts if isinstance(texts, PackedTexts) else pack_texts(list(texts))
    return {"bytes": packed.data, "ends": packed.ends}


def _unpacked(parts: Mapping[str, np.ndarray]) -> PackedTexts:
    """Return the texts of two arrays, all of which can be decoded."""
    texts = checked_texts(parts["bytes"], parts["ends"])
    for _ in texts:
        pass
    return texts
