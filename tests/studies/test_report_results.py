from statistics import stdev

import numpy as np
import pytest

from linkspread.ground.errors import LinkspreadError
from linkspread.studies.report import MethodResult, ParameterCurve, Run
from small_studies import make_run, make_study


def test_the_average_is_that_of_the_directions():
    assert make_run().average == pytest.approx(0.3)


def test_mean_and_deviation_are_those_of_the_resplits_only(rng):
    scores = rng.random((5, 2))
    resplits = tuple(make_run(f"split {i}", *row) for i, row in enumerate(scores))
    result = MethodResult("ours", "", None, (make_run(), *resplits))
    assert result.standard == make_run() and result.resplits == resplits
    assert result.mean() == pytest.approx(np.mean(scores))
    assert result.mean("back") == pytest.approx(np.mean(scores[:, 1]))
    assert result.deviation() == pytest.approx(np.std(scores.mean(axis=1), ddof=1))
    assert result.deviation("there") == pytest.approx(stdev(scores[:, 0]))


def test_one_resplit_has_no_deviation_and_none_has_no_mean():
    result = MethodResult("ours", "", None, (make_run("other"),))
    assert result.standard is None
    assert result.mean() == pytest.approx(0.3) and result.deviation() is None
    assert MethodResult("printed", "", {"there": 0.1}, ()).mean() is None


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Run("s", {}, {}, {}, {}, {}), "`precision` of the split 's' must.*"),
        (lambda: make_run(curve={"there": [1.0]}), "`curve` 'there' must have 11 val"),
        (
            lambda: MethodResult("ours", "", None, (make_run(), make_run())),
            "splits of 'ours' must differ, but 'standard' occurs twice. Rename one",
        ),
        (
            lambda: ParameterCurve("ours", "alpha", (0.1, 0.2), (0.5,), 0.1),
            "`scores` of 'alpha' must be as many as its values, 2, got 1. Give",
        ),
        (
            lambda: ParameterCurve("ours", "alpha", (0.1,), (0.5,), 0.3),
            "`chosen` of 'alpha' must be one of its values, got 0.3. Add",
        ),
        (
            lambda: make_study(*[MethodResult("ours", "", None, ())] * 2),
            "methods must differ, but 'ours' occurs twice",
        ),
        (
            lambda: make_study(curves=(ParameterCurve("a", "b", (1,), (0.5,), 1),) * 2),
            r"curves must differ, but \('a', 'b'\) occurs twice",
        ),
        (
            lambda: make_study(MethodResult("a", "", {"aside": 0.1}, ())),
            r"figures of 'a' must be for .*\['there', 'back'\], got \['aside'\]. Use",
        ),
        (
            lambda: make_study(
                MethodResult("a", "", None, (make_run(),)), directions=("there",)
            ),
            r"figures of 'a' must be .*\['there'\], got \['there', 'back'\]. Use",
        ),
    ],
)
def test_results_that_contradict_themselves_are_refused(make, sentence):
    with pytest.raises(LinkspreadError, match=sentence):
        make()


def test_a_printed_average_is_no_direction():
    make_study(MethodResult("a", "", {"there": 0.1, "average": 0.2}, ()))
