"""The link store, in SQLite and in a PostgreSQL server of its own."""

import os
import sqlite3
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from link_store_places import PAIR, empty_database, execute, judge
from linkspread import Links
from linkspread.ground.errors import LinkError, LinkspreadError, StoreError
from linkspread.storage import LinkStore, Undo, database, link_store

Connection = pytest.importorskip("sqlalchemy").Connection


@pytest.fixture
def store(place):
    with LinkStore.open(place) as opened:
        yield opened


def test_what_is_given_comes_back_in_order_also_after_opening_again(place):
    zone = timezone(timedelta(hours=5))
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=zone)
    given = [
        judge(at=at, note="größer 😀\n", weight=0.1),
        judge("bob", "cannot", left_id=-(2**63) + 1, right_id="7"),
        judge("чен", "unsure", right_view="text"),
    ]
    with LinkStore.open(place) as store:
        assert store.add(given[0]) == given[0].id
        assert store.add_many(given[1:]) == [given[1].id, given[2].id]
    with LinkStore.open(place) as store:
        found = list(store.judgements())
    assert found == [replace(one, number=i) for i, one in enumerate(given, 1)]
    assert [one.at.tzinfo for one in found] == [UTC] * 3


@pytest.fixture(scope="module")
def any_store(tmp_path_factory):
    with LinkStore.open(tmp_path_factory.mktemp("any") / "a.db") as opened:
        yield opened


@settings(deadline=None, max_examples=60)
@given(
    text=st.text(
        st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1
    ),
    number=st.integers(-(2**63) + 1, 2**63 - 1),
    weight=st.floats(min_value=1e-6, max_value=1e6),
    at=st.datetimes(timezones=st.timezones(), min_value=datetime(2, 1, 1),
                    max_value=datetime(9998, 1, 1)),
)  # fmt: skip
def test_any_text_number_and_time_comes_back(any_store, text, number, weight, at):
    # In UTC: times of a zone that occur twice a year equal nothing.
    given = judge(text[:200], left_id=text, right_id=number, weight=weight, at=at)
    any_store.add(given)
    (found,) = any_store.judgements(after=any_store.last_number() - 1)
    assert replace(found, number=None) == replace(given, at=at.astimezone(UTC))


def test_the_same_id_is_stored_once_and_belongs_to_one_judgement(store):
    first = judge()
    later = replace(first, at=first.at + timedelta(seconds=1), id=first.id.upper())
    assert store.add(first) == store.add(later) == first.id
    assert store.add_many([later, judge("bob"), later])[0] == first.id
    assert [one.at for one in store.judgements()][0] == first.at
    assert store.count() == store.last_number() == 2
    other = replace(first, verdict="cannot")
    with pytest.raises(LinkError, match="must be unique, but another"):
        store.add(other)
    fresh = judge("cem")
    with pytest.raises(LinkError, match="must be unique, but another"):
        store.add_many([fresh, replace(fresh, note="x")])
    assert store.count() == 2


def test_all_of_many_are_stored_or_none(store):
    store.add(judge(id="00000000-0000-0000-0000-000000000001"))
    clash = judge("bob", id="00000000-0000-0000-0000-000000000001")
    with pytest.raises(LinkError, match="must be unique"):
        store.add_many([judge("cem"), clash])
    with pytest.raises(LinkError, match="`verdict`"):
        store.add_many([judge("cem"), judge(verdict="maybe")])
    assert store.add_many([]) == []
    assert [one.who for one in store.judgements()] == ["ann"]


@pytest.mark.slow
def test_many_more_than_fit_a_statement_or_a_page(store, monkeypatch):
    given = [judge(left_id=i) for i in range(2500)]
    store.add_many(given)
    store.add_many([*given, judge("bob")])
    assert [one.number for one in store.judgements()] == list(range(1, 2502))
    assert [one.left_id for one in store.judgements(after=1999, limit=3)] == [
        1999, 2000, 2001,
    ]  # fmt: skip
    assert list(store.judgements(limit=0)) == list(store.changes(after=9999)) == []
    monkeypatch.setattr(link_store, "PAGE", 2)
    assert [one.number for one in store.changes(after=2496)] == list(range(2497, 2502))


