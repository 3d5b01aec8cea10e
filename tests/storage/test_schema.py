"""Objects as trees and arrays: what is shared stays shared, the rest is refused."""

from dataclasses import dataclass
from typing import Any, Literal

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from linkspread.ground.errors import ModelError
from linkspread.storage import schema
from linkspread.storage.folder import Content
from linkspread.storage.schema import (
    Matrix,
    Positions,
    Registry,
    Stored,
    Vector,
    make_csr,
    rule_of,
)


@dataclass(frozen=True, eq=False)
class Node:
    values: Any
    inner: Any = None


REGISTRY = Registry([Node])
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda own: (
        st.lists(own)
        | st.lists(own).map(tuple)
        | st.dictionaries(st.text() | st.tuples(st.text(), st.text()), own)
    ),
    max_leaves=12,
)


def again(value):
    """Return a value after it was taken apart and put together."""
    return REGISTRY.decode(REGISTRY.encode(value, about={}))


@given(PLAIN)
def test_plain_values_come_back_with_their_types(value):
    found = again(Node(value)).values
    assert found == value
    assert repr(found) == repr(value)


def test_what_is_shared_is_stored_once(rng):
    table = rng.random((5, 3))
    inner = Node(table)
    found = again(Node((table, inner, inner), {"a": table}))
    first, second, third = found.values
    assert second is third
    assert second.values is first is found.inner["a"]
    content = REGISTRY.encode([table, table.T, inner], about={})
    assert len(content.arrays) == 2


def test_sparse_matrices_come_back(rng):
    matrix = sparse.random_array((7, 4), density=0.3, rng=rng)
    for own in (matrix, matrix.tocsc(), sparse.csr_array((0, 3))):
        found = again(own)
        assert isinstance(found, sparse.csr_array)
        assert found.shape == own.shape
        np.testing.assert_array_equal(found.toarray(), own.toarray())


def test_names_that_are_alike_do_not_meet():
    pairs = {("a", "b, c"): np.zeros(1), ("a, b", "c"): np.ones(1)}
    found = again(pairs)
    assert {key: own[0] for key, own in found.items()} == {
        ("a", "b, c"): 0.0,
        ("a, b", "c"): 1.0,
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (print, "`value` is the function 'print', which cannot be stored"),
        (object(), "`value` is of class 'object'"),
        ([1, {"b": {1, 2}}], "`value.1.b` is of class 'set'"),
        ({3: 1}, "keys of `value` must be texts to be saved, got 3"),
        (np.array([1.0, np.nan]), "arrays must be finite to be saved, but `value`"),
        (np.array([["a"]]), "arrays must be of plain numbers .* but `value`"),
        (np.array(["\ud800"]), "ids must be Unicode to be saved, but one of `value`"),
        (type("Node", (), {})(), "`value` is of class 'Node'"),
    ],
)
def test_what_nobody_knows_is_refused(value, message):
    with pytest.raises(ModelError, match=message):
        REGISTRY.encode({"value": value}, about={})


def test_an_object_must_have_its_fields_and_their_kinds():
    def make(values: Vector, inner: int | str) -> Node:
        return Node(values, inner)

    stored = Stored(Node, make=make, check=lambda own: len(own.values) == own.inner)
    assert stored.build({"values": np.zeros(2), "inner": 2}).inner == 2
    with pytest.raises(
        ModelError, match="a Node must have values, inner, got .'values'"
    ):
        stored.build({"values": np.zeros(2)})
    with pytest.raises(ModelError, match="`values` of a Node must be of the kind"):
        stored.build({"values": np.zeros((1, 2)), "inner": 2})
    with pytest.raises(
        ModelError, match="`inner` of a Node must be of the kind .* got flo"
    ):
        stored.build({"values": np.zeros(2), "inner": 2.0})
    with pytest.raises(ModelError, match="parts of a Node must fit each other"):
        stored.build({"values": np.zeros(2), "inner": 3})


