"""Features of 200 pictures of Corel5k: time in a single thread, and what is found.

Pictures are of 192 x 128 pixels, 20 of each of ten series. Time is that of the
processor, so that other work of the machine matters little. Precision is the share of
a picture's own series among its five nearest. ``python benchmarks/bench_features.py``
prints the table alone.
"""

import os
import time
from functools import partial

import numpy as np

import harness
from linkspread.datasets import load_corel5k
from linkspread.features import NetworkFeatures, PictureFeatures, VisualWords
from linkspread.graphs import nearest_neighbors
from linkspread.ground.errors import MissingDependencyError

SIZE = 200
N_SERIES = 10
CASES = {
    "PictureFeatures": partial(PictureFeatures, n_jobs=1, random_state=0),
    "VisualWords": partial(VisualWords, n_jobs=1, random_state=0),
    "VisualWords, 2,000 words": partial(VisualWords, 2000, n_jobs=1, random_state=0),
    "NetworkFeatures": NetworkFeatures,
}


def setup(size):
    """Return files of pictures and the number of the series of each."""
    collection = load_corel5k(harness.data_folder("corel5k"))
    labels = collection.labels
    chosen = [np.flatnonzero(labels == s)[: size // N_SERIES] for s in range(N_SERIES)]
    rows = np.concatenate(chosen)
    return [collection.pictures[row] for row in rows], labels[rows]


def measure(make, pictures, labels):
    """Return milliseconds for each picture, and the precision at five."""
    start = time.process_time()
    features = make().fit(pictures)
    fitted = time.process_time()
    features.transform(pictures[:1])
    warm = time.process_time()
    X = features.transform(pictures)
    done = time.process_time()
    ids, _ = nearest_neighbors(X, n_neighbors=5, metric=features.metric_)
    return {
        "fit_ms": 1000 * (fitted - start) / len(pictures),
        "transform_ms": 1000 * (done - warm) / len(pictures),
        "width": X.shape[1],
        "precision_at_5": float(np.mean(labels[ids] == labels[:, np.newaxis])),
    }


def main(size=SIZE):
    """Return the figures of every kind of features whose packages are there."""
    if os.environ.get("OMP_NUM_THREADS") != "1":
        print("set OMP_NUM_THREADS=1 to keep the network to a single thread")
    inputs = setup(size)
    cases = {}
    for name, make in CASES.items():
        try:
            cases[name] = measure(make, *inputs)
        except MissingDependencyError as error:
            print(f"left out: {error}")
    return {"n_pictures": len(inputs[0]), "cases": cases}


def rows(result):
    """Return the lines of the table."""
    return [
        {
            "features": name,
            "columns": case["width"],
            "fit, ms a picture": case["fit_ms"],
            "transform, ms a picture": case["transform_ms"],
            "precision at 5": case["precision_at_5"],
        }
        for name, case in result["cases"].items()
    ]


if __name__ == "__main__":
    from run import markdown

    print(markdown(rows(main())))
