import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkspread.ground.errors import ConflictWarning
from linkspread.links import Links
from linkspread.links.conflicts import find_conflicts
from linkspread.links.tables import PairTable

PAIRS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([-2.0, -0.5, 1.0])),
    min_size=1,
    max_size=20,
)


def by_hand(pairs, *, within):
    """Return contradicting pairs with a dictionary and a loop."""
    sums = {}
    for left, right, weight in pairs:
        key = tuple(sorted((left, right))) if within else (left, right)
        both = sums.setdefault(key, [0.0, 0.0])
        both[weight < 0] += weight
    return [
        (ids, must, cannot) for ids, (must, cannot) in sums.items() if must * cannot
    ]


def table(pairs, form=np.int64, **options):
    """Return judged pairs whose ids have this type."""
    left, right, weights = zip(*pairs, strict=True)
    return PairTable(
        np.array(left).astype(form), np.array(right).astype(form), weights, **options
    )


@given(PAIRS)
def test_conflicts_are_those_found_by_hand(pairs):
    expected = [(("a", "b"), *c) for c in by_hand(pairs, within=False)]
    assert find_conflicts([(("a", "b"), table(pairs))]) == expected
    turned = [(right, left, weight) for left, right, weight in pairs]
    assert find_conflicts([(("b", "a"), table(turned))]) == expected


@given(PAIRS, st.sampled_from([np.int64, np.str_]))
def test_conflicts_within_a_view_disregard_the_order(pairs, form):
    expected = [
        (("a", "a"), (form(x).item(), form(y).item()), must, cannot)
        for (x, y), must, cannot in by_hand(pairs, within=True)
    ]
    assert find_conflicts([(("a", "a"), table(pairs, form))]) == expected


@given(PAIRS, st.integers(0, 20))
def test_tables_are_taken_together(pairs, cut):
    """Ids that are numbers in one table and strings in the other are the same."""
    parts = [part for part in (pairs[:cut], pairs[cut:]) if part]
    forms = [np.int64, np.str_]
    tables = [(("a", "b"), table(p, f)) for p, f in zip(parts, forms, strict=False)]
    found = find_conflicts(tables)
    expected = by_hand(pairs, within=False)
    assert [(int(x), int(y)) for _, (x, y), _, _ in found] == [c[0] for c in expected]
    assert [c[2:] for c in found] == [c[1:] for c in expected]


def test_the_first_ids_are_told():
    with pytest.warns(
        ConflictWarning,
        match=r"must be either a must-link or a cannot-link, but 5 of the pairs given "
        r"are both: \('i', 't0'\), \('i', 't1'\), \('i', 't2'\) and 2 more\. Their "
        r"weights were added up; see `links\.conflicts\(\)` for all",
    ) as caught:
        links = Links.from_pairs(
            [(f"t{i}", "i", weight) for i in range(5) for weight in (1.0, -0.25)],
            between=("text", "image"),
        )
    assert caught[0].filename == __file__
    assert len(caught) == 1
    assert links.conflicts()[0] == (("image", "text"), ("i", "t0"), 1.0, -0.25)
    assert len(links.conflicts()) == 5


def test_views_in_alphabetical_order():
    with pytest.warns(
        ConflictWarning, match=r"1 of the pairs given are both: \('x', 'y'"
    ):
        links = Links.from_pairs([("y", "x", 1), ("y", "x", -1)], between=("b", "a"))
    assert links.conflicts() == [(("a", "b"), ("x", "y"), 1.0, -1.0)]


@pytest.mark.parametrize(
    ("pair", "between"), [(("x", "y"), ("a", "b")), (("y", "x"), ("b", "a"))]
)
def test_conflicts_across_a_sum(pair, between):
    must = Links.from_pairs([("x", "y")], between=("a", "b"))
    cannot = Links.from_pairs([(*pair, -3.0)], between=between)
    with pytest.warns(ConflictWarning, match=r"\('x', 'y'\)") as caught:
        links = must + cannot
    assert caught[0].filename == __file__
    assert links.conflicts() == [(("a", "b"), ("x", "y"), 1.0, -3.0)]
    assert must.conflicts() == cannot.conflicts() == []


def test_the_same_ids_between_other_views_are_no_conflict():
    links = Links.from_pairs([("x", "y")], between=("a", "b"))
    links += Links.from_pairs([("x", "y", -1)], between=("a", "c"))
    links += Links.from_pairs([("x", "y", -1)], between=("a", "a"))
    links += Links.from_pairs([("y", "x", -1)], between=("a", "b"))
    assert links.conflicts() == []


def test_once_resolved_items_are_compared_by_position():
    """Rows that are matched have no ids to compare until the views are known."""
    matched = Links.from_matched(("a", "b"), 3)
    cannot = Links.from_pairs([("t2", "i2", -1)], between=("a", "b"))
    links = matched + cannot
    assert links.conflicts() == []
    known = links.resolve({"a": ["t0", "t1", "t2"], "b": ["i0", "i1", "i2"]})
    assert [c[2:] for c in known.conflicts()] == [(1.0, -1.0)]
    other_rows = links.resolve({"a": ["t0", "t1", "t2"], "b": ["i2", "i1", "i0"]})
    assert other_rows.conflicts() == []


def test_a_million_pairs_take_seconds():
    start = time.process_time()
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 10**6, (10**6, 2))
    weights = rng.choice([-1.0, 1.0], 10**6)
    ids[-1], weights[-1] = ids[0], -weights[0]
    with pytest.warns(ConflictWarning, match="of the pairs given are both"):
        links = Links.from_pairs(np.column_stack([ids, weights]), between=("a", "b"))
    assert (("a", "b"), tuple(ids[0].tolist()), 1.0, -1.0) in links.conflicts()
    # A second or two; far more would mean a loop in Python.
    assert time.process_time() - start < 15
