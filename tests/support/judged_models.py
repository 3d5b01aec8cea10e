"""A small model folder with ids, for tests of commands that read or judge."""

import atexit
import shutil
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

import linkspread as ls
from linkspread.cli import main

SIZES = {"text": 40, "image": 30}
PAIRS = [(f"t{i}", f"i{7 * i % 30}", 1.0 if i % 3 else -1.0) for i in range(24)]
BETWEEN = ("text", "image")


@cache
def make_data():
    """Return tables and ids of two views."""
    data = ls.datasets.make_views(SIZES, n_classes=3, n_features=6, random_state=0)
    names = {v: [f"{v[0]}{i}" for i in range(n)] for v, n in SIZES.items()}
    return data.views(), names


def fit_model(pairs=PAIRS, **parameters):
    """Return a model fitted to judged pairs."""
    views, names = make_data()
    links = ls.Links.from_pairs(list(pairs), between=BETWEEN)
    model = ls.LinkSpreading(**{"n_neighbors": 5, "tol": 1e-9} | parameters)
    return model.fit(views, links, ids=names)


@cache
def _saved():
    """Return a model as `linkspread fit` leaves it, to be copied."""
    path = Path(mkdtemp(prefix="linkspread-judged")) / "model"
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    ls.ModelFolder.create(path, fit_model(), pairs={BETWEEN: PAIRS})
    return path


def make_folder(path):
    """Write a model whose pairs are all stored and applied; return where."""
    shutil.copytree(_saved(), path)
    return path


def make_features(root):
    """Return features of the items as `load_features` does, with real pictures."""
    from PIL import Image

    views, names = make_data()
    paths = [f"{name}.png" for name in names["image"]]
    for k, path in enumerate(paths):
        Image.new("RGB", (9, 6), (8 * k, 0, 255 - 8 * k)).save(root / path)
    return SimpleNamespace(
        views=views,
        ids=names,
        kinds={"text": "text", "image": "picture"},
        contents={"text": [f"words of {n}" for n in names["text"]], "image": paths},
        root=root,
        transform=lambda view, contents: views[view][: len(contents)] + 0.01,
    )


def run(*arguments):
    """Run the command line in this process and return its exit status."""
    before, sys.argv = sys.argv, ["linkspread", *map(str, arguments)]
    try:
        main()
    except SystemExit as stopped:
        return stopped.code or 0
    finally:
        sys.argv = before
    return 0
