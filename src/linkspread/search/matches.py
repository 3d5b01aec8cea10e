"""The result of matching two views: pairs, probabilities, and what has no partner."""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.ground.checks import check_name
from linkspread.ground.errors import FewLinksError, LinkspreadError
from linkspread.ground.notebook import html_table
from linkspread.search.matching import MIN_JUDGED, MIN_OF_A_KIND, Candidates
from linkspread.storage.files import FilePath, new_file

Array = np.ndarray

SUFFIXES = (".parquet", ".csv", ".json")
# Enough is known if the next answers are expected to put right less than so many pairs.
N_NEXT, ENOUGH = 20, 2.0


@dataclass(frozen=True)
class Rated:
    """All candidates, with the probabilities that the matches were chosen by."""

    pairs: Candidates
    ids: tuple[Array, Array]  # of all items of both views
    scores: Array
    probabilities: Array  # 1 and 0 for judged pairs and what they exclude
    is_open: Array  # neither judged nor excluded
    is_match: Array


@dataclass(frozen=True)
class Matches:
    """Which items of two views are the same, the most probable first.

    Attributes
    ----------
    source, target : str
        The views.
    source_ids, target_ids : ndarray of shape (n_matches,)
    scores : ndarray of shape (n_matches,)
    probabilities : ndarray of shape (n_matches,), or None
        Of being right; None with too few judgements to calibrate them.
    is_judged : ndarray of bool of shape (n_matches,)
        Whether a judgement says so.
    unmatched : dict from str to ndarray
        For both views, the ids of items without a match.
    threshold : float
        Smallest probability of a match, or 0.
    n_judged : int
        Judged candidates that the probabilities were fitted to.
    only_must : bool, default=False
        Whether none of them is a cannot-link. Probabilities then hold for items that
        have a partner.
    rated : Rated, default=None
        All candidates with their probabilities.
    """

    source: str
    target: str
    source_ids: Array
    target_ids: Array
    scores: Array
    probabilities: Array | None
    is_judged: Array
    unmatched: Mapping[str, Array]
    threshold: float
    n_judged: int
    only_must: bool = False
    rated: Rated | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.source_ids)

    @property
    def precision(self) -> float | None:
        """Expected share of matches that are right."""
        if self.probabilities is None or not len(self):
            return None
        return float(self.probabilities.mean())

    @property
    def recall(self) -> float | None:
        """Expected share of the partners among the candidates that were matched."""
        if self.probabilities is None or self.rated is None or not len(self):
            return None
        total = float(self.rated.probabilities.sum())
        return min(float(self.probabilities.sum()) / total, 1.0) if total else None

    @property
    def gain(self) -> float | None:
        """Number of pairs that the next 20 answers are expected to put right."""
        if self.probabilities is None or self.rated is None or not len(self):
            return None
        p = self.rated.probabilities[self.rated.is_open]
        doubts = np.sort(np.minimum(p, 1 - p))[-N_NEXT:]
        return float(doubts.sum())

    @property
    def is_enough(self) -> bool:
        """Whether the next 20 answers are expected to put right less than 2 pairs."""
        return self.gain is not None and not self.only_must and self.gain < ENOUGH

    def __str__(self) -> str:
        words = [f"{len(self):,} matches of {self.source} and {self.target}"]
        words += [f"{len(own):,} of {v} without" for v, own in self.unmatched.items()]
        text = ", ".join(words) + "."
        if self.probabilities is None:
            return (
                f"{text} They are not calibrated: {self.n_judged:,} candidates are "
                f"judged, and probabilities need {MIN_JUDGED} of both verdicts."
            )
        if self.precision is not None and self.recall is not None:
            text += (
                f" Expected: {self.precision:.1%} of them are right, and "
                f"{self.recall:.1%} of all partners are found, from {self.n_judged:,} "
                "judgements."
            )
        if self.only_must:
            text += (
                " No pair is judged not to belong together, so this holds for items "
                "that have a partner."
            )
        elif self.is_enough:
            text += (
                f" Enough is known: the next {N_NEXT} answers would put right less "
                f"than {ENOUGH:.0f} pairs."
            )
        elif self.gain is not None:
            right = f"{self.gain:.0f} pairs"
            text += f" The next {N_NEXT} answers would put right about {right}."
        return text

    def _repr_html_(self) -> str:
        columns = [self.source, self.target, "score", "probability"]
        known = [self.source_ids, self.target_ids, self.scores]
        if self.probabilities is not None:
            known.append(self.probabilities)
        rows = zip(*known, strict=True)
        table = html_table("", columns[: len(known)], rows, n_rows=len(self))
        return f"<p>{escape(str(self))}</p>{table}"

    def to_frame(self, backend: str = "pandas", *, unmatched: bool = False) -> Any:
        """Return the matches as a DataFrame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
        unmatched : bool, default=False
            Whether to add a row for each item without a match, whose other id, score
            and probability are missing.

        Returns
        -------
        frame : DataFrame
            With the columns `source`, `target` named after the views, `score`,
            `probability` and `judged`.
        """
        import narwhals.stable.v1 as nw
        import pyarrow

        check_name(backend, ("pandas", "polars", "pyarrow"), name="backend")
        table = pyarrow.table(self._columns(unmatched))
        if backend == "pyarrow":
            return table
        frame = nw.from_native(table, eager_only=True)
        return frame.to_pandas() if backend == "pandas" else frame.to_polars()

    def write(
        self, path: FilePath, *, unmatched: bool = True, overwrite: bool = False
    ) -> Path:
        """Write the matches to a file, and the items without one.

        Parameters
        ----------
        path : path-like
            Ends in .parquet, .csv or .json.
        unmatched : bool, default=True
            Whether to write a row for each item without a match.
        overwrite : bool, default=False
            Whether to replace an existing file.

        Returns
        -------
        path : Path
        """
        path = Path(path)
        suffix = check_output(path)
        with new_file(path, overwrite=overwrite) as temporary:
            if suffix == ".parquet":
                import pyarrow
                from pyarrow import parquet

                parquet.write_table(pyarrow.table(self._columns(unmatched)), temporary)
            elif suffix == ".csv":
                columns = self._columns(unmatched)
                with temporary.open("w", encoding="utf-8", newline="") as file:
                    writer = csv.writer(file)
                    writer.writerow(columns)
                    writer.writerows(zip(*columns.values(), strict=True))
            else:
                text = json.dumps(self.document(unmatched), ensure_ascii=False)
                temporary.write_text(text + "\n", encoding="utf-8")
        return path

    def document(self, unmatched: bool = True) -> dict[str, Any]:
        """Return all of it as values of JSON."""
        columns = self._columns(False)
        rows = zip(*columns.values(), strict=True)
        found: dict[str, Any] = {
            "summary": str(self),
            "threshold": self.threshold,
            "precision": self.precision,
            "recall": self.recall,
            "matches": [dict(zip(columns, row, strict=True)) for row in rows],
        }
        if unmatched:
            found["unmatched"] = {v: own.tolist() for v, own in self.unmatched.items()}
        return found

    def _columns(self, unmatched: bool) -> dict[str, list[Any]]:
        """Return the columns of the table, each with a value per row."""
        n = len(self)
        probabilities = [None] * n
        if self.probabilities is not None:
            probabilities = self.probabilities.tolist()
        columns: dict[str, list[Any]] = {
            self.source: self.source_ids.tolist(),
            self.target: self.target_ids.tolist(),
            "score": self.scores.tolist(),
            "probability": probabilities,
            "judged": self.is_judged.tolist(),
        }
        for view, ids in self.unmatched.items() if unmatched else ():
            for name, column in columns.items():
                own = ids.tolist() if name == view else [None] * len(ids)
                column += own
        return columns


