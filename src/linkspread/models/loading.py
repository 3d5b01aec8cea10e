"""Models that were saved, taken up again."""

import os
from collections.abc import Mapping
from typing import Any

from linkspread.ground.errors import ModelError
from linkspread.models.cross_view_search import CrossViewSearch
from linkspread.models.link_spreading import LinkSpreading
from linkspread.models.saving import restore_model
from linkspread.models.stored_search import (
    SEARCH,
    SEARCH_REGISTRY,
    restore_search,
)
from linkspread.storage import read_folder
from linkspread.storage.files import naming_file
from linkspread.storage.manifest import MANIFEST


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Any:
    """Load a model that :meth:`CrossViewSearch.save` wrote, or that of LinkSpreading.

    Nothing is executed, and everything is checked before it is used: a folder that
    was damaged or made up is refused with a sentence that names the file.

    Parameters
    ----------
    path : str or Path
        The folder.
    verify : bool, default=True
        Compare the checksums of all files: a second or two for each gigabyte.

    Returns
    -------
    model : CrossViewSearch or LinkSpreading
        Fitted, the one that was saved. Its arrays are mapped into memory, read from
        the disk when they are needed, and shared by all processes that load the model.

    Examples
    --------
    >>> import tempfile
    >>> import linkspread as ls
    >>> data = ls.datasets.make_views(90, n_classes=3, random_state=0)
    >>> model = ls.LinkSpreading(n_neighbors=10).fit(data.views(), data.labels)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder)
    ...     again = ls.load(folder)
    >>> again.search(7, source="text", target="image", n_results=3)[0].shape
    (3,)
    """
    content = read_folder(path, verify=verify)
    with naming_file(MANIFEST):
        return SEARCH_REGISTRY.decode(content, finish=_restore)


def _restore(state: Mapping[str, Any]) -> Any:
    """Return the model of the kind that was stored."""
    if "model" not in state:
        return restore_model(LinkSpreading, state)
    if state["model"] != SEARCH:
        raise ModelError(
            f"a model must be of a kind that linkspread knows, got "
            f"{state['model']!r:.60}. Install the version that saved it."
        )
    return restore_search(CrossViewSearch, state)
