"""``linkspread info``: what a model, shards or a features folder hold."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from linkspread import cluster
from linkspread.cli.asking import AsJson, Store, console, plain, write_json
from linkspread.cli.input_tables import read_features
from linkspread.cli.model_folder import ModelFolder
from linkspread.cli.model_output import is_model
from linkspread.cluster.sharded_model import HEAD, SHARDS
from linkspread.ground.errors import LinkspreadError, MissingDependencyError
from linkspread.ground.progress import format_bytes
from linkspread.links.collection import LabelCount, count_links
from linkspread.storage.manifest import MODEL, read_manifest

# What is said of a view in words; all else are numbers.
WORDS = ("kind", "metric", "first_id")


def run_info(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a model, of shards or of features.")
    ],
    as_json: AsJson = False,
    store: Store = None,
) -> None:
    """Tell what a model, shards or a features folder hold.

    Of a model: views, links by kind, conflicts, what counted in the fit, the quality
    on held-out items, versions, size, and judgements that are not in it yet.
    """
    if not folder.is_dir():
        raise LinkspreadError(
            "`FOLDER` must be a folder of a model or of features, and there is none at "
            f"{str(folder)!r}. Correct the path."
        )
    if is_model(folder):
        document = _model(folder, store)
    elif cluster.is_sharded(folder):
        document = _shards(folder)
    else:
        document = _features(folder)
    if as_json:
        write_json(document)
        return
    out = console()
    for line in _lines(document):
        out.print(plain(line), soft_wrap=True)


def _model(folder: Path, store: str | None) -> dict[str, Any]:
    """Return what there is to know of a model."""
    opened = ModelFolder(folder, store=store)
    model = opened.load()
    views = {
        view: {**facts, "first_id": model.items_[view].ids[0].item()}
        for view, facts in model.facts_.items()
    }
    report = getattr(model, "report_", None)
    spreads = {} if report is None else report.spreads
    return {
        "kind": "model",
        "folder": str(folder),
        "estimator": type(model).__name__,
        "views": views,
        "links": _links(model.links_),
        "conflicts": len(model.links_.conflicts()),
        "quality": opened.quality(),
        "dimensions": {" and ".join(p): s.rank for p, s in spreads.items()},
        "scores": {" and ".join(p): str(s) for p, s in spreads.items()},
        "summary": getattr(model, "summary_", None),
        "versions": _versions(folder),
        "bytes": _size(folder),
        "judgements": _judgements(opened),
    }


def _shards(folder: Path) -> dict[str, Any]:
    """Return what there is to know of a model in shards."""
    model = cluster.open_shards(folder)
    views = {
        view: {"items": own.n_items, "first_id": own.ids[0].item()}
        for view, own in model.items_.items()
    }
    return {
        "kind": "shards",
        "folder": str(folder),
        "views": views,
        "links": _links(model.links_),
        "conflicts": len(model.links_.conflicts()),
        "dimensions": {
            " and ".join(p): max(own.left.width, own.right.width)
            for p, own in model.pairs_.items()
        },
        "files": {
            " and ".join(p): len(own.left.files) + len(own.right.files)
            for p, own in model.pairs_.items()
        },
        "versions": _versions(folder / HEAD, kind=SHARDS),
        "bytes": _size(folder),
    }


def _versions(folder: Path, kind: str = MODEL) -> dict[str, Any]:
    """Return what wrote a folder."""
    manifest = read_manifest(folder, kind=kind)
    return {
        "linkspread": manifest["library_version"],
        "format": manifest["format_version"],
    }


def _links(links: Any) -> list[dict[str, Any]]:
    """Return how many links there are, by kind."""
    return [
        {"view": own.view, "labels": own.n_items, "classes": own.n_classes}
        if isinstance(own, LabelCount)
        else {"between": list(own.between), "must": own.n_must, "cannot": own.n_cannot}
        for own in count_links(links)
    ]


def _judgements(opened: ModelFolder) -> dict[str, Any] | None:
    """Return how many judgements there are; None without a store."""
    if not opened.has_store():
        return None
    try:
        with opened.store() as store:
            count = store.count()
        return {"stored": count, "pending": opened.pending()}
    except MissingDependencyError as error:
        return {"unknown": str(error)}


def _features(folder: Path) -> dict[str, Any]:
    """Return what there is to know of a features folder."""
    try:
        features = read_features(folder)
    except LinkspreadError as error:
        raise LinkspreadError(
            f"`FOLDER` must be a model or a features folder, and {str(folder)!r} is "
            f"neither ({str(error).partition('. ')[0]}). Make one with `linkspread "
            "fit` or `linkspread featurize`."
        ) from error
    views = {
        view: {
            "items": int(X.shape[0]),
            "features": int(X.shape[1]),
            "kind": features.kinds.get(view),
            "metric": features.metrics.get(view),
            "first_id": str(features.ids[view][0]),
            "labels": _n_labels(features.labels.get(view)),
        }
        for view, X in features.views.items()
    }
    return {
        "kind": "features",
        "folder": str(folder),
        "views": views,
        "shared_ids": _n_shared(features.ids.values()),
        "bytes": _size(folder),
    }


def _n_labels(labels: Any) -> int:
    """Count the items that have a label."""
    return 0 if labels is None else int(np.sum(np.asarray(labels) != ""))


def _n_shared(ids: Iterable[Any]) -> int:
    """Count the ids that all views have."""
    return len(set.intersection(*(set(map(str, own)) for own in ids)))


def _size(folder: Path) -> int:
    """Return the size on disk, of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _lines(document: dict[str, Any]) -> list[str]:
    """Return a document as lines for people."""
    size = format_bytes(document["bytes"])
    kind = document.get("estimator", document["kind"])
    lines = [f"{kind} {document['folder']}, {size} on disk"]
    for view, own in document["views"].items():
        lines.append(f"  {view}: {', '.join(_view_words(own))}")
    if document["kind"] == "features":
        return [*lines, f"  {document['shared_ids']:,} ids are in all views"]
    return lines + _model_lines(document)


