"""The served page under load at 100,000 + 100,000 items, and killed in the middle.

32 clients search and 4 judge as fast as they are answered, through the JSON interface
of a `linkspread serve` process; every client has one connection. `CrossViewSearch` of
items of `make_views`, 64 and 48 columns, 1 % of the labels known. Then the same again,
and the server is killed halfway and started again, for the large model and for one of
2,000 + 2,000 items: a judge whose judgement was not acknowledged sends it again under
the same key.
``python benchmarks/bench_web.py --n 5000 --seconds 5`` prints one result as JSON.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
import uuid
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import linkspread as ls
from bench_live import BETWEEN, N_CLASSES, Judge
from linkspread.ground.errors import ConflictWarning
from linkspread.storage import LinkStore
from served_model import Connection, ServedModel, free_port, serving

SIZE, SECONDS = 100_000, 60
# Small enough that most judgements are in the model by the time of the kill.
SMALL_SIZE = 2_000
N_SEARCHERS, N_JUDGES = 32, 4
LABELLED = 0.01
# Unequal, so that no cosine is there before the links are learnt.
N_COLUMNS = {"text": 64, "image": 48}
VERDICTS = {1.0: "must", -1.0: "cannot"}


@dataclass
class Load:
    """The measurements of the clients.

    Attributes
    ----------
    searches, judgements : list of float
        Seconds of every answer.
    acknowledged : list of str
        Ids of judgements.
    errors : list of str
        Answers that were refusals, or failed.
    n_lost : int
        Requests without an answer, while no server was there.
    """

    searches: list = field(default_factory=list)
    judgements: list = field(default_factory=list)
    acknowledged: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    n_lost: int = 0
    may_lose: bool = False

    async def ask(self, connection, path, body=None):
        """Return what was answered and in how many seconds; None for no success."""
        start = time.perf_counter()
        try:
            status, content = await connection.ask(path, body)
        except OSError as error:
            self.n_lost += self.may_lose
            self.errors += [] if self.may_lose else [str(error)]
            await asyncio.sleep(0.1)
            return None, 0.0
        if status not in (200, 201):
            self.errors.append(f"{status} {content}")
            return None, 0.0
        return content, time.perf_counter() - start


def fit_model(size, folder):
    """Save a model; the folder may hold it already."""
    if (folder / "manifest.json").is_file():
        return
    data = make_data(size)
    views = {view: X.astype(np.float32) for view, X in data.views().items()}
    rng = np.random.default_rng(0)
    known = {
        view: np.where(rng.random(size) < LABELLED, labels, -1)
        for view, labels in data.labels.items()
    }
    links = ls.Links.from_labels(known)
    ls.CrossViewSearch().fit(views, links).save(folder)


def make_data(size):
    return ls.datasets.make_views(
        size, n_classes=N_CLASSES, n_features=N_COLUMNS, random_state=0
    )


async def search(load, port, size, seed, stopped):
    """Search by one random item after the other."""
    rng, connection = np.random.default_rng(seed), Connection(port)
    while not stopped.is_set():
        source, target = BETWEEN if rng.random() < 0.5 else BETWEEN[::-1]
        item = rng.integers(size)
        path = f"/api/search?source={source}&target={target}&item={item}"
        found, seconds = await load.ask(connection, path)
        if found is not None:
            load.searches.append(seconds)
            if len(found["results"]) != 10:
                load.errors.append(f"{len(found['results'])} results")
    connection.close()


async def judge(load, port, name, pairs, stopped):
    """Judge one pair after the other; send unacknowledged judgements again."""
    connection, pairs = Connection(port), iter(pairs)
    body = None
    while not stopped.is_set():
        body = body or as_body(name, next(pairs))
        kept, seconds = await load.ask(connection, "/api/judgements", body)
        if kept is not None:
            load.judgements.append(seconds)
            load.acknowledged.append(kept["id"])
            body = None
    connection.close()


def as_body(name, pair):
    """Return a judgement as the server takes it."""
    left, right, weight = pair
    return {
        "who": name,
        "source": BETWEEN[0],
        "source_id": str(left),
        "target": BETWEEN[1],
        "target_id": str(right),
        "verdict": VERDICTS[weight],
        "key": str(uuid.uuid4()),
    }


async def put_load(load, port, data, seconds, *, seed, meanwhile=None):
    """Let all clients work for a while, and do something in the middle."""
    stopped, size = asyncio.Event(), len(data.labels[BETWEEN[0]])
    clients = [search(load, port, size, s, stopped) for s in range(N_SEARCHERS)]
    for k in range(N_JUDGES):
        pairs = Judge(data, seed=1000 * seed + k).pairs(20_000)
        clients.append(judge(load, port, f"judge {k}", pairs, stopped))
    running = asyncio.gather(*clients)
    await asyncio.sleep(seconds / 2)
    if meanwhile is not None:
        await asyncio.to_thread(meanwhile)
    await asyncio.sleep(seconds / 2)
    stopped.set()
    await running


def run_load(folder, data, seconds, *, workers):
    """Return what 36 clients saw of a server, and what its store then held."""
    load = Load()
    forget(folder)
    with serving(folder, workers=workers) as server:
        warm_up(server, data)
        cpu = os.getloadavg()[0]
        asyncio.run(put_load(load, server.port, data, seconds, seed=workers))
        number = last_number(folder)
        n_behind = number - server.ask("/api/state")["number"]
    return summary(load, seconds) | {
        "size": len(data.labels[BETWEEN[0]]),
        "workers": workers,
        "n_behind": n_behind,
        "load_average": [cpu, os.getloadavg()[0]],
        "n_stored": number,
        "n_missing": count_missing(folder, load.acknowledged),
    }


def run_kill(folder, data, seconds):
    """Return what the clients saw of a server that was killed and started again."""
    load, port, again = Load(may_lose=True), free_port(), {}
    forget(folder)
    first = ServedModel(folder, port=port)
    first.wait()
    warm_up(first, data)

    def kill_and_restart():
        first.kill()
        again["n_before"] = len(load.acknowledged)
        again["server"] = ServedModel(folder, port=port)
        again["seconds"] = again["server"].wait()

    try:
        work = put_load(load, port, data, seconds, seed=9, meanwhile=kill_and_restart)
        asyncio.run(work)
        number = last_number(folder)
        again["server"].wait_for(number)
    finally:
        first.stop()
        if "server" in again:
            again["server"].stop()
    return summary(load, seconds) | {
        "size": len(data.labels[BETWEEN[0]]),
        "load_average": os.getloadavg()[0],
        "n_before_kill": again["n_before"],
        "restart_seconds": again["seconds"],
        "n_unanswered": load.n_lost,
        "n_stored": number,
        "n_missing": count_missing(folder, load.acknowledged),
    }


def warm_up(server, data):
    """Judge and search once, as the first judgement is by far the slowest."""
    server.ask("/api/judgements", as_body("warm up", Judge(data, seed=77).pairs(1)[0]))
    number = server.ask("/api/judgements?n=1")["judgements"][0]["number"]
    server.wait_for(number)
    for source, target in (BETWEEN, BETWEEN[::-1]):
        server.ask(f"/api/search?source={source}&target={target}&item=0")


def summary(load, seconds):
    """Return the figures of a run."""
    return {
        "seconds": seconds,
        "search": percentiles(load.searches),
        "judgement": percentiles(load.judgements),
        "n_searches": len(load.searches),
        "n_acknowledged": len(load.acknowledged),
        "n_twice": len(load.acknowledged) - len(set(load.acknowledged)),
        "n_errors": len(load.errors),
        "errors": sorted(set(load.errors))[:5],
    }


def percentiles(seconds):
    """Return the median and the 99th percentile of some times."""
    p50, p99 = np.percentile(seconds or [np.nan], [50, 99])
    return {"seconds_p50": float(p50), "seconds_p99": float(p99)}


def forget(folder):
    """Remove all judgements."""
    for path in folder.glob("judgements.db*"):
        path.unlink()


def last_number(folder):
    """Return how many rows the store of a model has."""
    with LinkStore.open(folder / "judgements.db") as store:
        return store.last_number()


def count_missing(folder, acknowledged):
    """Return how many acknowledged judgements a store does not have."""
    with LinkStore.open(folder / "judgements.db") as store:
        stored = {row.id for row in store.judgements()}
    return len(set(acknowledged) - stored)


def main(size=SIZE, seconds=SECONDS, model=None, *, workers=(1,)):
    """Return the figures under load, and those around kills."""
    # Pairs drawn at random may be drawn twice.
    warnings.simplefilter("ignore", ConflictWarning)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(model or Path(temporary) / "model")
        fit_model(size, folder)
        small = Path(temporary) / "small"
        fit_model(SMALL_SIZE, small)
        data, few = make_data(size), make_data(SMALL_SIZE)
        return {
            "size": size,
            "model": "CrossViewSearch",
            "n_searchers": N_SEARCHERS,
            "n_judges": N_JUDGES,
            "loads": [run_load(folder, data, seconds, workers=n) for n in workers],
            "kills": [
                run_kill(folder, data, seconds),
                run_kill(small, few, seconds / 2),
            ],
        }


def rows(result):
    """Return a line for each number of workers, and one for each kill."""
    names = {1: "one process", 2: "two processes"}
    cases = [(names[own["workers"]], own) for own in result["loads"]]
    cases += [("killed, started again", own) for own in result["kills"]]
    return [
        {
            "server": name,
            "items": f"{own['size']:,} + {own['size']:,}",
            "searches per s": f"{own['n_searches'] / own['seconds']:.0f}",
            **_times("search", own["search"]),
            **_times("judgement", own["judgement"]),
            "acknowledged": f"{own['n_acknowledged']:,}",
            "of these lost": own["n_missing"],
            "rows behind at the end": own.get("n_behind", ""),
            "started again in s": f"{own['restart_seconds']:.0f}"
            if "restart_seconds" in own
            else "",
            "errors": own["n_errors"],
        }
        for name, own in cases
    ]


def headline(result):
    """Return the sentence for the front page."""
    one, size = result["loads"][0], result["size"]
    n_lost = sum(own["n_missing"] for own in result["kills"])
    n_kept = sum(own["n_acknowledged"] for own in result["kills"])
    then = "" if "model" in result else " (LinkSpreading, an older server)"
    return [
        f"The page of {size:,} + {size:,} items, {result['n_searchers']} clients "
        f"searching and {result['n_judges']} judging without a pause{then}: "
        f"{one['n_searches'] / one['seconds']:.0f} searches a second, p99 "
        f"{one['search']['seconds_p99']:.2f} s, judgements p99 "
        f"{one['judgement']['seconds_p99']:.2f} s, {one['n_errors']} errors. Killed in "
        f"the middle, it lost {n_lost} of {n_kept:,} acknowledged judgements."
    ]


def _times(name, case):
    """Return two times of a table."""
    return {
        f"{name} p50 ms": f"{1e3 * case['seconds_p50']:.0f}",
        f"{name} p99 ms": f"{1e3 * case['seconds_p99']:.0f}",
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=SIZE, help="items of each view")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--workers", type=int, nargs="+", default=(1,))
    parser.add_argument("--model", help="folder of a model that is kept")
    options = parser.parse_args()
    result = main(options.n, options.seconds, options.model, workers=options.workers)
    print(json.dumps(result, indent=2))
