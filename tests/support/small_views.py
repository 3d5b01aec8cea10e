"""Small random views, links and fitted models that tests of estimators share."""

from functools import cache

import numpy as np

from linkspread import Links, LinkSpreading
from linkspread.graphs import knn_graph, normalize
from linkspread.links import as_dense
from reference import fixed_point

SIZES = {"text": 40, "image": 30, "sound": 20}
N, M = SIZES["text"], SIZES["image"]
PARAMETERS = {"n_neighbors": 4, "alpha": 0.3, "beta": 0.9, "tol": 1e-9}


def make_views(*names, seed=0):
    """Return random tables, each with a number of columns of its own."""
    rng = np.random.default_rng(seed)
    names = names or ("text", "image")
    return {v: rng.standard_normal((SIZES[v], 3 + i)) for i, v in enumerate(names)}


def make_pairs(seed, n_pairs, between=("text", "image")):
    """Return distinct judged pairs with weights of both signs."""
    rng = np.random.default_rng(seed)
    n, m = (SIZES[view] for view in between)
    i, j = np.divmod(rng.choice(n * m, n_pairs, replace=False), m)
    weights = rng.choice([-1.0, 1.0, 0.5], n_pairs)
    weights[:2] = 1.0, -1.0  # both kinds, always
    return Links.from_pairs(list(zip(i, j, weights, strict=True)), between=between)


def make_links(kind, seed=1):
    """Return links of one kind between texts and images."""
    rng = np.random.default_rng(seed)
    labels = {v: rng.integers(-1, 3, SIZES[v]) for v in ("text", "image")}
    soft = {v: rng.random((SIZES[v], 3)) for v in ("text", "image")}
    return {
        "labels": lambda: Links.from_labels(labels),
        "soft labels": lambda: Links.from_labels(soft),
        "few pairs": lambda: make_pairs(seed, 3),
        "many pairs": lambda: make_pairs(seed, 150),
        "matched": lambda: Links.from_matched(("text", "image"), 25),
        "mixture": lambda: Links.from_labels(labels) + make_pairs(seed, 40),
    }[kind]()


KINDS = ["labels", "soft labels", "few pairs", "many pairs", "matched", "mixture"]


@cache
def fitted(kind):
    """Return a model that tests may ask but not change."""
    return LinkSpreading(**PARAMETERS).fit(make_views(), make_links(kind))


def closed_form(views, links, source, target, balance="auto", alpha=0.3, beta=0.9):
    """Return all scores of two views by solving one dense system."""
    S = {v: normalize(knn_graph(views[v], n_neighbors=4)) for v in (source, target)}
    Z = links.resolve({v: len(X) for v, X in views.items()})
    Z = as_dense(Z.between(source, target, balance=balance))
    return fixed_point(S[source], Z, S[target], (alpha, alpha), beta)


def sorted_results(scores, n_results):
    """Return the positions and scores of the best columns, ties in order."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n_results]
    return order, np.take_along_axis(scores, order, axis=1)
