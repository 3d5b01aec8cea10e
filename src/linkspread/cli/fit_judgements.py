"""Pairs of a fit in the store of its model, beside what people judged since.

The pairs that files gave are judgements of who = "import", with a note. A fit over an
older model takes up what people judged, and leaves out what they took back.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.cli.input_links import JudgedTable, Pair
from linkspread.cli.inputs import Inputs
from linkspread.cli.model_folder import ModelFolder
from linkspread.storage import Judgement, LinkStore, Undo

# As `linkspread links import` says by default, so that it does not say it again.
WHO, NOTE = "import", "in the files of the fit"
ViewPair = tuple[str, str]
# Both items with their views in alphabetical order, and the weight with its sign.
Said = tuple[tuple[tuple[str, str], ...], float]


def add_up(judged: Iterable[JudgedTable]) -> dict[ViewPair, list[Pair]]:
    """Return each pair once, with the sum of its weights; pairs that sum to 0 go."""
    totals: dict[ViewPair, dict[tuple[Any, Any], float]] = {}
    for table in judged:
        turned = table.between[::-1] in totals and table.between not in totals
        between = table.between[::-1] if turned else table.between
        own = totals.setdefault(between, defaultdict(float))
        for left, right, weight in table.pairs:
            own[(right, left) if turned else (left, right)] += weight
    return {
        between: [(*pair, weight) for pair, weight in own.items() if weight]
        for between, own in totals.items()
    }


def keep_judged(folder: ModelFolder, judged: Sequence[JudgedTable]) -> None:
    """Store the pairs that a saved model was fitted to, and say that it has them."""
    with folder.store() as store:
        _update(store, add_up(judged))
        number = store.last_number()
    folder.set_absorbed(number)


def take_up_judged(
    place: str | Path, inputs: Inputs
) -> tuple[list[JudgedTable], int, int]:
    """Bring a store up to date with the files of a fit, and return what it says."""
    with LinkStore.open(place) as store:
        _update(store, add_up(inputs.judged))
        pairs = store.pairs()
    judged, n_unknown = [], 0
    for between, columns in pairs.columns.items():
        known = np.zeros(len(columns.weight), dtype=bool)
        if set(between) <= inputs.views.keys():
            sides = zip(between, columns[:2], strict=True)
            known = np.all([inputs.items[v].contains(ids) for v, ids in sides], axis=0)
        n_unknown += int(np.sum(~known))
        if known.any():
            rows = zip(*(column[known].tolist() for column in columns), strict=True)
            judged.append(JudgedTable(between, list(rows), 0))
    return judged, pairs.number, n_unknown


def _update(store: LinkStore, wanted: dict[ViewPair, list[Pair]]) -> None:
    """Add what the files say anew, and take back what they no longer say."""
    new = {
        _said(judgement): judgement
        for between, pairs in wanted.items()
        for judgement in (_judgement(pair, between) for pair in pairs)
    }
    undone = {row.takes_back: row.who for row in store.changes()
              if isinstance(row, Undo)}  # fmt: skip
    for row in list(store.judgements(active_only=False)):
        # What the files had taken back they may say again.
        if row.who != WHO or undone.get(row.id) == WHO:
            continue
        if row.id not in undone and row.note == NOTE and _said(row) not in new:
            store.undo(row.id, who=WHO, note=f"no longer {NOTE}")
        new.pop(_said(row), None)
    store.add_many(new.values())


def _judgement(pair: Pair, between: ViewPair) -> Judgement:
    """Return a pair of a file as a judgement."""
    left, right, weight = pair
    return Judgement(
        who=WHO,
        note=NOTE,
        left_view=between[0],
        left_id=left,
        right_view=between[1],
        right_id=right,
        verdict="must" if weight > 0 else "cannot",
        weight=abs(float(weight)),
    )


def _said(judgement: Judgement) -> Said:
    """Return what a judgement says, the same whichever item comes first."""
    items = sorted(
        [
            (judgement.left_view, str(judgement.left_id)),
            (judgement.right_view, str(judgement.right_id)),
        ]
    )
    sign = {"must": 1.0, "cannot": -1.0}.get(judgement.verdict, 0.0)
    return tuple(items), sign * judgement.weight