def test_an_undo_is_a_row_and_what_it_takes_back_no_longer_counts(store):
    first, second = store.add(judge()), store.add(judge("bob"))
    undo = store.undo(first.upper(), who="bob", note="a slip")
    assert store.undo(first, who="cem") == undo
    assert [one.id for one in store.judgements()] == [second]
    assert [one.id for one in store.judgements(active_only=False)] == [first, second]
    assert (store.count(), store.count(active_only=False)) == (1, 2)
    (change,) = store.changes(after=2)
    expected = Undo(who="bob", takes_back=first, note="a slip", id=undo, number=3)
    assert replace(change, at=expected.at) == expected
    assert abs(change.at - datetime.now(UTC)) < timedelta(minutes=1)
    # What was taken back is still there: adding it again adds nothing.
    assert store.add(judge(id=first)) == first
    assert store.last_number() == 3


def test_an_undo_needs_a_judgement(store):
    undo = store.undo(store.add(judge()), who="ann")
    with pytest.raises(LinkError, match="is an undo, which cannot be undone"):
        store.undo(undo, who="ann")
    with pytest.raises(LinkError, match="must be of a judgement in this store, got 0"):
        store.undo("00000000-0000-0000-0000-000000000001", who="ann")
    with pytest.raises(LinkError, match="`id` must be a UUID such as .*got '7'"):
        store.undo("7", who="ann")
    with pytest.raises(LinkError, match="`who` must be a text of 1 to 200 characters"):
        store.undo(undo, who="")
    with pytest.raises(LinkError, match="`id` must be unique"):
        store.add(judge(id=undo))
    assert store.last_number() == 2


def test_a_reader_sees_the_state_it_began_with(store, monkeypatch):
    monkeypatch.setattr(link_store, "PAGE", 2)
    ids = store.add_many([judge(left_id=i) for i in range(6)])
    store.undo(ids[0], who="ann")
    reading = store.judgements()
    start = list(islice(reading, 2))
    store.undo(ids[4], who="ann")
    store.add(judge("bob"))
    assert [one.id for one in [*start, *reading]] == ids[1:]
    assert [one.left_id for one in store.judgements()] == [1, 2, 3, 5, "t1"]


def test_threads_may_share_a_store_and_read_while_others_write(store):
    def write(name):
        for i in range(20):
            store.add(judge(f"writer {name}", left_id=i))

    writers = [threading.Thread(target=write, args=[name]) for name in range(3)]
    for writer in writers:
        writer.start()
    seen = []
    while any(writer.is_alive() for writer in writers):
        seen += store.changes(after=seen[-1].number if seen else 0)
    seen += store.changes(after=len(seen))
    assert [one.number for one in seen] == list(range(1, 61))
    for name in range(3):
        own = [one.left_id for one in seen if one.who == f"writer {name}"]
        assert own == list(range(20))


def test_pairs_make_links(store):
    store.add_many([judge(), judge("bob", left_id="t2", verdict="cannot", weight=2.5)])
    pairs = store.pairs()
    (between,) = pairs.columns
    links = Links.from_pairs(
        list(zip(*pairs.columns[between], strict=True)), between=between
    )
    same = Links.from_pairs(
        [(7, "t1", 1.0), (7, "t2", -2.5)], between=("image", "text")
    )
    assert repr(links) == repr(same)
    ids = {"image": [6, 7], "text": ["t2", "t1"]}
    block = [one.resolve(ids).between("image", "text") for one in (links, same)]
    assert (block[0].todense() == block[1].todense()).all()
    assert pairs.number == store.last_number() == 2


def test_pairs_of_an_earlier_state_are_those_read_then(store):
    first = store.add(judge())
    states = [store.pairs()]
    for change in (
        lambda: store.add(judge("bob", left_id="t2")),
        lambda: store.undo(first, who="ann"),
        lambda: store.add(judge("bob", left_id="t2", verdict="cannot")),
    ):
        change()
        states.append(store.pairs())
    for number, wanted in enumerate(states, start=1):
        then = store.pairs(until=number)
        assert then.number == wanted.number == number
        assert repr(then.columns) == repr(wanted.columns)
    assert store.pairs(until=0).columns == {}
    assert store.pairs(until=99).number == 4
    with pytest.raises(LinkspreadError, match="`until` must be an integer from 0"):
        store.pairs(until=-1)


