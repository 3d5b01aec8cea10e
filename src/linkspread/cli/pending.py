"""Judgements that a model does not have yet: told, and taken up."""

import sys
from typing import Any

from linkspread.cli.model_folder import AbsorbedCounts, ModelFolder
from linkspread.ground.errors import MissingDependencyError, StoreError


def tell_pending(folder: ModelFolder) -> None:
    """Say on standard error how many judgements are not in the model yet.

    Who only asks the model is not stopped by a store that cannot be read.
    """
    try:
        n_pending = folder.pending()
    except (StoreError, MissingDependencyError) as error:
        text = "it is unknown whether the model has all judgements"
        print(f"linkspread: {text}: {error}", file=sys.stderr)
        return
    if n_pending:
        are = "judgement is" if n_pending == 1 else "judgements are"
        print(
            f"linkspread: {n_pending:,} {are} not in the model yet; "
            f"`linkspread links absorb {folder.path}` takes up what is missing.",
            file=sys.stderr,
        )


def absorb_and_tell(folder: ModelFolder, model: Any) -> AbsorbedCounts:
    """Bring a model up to date, and say what it took up."""
    counts = folder.absorb(model)
    removed = f", {counts.removed:,} removed" if counts.removed else ""
    text = f"The model is up to date: {counts.added:,} added{removed}."
    print(text, file=sys.stderr)
    if counts.unknown:
        print(
            f"linkspread: {counts.unknown:,} judged pairs name items that the model "
            "does not have, and were left out.",
            file=sys.stderr,
        )
    return counts
