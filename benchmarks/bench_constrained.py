"""The four graphs of the paper on Wikipedia, and how stable the roots of CSR are.

Parameters are fixed beforehand: affinities ``exp(-D / (0.2 mean D))`` with D the
squared Hellinger (text) and chi-squared (image) distance; k=30 for k-NN and CWA, k=90
for SR and CSR; alpha=.1 (text) and .025 (image), beta=.95.
"""

import time

import numpy as np

import harness
from linkspread import Links, LinkSpreading
from linkspread.compiled.lad import solve_many
from linkspread.datasets import load_wikipedia
from linkspread.graphs import nearest_neighbors
from linkspread.graphs.distances import pairwise_distances
from linkspread.graphs.knn import weigh_edges
from linkspread.graphs.l1 import ROOTS, LinkedNeighborhoods, NeighborhoodKernels
from linkspread.graphs.neighbors import NeighborIndex
from linkspread.metrics import mean_average_precision

METRICS = {"text": "hellinger", "image": "chi2"}
N_NEIGHBORS = {"knn": 30, "sr": 90, "cwa": 30, "csr": 90}
PAPER = {"knn": 0.293, "sr": 0.298, "cwa": 0.299, "csr": 0.306}
N_STABILITY = 300  # items of the stability check


def widths(views):
    """Return the width of each view's Gaussian from all pairs of 1,000 items."""
    result = {}
    for view, metric in METRICS.items():
        X = views[view][:1000]
        squares = pairwise_distances(X, X, metric=metric) ** 2
        result[view] = float(np.sqrt(0.2 * squares.mean()))
    return result


def known_labels(data):
    labels = np.full(len(data.labels), -1)
    labels[data.train] = data.labels[data.train]
    return dict.fromkeys(METRICS, labels)


def measure_graph(data, graph):
    """Return the retrieval figures and seconds of one kind of graph."""
    model = LinkSpreading(
        graph=graph,
        metric=METRICS,
        n_neighbors=N_NEIGHBORS[graph],
        bandwidth=widths(data.views),
        alpha={"text": 0.1, "image": 0.025},
        beta=0.95,
    )
    start = time.perf_counter()
    model.fit(data.views, Links.from_labels(known_labels(data)))
    seconds = time.perf_counter() - start
    block = model.scores("text", "image", rows=data.test, cols=data.test)
    labels = data.labels[data.test]
    return {
        "image_query": mean_average_precision(block.T, labels, labels),
        "text_query": mean_average_precision(block, labels, labels),
        "seconds": seconds,
    }


def measure_stability(data, root):
    """Return the relative change of the codes of CSR that should not change.

    Neighbours are listed in another order, or noise of 1e-15 is added to the
    affinities that the links give them.
    """
    rng = np.random.default_rng(0)
    X = data.views["text"]
    ids, distances = nearest_neighbors(X, n_neighbors=90, metric="hellinger")
    ids, distances = ids[:N_STABILITY], distances[:N_STABILITY]
    width = widths(data.views)["text"]
    index = NeighborIndex(X, metric="hellinger")
    kernels = NeighborhoodKernels(index, width, "gaussian")
    Z = Links.from_labels(known_labels(data)).within("text", balance="literal")
    affinities = LinkedNeighborhoods(Z).affinities

    def codes(ids, distances, noise=0.0):
        how = {"weights": "gaussian", "metric": "euclidean"}
        targets = weigh_edges(ids, distances, width, width, **how)
        links = affinities(ids)
        links += noise * np.abs(rng.standard_normal(links.shape))
        scale = 1 / np.sqrt(links.sum(axis=2))
        L = np.eye(90) - scale[:, :, None] * links * scale[:, None, :]
        # Noise must not make the Laplacian asymmetric.
        roots = ROOTS[root]((L + L.transpose(0, 2, 1)) / 2)
        A = np.concatenate([kernels.among(ids), roots], axis=1)
        b = np.hstack([targets, np.zeros_like(targets)])
        return np.abs(solve_many(lambda rows: (A[rows], b[rows]), len(A))[0])

    W, order = codes(ids, distances), rng.permutation(90)
    shuffled = codes(ids[:, order], distances[:, order])
    noisy = codes(ids, distances, noise=1e-15)
    size = np.linalg.norm(W)
    return {
        "order": float(np.linalg.norm(shuffled - W[:, order]) / size),
        "noise": float(np.linalg.norm(noisy - W) / size),
    }


def main():
    """Return the figures of every graph and both roots."""
    data = load_wikipedia(harness.data_folder("wikipedia"))
    roots = ("symmetric", "literal")
    return {
        "graphs": {graph: measure_graph(data, graph) for graph in N_NEIGHBORS},
        "stability": {root: measure_stability(data, root) for root in roots},
    }


def table(result):
    """Return the figures as two Markdown tables."""
    lines = [
        "| graph | MAP image query | MAP text query | average | the paper | seconds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for graph, figures in result["graphs"].items():
        image, text = figures["image_query"], figures["text_query"]
        lines.append(
            f"| {graph} | {image:.3f} | {text:.3f} | {(image + text) / 2:.3f} | "
            f"{PAPER[graph]:.3f} | {figures['seconds']:.1f} |"
        )
    lines += [
        "",
        f"Change of the CSR codes of {N_STABILITY} texts, relative to their norm:",
        "",
        "| root | neighbours in another order | noise of 1e-15 in 1 + Z |",
        "| --- | --- | --- |",
    ]
    for root, change in result["stability"].items():
        lines.append(f"| {root} | {change['order']:.1e} | {change['noise']:.1e} |")
    return "\n".join(lines)


def headline(result):
    """Return the sentence for the front page."""
    means = {
        graph: (figures["image_query"] + figures["text_query"]) / 2
        for graph, figures in result["graphs"].items()
    }
    ours = ", ".join(f"{graph} {mean:.3f}" for graph, mean in means.items())
    paper = ", ".join(f"{graph} {mean:.3f}" for graph, mean in PAPER.items())
    return [
        f"Wikipedia, average MAP of the four graphs: {ours} (the paper, whose "
        f"parameters were cross-validated: {paper})."
    ]