def _view_words(own: dict[str, Any]) -> list[str]:
    """Return what is said of a view: numbers first, then words."""
    names = [name for name in WORDS if own.get(name) is not None]
    counts = [f"{own[name]:,} {name}" for name in own if name not in WORDS]
    return [*counts, *(f"{name.replace('_', ' ')} {own[name]}" for name in names)]


def _model_lines(document: dict[str, Any]) -> list[str]:
    """Return what is said of a model only, whole or in shards."""
    lines = []
    for own in document["links"]:
        if "view" in own:
            lines.append(f"  labels of {own['view']}: {own['labels']:,} of "
                         f"{own['classes']:,} classes")  # fmt: skip
        else:
            lines.append(f"  links of {' and '.join(own['between'])}: "
                         f"{own['must']:,} must, {own['cannot']:,} cannot")  # fmt: skip
    lines.append(f"  conflicts: {document['conflicts']:,}")
    for pair, told in document.get("scores", {}).items():
        lines.append(f"  scores of {pair}: {told}")
    if document.get("summary"):
        lines.append(f"  {document['summary']}")
    if document.get("quality"):
        lines.append(f"  quality at the fit: {document['quality']['summary']}")
    for pair, n_files in document.get("files", {}).items():
        width = document["dimensions"][pair]
        lines.append(f"  {pair}: vectors of {width:,} numbers in {n_files:,} files")
    versions = document["versions"]
    lines.append(f"  written by linkspread {versions['linkspread']}, format "
                 f"{versions['format']}")  # fmt: skip
    if "judgements" in document:
        lines.append(f"  judgements: {_told(document['judgements'])}")
    return lines


def _told(judgements: dict[str, Any] | None) -> str:
    """Say how many judgements there are, and how many are not in the model."""
    if judgements is None:
        return "no store"
    if "unknown" in judgements:
        return judgements["unknown"]
    return f"{judgements['stored']:,} in the store, {judgements['pending']:,} pending"
