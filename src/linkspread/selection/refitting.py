"""A new fit to all judgements of a folder, compared with its model on held-out ones.

Both are compared without the same random part of the judged pairs; then these are added
to the new fit again. The choices of the present model were made with them.
"""

from typing import Any, NamedTuple

import numpy as np

from linkspread.ground.errors import FewLinksError
from linkspread.models.following import Follower, conflicts_add_up, known_pairs
from linkspread.models.model_folder import ModelFolder
from linkspread.storage import PairColumns

# Judged pairs that a comparison needs, and the share and most that are held out.
MIN_PAIRS, SHARE, MAX_HELD = 20, 0.2, 400

ViewPair = tuple[str, str]


class Refitted(NamedTuple):
    """A new fit, the last row of the store in it, and how both models compare."""

    model: Any
    number: int
    n_held_out: int
    before: float
    after: float


def refit_compared(folder: ModelFolder) -> Refitted:
    """Fit the model of a folder again, and compare; the folder stays as it is."""
    with folder.store() as store, conflicts_add_up():
        model, applied = folder.load()
        follower = Follower(model, store, applied=applied)
        follower.read()
        follower.apply()
        judged = follower.ledger.pairs(follower.number).columns
        held = _held_out(judged, model.items_)
        links = known_pairs(held, model.items_).links
        model.change_links(removed=links)
        before = share_right(model, held)
        model.rebuild()
        after = share_right(model, held)
        model.change_links(added=links)
    n_held = sum(len(own.weight) for own in held.values())
    return Refitted(model, follower.number, n_held, before, after)


def _held_out(judged: dict[ViewPair, PairColumns], items: Any) -> dict[ViewPair, Any]:
    """Return a random part of the judged pairs whose items are known."""
    known = {}
    for between, own in judged.items():
        if set(between) <= items.keys():
            both = zip(between, own[:2], strict=True)
            is_known = np.all([items[view].contains(ids) for view, ids in both], axis=0)
            known[between] = PairColumns(*(column[is_known] for column in own))
    n_pairs = sum(len(own.weight) for own in known.values())
    if n_pairs < MIN_PAIRS:
        raise FewLinksError(
            f"a new fit is compared on held-out judgements and needs {MIN_PAIRS} of "
            f"them, got {n_pairs}. Judge some more."
        )
    rng, share = np.random.default_rng(0), min(SHARE, MAX_HELD / n_pairs)
    held = {}
    for between, own in known.items():
        # All judgements of a pair are held out, or none.
        names = [f"{a}\n{b}" for a, b in zip(own.left, own.right, strict=True)]
        pairs, places = np.unique(names, return_inverse=True)
        chosen = (rng.random(len(pairs)) < share)[places]
        if chosen.any():
            held[between] = PairColumns(*(column[chosen] for column in own))
    if not held:
        raise FewLinksError("no pair was held out. Judge some more.")
    return held


def share_right(model: Any, held: dict[ViewPair, PairColumns]) -> float:
    """Return how often pairs that belong score above pairs that do not.

    Where all of the held-out pairs belong together, above random pairs of their items.
    """
    n_right = n_compared = 0.0
    for (source, target), own in held.items():
        left, i = np.unique(own.left, return_inverse=True)
        right, j = np.unique(own.right, return_inverse=True)
        block = np.asarray(model.scores(source, target, rows=left, cols=right))
        scores = block[i, j]
        belong, others = scores[own.weight > 0], scores[own.weight < 0]
        others = others if len(others) else block.ravel()
        differences = belong[:, None] - others[None, :]
        n_right += (differences > 0).sum() + 0.5 * (differences == 0).sum()
        n_compared += differences.size
    return float(n_right / n_compared) if n_compared else 0.5
