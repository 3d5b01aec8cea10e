"""Run files of TREC against a plain loop over all scores."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from given_vectors import BETWEEN, make_given
from linkspread import LinkSpreading
from linkspread.exchange import rankings, write_run
from linkspread.ground.errors import LinkspreadError, UnknownItemError
from small_views import N, fitted


def lines_of(model, queries, n_results):
    """Return the lines of a run by sorting all scores of each query."""
    lines = []
    for query in queries:
        scores = model.found @ model.searching[query]
        order = sorted(range(len(scores)), key=lambda i: -scores[i])[:n_results]
        ids = model.items_["image"].ids
        for rank, i in enumerate(order, start=1):
            lines.append((str(query), "Q0", str(ids[i]), rank, scores[i], "linkspread"))
    return lines


def read_lines(path):
    rows = [line.split(" ") for line in path.read_text(encoding="utf-8").splitlines()]
    return [(*row[:3], int(row[3]), float(row[4]), row[5]) for row in rows]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n_items=st.integers(1, 9),
    n_queries=st.integers(1, 9),
    n_results=st.integers(1, 12),
    block=st.integers(1, 40),
    seed=st.integers(0, 99),
)
def test_a_run_is_the_sorted_scores_in_blocks_of_any_size(
    tmp_path, monkeypatch, n_items, n_queries, n_results, block, seed
):
    monkeypatch.setattr(rankings, "BLOCK_LINES", block)
    names = [f"é{i}" for i in range(n_items)]
    model = make_given(n_items, n_queries=n_queries, names=names, seed=seed)
    path = write_run(model, tmp_path / "r", **BETWEEN, n_results=n_results,
                     overwrite=True)  # fmt: skip
    wanted = lines_of(model, range(n_queries), n_results)
    found = read_lines(path)
    assert [line[:4] for line in found] == [line[:4] for line in wanted]
    np.testing.assert_allclose(
        [x[4] for x in found], [x[4] for x in wanted], atol=1e-12
    )


def test_a_run_has_the_scores_of_search_to_the_last_digit(tmp_path):
    model = fitted("labels")
    path = write_run(model, tmp_path / "run", **BETWEEN, n_results=7, tag="mine")
    ids, scores = model.search(range(N), **BETWEEN, n_results=7)
    lines = read_lines(path)
    assert [line[2] for line in lines] == list(map(str, ids.ravel()))
    found = np.array([line[4] for line in lines], dtype=scores.dtype)
    np.testing.assert_allclose(found, scores.ravel(), rtol=1e-12)
    assert {line[5] for line in lines} == {"mine"}


def test_queries_are_written_in_the_order_given(tmp_path):
    model = make_given(5, n_queries=9)
    path = write_run(model, tmp_path / "run", **BETWEEN, queries=[7, 2], n_results=3)
    assert [line[:4] for line in read_lines(path)] == [
        line[:4] for line in lines_of(model, [7, 2], 3)
    ]
    path = write_run(model, tmp_path / "none", **BETWEEN, queries=[])
    assert path.read_bytes() == b""


def test_no_more_queries_are_searched_at_a_time_than_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(rankings, "BLOCK_LINES", 10)
    model = make_given(50, n_queries=33)
    asked, search = [], model.search

    def count(queries, **options):
        asked.append(len(queries))
        return search(queries, **options)

    model.search = count
    write_run(model, tmp_path / "run", **BETWEEN, n_results=5)
    assert max(asked) == 2
    assert sum(asked) == 33


@pytest.mark.parametrize("name", ["two words", "tab\tbed", "line\n", "\u2003", ""])
def test_white_space_is_refused(name, tmp_path):
    model = make_given(2, names=["fine", name])
    with pytest.raises(LinkspreadError, match="ids of view 'image' must be without wh"):
        write_run(model, tmp_path / "run", **BETWEEN)
    model = make_given(2)
    with pytest.raises(LinkspreadError, match="`tag` must be without white space"):
        write_run(model, tmp_path / "run", **BETWEEN, tag=name)
    model.items_["text"] = make_given(3, names=["a", "b", name]).items_["image"]
    with pytest.raises(LinkspreadError, match="ids of view 'text' must be without wh"):
        write_run(model, tmp_path / "run", **BETWEEN)
    assert list(tmp_path.iterdir()) == []


def test_wrong_queries_are_told(tmp_path):
    model = make_given(2)
    with pytest.raises(LinkspreadError, match="must be distinct .* got 1 more than"):
        write_run(model, tmp_path / "run", **BETWEEN, queries=[1, 0, 1])
    with pytest.raises(UnknownItemError, match="`queries` must name items of view"):
        write_run(model, tmp_path / "run", **BETWEEN, queries=[8])
    with pytest.raises(LinkspreadError, match="`n_results` must be a positive integer"):
        write_run(model, tmp_path / "run", **BETWEEN, n_results=0)
    with pytest.raises(LinkspreadError, match="`model` must be a fitted search"):
        write_run(None, tmp_path / "run", **BETWEEN)
    with pytest.raises(NotFittedError):
        write_run(LinkSpreading(), tmp_path / "run", **BETWEEN)
    with pytest.raises(LinkspreadError, match="'video'"):
        write_run(fitted("labels"), tmp_path / "r", source="video", target="image")
    assert list(tmp_path.iterdir()) == []
