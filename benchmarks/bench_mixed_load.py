"""A page under mixed load for an hour: memory and latency at both ends.

Visitors search, judge, ask why a score is what it is, look at maps and upload pictures,
all at once and without a pause; the server has two cores with them.

``python benchmarks/bench_mixed_load.py --n 2000 --minutes 1`` prints one result; with
``--save`` it is stored.
"""

import argparse
import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import harness
import linkspread as ls
from bench_web import as_body, count_missing
from linkspread.storage import LinkStore
from served_model import START_SECONDS, Connection, free_port

SIZE, MINUTES = 100_000, 60.0
N_PAIRS, N_CLASSES, N_FEATURES = 400, 20, 32
BETWEEN = ("text", "image")
# How many visitors do each, and seconds that they pause in between.
VISITORS = {
    "search": (4, 0.05),
    "judge": (2, 0.5),
    "why": (1, 0.5),
    "map": (1, 5.0),
    "upload": (1, 2.0),
}
FOLDER, PORT = "LINKSPREAD_BENCH_MODEL", "LINKSPREAD_BENCH_PORT"
# Part of the time that counts as one end, and the start that is left out: caches fill.
END, WARM_UP = 0.2, 0.05


def make_data(size):
    return ls.datasets.make_views(
        size, n_classes=N_CLASSES, n_features=N_FEATURES, random_state=0
    )


def make_ids(size):
    return {view: [f"{view[0]}{k}" for k in range(size)] for view in BETWEEN}


def make_pairs(data, n, seed):
    """Return judged pairs, half of them of one class."""
    rng, size = np.random.default_rng(seed), len(data.labels["text"])
    left, right = rng.integers(size, size=n), rng.integers(size, size=n)
    for k in range(0, n, 2):
        same = np.flatnonzero(data.labels["image"] == data.labels["text"][left[k]])
        right[k] = rng.choice(same)
    is_same = data.labels["text"][left] == data.labels["image"][right]
    weights = np.where(is_same, 1.0, -1.0)
    return [
        (f"t{i}", f"i{j}", float(w))
        for i, j, w in zip(left, right, weights, strict=True)
    ]


def fit(size, folder):
    """Fit and save the model that is served."""
    data = make_data(size)
    links = ls.Links.from_pairs(make_pairs(data, N_PAIRS, seed=1), between=BETWEEN)
    views = {view: X.astype(np.float32) for view, X in data.views().items()}
    model = ls.CrossViewSearch().fit(views, links, ids=make_ids(size))
    ls.ModelFolder.create(folder, model)


def picture(color):
    """Return a small picture as PNG."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (320, 240), tuple(color)).save(file, "png")
    return file.getvalue()


def make_features(items, root):
    """Return contents of the items: words, and one picture for all."""
    from PIL import Image

    def transform(view, contents):
        return np.stack(
            [
                np.resize(np.asarray(own, dtype=float).mean(axis=(0, 1)), N_FEATURES)
                for own in contents
            ]
        )

    (root / "p.png").write_bytes(picture((200, 80, 40)))
    return SimpleNamespace(
        ids={view: own.ids for view, own in items.items()},
        kinds={"text": "text", "image": "picture"},
        contents={
            "text": [f"text number {k}" for k in range(items["text"].n_items)],
            "image": ["p.png"] * items["image"].n_items,
        },
        labels={},
        root=root,
        transform=transform,
        picture=lambda view, row: Image.open(root / "p.png"),
    )


def make_app():
    """Return the application that is measured."""
    from linkspread.web import create_app
    from linkspread.web.server import read_settings

    folder = ls.ModelFolder(os.environ[FOLDER])
    model, number = folder.load()
    features = make_features(model.items_, folder.path.parent)
    return create_app(
        model,
        folder.store(),
        features=features,
        absorbed=number,
        settings=read_settings(),
    )


def run_server():
    """Serve the model of this process's environment."""
    from linkspread.web import Settings, serve

    settings = Settings(requests_per_second=1e6)
    serve("bench_mixed_load:make_app", settings, port=int(os.environ[PORT]))


