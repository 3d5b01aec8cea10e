"""Options that several commands share, on the command line and in files.

A file of options uses their names, with _ for -, and a list for a repeated option. Its
paths are relative to its own folder, and options on the command line override it. The
run.toml of a model has relative paths for files in the model folder, so that a copy of
the folder refers to the copy, and absolute paths for all others.
"""

import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
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
ABOUT = ("command", "version")


def _option(kind: Any, help: str, *names: str, **more: Any) -> Any:
    """Return an option that may be left out."""
    return Annotated[kind | None, typer.Option(*names, help=help, **more)]


def _by_view(help: str, *names: str) -> Any:
    """Return an option that may be given once for each view."""
    return _option(list[str], help, *names, metavar="[VIEW=]VALUE")


# Input.
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
INPUTS = {
    "view": _option(
        list[str],
        "A view: .npy, .npz:key, .parquet, .csv or a features folder. Once for each "
        "view.",
        "--view",
        metavar="NAME=PATH",
    ),
    "columns": _option(
        list[str],
        "Columns of a view's table: text=f0,f1 takes these, text=-year,-shop leaves "
        "these out; once for each view.",
        "--columns",
        metavar="NAME=COLUMNS",
    ),
    "features": _option(Path, "Features folder, with all of its views."),
    "links": PairTables,
    "labels": LabelTables,
    "label_column": _option(str, "Column of labels in the tables of the views."),
    "id_column": _option(str, "Column of ids in the tables of the views."),
    "matched": _option(
        bool,
        "Items with the same id, or in the same row, belong together.",
        "--matched/--not-matched",
    ),
    "must_above": MustAbove,
    "skip_unknown": SkipUnknown,
}
# Parameters of both models, and of the model spreading.
BOTH_MODELS = {
    "metric": _by_view("auto, euclidean, cosine, hellinger or chi2."),
    "n_jobs": _option(int, "Threads; by default all cores.", "--n-jobs"),
}
SPREADING = {
    "graph": _by_view("knn, sr, cwa or csr."),
    "n_neighbors": _by_view("Neighbours.", "--n-neighbors"),
    "alpha": _by_view("How far links are propagated within a view."),
    "beta": _option(float, "How strongly the views' results must agree."),
    "balance": _option(str, "Weight of cannot-links: auto, literal or a number."),
    "rank": _option(int, "Most dimensions of the vectors."),
    "tol": _option(float, "Relative error of the scores."),
}
Seed = Annotated[int, typer.Option(min=0, help="Seed of random choices.")]
# Fitted models.
Model = Annotated[Path, typer.Argument(help="Folder of a model.", show_default=False)]
Source = Annotated[str | None, typer.Option(help="View of the query.")]
Target = Annotated[str | None, typer.Option(help="View that is searched.")]
Store = Annotated[
    str | None,
    typer.Option(
        envvar="LINKSPREAD_STORE",
        help="Link store elsewhere: a file, or a URL of PostgreSQL.",
    ),
]
Who = Annotated[
    str | None,
    typer.Option(
        envvar="LINKSPREAD_WHO", help="Who judges; by default your login name."
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


def takes(*groups: Mapping[str, Any]) -> Callable[[Callable[..., None]], Any]:
    """Give a command options of groups, whose values it gets as the dict `typed`."""
    shared = {name: kind for group in groups for name, kind in group.items()}

    def extend(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            typed = {name: given.pop(name) for name in shared}
            command(**given, typed=typed)

        signature = inspect.signature(command, eval_str=True)
        own = [p for name, p in signature.parameters.items() if name != "typed"]
        more = [
            inspect.Parameter(n, own[0].kind, default=None, annotation=kind)
            for n, kind in shared.items()
        ]
        parameters = more + own
        vars(run)["__signature__"] = signature.replace(parameters=parameters)
        run.__annotations__ = {own.name: own.annotation for own in parameters}
        return run

    return extend


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


# Each option that names places: how many views it names, and how it is written.
PLACES = {
    "view": (1, "a name and a file, such as text=text.parquet"),
    "labels": (1, "a view and a table, such as text=labels.csv, or a features folder"),
    "links": (2, "a table of pairs, such as pairs.csv or text,image=pairs.csv"),
}


def parse_place(text: Any, option: str) -> Place:
    """Return the place that an option names: ``name=PATH`` or ``PATH:columns``."""
    n_views, form = PLACES[option]
    names, sign, path = str(text).partition("=")
    views = tuple(name.strip() for name in names.split(","))
    if not sign or len(views) != n_views:
        # The = is part of the file name, if there is one.
        views, path = (), str(text)
    needs_view = option == "view" or (option == "labels" and FILE.fullmatch(path))
    is_named = all(views) and (views or not needs_view)
    if not isinstance(text, str) or not path or not is_named:
        raise LinkspreadError(f"`--{option}` must be {form}, got {text!r:.60}.")
    return split_columns(path, views)


def split_columns(path: str, views: tuple[str, ...] = ()) -> Place:
    """Separate a path from the columns after it."""
    match = FILE.fullmatch(path)
    if match is None:
        return Place(views, Path(path))
    columns = tuple(c.strip() for c in (match["columns"] or "").split(",") if c.strip())
    return Place(views, Path(match["path"]), columns)


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


def gather_options(typed: Mapping[str, Any], config: Path | None) -> dict[str, Any]:
    """Return the options of a command, from its file and from the command line."""
    given = {name: value for name, value in typed.items() if value not in (None, [])}
    options = _with_absolute_paths(given, Path.cwd())
    return options if config is None else read_config(config, typed) | options


def read_config(path: Path, known: Iterable[str]) -> dict[str, Any]:
    """Return the options of a file."""
    try:
        options = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # missing, not TOML, or not UTF-8
        raise LinkspreadError(
            f"`--config` must be a TOML file, and {str(path)!r} cannot be read as one "
            f"({error}). Correct the path or that line."
        ) from error
    options = {k: value for k, value in options.items() if k not in ABOUT}
    names = sorted(known)
    for name in options.keys() - set(names):
        raise LinkspreadError(
            f"{path} must name options of the command, {', '.join(names)}, got "
            f"{name!r}. Correct the name."
        )
    for name in set(REPEATED) & options.keys():
        if not isinstance(options[name], list):
            options[name] = [options[name]]
    return _with_absolute_paths(options, path.resolve().parent)


def run_file(options: Mapping[str, Any], folder: Path, **about: Any) -> str:
    """Return the text of a run file, which runs a fit again."""
    shown = _with_paths(
        options, lambda p: p.relative_to(folder) if p.is_relative_to(folder) else p
    )
    head = "# linkspread fit --config THIS FILE runs it again.\n"
    return head + write_toml({"command": "fit", "version": __version__} | about | shown)


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
    for kind in (int, float) if isinstance(text, str) else ():
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip() if isinstance(text, str) else text


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
    for name in set(PATHS) & changed.keys():
        changed[name] = str(change(Path(changed[name])))
    for name in PLACES.keys() & changed.keys():
        places = [parse_place(text, name) for text in changed[name]]
        changed[name] = [str(replace(p, path=change(p.path))) for p in places]
    return changed


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
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)
