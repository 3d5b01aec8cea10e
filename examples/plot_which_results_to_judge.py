"""
Judge the first results, or pairs at random?
============================================

Ten judgements for each of 24 texts, each counted at once. Judging only what is found
first teaches one side of the matter; with random pairs the search of all texts ends
better.
"""

import matplotlib.pyplot as plt
import numpy as np

import linkspread as ls

widths = {"text": 32, "image": 24}
data = ls.datasets.make_views(300, n_classes=6, n_features=widths, noise=1.2)
text, image = (data.labels[view] for view in ("text", "image"))
ask = {"source": "text", "target": "image", "n_results": 10}


def judge(texts, images):
    """Stand in for a person; a real one looks at the pairs."""
    verdicts = np.where(text[texts] == image[images], 1.0, -1.0)
    pairs = list(zip(texts, images, verdicts))
    return ls.Links.from_pairs(pairs, between=("text", "image"))


def session(choose):
    """Return the share of right results among ten, after each text was judged."""
    belongs = [np.flatnonzero(image == text[i])[0] for i in range(8)]
    links = judge(range(8), belongs) + judge(range(8), range(8))
    model, right = ls.CrossViewSearch().fit(data.views(), links), []
    for query in range(20, 44):
        model.add_links(judge(*choose(model, query)))
        ids, _ = model.search(np.arange(300), **ask)
        right.append((image[ids] == text[:, None]).mean())
    return right


rng = np.random.default_rng(0)
ways = {
    "first ten results": lambda model, i: ([i] * 10, model.search(i, **ask)[0]),
    "random pairs": lambda model, i: rng.integers(300, size=(2, 10)),
}
figure, ax = plt.subplots(layout="constrained")
for name, choose in ways.items():
    ax.plot(10 * np.arange(1, 25), session(choose), marker=".", label=name)
ax.set(xlabel="judgements", ylabel="right among the first ten", ylim=(0, 1))
ax.legend()