class Load:
    """What the visitors saw: the kind, time and seconds of every answer."""

    def __init__(self, port, data, seconds):
        self.port, self.data, self.size = port, data, len(data.labels["text"])
        self.start, self.seconds = time.perf_counter(), seconds
        self.seen, self.errors, self.ids = [], Counter(), []
        self.memory = []

    @property
    def is_over(self):
        """Whether the time is over."""
        return time.perf_counter() - self.start > self.seconds

    async def visit(self, kind, seed, pause):
        """Do one thing after the other until the time is over."""
        rng, connection = np.random.default_rng(seed), Connection(self.port)
        judged = (
            iter(make_pairs(self.data, 100_000, seed=seed)) if kind == "judge" else None
        )
        while not self.is_over:
            began = time.perf_counter()
            try:
                if kind == "upload":
                    status = await asyncio.to_thread(self.upload, rng)
                elif kind == "map":
                    status = await asyncio.to_thread(self.draw_map)
                else:
                    status = await self.ask(kind, rng, connection, judged)
            except OSError as error:
                status = str(error)[:40]
            if status in (200, 201):
                self.seen.append(
                    (kind, began - self.start, time.perf_counter() - began)
                )
            else:
                self.errors[f"{kind}: {status}"] += 1
            await asyncio.sleep(pause)
        connection.close()

    async def ask(self, kind, rng, connection, judged):
        """Search, judge or ask why; return the status."""
        source, target = BETWEEN if rng.random() < 0.5 else BETWEEN[::-1]
        item, found = (f"{v[0]}{rng.integers(self.size)}" for v in (source, target))
        way = f"source={source}&target={target}&item={item}"
        path, body = f"/api/search?{way}", None
        if kind == "why":
            path = f"/api/explanation?{way}&found={found}"
        if kind == "judge":
            path, body = "/api/judgements", as_body(f"judge {id(judged)}", next(judged))
        status, content = await connection.ask(path, body)
        if kind == "judge" and status == 201:
            self.ids.append(content["id"])
        return status

    def draw_map(self):
        """Look at the map; return the status."""
        return self.get("/map?source=text&target=image")[0]

    def upload(self, rng):
        """Upload a picture and see what is found."""
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        home = f"http://127.0.0.1:{self.port}/"
        with opener.open(home, timeout=120) as page:
            token = re.search(r'data-token="([0-9a-f]{64})"', page.read().decode())[1]
        fields = b'--x\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n'
        fields += token.encode() + b"\r\n--x\r\nContent-Disposition: form-data; "
        fields += b'name="picture"; filename="a.png"\r\n\r\n'
        fields += picture(rng.integers(256, size=3)) + b"\r\n--x--\r\n"
        kind = {"Content-Type": "multipart/form-data; boundary=x"}
        request = urllib.request.Request(f"{home}upload", data=fields, headers=kind)
        with opener.open(request, timeout=120) as answer:
            answer.read()
            return answer.status

    def get(self, path):
        """Return the status and the content of an answer."""
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.port}{path}", timeout=120
        ) as answer:
            return answer.status, answer.read()

    async def watch(self, process):
        """Note the memory of the server now and then."""
        while not self.is_over:
            self.memory.append((time.perf_counter() - self.start, resident(process)))
            await asyncio.sleep(self.seconds / 200)

    async def run(self, process):
        """Let all visitors work until the time is over."""
        clients = [self.watch(process)]
        for k, (kind, (n, pause)) in enumerate(VISITORS.items()):
            clients += [self.visit(kind, 100 * k + i, pause) for i in range(n)]
        await asyncio.gather(*clients)


def resident(process):
    """Return the memory of a process in bytes."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def wait_for(port, process):
    """Wait until the server answers."""
    end = time.perf_counter() + START_SECONDS
    while time.perf_counter() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=60):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the server did not start")


def main(size=SIZE, minutes=MINUTES):
    """Return what visitors and server saw at both ends of the time."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, port = Path(temporary) / "model", free_port()
        fit(size, folder)
        own = {**os.environ, FOLDER: str(folder), PORT: str(port)}
        own["PYTHONPATH"] = os.pathsep.join([str(harness.FOLDER), *sys.path])
        with (Path(temporary) / "log").open("wb") as log:
            command = [sys.executable, __file__, "--serve"]
            process = subprocess.Popen(command, env=own, stderr=log)
        try:
            wait_for(port, process)
            load = Load(port, make_data(size), 60 * minutes)
            asyncio.run(load.run(process))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        return summary(load, folder) | {"size": size, "minutes": minutes}


def summary(load, folder):
    """Return the figures of a run."""
    total = load.seconds
    spans = {
        "first": (WARM_UP * total, (WARM_UP + END) * total),
        "last": ((1 - END) * total, total),
    }
    kinds = {}
    for kind in VISITORS:
        kinds[kind] = {"n": sum(own[0] == kind for own in load.seen)}
        for end, (low, high) in spans.items():
            times = [s for k, at, s in load.seen if k == kind and low <= at <= high]
            p50, p99 = np.percentile(times or [np.nan], [50, 99])
            kinds[kind][end] = {"n": len(times), "p50": float(p50), "p99": float(p99)}
    memory = {
        end: float(np.median([m for at, m in load.memory if low <= at <= high]))
        for end, (low, high) in spans.items()
    }
    with LinkStore.open(folder / "judgements.db") as store:
        n_stored = store.count()
    return {
        "kinds": kinds,
        "memory": memory,
        "errors": dict(load.errors),
        "n_judged": len(load.ids),
        "n_stored": n_stored,
        "n_missing": count_missing(folder, load.ids),
    }


def rows(result):
    """Return a line for each kind of request, and one for the memory."""
    lines = []
    for kind, own in result["kinds"].items():
        line = {"requests": kind, "answered": f"{own['n']:,}"}
        for name in ("p50", "p99"):
            first, last = own["first"][name], own["last"][name]
            line |= {
                f"{name} first ms": f"{1e3 * first:.0f}",
                f"{name} last ms": f"{1e3 * last:.0f}",
                f"{name} last / first": f"{last / first:.2f}",
            }
        lines.append(line)
    return lines


def table(result):
    """Return the table with sentences on memory, errors and judgements."""
    from run import markdown

    first, last = result["memory"]["first"], result["memory"]["last"]
    n_errors = sum(result["errors"].values())
    return "\n\n".join(
        [
            f"{result['size']:,} + {result['size']:,} items, {result['minutes']:g} "
            f"minutes; the first and the last {100 * END:.0f} % of the time, after "
            f"{100 * WARM_UP:.0f} % to warm up.",
            markdown(rows(result)),
            f"Memory of the server {first / 1e6:,.0f} MB, then {last / 1e6:,.0f} MB "
            f"({last / first:.2f}). {n_errors:,} requests failed. Of "
            f"{result['n_judged']:,} acknowledged judgements {result['n_missing']:,} "
            "were lost.",
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=SIZE, help="items of each view")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--save", action="store_true", help="store the result")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        run_server()
    else:
        found = main(options.n, options.minutes)
        print(json.dumps(found, indent=2))
        print(table(found))
        if options.save:
            harness.save("mixed_load", found)
