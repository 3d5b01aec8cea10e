"""Options that several commands share, as they are typed and as they stand in files.

A file of options names them as they are typed, with _ for -; a list stands for an
option that is repeated. Paths in it are taken from its own folder, and what is typed
beside --config goes before what the file says. The run.toml of a model names what lies
in the model by its path from there, so that a copy of the folder is about the copy, and
everything else in full, so that the copy still finds it.
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

# A colon parts columns from a file only after one of these: C:\pairs.csv is a path.
FILE = re.compile(r"(?P<path>.+?\.(?:npy|npz|parquet|csv|tsv))(?::(?P<columns>.+))?",
                  flags=re.IGNORECASE)  # fmt: skip
PATHS = ("features", "output")
REPEATED = ("view", "columns", "links", "labels", "metric", "graph", "n_neighbors",
            "alpha", "kernel")  # fmt: skip
# What a file says of itself; nothing depends on it.
ABOUT = ("command", "version", "quality")


def _by_view(help: str, *names: str) -> Any:
    """Return an option that may be typed once for each view."""
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
        "leaves these out. Once for each view.",
    ),
]
Features = Annotated[
    Path | None, typer.Option(help="Features folder, all of its views.")
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
        help="Verdicts of pairs are ratings or probabilities: above this must, below "
        "it cannot, equal to it unsure."
    ),
]
SkipUnknown = Annotated[
    bool | None,
    typer.Option(
        "--skip-unknown",
        help="Leave out pairs and labels of items that no view has, and list them.",
    ),
]
# Parameters of a model.
Graph = Annotated[list[str] | None, _by_view("knn, sr, cwa or csr.")]
Neighbors = Annotated[list[str] | None, _by_view("Neighbours.", "--n-neighbors")]
Metric = Annotated[
    list[str] | None, _by_view("auto, euclidean, cosine, hellinger or chi2.")
]
Alpha = Annotated[list[str] | None, _by_view("How far links spread within a view.")]
Tried = Annotated[
    str | None,
    typer.Option(metavar="VALUE,VALUE", help="Values of this parameter to try."),
]
Jobs = Annotated[
    int | None, typer.Option("--n-jobs", help="Threads; all cores if left out.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of what is drawn at random.")]
# Models that were fitted.
Model = Annotated[Path, typer.Argument(help="Folder of a model.", show_default=False)]
Source = Annotated[
    str | None, typer.Option(help="View that searches.", show_default=False)
]
Target = Annotated[
    str | None, typer.Option(help="View that is searched.", show_default=False)
]
Store = Annotated[
    str | None,
    typer.Option(
        envvar="LINKSPREAD_STORE",
        help="Judgements elsewhere: a file, or a URL of PostgreSQL.",
        show_default=False,
    ),
]
Who = Annotated[
    str | None,
    typer.Option(
        envvar="LINKSPREAD_WHO",
        help="Who judges; your login name otherwise.",
        show_default=False,
    ),
]
Note = Annotated[str, typer.Option(help="Anything worth remembering.")]
# How a command runs, and what it prints.
AsJson = Annotated[
    bool, typer.Option("--json", help="Write one JSON document and nothing else.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and stop.")
]
Config = Annotated[
    Path | None,
    typer.Option(help="File of options, such as the run.toml of a model."),
]


@dataclass(frozen=True)
class Place:
    """A file or a folder, whose it is, and which of its columns are meant."""

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
    # Without a comma the sign is one of a file's own name.
    if not sign or len(views) != 2:
        return _parse_place((), text)
    if not all(views) or not rest:
        raise LinkspreadError(
            f"`--links` must name two views before the sign =, got {text!r}. Write "
            "--links text,image=pairs.csv."
        )
    return _parse_place(views, rest)


def _parse_place(views: tuple[str, ...], rest: str) -> Place:
    """Part a path from the columns behind it."""
    match = FILE.fullmatch(rest)
    if match is None:
        return Place(views, Path(rest))
    columns = tuple(c.strip() for c in (match["columns"] or "").split(",") if c.strip())
    return Place(views, Path(match["path"]), columns)


PLACES = {"view": parse_view, "labels": parse_labels, "links": parse_links}


def gather_options(
    typed: Mapping[str, Any], *, also: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the options of a command, from its file and from what was typed."""
    given = {
        name: value
        for name, value in typed.items()
        if name != "config" and value is not None and value != []
    }
    options = _in_full(given, Path.cwd())
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
    return _in_full(options, path.resolve().parent)


def run_file(
    command: str,
    options: Mapping[str, Any],
    folder: Path,
    quality: Mapping[str, Any] | None = None,
) -> str:
    """Return the text of a run file: how to run a command once more."""
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
    """Return a number where a text is one, or else the text."""
    if not isinstance(text, str):
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()


def option_of(name: str) -> str:
    """Return an option as it is typed."""
    return f"--{name.replace('_', '-')}"


def _in_full(options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return options whose paths do not depend on the current folder."""
    return _with_paths(options, lambda path: (folder / path.expanduser()).resolve())


def _with_paths(
    options: Mapping[str, Any], change: Callable[[Path], Path]
) -> dict[str, Any]:
    """Return options with each path in them replaced."""
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
    """Return where something is, as it was written."""
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
    # DEL is the one sign that JSON leaves as it is and TOML refuses.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007F")


def _key(key: str) -> str:
    """Return a key, in quotes unless it is a plain word."""
    plain = key.replace("_", "").replace("-", "")
    return key if plain.isascii() and plain.isalnum() else _value(key)
