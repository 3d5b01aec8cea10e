"""Matching the items of two views of a model."""

import csv
import json

import numpy as np
import pytest

import linkspread as ls
from linkspread.features.catalogues import describe_together
from linkspread.ground.errors import FewLinksError, LinkspreadError, ViewError
from linkspread.search.matches import choose_threshold

N, N_ALONE = 150, 30


def made_views(seed=0, noise=0.4, width=10):
    """Return two noisy copies; the first items of "b" are other ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, width))
    Y = X + noise * rng.normal(size=X.shape)
    Y[:N_ALONE] = rng.normal(size=(N_ALONE, width))
    return {"a": X, "b": Y}


def judged_links(model, n, seed=0):
    """Return links of some candidates, half of them matches."""
    rng = np.random.default_rng(seed)
    rated = model.match("a", "b").rated
    places = rng.choice(np.flatnonzero(rated.is_match), n // 2, replace=False)
    places = np.union1d(places, rng.choice(len(rated.scores), n // 2, replace=False))
    i, j = (own[places] for own in rated.pairs[:2])
    same = (i == j) & (i >= N_ALONE)
    rows = np.column_stack([i, j, np.where(same, 1.0, -1.0)])
    return ls.Links.from_pairs(rows, between=("a", "b"))


@pytest.fixture(scope="module")
def unjudged():
    return ls.CrossViewSearch().fit(made_views())


@pytest.fixture(scope="module")
def judged(unjudged):
    return ls.CrossViewSearch().fit(made_views(), judged_links(unjudged, 60))


def right(matches):
    """Return which matches are true."""
    return (matches.source_ids == matches.target_ids) & (matches.source_ids >= N_ALONE)


def test_without_judgements_there_are_matches_but_no_probabilities(unjudged):
    matches = unjudged.match("a", "b")
    assert matches.probabilities is matches.precision is matches.gain is None
    assert right(matches).sum() > 0.8 * (N - N_ALONE)
    assert "not calibrated" in str(matches)
    assert not matches.is_enough


def test_judgements_give_probabilities_and_unmatched_items(judged):
    matches = judged.match("a", "b")
    assert matches.precision == pytest.approx(right(matches).mean(), abs=0.08)
    for side, ids in (("a", matches.source_ids), ("b", matches.target_ids)):
        assert len(np.unique(ids)) == len(ids)
        np.testing.assert_array_equal(
            np.sort(np.concatenate([ids, matches.unmatched[side]])), np.arange(N)
        )
    assert np.isin(np.arange(N_ALONE), matches.unmatched["a"]).mean() > 0.6
    assert np.all(np.diff(matches.probabilities) <= 0)


def test_judgements_are_kept(judged):
    matches = judged.match("a", "b")
    i, j, weights = next(
        (*table.known_positions(between), table.weights)
        for between, table in judged.links_.pair_tables
    )
    found = set(zip(matches.source_ids, matches.target_ids, strict=True))
    for a, b, weight in zip(i, j, weights, strict=True):
        assert ((a, b) in found) == (weight > 0)
    assert matches.is_judged.sum() == np.sum(weights > 0)


def test_the_other_direction_has_the_same_matches(judged):
    there, back = judged.match("a", "b"), judged.match("b", "a")
    assert set(zip(there.source_ids, there.target_ids, strict=True)) == set(
        zip(back.target_ids, back.source_ids, strict=True)
    )


def test_a_wanted_precision_takes_fewer_pairs(judged):
    usual, sure = judged.match("a", "b"), judged.match("a", "b", precision=0.99)
    assert sure.precision >= 0.99
    assert len(sure) <= len(usual)
    few = judged.match("a", "b", threshold=0.9)
    assert np.all(few.probabilities[~few.is_judged] >= 0.9)


def test_several_partners(judged):
    many = judged.match("a", "b", partners="one-to-many")
    assert len(np.unique(many.target_ids)) == len(many)


def test_other_tables_help():
    views = made_views(noise=1.0, width=4)
    plain = ls.CrossViewSearch().fit(views)
    links = judged_links(plain, 80)
    model = ls.CrossViewSearch().fit(views, links)
    rng = np.random.default_rng(5)
    price = np.exp(rng.normal(size=N))
    compare = {
        "price": (price, np.where(rng.random(N) < 0.1, np.nan, price)),
        "other": (views["a"], views["b"]),
    }
    without, with_price = (model.match("a", "b", compare=c) for c in (None, compare))
    assert right(with_price).sum() > right(without).sum() + 10


def test_views_without_a_shared_space_are_matched_by_held_out_scores():
    views = made_views(noise=0.3)
    rng = np.random.default_rng(1)
    views["b"] = views["b"] @ rng.normal(size=(10, 8))
    known = rng.permutation(np.arange(N_ALONE, N))[:60]
    rows = [(i, i, 1.0) for i in known] + [(i, (i + 9) % N, -1.0) for i in known]
    links = ls.Links.from_pairs(rows, between=("a", "b"))
    matches = ls.CrossViewSearch().fit(views, links).match("a", "b")
    new = ~matches.is_judged
    assert right(matches)[new].mean() > 0.3
    # Scores of judged pairs know the judgement; probabilities must not.
    assert matches.probabilities[new].mean() < right(matches)[new].mean() + 0.2


def test_only_must_links_are_said_to_be_so():
    views = made_views()
    links = ls.Links.from_pairs(
        [(i, i, 1.0) for i in range(N_ALONE, 90)], between=("a", "b")
    )
    matches = ls.CrossViewSearch().fit(views, links).match("a", "b")
    assert matches.only_must
    assert "have a partner" in str(matches)


def test_frequent_words_find_no_candidates_but_count(monkeypatch):
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(30)]
    rows = [" ".join(["the", *rng.choice(words, 4), f"no{i}"]) for i in range(60)]
    other = [f"the {row}" for row in rows]
    views = describe_together({"a": rows, "b": other})
    model = ls.CrossViewSearch().fit(views)
    exact = model.match("a", "b")
    # "the" alone has 3,600 products.
    monkeypatch.setattr("linkspread.models.matching.MAX_PRODUCTS", 2000)
    found = model.match("a", "b")
    assert (found.source_ids == found.target_ids).all()
    every = exact.rated.pairs
    places = every.places(*found.rated.pairs[:2])
    kept = places >= 0
    assert kept.mean() > 0.5
    np.testing.assert_allclose(
        found.rated.scores[kept], exact.rated.scores[places[kept]], atol=1e-5
    )


@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_files_have_matches_and_unmatched_items(judged, tmp_path, suffix):
    matches = judged.match("a", "b")
    path = matches.write(tmp_path / f"m{suffix}")
    n_alone = sum(map(len, matches.unmatched.values()))
    if suffix == ".csv":
        with path.open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == ["a", "b", "score", "probability", "judged"]
        assert len(rows) == len(matches) + n_alone
    elif suffix == ".json":
        document = json.loads(path.read_text())
        assert len(document["matches"]) == len(matches)
        assert sum(map(len, document["unmatched"].values())) == n_alone
    else:
        from pyarrow import parquet

        assert parquet.read_table(path).num_rows == len(matches) + n_alone
    with pytest.raises(LinkspreadError, match="exists"):
        matches.write(path)
    with pytest.raises(LinkspreadError, match="must end in"):
        matches.write(tmp_path / "m.xls")


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_of_every_library(judged, backend):
    pytest.importorskip(backend)
    matches = judged.match("a", "b")
    assert len(matches.to_frame(backend)) == len(matches)
    assert len(matches.to_frame(backend, unmatched=True)) > len(matches)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"partners": "many"}, "`partners`"),
        ({"n_candidates": 0}, "`n_candidates`"),
        ({"precision": 1.5}, "`precision`"),
        ({"threshold": 0}, "`threshold`"),
        ({"threshold": 0.5, "precision": 0.5}, "both"),
        ({"compare": {"x": (np.ones(3), np.ones(N))}}, "`compare`"),
    ],
)
def test_wrong_arguments_are_named(judged, wrong, match):
    with pytest.raises(LinkspreadError, match=match):
        judged.match("a", "b", **wrong)


def test_a_precision_needs_judgements(unjudged):
    with pytest.raises(FewLinksError, match="judged candidates"):
        unjudged.match("a", "b", precision=0.9)


def test_one_view_is_no_match(unjudged):
    with pytest.raises(ViewError, match="different views"):
        unjudged.match("a", "a")


def test_the_threshold_has_the_largest_expected_f1():
    p = np.array([0.9, 0.8, 0.4, 0.1])
    total = 2.5
    values = {t: 2 * p[p >= t].sum() / ((p >= t).sum() + total) for t in p}
    assert choose_threshold(p, total) == max(values, key=values.get)
    assert choose_threshold(p, total, precision=0.85) == 0.8
    assert choose_threshold(p, total, precision=0.99) == 1.0
    assert choose_threshold(p[:0], 0.0) == 0.0
