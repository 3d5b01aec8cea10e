"""Fitted searches of every kind for tests, made once; copies may be changed."""

import copy
from functools import cache

import numpy as np
import scipy.sparse as sp

import linkspread as ls
from linkspread.learning import Choice, Setting, fit_factors
from linkspread.links.evidence import read_evidence

PAIR = ("text", "image")
KINDS = ("shared", "matched", "judged", "labels", "within", "sparse", "given", "every")
# One term of each kind, so that tests need not hope for what a choice takes.
EVERY = (
    Setting("prior", weight=1.5),
    Setting("displacement", "linear + gaussian", 3.0, 2.0),
    Setting("grid", "linear", 1.0, 0.7),
    Setting("grid", "graph", 10.0, 0.4),
    Setting("into left", "linear", 0.1, 0.6),
    Setting("into right", "linear + gaussian", 1.0, 0.9),
    Setting("pairs", ridge=3.0, weight=1.2),
    Setting("labels", weight=0.8),
)
WITHIN = (Setting("prior", weight=0.5), Setting("pairs", ridge=1.0, weight=2.0))


def make_pair(n_items=120, noise=0.6):
    """Return two views of one space."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_items, 8))
    return {"text": X, "image": X + noise * rng.normal(size=X.shape)}


def make_strangers(n_items=120):
    """Return two views that share no space."""
    views = make_pair(n_items)
    turned = views["image"] @ np.random.default_rng(1).normal(size=(8, 6))
    return {"text": views["text"], "image": turned}


def judged_links(n_pairs=40, n_items=120):
    """Return as many must- as cannot-links."""
    table = [(k, k, 1.0) for k in range(n_pairs)]
    table += [(k, (k + 40) % n_items, -1.0) for k in range(n_pairs)]
    return ls.Links.from_pairs(table, between=PAIR)


def class_views():
    """Return two views of four classes, and the labels of some of their items."""
    data = ls.datasets.make_views(
        {"text": 120, "image": 90}, n_classes=4, random_state=0
    )
    known = {v: np.where(np.arange(len(y)) < 40, y, -1) for v, y in data.labels.items()}
    return data.views(), known


@cache
def _fitted(kind):
    """Return a fitted search; `model` gives copies of it."""
    search = ls.CrossViewSearch()
    ids = {view: [f"{view}{k}" for k in range(120)] for view in PAIR}
    if kind == "shared":
        return search.fit(make_pair(), ids=ids)
    if kind == "matched":
        return search.fit(make_pair(), ls.Links.from_matched(PAIR, 40))
    if kind == "judged":
        named = [(f"text{i}", f"image{j}", w) for i, j, w in _table(judged_links())]
        links = ls.Links.from_pairs(named, between=PAIR)
        return search.fit(make_strangers(), links, ids=ids)
    if kind == "labels":
        views, known = class_views()
        links = ls.Links.from_labels(known)
        more = [(k, k + 30, -1.0 if k % 2 else 1.0) for k in range(30)]
        return search.fit(views, links + ls.Links.from_pairs(more, between=PAIR))
    if kind == "within":
        i, j = np.random.default_rng(0).integers(120, size=(2, 60))
        table = [(a, b, 1.0 - 2 * (a % 2)) for a, b in zip(i, j, strict=True) if a != b]
        inside = ls.Links.from_pairs(table, between=("text", "text"))
        return search.fit(make_strangers(), inside + judged_links())
    if kind == "sparse":
        views = {
            view: sp.csr_array(np.maximum(X, 0)) for view, X in make_pair().items()
        }
        return search.fit(views, judged_links())
    if kind == "every":
        return _of_every_term(search, ids)
    assert kind == "given"
    views = make_strangers()
    search = ls.CrossViewSearch(
        prior=make_pair(), metric={"text": "cosine", "image": "auto"}
    )
    return search.fit(views, ls.Links.from_matched(PAIR, 40))


def _of_every_term(search, ids):
    """Return a search in which every kind of term counts."""
    _, known = class_views()
    labels = {view: np.resize(known[view], 120) for view in PAIR}
    inside = [(f"text{k}", f"text{k + 9}", 1.0 - k % 2 * 2) for k in range(20)]
    named = [(f"text{i}", f"image{j}", w) for i, j, w in _table(judged_links())]
    links = ls.Links.from_labels(labels) + ls.Links.from_pairs(named, between=PAIR)
    links += ls.Links.from_pairs(inside, between=("text", "text"))
    search.fit(make_pair(), links, ids=ids)
    for pair, terms in ((PAIR, EVERY), (("text", "text"), WITHIN)):
        evidence = read_evidence(search.links_, *pair)
        sides = search._exact_rows(*pair).factors.sides
        search.choices_[pair] = choice = Choice(terms, 0.5, 0, {})
        search._factors[pair] = fit_factors(sides, evidence, choice)
    return search


def _table(links):
    (_, table), *_ = links.resolve({view: 120 for view in PAIR}).pair_tables
    return zip(
        table.left.tolist(), table.right.tolist(), table.weights.tolist(), strict=True
    )


def model(kind):
    """Return a fitted search that a test may change."""
    return copy.deepcopy(_fitted(kind))
