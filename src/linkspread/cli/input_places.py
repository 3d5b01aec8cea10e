"""Where input is, as it is typed: ``name=PATH:columns``."""

import re
from dataclasses import dataclass
from pathlib import Path

from linkspread.ground.errors import LinkspreadError

# A colon parts columns from a file only after one of these: C:\pairs.csv is a path.
FILE = re.compile(r"(?P<path>.+?\.(?:npy|npz|parquet|csv|tsv))(?::(?P<columns>.+))?",
                  flags=re.IGNORECASE)  # fmt: skip


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
    return _place((name.strip(),), rest)


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
        return _place((), text)
    if not sign or not name.strip() or not rest:
        raise LinkspreadError(
            "`--labels` must be the name of a view and a table, or a features folder, "
            f"got {text!r}. Write --labels text=labels.csv."
        )
    return _place((name.strip(),), rest)


def parse_links(text: str) -> Place:
    """Return the place of pairs: ``PATH``, or ``left,right=PATH``."""
    names, sign, rest = text.partition("=")
    views = tuple(name.strip() for name in names.split(","))
    # Without a comma the sign is one of a file's own name.
    if not sign or len(views) != 2:
        return _place((), text)
    if not all(views) or not rest:
        raise LinkspreadError(
            f"`--links` must name two views before the sign =, got {text!r}. Write "
            "--links text,image=pairs.csv."
        )
    return _place(views, rest)


def _place(views: tuple[str, ...], rest: str) -> Place:
    """Part a path from the columns behind it."""
    match = FILE.fullmatch(rest)
    if match is None:
        return Place(views, Path(rest))
    columns = tuple(c.strip() for c in (match["columns"] or "").split(",") if c.strip())
    return Place(views, Path(match["path"]), columns)
