"""Small files that tests of the command line read, and a way to run a command."""

import sys

import numpy as np
import pytest

import linkspread as ls
from linkspread.cli import main


def command(monkeypatch, folder, line):
    """Run a command as it is typed in a folder, and return its exit status."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["linkspread", *line.split()])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code or 0


def made_data():
    """Return two views of a few items in three classes."""
    return ls.datasets.make_views({"text": 60, "image": 40}, n_classes=3)


def write_views(folder, data):
    """Write the tables of both views."""
    import pandas

    for view, X in data.views().items():
        table = pandas.DataFrame(X[:, :8], columns=[f"x{j}" for j in range(8)])
        table.insert(0, "id", [f"{view[0]}{i}" for i in range(len(X))])
        table.insert(1, "label", [f"class {label}" for label in data.labels[view]])
        table.to_parquet(folder / f"{view}.parquet")
        table[["id", "label"]].to_csv(folder / f"{view}-labels.csv", index=False)
    np.save(folder / "image.npy", data.views()["image"][:, :8])


def write_pairs(folder, data):
    """Write judged pairs, and others that are held out."""
    text, image = data.labels["text"], data.labels["image"]
    every = [(i, j) for i in range(60) for j in range(40)]
    chosen = np.random.default_rng(0).permutation(len(every))
    for name, some in {"pairs": chosen[:40], "held-out": chosen[40:70]}.items():
        lines = ["text,image,verdict"]
        for i, j in (every[k] for k in some):
            lines.append(f"t{i},i{j},{'must' if text[i] == image[j] else 'cannot'}")
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


def write_catalogues(folder, n=40):
    """Write two catalogues of lamps, and judged pairs of rows."""
    rng = np.random.default_rng(0)
    words = "red blue green tall small round oak steel glass old".split()
    rows = [
        " ".join(["lamp", *rng.permutation(words)[:4], f"no{i // 2}"]) for i in range(n)
    ]
    for name, start in (("ours", ""), ("theirs", "brand new ")):
        lines = [f"{name[0]}{i},{start}{row},{10 + i}" for i, row in enumerate(rows)]
        text = "\n".join(["id,title,price", *lines]) + "\n"
        (folder / f"{name}.csv").write_text(text)
    judged = [(i, i, "must") for i in range(8)]
    judged += [(i, i + 1, "cannot") for i in range(0, 16, 2)]
    lines = [f"o{i},t{j},{verdict}" for i, j, verdict in judged]
    (folder / "rows.csv").write_text("\n".join(["ours,theirs,verdict", *lines]) + "\n")


def write_collection(folder):
    """Write a few texts with a picture of the same name each."""
    from PIL import Image

    collection, rng = folder / "photos", np.random.default_rng(0)
    collection.mkdir()
    for i in range(8):
        words = "rain wind storm cloud" if i % 2 else "goal match team ball"
        (collection / f"{'abcdefgh'[i]}.txt").write_text(f"{words} number{i}\n")
        pixels = rng.integers(0, 80, (24, 24, 3)) + (120 if i % 2 else 0)
        Image.fromarray(pixels.astype("uint8")).save(
            collection / f"{'abcdefgh'[i]}.png"
        )


def prepare(folder):
    """Write all that examples name; see test_cli_help_examples.py."""
    data = made_data()
    write_views(folder, data)
    write_pairs(folder, data)
    write_catalogues(folder)
    write_collection(folder)
