"""Options that several commands share, on the command line and in files.

A file of options uses their names, with _ for -, and a list for a repeated option. Its
paths are relative to its own folder, and options on the command line override it. The
run.toml of a model has relative paths for files in the model folder, so that a copy of
the folder refers to the copy, and absolute paths for all others.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from linkspread import __version__
from linkspread.ground.errors import LinkspreadError

# Only after these endings does a colon begin columns: C:\pairs.csv is a path.
FILE = re.compile(r"(?P<path>.+?\.(?:npy|npz|parquet|csv|tsv))(?::(?P<columns>.+))?",
                  flags=re.IGNORECASE)  # fmt: skip
PATHS = ("features", "output")
REPEATED = ("view", "columns", "links", "labels", "metric", "graph", "n_neighbors",
            "alpha", "kernel")  # fmt: skip
# Information in a file that no option depends on.
ABOUT = ("command", "version", "quality")


def _by_view(help: str, *names: str) -> Any:
    """Return an option that may be given once for each view."""
    return typer.Option(*names, metavar="[VIEW=]VALUE", help=help)


# Input.
View = Annotated[
    list[str] | None,
    typer.Option(
        "--view",
        metavar="NAME=PATH",
        help="A view: .npy, .npz:key, .parquet, .csv or a features folder. Once for "
        "each view.",
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="NAME=COLUMNS",
        help="Columns of a view's table: text=f0,f1 takes these, text=-year,-shop "
        "leaves these out; once for each view.",
    ),
]
Features = Annotated[
    Path | None, typer.Option(help="Features folder, with all of its views.")
]
PairTables = Annotated[
    list[str] | None,
    typer.Option(
        "--links",
        metavar="PATH",
        help="Table of judged pairs; text,image=PATH names the views, "
        "PATH:left,right,verdict the columns. May be repeated.",
    ),
]
LabelTables = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        metavar="NAME=PATH",
        help="Table of ids and labels of a view, or a features folder. May be "
        "repeated.",
    ),
]
LabelColumn = Annotated[
    str | None, typer.Option(help="Column of labels in the tables of the views.")
]
IdColumn = Annotated[
    str | None, typer.Option(help="Column of ids in the tables of the views.")
]
Matched = Annotated[
    bool | None,
    typer.Option(
        "--matched/--not-matched",
        help="Items with the same id, or in the same row, belong together.",
    ),
]
MustAbove = Annotated[
    float | None,
    typer.Option(
        help="Line between ratings or probabilities: above it must, below it cannot, "
        "equal to it unsure."
    ),
]
SkipUnknown = Annotated[
    bool | None,
    typer.Option(
        "--skip-unknown",
        help="Leave out pairs and labels of unknown items, and list them.",
    ),
]
# Parameters of a model.
Graph = Annotated[list[str] | None, _by_view("knn, sr, cwa or csr.")]
Neighbors = Annotated[list[str] | None, _by_view("Neighbours.", "--n-neighbors")]
Metric = Annotated[
    list[str] | None, _by_view("auto, euclidean, cosine, hellinger or chi2.")
]
Alpha = Annotated[
    list[str] | None, _by_view("How far links are propagated within a view.")
]
Tried = Annotated[
    str | None,
    typer.Option(metavar="VALUE,VALUE", help="Values of this parameter to try."),
]
Jobs = Annotated[
    int | None, typer.Option("--n-jobs", help="Threads; by default all cores.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of random choices.")]
# Fitted models.
Model = Annotated[Path, typer.Argument(help="Folder of a model.", show_default=False)]
Source = Annotated[
    str | None, typer.Option(help="View of the query.", show_default=False)
]
Target = Annotated[
    str | None, typer.Option(help="View that is searched.", show_default=False)
]
Store = Annotated[
    str | None,
    typer.Option(
        envvar="LINKSPREAD_STORE",
        help="Link store elsewhere: a file, or a URL of PostgreSQL.",
        show_default=False,
    ),
]
Who = Annotated[
    str | None,
    typer.Option(
        envvar="LINKSPREAD_WHO",
        help="Who judges; by default your login name.",
        show_default=False,
    ),
]
Note = Annotated[str, typer.Option(help="Comment to store.")]
# How a command runs, and what it prints.
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing output.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, and stop.")
]
Config = Annotated[
    Path | None,
    typer.Option(help="File of options, such as the run.toml of a model."),
]


@dataclass(frozen=True)
class Place:
    """A file or a folder, its views, and the chosen columns."""

    views: tuple[str, ...]
    path: Path
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = f"{','.join(self.views)}=" if self.views else ""
        columns = f":{','.join(self.columns)}" if self.columns else ""
        return f"{name}{self.path}{columns}"


def parse_view(text: str) -> Place:
    """Return the place of a view: ``name=PATH``, ``name=PATH.npz:key``."""
    name, sign, rest = text.partition("=")
    if not sign or not name.strip() or not rest:
        raise LinkspreadError(
            f"`--view` must be a name and a file, got {text!r}. Write "
            "--view text=text.parquet."
        )
    return _parse_place((name.strip(),), rest)


def parse_columns(text: str) -> tuple[str, list[str]]:
    """Return a view and columns of its table: ``name=a,b`` or ``name=-c,-d``."""
    view, _, rest = str(text).partition("=")
    columns = [name.strip() for name in rest.split(",") if name.strip()]
    if not view.strip() or not columns:
        raise LinkspreadError(
            f"`--columns` must be a view and its columns, got {text!r:.60}. Write "
            "--columns text=f0,f1, or --columns text=-year to leave one out."
        )
    return view.strip(), columns


def parse_labels(text: str) -> Place:
    """Return the place of labels: ``name=PATH``, or a features folder alone."""
    name, sign, rest = text.partition("=")
    if not sign and not FILE.fullmatch(text):
        return _parse_place((), text)
    if not sign or not name.strip() or not rest:
        raise LinkspreadError(
            "`--labels` must be the name of a view and a table, or a features folder, "
            f"got {text!r}. Write --labels text=labels.csv."
        )
    return _parse_place((name.strip(),), rest)


def parse_links(text: str) -> Place:
    """Return the place of pairs: ``PATH``, or ``left,right=PATH``."""
    names, sign, rest = text.partition("=")
    views = tuple(name.strip() for name in names.split(","))
    # Without a comma, the = is part of the file name.
    if not sign or len(views) != 2:
        return _parse_place((), text)
    if not all(views) or not rest:
        raise LinkspreadError(
            f"`--links` must name two views before the sign =, got {text!r}. Write "
            "--links text,image=pairs.csv."
        )
    return _parse_place(views, rest)


def _parse_place(views: tuple[str, ...], rest: str) -> Place:
    """Separate a path from the columns after it."""
    match = FILE.fullmatch(rest)
    if match is None:
        return Place(views, Path(rest))
    columns = tuple(c.strip() for c in (match["columns"] or "").split(",") if c.strip())
    return Place(views, Path(match["path"]), columns)


PLACES = {"view": parse_view, "labels": parse_labels, "links": parse_links}


def gather_options(
    typed: Mapping[str, Any], *, also: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the options of a command, from its file and from the command line."""
    given = {
        name: value
        for name, value in typed.items()
        if name != "config" and value is not None and value != []
    }
    options = _with_absolute_paths(given, Path.cwd())
    if typed.get("config") is not None:
        known = [*typed, *also]
        options = read_config(Path(typed["config"]), known=known) | options
    return options


