"""What a search is asked with: items, rows of a file, a new text or picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linkspread.cli.asking import check_items, choose_views
from linkspread.cli.input_places import parse_view
from linkspread.cli.input_tables import WITH_COLUMNS, read_view
from linkspread.cli.model_folder import ModelFolder
from linkspread.ground.errors import LinkspreadError, UnknownItemError, ViewError
from linkspread.tables import Table


class Question(NamedTuple):
    """One query: what the model is asked with, and how people call it."""

    asked: Any
    told: dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """The options that say what to search with, of which one is given."""

    id: list[str]
    query_file: str | None = None
    row: tuple[str, ...] = ()
    text: str | None = None
    picture: Path | None = None

    def __post_init__(self) -> None:
        ways = {
            "--id": self.id or None,
            "--query-file": self.query_file,
            "--text": self.text,
            "--picture": self.picture,
        }
        given = [option for option, value in ways.items() if value is not None]
        if len(given) != 1:
            raise LinkspreadError(
                f"a search must have one of {', '.join(ways)}, got "
                f"{' and '.join(given) or 'none'}. Give one of them."
            )
        if self.row and self.query_file is None:
            raise LinkspreadError(
                "`--row` must be a row of a `--query-file`, got no such file. Name the "
                "file too, or use --id."
            )


def read_questions(
    folder: ModelFolder | None,
    model: Any,
    asked: Asked,
    source: str | None,
    target: Any,
) -> tuple[str, str, list[Question]]:
    """Return the view that searches, the one that is searched, and the queries."""
    if asked.text is not None or asked.picture is not None:
        return _new_content(folder, model, asked, source, target)
    source, target = choose_views(model, source, target, asked.id)
    if asked.query_file is not None:
        place = parse_view(f"{source}={asked.query_file}")
        # Shards do not know the names of their columns.
        known = getattr(model, "_columns", {}).get(source) or ()
        named = place.path.suffix.lower() in WITH_COLUMNS
        table = read_view(place, columns=known if named else ())
        return source, target, _row_questions(table, asked.row)
    check_items(model, source, asked.id, option="--id")
    return source, target, [Question(item, {"id": item}) for item in asked.id]


def read_limit(
    model: Any, view: str, given: list[str] | None, *, option: str
) -> list[str] | None:
    """Return ids that a search is limited to, or is to leave out; @FILE holds some."""
    if not given:
        return None
    ids = [item for word in given for item in _ids_of(word, option)]
    check_items(model, view, ids, option=option)
    return ids


def _ids_of(word: str, option: str) -> list[str]:
    """Return an id, or those of a file."""
    if not word.startswith("@"):
        return [word]
    try:
        lines = Path(word[1:]).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise LinkspreadError(
            f"`{option} @FILE` must name a file of UTF-8 with an id in each line, and "
            f"{word[1:]!r} cannot be read. Correct the path."
        ) from error
    return [line.strip() for line in lines if line.strip()]


def _row_questions(table: Table, rows: tuple[str, ...]) -> list[Question]:
    """Return the rows of a table as queries, all or some."""
    names = [] if table.ids is None else [str(own) for own in table.ids]
    n_rows = table.values.shape[0]
    names = names or [str(place) for place in range(n_rows)]
    places = {name: place for place, name in enumerate(names)}
    for row in rows:
        if row not in places:
            raise UnknownItemError(
                f"`--row` must be a row of the file, which has {n_rows:,} from "
                f"{names[0]!r} to {names[-1]!r}, got {row!r}. Correct it."
            )
    return [
        Question(table.values[[places[name]]], {"row": name}) for name in rows or names
    ]


def _new_content(
    folder: ModelFolder | None,
    model: Any,
    asked: Asked,
    source: str | None,
    target: Any,
) -> tuple[str, str, list[Question]]:
    """Return a new text or picture, described as the items of the model were."""
    kind = "text" if asked.picture is None else "picture"
    features: Any = None if folder is None else folder.features()
    views = [] if features is None else [v for v in features.kinds
                                         if features.kinds[v] == kind]  # fmt: skip
    if source is None and len(views) == 1:
        source = views[0]
    source, target = choose_views(model, source, target)
    if source not in views:
        raise ViewError(
            f"`--{kind}` must be for a view of {kind}s that `linkspread featurize` "
            f"described, and {source!r} is none. Fit the model with a features folder, "
            "or give its features with --query-file."
        )
    content: Any = asked.text if asked.picture is None else _check_file(asked.picture)
    rows = features.transform(source, [content])
    return source, target, [Question(_as_rows(rows), {kind: str(content)})]


def _check_file(path: Path) -> Path:
    """Return the path of a file that is there."""
    if not path.is_file():
        raise LinkspreadError(
            f"`--picture` must be a file, and there is none at {str(path)!r}. Correct "
            "the path."
        )
    return path


def _as_rows(rows: Any) -> Any:
    """Return features as a table, dense or sparse."""
    return rows if hasattr(rows, "tocsr") else np.asarray(rows)
