"""Options in a file: what ran, and what is to be run again.

A file names options as they are typed, with _ for -; a list stands for an option that
is repeated. Paths in it are taken from its own folder, and what is typed beside
--config goes before what it says. The run.toml of a model has what lies in the model
by its path from there, so that a copy of the folder is about the copy, and all else in
full, so that a copy still finds it.
"""

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from linkspread import __version__
from linkspread.cli.input_places import Place, parse_labels, parse_links, parse_view
from linkspread.ground.errors import LinkspreadError

PLACES = {"view": parse_view, "labels": parse_labels, "links": parse_links}
PATHS = ("features", "output")
REPEATED = ("view", "columns", "links", "labels", "metric", "graph", "n_neighbors",
            "alpha", "kernel")  # fmt: skip
# What a file says of itself; nothing depends on it.
ABOUT = ("command", "version", "quality")


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
    return f"# linkspread {command} --config THIS FILE runs it again.\n" + write_toml(
        about | _with_paths(options, lambda path: _from(path, folder))
    )


def write_toml(options: Mapping[str, Any]) -> str:
    """Return options as TOML, tables last."""
    flat = {k: v for k, v in options.items() if not isinstance(v, Mapping)}
    lines = [f"{name} = {_value(value)}" for name, value in flat.items()]
    for name, table in options.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{name}]"]
            lines += [f"{_key(key)} = {_value(own)}" for key, own in table.items()]
    return "\n".join(lines) + "\n"


def _in_full(options: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return options whose paths do not depend on the current folder."""
    return _with_paths(options, lambda path: (folder / path.expanduser()).resolve())


def _from(path: Path, folder: Path) -> Path:
    """Return a path from a folder if it is in there, or else in full."""
    return path.relative_to(folder) if path.is_relative_to(folder) else path


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


def _place(parse: Any, text: Any) -> Place:
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
