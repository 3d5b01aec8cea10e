"""A copy of a store that is written to is a whole store of some moment."""

import sqlite3
import threading
from contextlib import closing

import pytest

from link_store_places import empty_database, judge
from linkspread.ground.errors import LinkspreadError, StoreError
from linkspread.storage import LinkStore


def test_copies_taken_while_somebody_judges_are_whole_and_restore(tmp_path):
    place, stop = tmp_path / "judgements.db", threading.Event()
    acknowledged: list[str] = []

    def write():
        # Each judgement of a batch is stored, or none; every second one is undone.
        while not stop.is_set():
            ids = store.add_many([judge(left_id=i) for i in range(5)])
            store.undo(ids[0], who="ann")
            acknowledged.extend(ids)

    with LinkStore.open(place) as store:
        writer = threading.Thread(target=write)
        writer.start()
        known = []
        for k in range(8):
            before = len(acknowledged)
            store.backup(tmp_path / f"copy {k}.db")
            known.append(before)
        stop.set()
        writer.join()
        rows = list(store.changes())
    for k, n_known in enumerate(known):
        with LinkStore.open(tmp_path / f"copy {k}.db") as copy:
            found = list(copy.changes())
            # A beginning of the store, with all that was acknowledged before.
            assert found == rows[: len(found)] and len(found) % 6 in (0, 5)
            ids = {row.id for row in found}
            assert ids >= set(acknowledged[:n_known])
    assert not list(tmp_path.glob(".linkspread-*"))
    # Restored, it is written to again, after its last row.
    (tmp_path / "copy 7.db").replace(place)
    with LinkStore.open(place) as store:
        store.add(judge("bob"))
        assert store.last_number() == len(found) + 1


def test_a_copy_holds_what_is_only_in_the_log(tmp_path):
    with LinkStore.open(tmp_path / "a.db") as store:
        store.add(judge())
        # A plain copy of the file would lose it.
        (tmp_path / "plain.db").write_bytes((tmp_path / "a.db").read_bytes())
        with closing(sqlite3.connect(tmp_path / "plain.db")) as plain:
            with pytest.raises(sqlite3.OperationalError, match="no such table"):
                plain.execute("SELECT * FROM linkspread_judgements")
        store.backup(tmp_path / "b.db")
        with pytest.raises(LinkspreadError, match="`path` must be new"):
            store.backup(tmp_path / "b.db")
        store.add(judge("bob"))
        store.backup(tmp_path / "b.db", overwrite=True)
    with LinkStore.open(tmp_path / "b.db") as copy:
        assert [one.who for one in copy.judgements()] == ["ann", "bob"]


@pytest.mark.slow
def test_a_server_is_copied_by_its_own_program(server):
    with empty_database(server) as url, LinkStore.open(url) as store:
        with pytest.raises(StoreError, match="must be an SQLite file .* `pg_dump`"):
            store.backup("copy.db")
