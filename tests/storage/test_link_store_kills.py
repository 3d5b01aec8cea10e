"""Writers are killed: what was acknowledged is there, once."""

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kill_link_writers import KILLED, N_EACH, N_WRITERS, plan
from linkspread.storage import LinkStore
from postgres_server import running_server

pytest.importorskip("sqlalchemy")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork"),
]

PROGRAM = Path(__file__).parents[1] / "support" / "kill_link_writers.py"


def run_writers(place, folder):
    command = [sys.executable, PROGRAM, str(place), folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=200)
    assert done.returncode == 0
    return json.loads(done.stdout)


def check(place, told):
    """Compare what writers were told with what is stored."""
    ends = [-9 if writer in KILLED else 0 for writer in range(N_WRITERS)]
    assert told["ends"] == ends
    acknowledged = [name for names in told["acknowledged"] for name in names]
    for writer, names in enumerate(told["acknowledged"]):
        assert len(names) == N_EACH or writer in KILLED
        assert len(names) < N_EACH or writer not in KILLED
    with LinkStore.open(place) as store:
        rows = list(store.changes())
        stored = Counter(row.id for row in rows)
        assert set(acknowledged) <= set(stored)
        assert set(stored.values()) == {1}
        # At most one for each killed writer was stored and not acknowledged.
        assert len(stored) - len(set(acknowledged)) <= len(KILLED)
        assert [row.number for row in rows] == list(range(1, len(rows) + 1))
        # Who asked again and again for what is new has missed nothing.
        assert told["seen"] == [[row.number, row.id] for row in rows]
        # Giving everything again stores what is missing, and nothing twice.
        everything = [one for writer in range(N_WRITERS) for one in plan(writer)]
        store.add_many(everything)
        assert sorted(one.id for one in store.judgements()) == sorted(
            one.id for one in everything
        )
    rate = len(rows) / told["seconds"]
    print(f"{len(rows)} judgements in {told['seconds']:.1f} s, {rate:.0f} a second")


def test_sqlite_loses_nothing_when_writers_are_killed(tmp_path):
    place = tmp_path / "judgements.db"
    told = run_writers(place, tmp_path)
    check(place, told)
    connection = sqlite3.connect(place)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_postgres_loses_nothing_when_writers_are_killed(tmp_path):
    with running_server() as url:
        check(url, run_writers(url, tmp_path))
