"""Models in shards on the command line: fitted by a cluster, searched here."""

import warnings
from pathlib import Path

from linkspread import cluster
from linkspread.cli.inputs import Inputs
from linkspread.cli.outputs import check_writable
from linkspread.ground.errors import ColumnWarning, LinkspreadError
from linkspread.models import LinkSpreading


def check_shards_output(path: str | None, *, overwrite: bool) -> Path:
    """Return where shards may be written, before anything is computed."""
    if path is None:
        raise LinkspreadError(
            "`--output` must be a folder for the shards, and was not given. Add "
            "--output model/."
        )
    folder = cluster.check_output(path)
    check_writable(folder)
    if cluster.is_sharded(folder) and not overwrite:
        raise LinkspreadError(
            f"`--output` must be a new folder, and {str(folder)!r} holds shards. Add "
            "--overwrite to replace them."
        )
    return folder


def fit_in_shards(
    model: LinkSpreading, inputs: Inputs, scheduler: str | None, folder: Path
) -> str:
    """Fit by the workers of a cluster, which write the model."""
    if scheduler is None:
        raise LinkspreadError(
            "`--shards` must be written by the workers of a cluster, and no "
            "`--scheduler` was given. Add its address, or leave --shards out."
        )
    with cluster.connect(scheduler) as client, warnings.catch_warnings():
        # The notes have these already, with the option to type.
        warnings.simplefilter("ignore", ColumnWarning)
        sharded = cluster.fit_shards(
            model,
            inputs.tables,
            inputs.some_links,
            client=client,
            output=folder,
            folder=shared_folder(folder),
        )
    n_files = sum(
        len(pair.left.files) + len(pair.right.files) for pair in sharded.pairs_.values()
    )
    return f"wrote {n_files:,} shards to {folder}, for `linkspread search`."


def shared_folder(folder: Path) -> Path | None:
    """Return a folder on the disk of the model, which workers most likely see."""
    return folder.parent if folder.parent.is_dir() else None
