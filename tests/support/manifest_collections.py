"""Small collections of pictures and texts for tests, some of them damaged."""

import csv
import io
import os
import struct
import zlib

import numpy as np
from PIL import Image

from linkspread.features import PictureFeatures
from linkspread.manifests import ItemCollection, ViewItems

WORDS = "sea sky sun tree grass bear plane city snow train car flower".split()


def small_pictures():
    """Return a transformer that takes milliseconds."""
    return PictureFeatures(n_words=8, size=64, random_state=0)


def picture(seed, form="JPEG"):
    """Return the bytes of a small picture of stripes and noise."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 60, size=(40, 48, 3))
    pixels += rng.integers(0, 190, size=3) * (np.arange(48)[:, None] // 6 % 2)
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, form)
    return file.getvalue()


def text(seed):
    """Return a few words."""
    return " ".join(np.random.default_rng(seed).choice(WORDS, 6))


def write_table(path, rows, header=("id", "text", "image")):
    """Write a CSV file."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_items(folder, n):
    """Write pictures and texts, and return the rows of their table."""
    folder.mkdir(exist_ok=True)
    for i in range(n):
        (folder / f"{i}.jpg").write_bytes(picture(i))
        (folder / f"{i}.txt").write_text(text(i), encoding="utf-8")
    return [(f"item{i}", f"{i}.txt", f"{i}.jpg") for i in range(n)]


def pick(collection, view, chosen):
    """Return a part of one view as a collection."""
    items = collection.views[view]
    contents = [items.contents[i] for i in chosen]
    own = ViewItems(items.kind, items.ids[chosen], contents)
    return ItemCollection({view: own}, collection.root)


def huge_png():
    """Return a PNG whose header promises far too many pixels."""

    def chunk(name, data):
        sum_ = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", sum_)

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 100)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", data), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def damaged_pictures(folder):
    """Write a file for each kind of damage; return its name and the kind expected."""
    jpeg, png = picture(1000), picture(1001, "PNG")
    contents = {
        "empty.jpg": (b"", "empty"),
        "cut.jpg": (jpeg[: len(jpeg) // 2], "truncated"),
        "cut.png": (png[: len(png) // 2], "truncated"),
        "words.jpg": (b"just some words", "not a picture"),
        "page.jpg": (b"<!DOCTYPE html><title>404</title>", "not a picture"),
        "zeros.png": (bytes(5000), "not a picture"),
        "noise.gif": (np.random.default_rng(0).bytes(3000), "not a picture"),
        "huge.png": (huge_png(), "too large"),
        "header.png": (png[:12] + b"XXXX" + png[16:], "corrupt header"),
        "phone.heic": (b"\0\0\0\x18ftypheic" + bytes(400), "unsupported format"),
        "layers.tif": (b"8BPS" + bytes(400), "unsupported format"),
        "print.jpg": (b"%PDF-1.7" + bytes(400), "unsupported format"),
    }
    for name, (data, _) in contents.items():
        (folder / name).write_bytes(data)
    (folder / "folder.jpg").mkdir()
    os.mkfifo(folder / "pipe.jpg")
    os.symlink("nowhere.jpg", folder / "link.jpg")
    others = {"folder.jpg": "directory", "pipe.jpg": "not a file",
              "link.jpg": "broken link", "gone.jpg": "missing"}  # fmt: skip
    return {name: kind for name, (_, kind) in contents.items()} | others


def damaged_texts(folder):
    """Write a file for each kind of damage; return its name and the kind expected."""
    contents = {
        "empty.txt": (b"", "empty"),
        "blank.txt": (b" \n\t \n", "empty"),
        "latin.txt": ("caf\xe9 cr\xe8me".encode("latin-1"), "undecodable"),
        "half.txt": ("天气很好".encode()[:-1], "undecodable"),
        "late.txt": (b"well " * 1000 + b"\xff", "undecodable"),
        "picture.txt": (picture(1002), "binary"),
        "control.txt": (b"red\x00green\x01blue", "binary"),
        "wide.txt": ("café".encode("utf-16-le"), "binary"),
    }
    for name, (data, _) in contents.items():
        (folder / name).write_bytes(data)
    (folder / "folder.txt").mkdir()
    found = {name: kind for name, (_, kind) in contents.items()}
    return found | {"folder.txt": "directory", "gone.txt": "missing"}
