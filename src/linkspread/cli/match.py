"""``linkspread match``: which rows of two tables, or items of a model, are the same."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkspread.cli import options
from linkspread.cli.opening import (
    apply_judgements,
    choose_views,
    default_who,
    open_model,
    read_contents,
)
from linkspread.cli.output import (
    check_writable,
    clean,
    notice,
    print_json,
    print_line,
    print_table,
    shorten,
)
from linkspread.ground.errors import LinkspreadError, ViewError
from linkspread.ground.progress import format_bytes

if TYPE_CHECKING:
    from linkspread.search import Matches

# Pairs that are asked between two fits, and matches that are printed.
BATCH, N_PRINTED = 10, 20
SHOWN = 60
# Larger tables are to be made into features first.
MAX_TABLE = 2 << 30
KEYS = {"y": "must", "n": "cannot", "u": "unsure"}
PROMPT = "The same? [y]es [n]o [u]nsure, [z] undo, [q]uit: "


def run_match(
    first: Annotated[
        Path,
        typer.Argument(
            help="A table of texts (.csv, .tsv, .parquet), or a model.",
            show_default=False,
        ),
    ],
    second: Annotated[
        Path | None, typer.Argument(help="Another table.", show_default=False)
    ] = None,
    judged: Annotated[
        Path | None,
        typer.Option(help="Judged pairs of rows; with --ask, where answers are kept."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="File of matches: .csv, .parquet or .json.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(help="Column of texts to match by; name=title renames title."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="Column of ids; by default `id` if there is one.")
    ] = None,
    partners: Annotated[
        str, typer.Option(help="one-to-one, one-to-many or many-to-one.")
    ] = "one-to-one",
    precision: Annotated[
        float | None, typer.Option(help="Expected share of right matches.")
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask about uncertain pairs first.")
    ] = False,
    source: options.Source = None,
    target: options.Target = None,
    who: options.Who = None,
    overwrite: options.Overwrite = False,
    as_json: options.AsJson = False,
    store: options.Store = None,
) -> None:
    """Find which rows of two tables are the same thing, or items of a model.

    Two tables are compared by the texts and numbers of columns that both have. Each
    answer of --ask is stored before the next pair is shown. Exit status 1 means that
    there are no matches.
    """
    from linkspread.search.matches import check_output
    from linkspread.storage.files import check_new

    if output is not None:
        check_output(output)
        check_new(output, overwrite)
        check_writable(output)
    limits: dict[str, Any] = {"partners": partners}
    matching: Tables | Model
    if second is None:
        matching = Model(first, store, source, target, default_who(who) if ask else "")
    else:
        if ask and judged is None:
            raise LinkspreadError(
                "`--ask` needs a file for the answers, and no --judged was given. Add "
                "--judged pairs.csv; it is made if there is none."
            )
        matching = Tables((first, second), columns or [], id_column, judged)
    if ask:
        _ask(matching, limits)
    found = matching.match(**limits | {"precision": precision})
    if output is not None:
        found.write(output, overwrite=overwrite)
        notice(f"Written: {output}.")
    if as_json:
        print_json(found.document())
    else:
        print_line(found)
        if output is None:
            _print_matches(found, matching)
    if not len(found):
        raise typer.Exit(1)


class Tables:
    """Two tables of texts, their model, and a file of judged pairs."""

    def __init__(
        self,
        paths: tuple[Path, Path],
        columns: list[str],
        id_column: str | None,
        judged: Path | None,
    ) -> None:
        from linkspread.features.catalogues import describe_catalogues
        from linkspread.models import CrossViewSearch

        names = [path.stem for path in paths]
        if names[0] == names[1]:
            names = ["first", "second"]
        self.views, self.judged = (names[0], names[1]), judged
        renamed = dict(own.split("=", 1)[::-1] for own in columns if "=" in own)
        tables, self.ids = {}, {}
        for name, path in zip(names, paths, strict=True):
            table = _read_texts(path)
            self.ids[name] = _take_ids(table, id_column, path)
            if path == paths[1]:
                table = {renamed.get(own, own): table[own] for own in table}
            tables[name] = table
        found = describe_catalogues(tables, [own.split("=")[0] for own in columns])
        self.compare, self.tables = found.compare, tables
        words = f"Texts: {', '.join(found.texts)}."
        notice(words + f" Numbers: {', '.join(found.numbers)}." * bool(found.numbers))
        self.model = CrossViewSearch().fit(found.views, ids=self.ids)
        self.asked: set[tuple[str, str]] = set()
        if judged is not None and judged.exists():
            self._learn(judged)

    def _learn(self, path: Path) -> None:
        """Learn from the judged pairs of a file, if there are any."""
        from linkspread.cli.inputs import join_judged, read_judged
        from linkspread.links.reading import UNSURE

        table = _read_texts(path, may_be_empty=True)
        verdicts = table.get("verdict", ["must"] * len(next(iter(table.values()))))
        left, right = (table.get(view) for view in self.views)
        if left is not None and right is not None:
            self.asked |= set(zip(left, right, strict=True))
        if all(own.strip().lower() in UNSURE for own in verdicts):
            return
        pairs, notes = read_judged([str(path)], self.model.items_)
        for note in notes:
            notice(f"linkspread: {note}")
        self.model.add_links(join_judged(pairs))

    def match(self, **limits: Any) -> Matches:
        """Match the rows of both tables."""
        return self.model.match(*self.views, compare=self.compare, **limits)

    def describe(self, view: str, item: Any) -> str:
        """Return the cells of a row."""
        place = int(self.model.items_[view].positions([item])[0])
        cells = {name: own[place] for name, own in self.tables[view].items()}
        return "; ".join(f"{name}: {cell}" for name, cell in cells.items() if cell)

    def add(self, pair: tuple[Any, Any], verdict: str) -> None:
        """Append an answer to the file, and wait until it is on the disk."""
        assert self.judged is not None
        header = [*self.views, "verdict"]
        is_new = not self.judged.exists()
        if not is_new:
            with self.judged.open(encoding="utf-8-sig", newline="") as file:
                line = file.readline()
                got = next(csv.reader([line]), [])
            if got != header or self.judged.suffix.lower() != ".csv":
                raise LinkspreadError(
                    f"`--judged` must be a .csv with the columns {', '.join(header)} "
                    f"for --ask, got {', '.join(got) or 'none'}. Name another file."
                )
        with self.judged.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([header] * is_new + [[*pair, verdict]])
            file.flush()
            os.fsync(file.fileno())

    def undo(self) -> None:
        """Remove the last answer from the file."""
        from linkspread.storage.files import new_file

        assert self.judged is not None
        with self.judged.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
        with new_file(self.judged, overwrite=True) as temporary:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows[:-1])

    def apply(self, answers: list[tuple[tuple[Any, Any], str]]) -> None:
        """Learn from answers."""
        from linkspread.links import Links

        rows = [(*own, verdict) for own, verdict in answers if verdict != "unsure"]
        if rows:
            self.model.add_links(Links.from_pairs(rows, between=self.views))


class Model:
    """A fitted model with its link store."""

    def __init__(
        self,
        path: Path,
        store: str | None,
        source: str | None,
        target: str | None,
        who: str,
    ) -> None:
        self.folder, model = open_model(path, store)
        if not hasattr(model, "match"):
            raise LinkspreadError(
                "`MODEL` must be of the kind search to be matched, got "
                f"{type(model).__name__}. Fit it without --model spreading."
            )
        if source is None and target is None and len(model.view_names_) == 2:
            source = model.view_names_[0]
        self.views, self.who = choose_views(model, source, target), who
        self.contents = read_contents(self.folder)
        self.asked: set[tuple[str, str]] = set()
        self._stored: list[str] = []

    def match(self, **limits: Any) -> Matches:
        """Match the items of both views."""
        found: Matches = self.folder.model.match(*self.views, **limits)
        return found

    def describe(self, view: str, item: Any) -> str:
        """Return the text of an item, or the path of its picture."""
        return self.contents.find(view, item) or ""

    def add(self, pair: tuple[Any, Any], verdict: str) -> None:
        """Store an answer."""
        given: Any = {"between": self.views, "who": self.who}
        self._stored.append(self.folder.judge(*pair, verdict, **given))

    def undo(self) -> None:
        """Undo the last answer."""
        self.folder.undo(self._stored.pop(), who=self.who)

    def apply(self, answers: list[tuple[tuple[Any, Any], str]]) -> None:
        """Bring the model up to date with the store."""
        if answers:
            apply_judgements(self.folder)


def _ask(matching: Tables | Model, limits: dict[str, Any]) -> None:
    """Ask about suggested pairs until the person quits or nothing is left."""
    from linkspread.judging.match_suggestion import suggest_matches

    while True:
        found = matching.match(**limits)
        notice(clean(found))
        left, right = suggest_matches(found, BATCH + len(matching.asked))
        ids = [matching_ids(found, v, p) for v, p in enumerate((left, right))]
        pairs = [
            pair
            for pair in zip(*ids, strict=True)
            if (str(pair[0]), str(pair[1])) not in matching.asked
        ][:BATCH]
        if not pairs:
            notice("There is no pair left to judge.")
            return
        answers, is_over = _ask_batch(matching, pairs)
        matching.asked |= {(str(a), str(b)) for (a, b), _ in answers}
        matching.apply(answers)
        if is_over:
            return


def matching_ids(found: Matches, side: int, places: Any) -> list[Any]:
    """Return the ids of rows of one side."""
    assert found.rated is not None
    chosen: list[Any] = found.rated.ids[side][places].tolist()
    return chosen


def _ask_batch(
    matching: Tables | Model, pairs: list[tuple[Any, Any]]
) -> tuple[list[tuple[tuple[Any, Any], str]], bool]:
    """Ask about some pairs; return the answers, and whether the person quits."""
    answers: list[tuple[tuple[Any, Any], str]] = []
    while len(answers) < len(pairs):
        pair = pairs[len(answers)]
        notice("")
        for view, item in zip(matching.views, pair, strict=True):
            notice(clean(f"{view} {item}: {matching.describe(view, item)}"))
        print(PROMPT, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        # The end of the input ends the questions.
        key = line.strip().lower()[:1] if line else "q"
        if key == "q":
            return answers, True
        if key in KEYS:
            matching.add(pair, KEYS[key])
            answers.append((pair, KEYS[key]))
        elif key == "z" and answers:
            matching.undo()
            answers.pop()
            notice("The last answer is undone.")
        elif key == "z":
            notice("There is nothing to undo since the last fit.")
        else:
            notice("Please answer y, n, u, z or q.")
    return answers, False


def _print_matches(found: Matches, matching: Tables | Model) -> None:
    """Print the most probable matches."""
    rows = []
    for place in range(min(len(found), N_PRINTED)):
        cells = []
        for view, ids in zip(
            matching.views, (found.source_ids, found.target_ids), strict=True
        ):
            item = ids[place]
            text = shorten(matching.describe(view, item), SHOWN)
            cells.append(f"{item} {text}".strip())
        p = found.probabilities
        cells.append(f"{found.scores[place]:.4g}" if p is None else f"{p[place]:.1%}")
        rows.append(cells)
    last = "score" if found.probabilities is None else "probability"
    print_table((*matching.views, last), rows, right=(last,))


def _read_texts(path: Path, *, may_be_empty: bool = False) -> dict[str, list[str]]:
    """Read a table of texts; refuse one that is too large, or empty."""
    from linkspread.tables.files import naming_path, read_texts

    with naming_path(path):
        n_bytes = path.stat().st_size if path.is_file() else 0
        if n_bytes > MAX_TABLE:
            raise ViewError(
                f"a table of texts must have at most {format_bytes(MAX_TABLE)}, got "
                f"{format_bytes(n_bytes)}. Make features of it first, and fit a model "
                "with `linkspread fit`."
            )
        table = read_texts(path)
        if not may_be_empty and not len(next(iter(table.values()))):
            raise ViewError("a table must have at least one row, got none. Add rows.")
    return table


def _take_ids(
    table: dict[str, list[str]], id_column: str | None, path: Path
) -> list[str]:
    """Remove the ids from a table; without any, rows are counted from 0."""
    name = id_column or "id"
    if name in table:
        return table.pop(name)
    if id_column is not None:
        raise ViewError(
            f"{path}: `--id-column` must be a column of both tables, got "
            f"{id_column!r}; this one has {', '.join(map(repr, table))}. Correct it."
        )
    return [str(place) for place in range(len(next(iter(table.values()))))]