def check_output(path: Path) -> str:
    """Return the ending of a file of matches; refuse others."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise LinkspreadError(
            f"a file of matches must end in {', '.join(SUFFIXES)}, got {path.name!r}. "
            "Change the ending."
        )
    return suffix


def choose_threshold(
    probabilities: Array,
    total: float,
    *,
    precision: float | None = None,
    threshold: float | None = None,
) -> float:
    """Return the smallest probability of a match.

    By default it has the largest expected F1, ``2 sum(p) / (n + total)``; `precision`
    takes as many as have this mean.
    """
    if threshold is not None:
        return threshold
    p = np.sort(probabilities)[::-1]
    if not len(p):
        return 0.0
    sums, counts = np.cumsum(p), np.arange(1, len(p) + 1)
    if precision is not None:
        reached = np.flatnonzero(sums / counts >= precision)
        return float(p[reached[-1]]) if len(reached) else 1.0
    return float(p[np.argmax(2 * sums / (counts + total))])


def check_limits(precision: Any, threshold: Any, *, is_calibrated: bool) -> None:
    """Refuse wanted precisions and thresholds that are no shares, or unknown."""
    for name, value in (("precision", precision), ("threshold", threshold)):
        if value is None:
            continue
        if not isinstance(value, int | float) or not 0 < value <= 1:
            raise LinkspreadError(
                f"`{name}` must be above 0 and at most 1, got {value!r:.60}. Give "
                "0.95, or leave it out."
            )
        if not is_calibrated:
            raise FewLinksError(
                f"`{name}` needs at least {MIN_JUDGED} judged candidates, "
                f"{MIN_OF_A_KIND} of them must-links, got fewer. Judge more pairs, or "
                "leave it out."
            )
    if precision is not None and threshold is not None:
        raise LinkspreadError(
            "`precision` and `threshold` must not both be given, got "
            f"{precision} and {threshold}. Leave one out."
        )
