"""``linkspread info``: what a model, shards or a features folder hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from linkspread.cli import options
from linkspread.cli.opening import is_model, open_folder
from linkspread.cli.output import print_json, print_line
from linkspread.ground.errors import LinkspreadError, MissingDependencyError

# Facts on a view that are words; all others are numbers.
WORDS = ("kind", "metric", "first_id")


def run_info(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a model, of shards or of features.")
    ],
    as_json: options.AsJson = False,
    store: options.Store = None,
) -> None:
    """Show what a model, shards or a features folder hold.

    For a model: views, links by kind, conflicts, the choices of the fit, its quality on
    held-out items, versions, size and pending judgements.
    """
    from linkspread.cluster.sharded_model import is_sharded

    if not folder.is_dir():
        raise LinkspreadError(
            "`FOLDER` must be a folder of a model or of features, and there is none at "
            f"{str(folder)!r}. Correct the path."
        )
    if is_model(folder):
        document = _model(folder, store)
    elif is_sharded(folder):
        document = _shards(folder)
    else:
        document = _features(folder)
    if "versions" in document:
        wrote = document["versions"]
        names = {"linkspread": "library_version", "format": "format_version"}
        document["versions"] = {name: wrote[key] for name, key in names.items()}
    files = (path for path in folder.rglob("*") if path.is_file())
    document["bytes"] = sum(path.stat().st_size for path in files)
    if as_json:
        print_json(document)
        return
    for line in _lines(document):
        print_line(line)


def _model(folder: Path, store: str | None) -> dict[str, Any]:
    """Describe a model."""
    from linkspread.storage.folder import read_manifest

    opened = open_folder(folder, store)
    model = opened.model
    report = getattr(model, "report_", None)
    spreads = {} if report is None else report.spreads
    judgements: dict[str, Any] | None = None
    if opened.has_store():
        try:
            with opened.store() as rows:
                judgements = {"stored": rows.count(), "pending": opened.pending()}
        except MissingDependencyError as error:
            judgements = {"unknown": str(error)}
    return {
        "kind": "model",
        "folder": str(folder),
        "estimator": type(model).__name__,
        "views": {
            view: {**facts, "first_id": model.items_[view].ids[0].item()}
            for view, facts in model.facts_.items()
        },
        **_links(model.links_),
        "dimensions": {" and ".join(p): s.rank for p, s in spreads.items()},
        "scores": {" and ".join(p): str(s) for p, s in spreads.items()},
        "summary": getattr(model, "summary_", None),
        "versions": read_manifest(folder),
        "judgements": judgements,
    }


def _shards(folder: Path) -> dict[str, Any]:
    """Describe a model in shards."""
    from linkspread.cluster.sharded_model import HEAD, SHARDS, open_shards
    from linkspread.storage.folder import read_manifest

    model = open_shards(folder, verify=False)  # their vectors are not used
    pairs = {" and ".join(names): own for names, own in model.pairs_.items()}
    return {
        "kind": "shards",
        "folder": str(folder),
        "views": {
            view: {"items": own.n_items, "first_id": own.ids[0].item()}
            for view, own in model.items_.items()
        },
        **_links(model.links_),
        "dimensions": {
            name: max(own.left.width, own.right.width) for name, own in pairs.items()
        },
        "files": {
            name: len(own.left.files) + len(own.right.files)
            for name, own in pairs.items()
        },
        "versions": read_manifest(folder / HEAD, kind=SHARDS),
    }


def _links(links: Any) -> dict[str, Any]:
    """Count links by kind, and conflicts."""
    from linkspread.links.collection import LabelCount, count_links

    counts = [
        {"view": own.view, "labels": own.n_items, "classes": own.n_classes}
        if isinstance(own, LabelCount)
        else {"between": list(own.between), "must": own.n_must, "cannot": own.n_cannot}
        for own in count_links(links)
    ]
    return {"links": counts, "conflicts": len(links.conflicts())}


def _features(folder: Path) -> dict[str, Any]:
    """Describe a features folder."""
    from linkspread.manifests import load_features

    try:
        features = load_features(folder)
    except LinkspreadError as error:
        raise LinkspreadError(
            f"`FOLDER` must be a model or a features folder, and {str(folder)!r} is "
            f"neither ({str(error).partition('. ')[0]}). Make one with `linkspread "
            "fit` or `linkspread featurize`."
        ) from error
    views = {}
    for view, X in features.views.items():
        labels = features.labels.get(view)
        views[view] = {
            "items": int(X.shape[0]),
            "features": int(X.shape[1]),
            "kind": features.kinds.get(view),
            "metric": features.metrics.get(view),
            "first_id": str(features.ids[view][0]),
            "labels": 0 if labels is None else sum(own != "" for own in labels),
        }
    ids = [set(map(str, own)) for own in features.ids.values()]
    n_shared = len(set.intersection(*ids))
    about = {"kind": "features", "folder": str(folder), "views": views}
    return about | {"shared_ids": n_shared}


def _lines(document: dict[str, Any]) -> list[str]:
    """Return a document as lines for people."""
    from linkspread.ground.progress import format_bytes

    size = format_bytes(document["bytes"])
    kind = document.get("estimator", document["kind"])
    lines = [f"{kind} {document['folder']}, {size} on disk"]
    for view, own in document["views"].items():
        counts = [f"{own[name]:,} {name}" for name in own if name not in WORDS]
        words = [f"{n.replace('_', ' ')} {own[n]}" for n in WORDS if own.get(n)]
        lines.append(f"  {view}: {', '.join(counts + words)}")
    if document["kind"] == "features":
        return [*lines, f"  {document['shared_ids']:,} ids are in all views"]
    for own in document["links"]:
        if "view" in own:
            count = f"{own['labels']:,} of {own['classes']:,} classes"
            lines.append(f"  labels of {own['view']}: {count}")
        else:
            count = f"{own['must']:,} must, {own['cannot']:,} cannot"
            lines.append(f"  links of {' and '.join(own['between'])}: {count}")
    lines.append(f"  conflicts: {document['conflicts']:,}")
    scores = document.get("scores", {})
    lines += [f"  scores of {pair}: {own}" for pair, own in scores.items()]
    if document.get("summary"):
        lines.append(f"  {document['summary']}")
    for pair, n_files in document.get("files", {}).items():
        width = document["dimensions"][pair]
        lines.append(f"  {pair}: vectors of {width:,} numbers in {n_files:,} files")
    wrote = "  written by linkspread {linkspread}, format {format}"
    lines.append(wrote.format(**document["versions"]))
    if "judgements" in document:
        stored: dict[str, Any] = document["judgements"] or {"unknown": "no store"}
        text = stored.get("unknown") or (
            f"{stored['stored']:,} in the store, {stored['pending']:,} pending"
        )
        lines.append(f"  judgements: {text}")
    return lines
