"""One judgement taken up and one search answered, against a whole fit.

100,000 + 100,000 items of make_views, vectors of 64 numbers. Single links are timed on
models that know 1,000 judged pairs and 11,000: what a link costs must not grow with the
number of those before it, nor with the number of changes since the fit. Beside it,
1,000 links are added and removed in random order on 20,000 + 20,000 items, and the
scores compared with those of all links spread from the start.
``python benchmarks/bench_live.py --n 20000`` prints one result as JSON.
"""

import argparse
import json
import time
import warnings

import numpy as np

import linkspread as ls
from linkspread.exceptions import ConflictWarning

N_CLASSES = 32
RANK = 64
N_KNOWN = (1_000, 11_000)
# Links that are timed one by one, and how many of them at each end are compared.
N_TIMED, N_END = 300, 100
BETWEEN = ("text", "image")


class Judge:
    """Draw random pairs and answer by the labels."""

    def __init__(self, data, seed=0):
        self.labels = [data.labels[view] for view in BETWEEN]
        self.rng = np.random.default_rng(seed)

    def pairs(self, n_pairs):
        """Return judged pairs, a third of which belong together."""
        i = self.rng.integers(0, len(self.labels[0]), n_pairs)
        j = self.rng.integers(0, len(self.labels[1]), n_pairs)
        for k in np.flatnonzero(self.rng.random(n_pairs) < 1 / 3):
            same = np.flatnonzero(self.labels[1] == self.labels[0][i[k]])
            j[k] = self.rng.choice(same)
        weights = np.where(self.labels[0][i] == self.labels[1][j], 1.0, -1.0)
        return list(zip(i.tolist(), j.tolist(), weights.tolist(), strict=True))


def as_links(pairs):
    return ls.Links.from_pairs(pairs, between=BETWEEN)


def timed(work):
    """Return how long some work takes, in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def time_singles(model, judge):
    """Return the seconds of each link with the search that follows it."""
    seconds = []
    for pair in judge.pairs(N_TIMED):
        link = as_links([pair])

        def absorb_and_search(link=link, item=pair[0]):
            model.add_links(link)
            model.search(item, source="text", target="image")

        seconds.append(timed(absorb_and_search))
    ends = np.median(seconds[:N_END]), np.median(seconds[-N_END:])
    return {
        "seconds_p50": float(np.percentile(seconds, 50)),
        "seconds_p99": float(np.percentile(seconds, 99)),
        "growth": float(ends[1] / ends[0]),
    }


def exactness(n=20_000, n_changes=1_000, n_active=60):
    """Return the largest relative error of changed scores, and that at the end."""
    data = ls.datasets.make_views(n, n_classes=5, random_state=0)
    rng, judge = np.random.default_rng(0), Judge(data)
    known = {v: np.where(rng.random(n) < 0.01, y, -1) for v, y in data.labels.items()}
    views, labels = data.views(), ls.Links.from_labels(known)
    model = ls.LinkSpreading(rank=1_000).fit(views, labels)
    asked = {"rows": np.arange(0, n, 40), "cols": np.arange(0, n, 40)}
    start, active, errors = model.scores(*BETWEEN, **asked), [], []
    for step in range(1, n_changes + 1):
        if len(active) == n_active or (active and rng.random() < 0.5):
            model.remove_links(as_links([active.pop(rng.integers(len(active)))]))
        else:
            active += judge.pairs(1)
            model.add_links(as_links(active[-1:]))
        if step % 100 == 0:
            exact = model.scores(*BETWEEN, **asked, exact=True)
            errors.append(relative_error(model.scores(*BETWEEN, **asked), exact))
    for pair in active:
        model.remove_links(as_links([pair]))
    end = relative_error(model.scores(*BETWEEN, **asked), start)
    return {"n_items": n, "n_changes": n_changes, "errors": errors, "end_error": end}


def relative_error(scores, expected):
    """Return the distance of two blocks in units of the second's norm."""
    return float(np.linalg.norm(scores - expected) / np.linalg.norm(expected))


def measure(views, judge, n_known):
    """Return the times of a fit to some links, of the first change and of others."""
    links = as_links(judge.pairs(n_known))
    model = ls.LinkSpreading(rank=RANK)
    return {
        "n_known": n_known,
        "fit_seconds": timed(lambda: model.fit(views, links)),
        "spread_seconds": model.report_.spreads[BETWEEN].seconds,
        "first_seconds": timed(lambda: model.add_links(as_links(judge.pairs(1)))),
        **time_singles(model, judge),
        "hundred_seconds": timed(lambda: model.add_links(as_links(judge.pairs(100)))),
        "error": model.report_.spreads[BETWEEN].error,
    }


def main(n=100_000):
    """Return the times of fits and single links, and the errors of many changes."""
    # Pairs drawn at random may be drawn twice.
    warnings.simplefilter("ignore", ConflictWarning)
    data = ls.datasets.make_views(n, n_classes=N_CLASSES, random_state=0)
    views = {view: X.astype(np.float32) for view, X in data.views().items()}
    judge = Judge(data)
    return {
        "n_items": n,
        "rank": RANK,
        "models": [measure(views, judge, n_known) for n_known in N_KNOWN],
        "exactness": exactness(n // 5),
    }


def rows(result):
    """Return a line for each number of links before, and one for many changes."""
    return [
        {
            "links before": f"{model['n_known']:,}",
            "link and search, p50 ms": f"{1e3 * model['seconds_p50']:.0f}",
            "p99 ms": f"{1e3 * model['seconds_p99']:.0f}",
            f"last {N_END} / first {N_END} of {N_TIMED}": f"{model['growth']:.2f}",
            "100 links at once s": f"{model['hundred_seconds']:.1f}",
            "first link after a fit s": f"{model['first_seconds']:.1f}",
            "fit s": f"{model['fit_seconds']:.1f}",
            "of which spreading s": f"{model['spread_seconds']:.1f}",
            "fit / link and search": f"{_times_a_fit(model):.0f}",
        }
        for model in result["models"]
    ]


def _times_a_fit(model):
    """Return how many links and searches take as long as a fit."""
    return model["fit_seconds"] / model["seconds_p50"]


def headline(result):
    """Return the sentences for the front page."""
    few, many = result["models"]
    changes, n_items = result["exactness"], result["n_items"]
    return [
        f"A link added to a model of {n_items:,} + {n_items:,} items that knows "
        f"{many['n_known']:,}, and a search with it: "
        f"{1e3 * many['seconds_p50']:.0f} ms, "
        f"{_times_a_fit(many):.0f} times faster than a fit and "
        f"{many['seconds_p50'] / few['seconds_p50']:.2f} times what it takes after "
        f"{few['n_known']:,} links.",
        f"{changes['n_changes']:,} links added and removed in random order on "
        f"{changes['n_items']:,} + {changes['n_items']:,} items: scores within "
        f"{max(changes['errors']):.0e} of exact ones all along, and within "
        f"{changes['end_error']:.0e} of the first after all are taken back.",
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="items of each view")
    result = main(parser.parse_args().n)
    print(json.dumps(result, indent=2, default=float))