def read_config(path: Path, *, known: Iterable[str]) -> dict[str, Any]:
    """Return the options of a file."""
    try:
        options = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise LinkspreadError(
            f"`--config` must be a file, and there is none at {str(path)!r}. Correct "
            "the path."
        ) from error
    except (OSError, ValueError) as error:  # not TOML, or not UTF-8
        raise LinkspreadError(
            f"`--config` must be a TOML file, and {str(path)!r} cannot be read as one "
            f"({error}). Correct that line."
        ) from error
    names = sorted(set(known) - {"config"})
    options = {k: value for k, value in options.items() if k not in ABOUT}
    unknown = [name for name in options if name not in names]
    if unknown:
        raise LinkspreadError(
            f"{path} must name options of the command, {', '.join(names)}, got "
            f"{unknown[0]!r}. Correct the name."
        )
    for name in set(REPEATED) & options.keys():
        if not isinstance(options[name], list):
            options[name] = [options[name]]
    return _with_absolute_paths(options, path.resolve().parent)


def run_file(
    command: str,
    options: Mapping[str, Any],
    folder: Path,
    quality: Mapping[str, Any] | None = None,
) -> str:
    """Return the text of a run file, which runs a command again."""
    about: dict[str, Any] = {"command": command, "version": __version__}
    if quality is not None:
        about["quality"] = quality
    shown = _with_paths(
        options, lambda p: p.relative_to(folder) if p.is_relative_to(folder) else p
    )
    head = f"# linkspread {command} --config THIS FILE runs it again.\n"
    return head + write_toml(about | shown)


def write_toml(options: Mapping[str, Any]) -> str:
    """Return options as TOML, tables last."""
    flat = {k: v for k, v in options.items() if not isinstance(v, Mapping)}
    lines = [f"{name} = {_value(value)}" for name, value in flat.items()]
    for name, table in options.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{name}]"]
            lines += [f"{_key(key)} = {_value(own)}" for key, own in table.items()]
    return "\n".join(lines) + "\n"


def read_value(text: Any) -> Any:
    """Return the number in a text, or the text if it is not a number."""
    if not isinstance(text, str):
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()


def option_of(name: str) -> str:
    """Return the name of an option on the command line."""
    return f"--{name.replace('_', '-')}"


def _with_absolute_paths(options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return options with absolute paths."""
    return _with_paths(options, lambda path: (folder / path.expanduser()).resolve())


def _with_paths(
    options: Mapping[str, Any], change: Callable[[Path], Path]
) -> dict[str, Any]:
    """Return options with each path changed."""
    changed = dict(options)
    for name in PATHS:
        if name in changed:
            changed[name] = str(change(Path(changed[name])))
    for name, parse in PLACES.items():
        if name in changed:
            places = [_place(parse, text) for text in changed[name]]
            changed[name] = [str(replace(p, path=change(p.path))) for p in places]
    return changed


def _place(parse: Callable[[str], Place], text: Any) -> Place:
    """Parse a place, which must be a text."""
    if not isinstance(text, str):
        raise LinkspreadError(
            f"places of input must be texts, got {text!r:.60}. Write them as on the "
            'command line, such as view = ["text=text.parquet"].'
        )
    return parse(text)


def _value(value: Any) -> str:
    """Return one value as TOML."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {_value(own)}" for key, own in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    # DEL is the one character that JSON does not escape and TOML refuses.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007F")


def _key(key: str) -> str:
    """Return a key, quoted unless it is a plain word."""
    plain = key.replace("_", "").replace("-", "")
    return key if plain.isascii() and plain.isalnum() else _value(key)
