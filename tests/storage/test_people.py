"""People of a store, and the queries that it keeps."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from linkspread.ground.errors import LinkspreadError, StoreError
from linkspread.storage import KeptItem, LinkStore
from linkspread.storage.link_store import digest_of


@pytest.fixture
def store(tmp_path):
    with LinkStore.open(tmp_path / "judgements.db") as opened:
        yield opened


def test_secrets_are_stored_as_hashes(store, tmp_path):
    first = store.people.invite("Ann", role="judge")
    second = store.people.invite(" Ann ", role="editor")
    bob = store.people.invite("Bob", role="judge")
    people = store.people.all()
    assert [(own.name, own.role) for own in people] == [
        ("Ann", "editor"),
        ("Bob", "judge"),
    ]
    # A new secret replaces the old one.
    assert [own.digest for own in people] == [digest_of(second), digest_of(bob)]
    store.people.remove("Bob")
    assert [own.name for own in store.people.all()] == ["Ann"]
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(own.encode() in stored for own in (first, second, bob))


@pytest.mark.parametrize(
    ("name", "role", "argument"),
    [("", "judge", "name"), ("a" * 61, "judge", "name"), ("Ann", "king", "role")],
)
def test_people_have_a_name_and_a_role(store, name, role, argument):
    with pytest.raises(LinkspreadError, match=argument):
        store.people.invite(name, role=role)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_kept_items_come_back_to_the_bit(store, make):
    rows = make(np.array([[0.0, 1.5, 0.0, -2.0]], dtype=np.float32))
    store.kept.add(KeptItem("text", "words:a", "a", rows))
    store.kept.add(KeptItem("text", "words:a", "another", rows * 2))
    store.kept.add(KeptItem("image", "picture:b", b"png", rows))
    (found,) = store.kept.read("text", ["words:a", "words:b"])
    assert (found.id, found.content) == ("words:a", "a")
    assert sparse.issparse(found.rows) == sparse.issparse(rows)
    assert_array_equal(
        sparse.csr_array(found.rows).toarray(), sparse.csr_array(rows).toarray()
    )
    assert store.kept.read("image", ["picture:b"])[0].content == b"png"


def test_damaged_features_are_refused(store):
    from linkspread.storage.link_store import KEPT, tables

    row = {"view": "text", "id": "words:a", "text": "a", "features": b"PK\x03\x04"}
    insert = tables().tables[KEPT].insert().values(**row)
    store._database.write(lambda connection: connection.execute(insert))
    with pytest.raises(StoreError, match="features of a kept item"):
        store.kept.read("text", ["words:a"])
