"""A program that writes to a link store from many processes and kills some of them.

It forks before any thread is started. Each writer notes what was acknowledged in a
file, at once. Meanwhile the program itself asks for what is new. It prints as JSON
what it saw. Run by `test_storage_link_store_kills.py`.
"""

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from uuid import UUID

from link_store_places import judge
from linkspread.storage import LinkStore

N_WRITERS, N_EACH = 8, 500
# Writers that are killed, and after how many acknowledgements.
KILLED = {2: 120, 5: 250}


def plan(writer):
    """Return the judgements that a writer will give."""
    return [
        judge(f"writer {writer}", left_id=i, id=str(UUID(int=writer * N_EACH + i)))
        for i in range(N_EACH)
    ]


def start_writer(place, folder, writer):
    """Return the number of a process that gives all judgements of a writer."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        # Without a buffer: what is written is with the system, even if we are killed.
        with open(folder / f"{writer}.txt", "wb", buffering=0) as acknowledged:
            with LinkStore.open(place) as store:
                for judgement in plan(writer):
                    acknowledged.write(f"{store.add(judgement)}\n".encode())
        status = 0
    except BaseException:
        traceback.print_exc()
    os._exit(status)


def read_acknowledged(folder, writer):
    """Return the ids that a writer noted, without one cut short."""
    path = folder / f"{writer}.txt"
    text = path.read_text() if path.exists() else ""
    return text.split("\n")[:-1]


def watch(place, folder, children):
    """Kill some writers midway; return what was seen of the store, and the ends."""
    running, ends, seen = dict(children), {}, []
    with LinkStore.open(place) as store:
        while running:
            for writer in KILLED.keys() & running.keys():
                if len(read_acknowledged(folder, writer)) >= KILLED[writer]:
                    os.kill(running[writer], signal.SIGKILL)
            for writer, child in list(running.items()):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    ends[writer] = os.waitstatus_to_exitcode(status)
                    del running[writer]
            seen += store.changes(after=seen[-1].number if seen else 0)
            time.sleep(0.02)
        seen += store.changes(after=seen[-1].number if seen else 0)
    return seen, ends


def main(place, folder):
    """Print how each writer ended, what it noted, and what was seen of the store."""
    start = time.perf_counter()
    children = {i: start_writer(place, folder, i) for i in range(N_WRITERS)}
    seen, ends = watch(place, folder, children)
    told = {
        "seconds": time.perf_counter() - start,
        "ends": [ends[i] for i in range(N_WRITERS)],
        "acknowledged": [read_acknowledged(folder, i) for i in range(N_WRITERS)],
        "seen": [[one.number, one.id] for one in seen],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
