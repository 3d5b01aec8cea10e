"""Export rankings as a run file of TREC, and judged pairs as a table.

trec_eval, ir_measures and ranx read runs; `Links.from_pairs` reads the pairs.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.exchange.vectors import check_model
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkspreadError
from linkspread.models.vector_search import VectorSearch
from linkspread.storage import PairColumns
from linkspread.storage.files import FilePath, new_file

Array = np.ndarray

# Lines that are in memory at a time.
BLOCK_LINES = 1 << 17


def write_run(
    model: VectorSearch,
    path: FilePath,
    *,
    source: str,
    target: str,
    queries: Any = None,
    n_results: int = 1000,
    tag: str = "linkspread",
    overwrite: bool = False,
) -> Path:
    """Write the best items for each query to a run file of TREC.

    A line is ``query Q0 item rank score tag``, separated by spaces; ranks count from 1.
    Ids with white space are refused.

    Parameters
    ----------
    model : CrossViewSearch, LinkSpreading, or a baseline of `studies.baselines`
        Fitted.
    path : path-like
    source, target : str
        View of the queries and view that is searched.
    queries : array-like of ids, default=None
        Distinct items of `source`; None takes all.
    n_results : int, default=1000
        Results per query; fewer are written where there are fewer items.
    tag : str, default="linkspread"
        Name of the run.
    overwrite : bool, default=False
        Whether to replace an existing file.

    Returns
    -------
    path : Path
        The file written.
    """
    check_model(model)
    check_count(n_results, name="n_results", remedy="1000 is usual at TREC.")
    _check_words([tag], "`tag`")
    # An empty search checks the model and the views before anything is written.
    model.search([], source=source, target=target)
    chosen = _choose_queries(model, source, queries)
    _check_words(model.items_[target].ids, f"ids of view {target!r}")
    with new_file(path, overwrite=overwrite) as temporary:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            step = max(1, BLOCK_LINES // n_results)
            for start in range(0, len(chosen), step):
                block = chosen[start : start + step]
                ids, scores = model.search(
                    block, source=source, target=target, n_results=n_results
                )
                file.writelines(_lines(block, ids, scores, tag))
    return Path(path)


def _choose_queries(model: VectorSearch, source: str, queries: Any) -> Array:
    """Return the ids of the queries; refuse repeated ones."""
    items = model.items_[source]
    if queries is None:
        chosen = items.ids
    else:
        chosen = items.ids[items.positions(queries, what="`queries`")]
        values, counts = np.unique(chosen, return_counts=True)
        if (counts > 1).any():
            raise LinkspreadError(
                "`queries` must be distinct for a run file, got "
                f"{values[counts > 1][0]!s} more than once. Remove the repetition."
            )
    _check_words(chosen, f"ids of view {source!r}")
    return chosen


def _check_words(words: Any, what: str) -> None:
    """Refuse texts that are empty or contain white space."""
    for word in np.asarray(words).tolist():
        if isinstance(word, str) and word.split() != [word]:
            raise LinkspreadError(
                f"{what} must be without white space in a run file, got {word!r}. "
                "Use '_' in its place, or another format."
            )


def _lines(queries: Array, ids: Array, scores: Array, tag: str) -> Iterator[str]:
    """Yield the lines of some queries, with all digits of scores."""
    digits = scores.astype(str).tolist()
    for query, found, row in zip(queries.tolist(), ids.tolist(), digits, strict=True):
        for rank, (item, score) in enumerate(zip(found, row, strict=True), start=1):
            yield f"{query} Q0 {item} {rank} {score} {tag}\n"


def write_pairs(
    pairs: PairColumns,
    path: FilePath,
    *,
    between: tuple[str, str],
    overwrite: bool = False,
) -> Path:
    """Write judged pairs to a CSV or parquet file.

    Parameters
    ----------
    pairs : PairColumns
        From :meth:`LinkStore.pairs <linkspread.storage.LinkStore.pairs>`.
    path : path-like
        Ends in .csv, .tsv or .parquet.
    between : tuple of two str
        The views, which name the columns of ids.
    overwrite : bool, default=False
        Whether to replace an existing file.

    Returns
    -------
    path : Path
    """
    path = Path(path)
    names = [*between, "verdict", "weight"]
    if between[0] == between[1]:
        # Names of columns must differ.
        names[1] = f"{between[0]} 2"
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".tsv", ".parquet"):
        raise LinkspreadError(
            f"a file of pairs must end in .csv, .tsv or .parquet, got {path.name!r}. "
            "Choose one of these."
        )
    verdicts = np.where(pairs.weight > 0, "must", "cannot")
    columns = pairs.left, pairs.right, verdicts, np.abs(pairs.weight)
    values = [column.tolist() for column in columns]
    with new_file(path, overwrite=overwrite) as file:
        if suffix == ".parquet":
            from pyarrow import parquet, table

            parquet.write_table(table(values, names=names), file)
            return path
        with open(file, "w", encoding="utf-8", newline="") as text:
            delimiter = "\t" if suffix == ".tsv" else ","
            writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
            writer.writerow(names)
            writer.writerows(zip(*values, strict=True))
    return path