def test_kinds_are_strict():
    assert not rule_of(float)(True)
    assert not rule_of(int)(-1)
    assert not rule_of(Vector)(np.zeros(2, dtype=np.float16))
    assert not rule_of(Vector)(np.zeros((2, 2)))
    assert not rule_of(Positions)(np.zeros(2))
    assert not rule_of(np.ndarray)(np.array("a"))
    assert rule_of(tuple[float, float])((1, 2.0))
    assert not rule_of(tuple[float, float])([1, 2.0])
    assert not rule_of(tuple[float, float])((1.0,))
    assert not rule_of(tuple[float, ...])((1, "2"))
    assert rule_of(dict[tuple[str, str], Matrix])({("a", "b"): np.eye(2)})
    assert not rule_of(dict[str, Matrix | None])({("a", "b"): None})
    assert rule_of(Literal["a", "b"])("a")
    assert not rule_of(Literal["a", "b"])("c")
    assert not rule_of(list[Node])([None])
    with pytest.raises(TypeError, match="not an annotation of a storable"):
        rule_of(set[int])


@dataclass
class Leaf:
    size: int
    table: Matrix | sparse.csr_array
    name: str | None = None


@dataclass
class Tree:
    leaves: tuple[Leaf, ...]
    best: Leaf | None


def test_fields_are_read_from_annotations():
    registry = Registry([Stored(Leaf, check=lambda own: len(own.table) == own.size)])
    content = registry.encode(Leaf(2, np.eye(2)), about={})
    assert registry.decode(content, of=Leaf).name is None
    fields = content.tree["objects"][0]["fields"]
    fields["size"] = 3
    with pytest.raises(ModelError, match="parts of a Leaf must fit each other"):
        registry.decode(content)
    fields["size"] = "2"
    with pytest.raises(ModelError, match="`size` of a Leaf must be of the kind"):
        registry.decode(content)
    with pytest.raises(ModelError, match="is of class 'Tree'"):
        registry.encode(Tree((Leaf(1, np.eye(1)),), None), about={})
    with pytest.raises(ModelError, match="the folder must hold a Leaf, got str"):
        registry.decode(registry.encode("leaf", about={}), of=Leaf)


def test_what_is_not_registered_is_not_loaded():
    content = Registry([Leaf, Tree]).encode(Tree((), Leaf(1, np.eye(1))), about={})
    found = Registry([Leaf, Tree]).decode(content, of=Tree)
    assert found.best.table.tolist() == [[1.0]]
    with pytest.raises(ModelError, match="must be of a class that linkspread knows"):
        Registry([Leaf]).decode(content)


@pytest.mark.parametrize(
    "changed",
    [
        {"indices": np.array([0, 3, 1], np.int32)},
        {"indices": np.array([0, -1, 1], np.int32)},
        {"indices": np.array([0.0, 1.0, 1.0])},
        {"indices": np.array([0, 1], np.int32)},
        {"indptr": np.array([0, 2, 4], np.int32)},
        {"indptr": np.array([1, 2, 3], np.int32)},
        {"indptr": np.array([0, 4, 3], np.int32)},
        {"indptr": np.array([0, 3], np.int32)},
        {"data": np.ones((3, 1))},
    ],
)
def test_matrices_with_indices_outside_are_refused(changed):
    matrix = sparse.csr_array(np.array([[1.0, 0, 0], [0, 1.0, 1.0]]))
    content = REGISTRY.encode(matrix, about={})
    content.arrays.update(changed)
    with pytest.raises(ModelError, match=r"indices within its shape \[2, 3\]"):
        REGISTRY.decode(content)


# NumPy drops a code of 0 at the end of a text.
TEXTS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
)


@given(TEXTS)
def test_ids_come_back(ids):
    found = again(np.array(ids, dtype=str))
    assert found.tolist() == ids and found.dtype.kind == "U"


def test_one_long_id_must_not_widen_all_others(monkeypatch):
    ids = np.array(["x" * 1000, *(str(i) for i in range(500))])
    content = REGISTRY.encode(ids, about={})
    assert REGISTRY.decode(content).tolist() == ids.tolist()
    monkeypatch.setattr(schema, "MAX_PADDED", 0)
    monkeypatch.setattr(schema, "MAX_PADDING", 2)
    message = "one of 1,000 letters among 501, which together would take 2.0 MB"
    with pytest.raises(ModelError, match=message):
        REGISTRY.encode(ids, about={})
    with pytest.raises(ModelError, match=message):
        REGISTRY.decode(content)
    with pytest.raises(ModelError, match="the ids must be in the folder"):
        REGISTRY.decode(Content(content.tree, {}, {}))


def test_pointers_that_decrease_are_refused_even_where_the_last_is_zero():
    parts = [np.ones(4), np.array([0, 1, 0, 1]), np.array([0, 2, 4, 0])]
    with pytest.raises(ModelError, match="indices within its shape"):
        make_csr(parts, [3, 2], "affinity")
