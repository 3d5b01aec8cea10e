"""Up to which row of its store a saved model knows: the file absorbed.json.

A model and this file cannot be replaced in one step. So the number that is to come is
written down before the model is saved, with the checksum of the manifest that goes:
whoever finds that manifest gone knows that the save was made.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from linkspread.ground.errors import ModelError
from linkspread.storage.files import sync_folder, write_file
from linkspread.storage.manifest import MANIFEST

NAME, LOCK = "absorbed.json", ".absorbing.lock"


@dataclass(frozen=True)
class Absorbed:
    """Which rows of a store are in a model."""

    number: int = 0
    row: str = ""


def read_absorbed(folder: Path) -> Absorbed:
    """Return what a model folder says of its judgements, 0 where it says nothing."""
    try:
        document = json.loads((folder / NAME).read_text(encoding="utf-8"))
        state = _state(document)
        if "next" in document and document["before"] != manifest_checksum(folder):
            return _state(document["next"])
        return state
    except FileNotFoundError:
        return Absorbed()
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f'{NAME} must hold {{"number": n}}, the last row of the store that is in '
            f"the model, and it does not. Fit the model again, which writes it anew."
        ) from error


def write_absorbed(
    folder: Path, state: Absorbed, *, coming: Absorbed | None = None
) -> None:
    """Write which rows are in the model, and perhaps which will be after a save."""
    document: dict[str, Any] = asdict(state)
    if coming is not None:
        document |= {"next": asdict(coming), "before": manifest_checksum(folder)}
    data = json.dumps(document).encode()
    write_file(folder, lambda file: file.write(data), lambda entry: NAME)
    sync_folder(folder)


def manifest_checksum(folder: Path) -> str:
    """Return what tells one save of a model from another."""
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def _state(document: dict[str, Any]) -> Absorbed:
    """Return a number and the id of its row as they were written."""
    number, row = document["number"], document.get("row", "")
    if type(number) is not int or number < 0 or not isinstance(row, str):
        raise ValueError(number)
    return Absorbed(number, row)
