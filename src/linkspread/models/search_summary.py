"""What a search was told and what it took of that, in sentences."""

from typing import Any

import numpy as np

from linkspread.learning import Choice, Evidence, Setting, Sides, read_evidence

Pair = tuple[str, str]


def summarize(model: Any) -> str:
    """Say for each two views what was known, what counted and how good it is."""
    sentences = []
    for pair, choice in model.choices_.items():
        evidence = read_evidence(model.links_, *pair)
        factors = model._factors[pair]
        sentences.append(_known(pair, evidence, factors.sides))
        sentences.append(_counted(pair, choice))
        if choice.n_held_out:
            prior = choice.quality.get("prior")
            beside = "" if prior is None else f", {prior:.2f} by the cosine alone"
            beside += f", {choice.quality['chance']:.2f} by chance"
            sentences.append(
                f"{choice.n_held_out} held-out partners: mean reciprocal rank "
                f"{choice.quality['model']:.2f}{beside}."
            )
    return " ".join(sentences)


def _known(pair: Pair, evidence: Evidence, sides: Sides) -> str:
    """Say what was known of two views."""
    a, b = pair
    n_must, n_cannot = len(evidence.must[0]), len(evidence.cannot[0])
    if a == b:
        n_must, n_cannot = n_must // 2, n_cannot // 2
        start = f"Within {a} items are compared by their columns"
    else:
        start = f"{a} and {b} share {'a' if sides.prior is not None else 'no'} space"
    labelled = ""
    if evidence.labels is not None:
        counts = [np.count_nonzero(np.diff(own.indptr)) for own in evidence.labels]
        n_classes = evidence.labels[0].shape[1]
        of = f"{counts[0]:,}" if a == b else f"{counts[0]:,} and {counts[1]:,}"
        labelled = f"; {of} items have labels of {n_classes:,} classes"
    return (
        f"{start}{labelled}; {n_must:,} pairs are known to belong together, "
        f"{n_cannot:,} not to."
    )


def _counted(pair: Pair, choice: Choice) -> str:
    """Say which terms count, in words."""
    left, right = pair
    names = {
        "prior": "the cosine",
        "displacement": "the cosine, corrected by known pairs",
        "grid": "likeness to known pairs",
        "into left": f"{left} as predicted from {right}",
        "into right": f"{right} as predicted from {left}",
        "pairs": "regression on judged pairs",
        "labels": "the classes",
    }
    words = []
    for term in choice.terms:
        word = "the cosine" if _is_plain(term) else names[term.kind]
        by = " by the graph" if term.mixture == "graph" else ""
        words.append(word + by)
    hubs = f"; hub correction {choice.hubs:g}" if choice.hubs else ""
    return f"What counts: {', '.join(words)}{hubs}."


def _is_plain(term: Setting) -> bool:
    return term.kind in ("prior", "displacement") and np.isinf(term.ridge)
