"""Explanations as data: shares, splits, tables and sentences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkspread.judging import Contribution, Explanation, Split
from linkspread.judging.explanation import (
    Shares,
    amount_format,
    make_split,
    pair_shares,
    single_share,
)

IDS = np.array(["a", "b", "c"]), np.array([10, 11])


def make_explanation():
    """Return an explanation with a part of every kind."""
    links = Split(
        (
            Contribution("must-link", 0.5, 1.0, "a", 10),
            Contribution("cannot-link", -0.25, -2.0, "b", 11),
            Contribution("label", 0.125, 1.0, "c", classes=(2, None)),
        ),
        rest=0.05,
        n_rest=3,
    )
    neighbors = Split(
        (
            Contribution("neighbor", 0.2, 0.4, "b"),
            Contribution("own", 0.1, 1.0),
        ),
        rest=0.0,
        n_rest=1,
    )
    labels = Split((Contribution("label", 0.125, 1.0, None, 11, (None, 0)),), 0.0, 0)
    classes = (
        Contribution("class", 0.1, 1.0, classes=(1, 1)),
        Contribution("class", 0.025, -1.0, classes=(1, 0)),
    )
    return Explanation(
        source="text",
        target="image",
        source_item="a",
        target_item=10,
        score=0.425,
        search_score=0.42,
        links=links,
        source_neighbors=neighbors,
        target_neighbors=Split((), 0.0, 0),
        target_labels=labels,
        classes=Split(classes, 0.0, 0),
    )


@given(
    st.lists(st.floats(-10, 10), min_size=1, max_size=12),
    st.one_of(st.none(), st.integers(1, 15)),
)
def test_a_split_keeps_its_sum_and_its_largest_parts(amounts, n_links):
    amounts = np.array(amounts)
    half = len(amounts) // 2
    items = np.arange(len(amounts)) % 3
    shares = [
        Shares("neighbor", amounts[:half], np.ones(half), {0: items[:half]}),
        Shares("label", amounts[half:], amounts[half:], {0: items[half:]}),
    ]
    split = make_split(shares, *IDS, n_links=n_links)
    assert split.total == pytest.approx(amounts.sum(), abs=1e-12)
    used = amounts[amounts != 0]
    expected = used[np.argsort(-np.abs(used), kind="stable")][:n_links]
    assert [part.amount for part in split.parts] == expected.tolist()
    assert split.n_rest == len(used) - len(expected)


def test_shares_get_the_ids_of_their_items():
    pairs = np.array([0, 1]), np.array([1, 0]), np.array([2.0, -1.0])
    shares = [
        pair_shares(*pairs, np.array([0.3, 0.2]), within=False),
        Shares("label", np.array([0.1]), np.ones(1), {1: [1]}, {1: [1]}),
        Shares(
            "class", np.array([0, 0.05]), np.array([1, -1]), {}, {0: [0, 0], 1: [0, 1]}
        ),
        single_share("own", 0.01),
    ]
    assert make_split(shares, *IDS, n_links=None).parts == (
        Contribution("must-link", 0.3, 2.0, "a", 11),
        Contribution("cannot-link", 0.2, -1.0, "b", 10),
        Contribution("label", 0.1, 1.0, None, 11, (None, 1)),
        Contribution("class", 0.05, -1.0, classes=(0, 1)),
        Contribution("own", 0.01, 1.0),
    )


def test_nothing_at_all_is_a_split_without_parts():
    assert make_split([], *IDS, n_links=3) == Split((), 0.0, 0)


def test_the_text_names_every_part():
    assert str(make_explanation()).splitlines() == [
        "text 'a' and image 10 score 0.425",
        "",
        "What it is made of",
        "  +0.500  must-link of text 'a' and image 10, weight 1",
        "  -0.250  cannot-link of text 'b' and image 11, weight 2",
        "  +0.125  text 'c' of class 2, with all labelled image items",
        "  +0.050  3 others",
        "",
        "Through neighbours of text 'a'",
        "  +0.200  text 'b', similarity 0.4",
        "  +0.100  the item itself",
        "  +0.000  another",
        "",
        "Through neighbours of image 10",
        "  nothing",
        "",
        "What labels give, by labelled image item",
        "  +0.125  image 11 of class 0, with all labelled text items",
        "",
        "What labels give, by classes",
        "  +0.100  both of class 1",
        "  +0.025  text of class 1, image of 0",
    ]


def test_a_long_split_is_cut_in_the_text():
    parts = tuple(Contribution("neighbor", 1.0, 1.0, k) for k in range(12))
    long = Split(parts, 0.5, 2)
    text = str(Explanation("t", "i", 0, 1, 12.5, 12.5, long, long, long))
    assert text.count("similarity") == 24
    assert text.count("+4.50  6 others") == 3


@pytest.mark.parametrize(
    ("amounts", "amount", "text"),
    [
        ([0.5, 0.001], 0.001, "+0.001"),
        ([1234.0], 12.3, "+12"),
        ([-3e-5], 2e-5, "+0.0000200"),
        ([3e-12], -2e-12, "-2.00e-12"),
        ([], 1.0, "+1.00"),
    ],
)
def test_amounts_have_three_figures_of_the_largest(amounts, amount, text):
    assert amount_format(amounts)(amount) == text


def test_contributions_and_rest_are_those_of_the_links():
    why = make_explanation()
    assert why.contributions == why.links.parts
    assert why.rest == 0.05
    assert sum(part.amount for part in why.contributions) + why.rest == why.score
