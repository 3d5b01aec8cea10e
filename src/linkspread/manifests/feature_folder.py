"""Features as a folder: arrays, ids and JSON through the room `storage`."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from linkspread.ground.errors import ModelError, require
from linkspread.manifests.collection import KINDS
from linkspread.manifests.contents import Problem
from linkspread.manifests.feature_set import FeatureSet
from linkspread.manifests.packed_texts import PackedTexts, checked_texts, pack_texts
from linkspread.manifests.places import is_picture_name
from linkspread.manifests.states import make_transformer, take_state
from linkspread.storage import Ids, Registry, Stored, read_folder, write_folder
from linkspread.storage.folder import check_target
from linkspread.storage.manifest import FEATURES
from linkspread.storage.schema import AnyArray, AnyMatrix

FORMAT = "features 1"


class FeatureState(TypedDict):
    """What is stored of a `FeatureSet`: numbers, texts, arrays and ids."""

    format: str
    root: str
    views: dict[str, AnyMatrix]
    ids: dict[str, AnyArray]
    labels: dict[str, AnyArray]
    metrics: dict[str, str]
    kinds: dict[str, str]
    contents: dict[str, dict[str, AnyArray]]
    transformers: dict[str, dict[str, str | dict]]
    problems: dict[str, dict[str, AnyArray]]


def save_features(features: FeatureSet, path: str | os.PathLike[str]) -> None:
    """Write features to a folder, whole or not at all."""
    if not features.views:
        raise ModelError(
            "features to be saved must have at least one view, and these have none. "
            "Look at their `problems`."
        )
    check_features_target(path)
    sizes = {view: {"n_items": X.shape[0]} for view, X in features.views.items()}
    about = {"features": sizes, "problems": features.count_problems()}
    write_folder(path, REGISTRY.encode(features, about=about), kind=FEATURES)


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
        return REGISTRY.decode(content, of=FeatureSet)
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


def _take(features: FeatureSet) -> dict[str, Any]:
    """Return texts as arrays, and transformers by their parameters."""
    columns = list(zip(*features.problems, strict=True)) or [()] * len(Problem._fields)
    problems = dict(zip(Problem._fields, columns, strict=True))
    return {
        "format": FORMAT,
        "root": str(features.root),
        "ids": {view: Ids(own) for view, own in features.ids.items()},
        "labels": {view: Ids(own) for view, own in features.labels.items()},
        "contents": {view: _packed(own) for view, own in features.contents.items()},
        "transformers": {
            v: take_state(own) for v, own in features.transformers.items()
        },
        "problems": {name: _packed(own) for name, own in problems.items()},
    }


def _restore(**state: Any) -> FeatureSet:
    """Return features whose parts fit each other."""
    if state["format"] != FORMAT:
        raise ModelError(
            f"features must be of {FORMAT!r}, got {state['format']!r:.80}. Make them "
            "again."
        )
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


REGISTRY = Registry([Stored(FeatureSet, take=_take, make=_restore, state=FeatureState)])
