"""Studies as JSON: they come back as they were, and nothing malformed does."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkspread.ground.errors import LinkspreadError
from linkspread.studies.report.study import (
    Card,
    Cell,
    Hit,
    ParameterCurve,
    Run,
    Search,
    from_json,
    read_study,
    to_json,
    write_study,
)
from small_studies import (
    DIRECTIONS,
    make_budgets,
    make_cell,
    make_row,
    make_run,
    make_study,
)

texts = st.text(max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner),
    max_leaves=5,
)
by_name = st.dictionaries(texts, numbers, max_size=3)
parameters = st.dictionaries(texts, plain, max_size=3)
runs = st.builds(
    Run,
    texts,
    numbers,
    st.fixed_dictionaries(dict.fromkeys(DIRECTIONS, numbers)),
    by_name,
    parameters,
    st.dictionaries(texts, by_name, max_size=2),
    st.dictionaries(texts, st.lists(numbers, min_size=11, max_size=11), max_size=2),
)
some_runs = st.lists(runs, min_size=1, max_size=2, unique_by=lambda run: run.split)
rows = st.builds(
    Cell, texts, st.just("labels per class"), st.none(), some_runs.map(tuple)
)
curves = st.tuples(texts, plain, numbers).map(
    lambda parts: ParameterCurve("a", parts[0], (parts[1],), (parts[2],), parts[1])
)
cards = st.builds(Card, texts, texts, st.none() | texts)
hits = st.builds(Hit, cards, numbers, st.booleans())
searches = st.builds(Search, texts, texts, cards, st.lists(hits, max_size=2).map(tuple))
table_studies = st.builds(
    lambda rows, curve, example, title, facts, groups: make_study(
        *rows,
        curves=(curve,),
        examples=(example,),
        title=title,
        environment=facts,
        groups=groups,
        printed={name: {"there": 0.5} for name in groups},
    ),
    st.lists(rows, max_size=2, unique_by=lambda cell: cell.method),
    curves,
    searches,
    texts,
    st.dictionaries(texts, texts, max_size=2),
    st.dictionaries(texts, texts, max_size=2),
)
cells = st.builds(
    Cell,
    st.just("ours"),
    st.sampled_from(["links", "matched pairs"]),
    st.none() | st.integers(1, 10**6),
    some_runs.map(tuple),
)
budget_studies = st.lists(cells, max_size=3, unique_by=lambda cell: cell.budget).map(
    lambda cells: make_budgets(*cells)
)


@given(table_studies | budget_studies)
@pytest.mark.slow
def test_a_study_comes_back_as_it_was(study):
    assert from_json(to_json(study)) == study


def test_a_file_comes_back_as_it_was(tmp_path):
    study = make_study(make_row("é", make_run()))
    path = write_study(tmp_path / "new" / "study.json", study)
    assert read_study(path) == study
    assert [p.name for p in path.parent.iterdir()] == ["study.json"]


def test_numbers_of_numpy_become_plain_ones():
    run = make_run(
        there=np.float32(0.5),
        parameters={"k": np.int64(3), "weights": np.ones(2), "exact": np.bool_(True)},
    )
    content = json.loads(to_json(make_study(make_row("", run))))
    stored = content["cells"][0]["runs"][0]
    assert stored["details"]["there"] == 0.5
    assert stored["parameters"] == {"k": 3, "weights": [1.0, 1.0], "exact": True}


def test_whole_numbers_may_stand_for_others():
    content = json.loads(to_json(make_budgets(make_cell("links", 1, "ours", 1.0))))
    content["cells"][0]["runs"][0]["score"] = 1
    score = from_json(json.dumps(content)).cells[0].runs[0].score
    assert score == 1.0 and type(score) is float


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float64("nan"), b"bytes"])
def test_values_that_json_does_not_have_are_not_written(value):
    with pytest.raises(LinkspreadError, match="plain values and finite numbers"):
        to_json(make_budgets(make_cell("links", 1, "ours", value)))


def change(**changes):
    """Return the content of a study with some fields changed."""
    return json.loads(to_json(make_study(make_row("a", make_run())))) | changes


def change_run(**changes):
    """Return the content of a study with some fields of its run changed."""
    content = change()
    content["cells"][0]["runs"][0] |= changes
    return content


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"format": 2},
        change(format=1),
        change(extra=1),
        change(title=3),
        change(cells="a"),
        change(cells=["a"]),
        change(environment={"a": 1}),
        change_run(split=None),
        change_run(details=[]),
        change_run(details={"there": True, "back": 1}),
        change_run(seconds={"fit": math.nan}),
        change_run(seconds={"fit": 10**400}),
        change_run(parameters={"a": [math.inf]}),
        change_run(details={"there": 1}),
    ],
)
def test_malformed_content_is_refused_in_one_sentence(tmp_path, content):
    (tmp_path / "study.json").write_text(json.dumps(content))
    with pytest.raises(LinkspreadError, match="study") as caught:
        read_study(tmp_path / "study.json")
    assert len(str(caught.value)) < 500 and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [b"{", b"\xff", b"[" * 100_000])
def test_files_that_are_no_study_are_refused(tmp_path, text):
    path = tmp_path / "study.json"
    path.write_bytes(text)
    with pytest.raises(LinkspreadError, match="must be JSON"):
        read_study(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(
        LinkspreadError, match="nowhere.*No such file.*Correct the path"
    ):
        read_study(tmp_path / "nowhere")


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(LinkspreadError, match="must be a file.*taken.*Choose another"):
        write_study(tmp_path / "taken" / "study.json", make_budgets())
