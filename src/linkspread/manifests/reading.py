"""A collection from a folder or a table, its layout recognised by looking."""

import os
from pathlib import Path

from linkspread.ground.errors import LinkspreadError
from linkspread.manifests.benchmarks import (
    is_corel5k,
    is_wikipedia,
    read_corel5k,
    read_wikipedia,
)
from linkspread.manifests.collection import ItemCollection
from linkspread.manifests.folders import read_files
from linkspread.manifests.places import Places
from linkspread.manifests.tables import TABLE_SUFFIXES, read_table


def read_collection(
    path: str | os.PathLike[str], *, allow_outside: bool = False
) -> ItemCollection:
    r"""Find the items of a collection, without reading any picture or text file.

    Recognised are: a table (CSV, TSV or parquet) with a column `id` and a column for
    each view; a folder of pictures with texts of the same names beside them, also with
    one folder for each class; the layouts of the benchmarks Wikipedia and Corel5k.

    Parameters
    ----------
    path : str or Path
        A folder or a table.
    allow_outside : bool, default=False
        Let absolute paths, ``..`` and symbolic links lead out of the folder of the
        collection. Only for tables and folders that you trust.

    Returns
    -------
    collection : ItemCollection

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from linkspread.manifests import read_collection
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "fish.csv"
    ...     _ = table.write_text("id,title\na,one fish\nb,two fish\n")
    ...     read_collection(table)
    ItemCollection(title: 2 texts)
    """
    path = Path(path)
    if path.is_file():
        return read_table(path, Places(path.parent, allow_outside=allow_outside))
    if not path.is_dir():
        raise LinkspreadError(
            f"a collection must be a folder or a table ({', '.join(TABLE_SUFFIXES)}), "
            f"and there is neither at {str(path)!r}. Correct the path."
        )
    places = Places(path, allow_outside=allow_outside)
    layouts = {
        "Wikipedia": (is_wikipedia, read_wikipedia),
        "Corel5k": (is_corel5k, read_corel5k),
    }
    found = [name for name, (is_it, _) in layouts.items() if is_it(path)]
    if len(found) > 1:
        raise LinkspreadError(
            f"a folder must have the layout of one collection, got {str(path)!r} with "
            f"those of {' and '.join(found)}. Part it into two folders."
        )
    return layouts[found[0]][1](places) if found else read_files(places)
