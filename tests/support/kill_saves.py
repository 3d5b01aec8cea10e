"""A program that saves models in processes of its own and kills them.

It forks before any thread is started, so that a child begins where it stands. It
prints what was found after each kill, as JSON. Run by `test_storage_kills.py`.
"""

import json
import os
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from linkspread import LinkSpreading, load
from linkspread.storage import files
from small_views import SIZES, make_links, make_views

N_KILLS = 50
# All through which a save touches the disk.
OPERATIONS = [(os, "replace"), (os, "fsync"), (os, "unlink"), (os, "open"),
              (files.HashingFile, "write")]  # fmt: skip


def make_models():
    """Return two models of the same views that answer differently."""
    ids = {"text": [f"t{i}" for i in range(SIZES["text"])]}
    links = [make_links("labels", seed) for seed in (1, 2)]
    model = [LinkSpreading(n_neighbors=4, alpha=0.3) for _ in links]
    return [
        m.fit(make_views(), own, ids=ids) for m, own in zip(model, links, strict=True)
    ]


def which_is_there(folder, answers):
    """Return the number of the model in a folder, which must be one of the two."""
    block = load(folder).scores("text", "image")
    (found,) = [k for k, own in enumerate(answers) if np.array_equal(block, own)]
    return found


def start_saving(model, folder, prepare=None):
    """Return the number of a process that saves a model."""
    child = os.fork()
    if child:
        return child
    if prepare is not None:
        prepare()
    model.save(folder)
    os._exit(0)


def die_before(number):
    """Let this process be killed before so many operations on files."""
    done = [0]

    def counted(operation):
        def count(*arguments, **options):
            if done[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            done[0] += 1
            return operation(*arguments, **options)

        return count

    for owner, name in OPERATIONS:
        setattr(owner, name, counted(getattr(owner, name)))


def kill_at_random(models, answers, folder):
    """Kill savers at random moments; return what was there before and after."""
    rng = random.Random(0)
    start = time.perf_counter()
    os.waitpid(start_saving(models[1], folder), 0)
    seconds = time.perf_counter() - start
    found = []
    for _ in range(N_KILLS):
        before = which_is_there(folder, answers)
        child = start_saving(models[1 - before], folder)
        time.sleep(rng.uniform(0, 1.2 * seconds))
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        after = which_is_there(folder, answers)
        found.append([before, after, os.WIFSIGNALED(status)])
    return found


def kill_before_each_operation(models, answers, folder):
    """Kill savers before their first, second, ... operation, until one finishes."""
    found = []
    while True:
        before = which_is_there(folder, answers)
        prepare = partial(die_before, len(found))
        child = start_saving(models[1 - before], folder, prepare)
        status = os.waitpid(child, 0)[1]
        after = which_is_there(folder, answers)
        found.append([before, after, os.WIFSIGNALED(status)])
        if not os.WIFSIGNALED(status):
            return found


def main():
    """Save, kill, load; then save once more, and see what is left behind."""
    folder = Path(sys.argv[1])
    models = make_models()
    answers = [model.scores("text", "image") for model in models]
    models[0].save(folder)
    told = {
        "random": kill_at_random(models, answers, folder),
        "each": kill_before_each_operation(models, answers, folder),
    }
    models[0].save(folder)
    told["left"] = sorted(path.name for path in folder.iterdir())
    print(json.dumps(told))


if __name__ == "__main__":
    main()
