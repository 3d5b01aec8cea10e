"""Models that were saved, taken up again."""

import os

from linkspread.estimators.link_spreading import LinkSpreading
from linkspread.estimators.saving import REGISTRY, restore_model
from linkspread.storage import read_folder
from linkspread.storage.files import naming_file
from linkspread.storage.manifest import MANIFEST

__all__ = ["load"]


def load(path: str | os.PathLike[str], *, verify: bool = True) -> LinkSpreading:
    """Load a model that :meth:`LinkSpreading.save` wrote.

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
    model : LinkSpreading
        Fitted. Its arrays are mapped into memory, read from the disk when they are
        needed, and shared by all processes that load the model.

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
        return REGISTRY.decode(
            content, finish=lambda state: restore_model(LinkSpreading, state)
        )
