"""A small collection of texts and pictures behind the pages, for tests of the web."""

import re
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import linkspread as ls

N_TEXTS, N_PICTURES = 60, 50
WORDS = ("red", "green", "blue")
COLORS = np.array([[220, 40, 40], [40, 180, 60], [40, 70, 210]])
ROOT = "http://127.0.0.1"
# What must be shown as text, and never run.
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}"


@cache
def make_data():
    """Return texts, colours of pictures and classes; made up, but not at random."""
    rng = np.random.default_rng(0)
    labels = {"text": np.arange(N_TEXTS) % 3, "image": np.arange(N_PICTURES) % 3}
    texts = [
        f"{WORDS[c]} thing number {k} {' '.join(rng.choice(list('abcdef'), 3))}"
        for k, c in enumerate(labels["text"])
    ]
    pixels = COLORS[labels["image"]] + rng.integers(-35, 35, (N_PICTURES, 3))
    return texts, pixels.clip(0, 255), labels


def make_ids():
    """Return the ids of both views; the first three items have both."""
    text = [f"t{k}" for k in range(N_TEXTS)]
    return {"text": text, "image": [f"i{k}" for k in range(N_PICTURES)]}


@cache
def words_to_rows():
    """Return what turns texts into features."""
    return TfidfVectorizer().fit(make_data()[0])


def make_views():
    """Return the tables of both views."""
    texts, pixels, _ = make_data()
    return {"text": words_to_rows().transform(texts), "image": pixels / 255.0}


PAIRS = [
    (f"t{k}", f"i{j}", 1.0 if (k - j) % 3 == 0 else -1.0)
    for k in range(0, 12, 2)
    for j in range(0, 9, 2)
]


def fit_model(pairs=PAIRS, **parameters):
    """Return a model fitted to a few pairs."""
    links = ls.Links.from_pairs(list(pairs), between=("text", "image"))
    usual = {"n_neighbors": 6, "alpha": 0.8, "tol": 1e-4}
    model = ls.LinkSpreading(**usual | parameters)
    return model.fit(make_views(), links, ids=make_ids())


def fit_search(pairs=PAIRS):
    """Return the default model fitted to a few pairs."""
    links = ls.Links.from_pairs(list(pairs), between=("text", "image"))
    return ls.CrossViewSearch().fit(make_views(), links, ids=make_ids())


def make_features(folder: Path, texts=None):
    """Return what a features folder holds, with its pictures in a folder."""
    from PIL import Image

    known, pixels, labels = make_data()
    names = np.array(WORDS)
    for k, color in enumerate(pixels):
        Image.new("RGB", (40, 30), tuple(map(int, color))).save(folder / f"p{k}.png")
    return SimpleNamespace(
        ids={view: np.array(own) for view, own in make_ids().items()},
        kinds={"text": "text", "image": "picture"},
        contents={
            "text": list(texts or known),
            "image": [f"p{k}.png" for k in range(N_PICTURES)],
        },
        labels={view: names[own] for view, own in labels.items()},
        root=folder,
        transform=transform,
        picture=lambda view, row: Image.open(folder / f"p{row}.png"),
    )


def save_model(model, folder):
    """Return the folder of a model."""
    model.save(folder)
    return ls.ModelFolder(folder)


@contextmanager
def many_browsers(model, make_folder):
    """Give a function that makes clients of sites, each with a store of its own."""
    from fastapi.testclient import TestClient

    from linkspread.web import Settings, create_app

    made = []

    def make(texts=None, **how):
        folder = make_folder("site")
        (folder / "uploads").mkdir()
        how = {"uploads": str(folder / "uploads"), "max_upload_bytes": 200_000} | how
        app = create_app(
            save_model(model, folder / "model"),
            features=make_features(folder, texts),
            settings=Settings(**how),
        )
        made.append(app)
        return TestClient(app, base_url=ROOT)

    yield make
    for app in made:
        app.state.site.stop()


def transform(view, contents):
    """Return the features of new texts or pictures."""
    if view == "text":
        return words_to_rows().transform(contents)
    return np.stack([np.asarray(own).mean(axis=(0, 1)) / 255 for own in contents])


def found_ids(html):
    """Return the ids of the cards of a page, in their order."""
    return re.findall(r'<li class="card[^>]*data-id="([^"]*)"', html)


def form_token(html):
    """Return what a form of a page must send back."""
    return re.search(r'<body data-token="([0-9a-f]{64})"', html)[1]


def hidden(html, name):
    """Return the value of a hidden field."""
    return re.search(rf'name="{name}" value="([^"]*)"', html)[1]