def test_an_empty_store_is_empty(store):
    assert store.count() == store.last_number() == store.pairs().number == 0
    assert list(store.changes()) == []
    assert store.pairs().columns == {}


def test_a_closed_store_says_so(store):
    store.close()
    store.close()
    with pytest.raises(StoreError, match="must be open, and .* was closed"):
        store.count()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_fork_must_open_the_store_itself(store, monkeypatch):
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    with pytest.raises(StoreError, match=f"was opened by process {here}. Call"):
        store.add(judge())
    monkeypatch.undo()
    assert store.count() == 0


@pytest.mark.parametrize("value", [-1, 1.5, "1", True])
def test_numbers_must_be_numbers(store, value):
    with pytest.raises(LinkspreadError, match="`after` must be an integer from 0"):
        store.changes(after=value)
    with pytest.raises(LinkspreadError, match="`limit` must be an integer from 0"):
        store.judgements(limit=value)


def test_commits_wait_for_the_disk(store, place):
    database = store._database
    if "://" not in str(place):
        pragmas = {
            "synchronous": 2,
            "journal_mode": "wal",
            "foreign_keys": 1,
            "wal_autocheckpoint": 0,
        }
        for pragma, wanted in pragmas.items():
            ask = f"PRAGMA {pragma}"
            assert (
                database.read(lambda c, q=ask: c.exec_driver_sql(q).scalar()) == wanted
            )
        return
    execute(place, "ALTER DATABASE judged SET synchronous_commit = off")
    with LinkStore.open(place) as again:
        show = "SHOW synchronous_commit"
        found = again._database.read(lambda c: c.exec_driver_sql(show).scalar())
    assert found == "on"
    assert execute(place, show) == [("off",)]


def test_a_writer_of_sqlite_takes_its_lock_before_it_reads(tmp_path):
    def write(connection):
        other = sqlite3.connect(tmp_path / "a.db", timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()

    with LinkStore.open(tmp_path / "a.db") as store:
        store._database.write(write)


def test_a_long_log_is_folded_into_the_file(tmp_path, monkeypatch):
    link, log = tmp_path / "link.db", tmp_path / "a.db-wal"
    link.symlink_to(tmp_path / "a.db")
    with LinkStore.open(link) as store:
        store.add_many([judge(left_id=i) for i in range(100)])
        assert log.stat().st_size > 10_000
        monkeypatch.setattr(database, "MAX_LOG_BYTES", 10_000)
        reading = store.judgements()
        next(reading)
        store.add(judge("bob"))
        assert log.stat().st_size == 0
        assert len(list(reading)) == 99
        assert store.count() == 101


def test_postgres_hands_out_numbers_in_the_order_of_commits(server):
    """A writer that is slow to commit must hold the others back."""
    psycopg = pytest.importorskip("psycopg")
    with empty_database(server) as url, LinkStore.open(url) as store:
        store.add(judge())
        slow = psycopg.connect(url)
        slow.execute("SELECT version FROM linkspread_link_store FOR UPDATE")
        writer = threading.Thread(target=store.add, args=[judge("bob")])
        writer.start()
        writer.join(0.5)
        assert writer.is_alive()
        assert store.last_number() == 1
        slow.close()
        writer.join(30)
        assert store.last_number() == 2


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize("form", ["path", "text", "relative", "url", "absolute url"])
def test_a_place_may_be_written_in_several_ways(place, form, monkeypatch):
    monkeypatch.chdir(place.parent)
    forms = {
        "path": place,
        "text": str(place),
        "relative": place.name,
        "url": f"sqlite:///{place.name}",
        "absolute url": f"sqlite:///{place}",
    }
    with LinkStore.open(forms[form]) as store:
        store.add(judge())
        assert repr(store) == f"<LinkStore: {str(forms[form])[10 * ('url' in form) :]}>"
    # The log is folded into the file when the last one closes it.
    assert os.listdir(place.parent) == [place.name]
    with LinkStore.open(place) as store:
        assert store.count() == 1


def test_a_pair_is_given_by_names():
    with pytest.raises(TypeError, match="positional"):
        type(judge())("ann", *PAIR.values(), "must")
