"""A process that judges, undoes, applies, loads, serves and refits beside others.

``python judge_at_once.py FOLDER STORE SEED`` prints what it did and the ids of the rows
that it stored. Run by `test_interleavings.py`.
"""

import json
import os
import sys
from collections import Counter

import numpy as np

import linkspread as ls
from judged_models import BETWEEN, fit_model
from linkspread.web.live_model import LiveModel

CHOICES = ["judge", "undo", "apply", "load", "serve", "refit"]
SHARES = [0.4, 0.15, 0.15, 0.05, 0.1, 0.15]


def refit(folder, store):
    """Fit again to the whole store."""
    judged = store.pairs()
    pairs = [
        (a, b, w) if between == BETWEEN else (b, a, w)
        for between, columns in judged.columns.items()
        for a, b, w in zip(*columns, strict=True)
    ]
    given = {"applied": judged.number, "store": folder.place}
    ls.ModelFolder.create(folder.path, fit_model(pairs), **given)


def main():
    path, place, seed = sys.argv[1], sys.argv[2] or None, int(sys.argv[3])
    rng, who = np.random.default_rng(seed), f"person {seed}"
    folder = ls.ModelFolder(path, store=place)
    done, ids, own = Counter(), [], []
    with folder.store() as store:
        for _ in range(int(os.environ["LINKSPREAD_WORKS"])):
            work = str(rng.choice(CHOICES, p=SHARES))
            if work == "judge" or (work == "undo" and not own):
                pair = f"t{rng.integers(4)}", f"i{rng.integers(4)}"
                verdict = str(rng.choice(["must", "cannot", "unsure"]))
                own.append(folder.judge(*pair, verdict, between=BETWEEN, who=who))
                ids.append(own[-1])
            elif work == "undo":
                ids.append(folder.undo(own.pop(), who=who))
            elif work == "apply":
                folder.apply()
            elif work == "load":
                folder = ls.ModelFolder(path, store=place)
            elif work == "refit":
                refit(folder, store)
            else:
                model, number = ls.ModelFolder(path, store=place).load()
                live = LiveModel(model, store, absorbed=number)
                n_wanted = sum(
                    len(columns.weight)
                    for columns in store.pairs(until=live.shown.number).columns.values()
                )
                tables = live.shown.model.links_.pair_tables
                assert sum(len(table.weights) for _, table in tables) == n_wanted
            done[work] += 1
    print(json.dumps({"works": done, "ids": ids}))


if __name__ == "__main__":
    main()
