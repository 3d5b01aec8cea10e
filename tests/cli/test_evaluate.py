"""`linkspread evaluate` and `info`: what the library says, and exit status."""

import json

import numpy as np
import pandas
import pytest
from sklearn.metrics import roc_auc_score

import linkspread as ls
from example_files import command, made_data, prepare
from linkspread.manifests import load_features
from linkspread.metrics import mean_average_precision, ndcg, precision_at_k

FIT = "fit --view text=text.parquet --view image=image.parquet --quiet"
SPREAD = "--model spreading --n-neighbors 5"
LABELS = "--labels text=text-labels.csv --labels image=image-labels.csv"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a model of pairs and a model of some labels."""
    folder = tmp_path_factory.mktemp("evaluate")
    prepare(folder)
    for view in ("text", "image"):
        table = pandas.read_csv(folder / f"{view}-labels.csv")
        table.loc[20:, "label"] = ""
        table.to_csv(folder / f"{view}-some.csv", index=False)
    some = "--labels text=text-some.csv --labels image=image-some.csv"
    with pytest.MonkeyPatch.context() as monkeypatch:
        for rest in ("--links pairs.csv --output model",
                     f"{some} {SPREAD} --output labelled"):  # fmt: skip
            assert command(monkeypatch, folder, f"{FIT} {rest}") == 0
    return folder


@pytest.fixture
def run(monkeypatch, folder):
    """Return a function that runs a command in the folder."""
    return lambda line: command(monkeypatch, folder, line)


def test_labels_measure_both_directions(run, folder, capsys):
    assert run(f"evaluate model {LABELS} --json") == 0
    document = json.loads(capsys.readouterr().out)
    model, y = ls.load(folder / "model"), made_data().labels
    block = model.scores("text", "image")
    for found, table, a, b in zip(
        document["searches"],
        (block, np.ascontiguousarray(block.T)),
        ("text", "image"),
        ("image", "text"),
        strict=True,
    ):
        given = table, y[a], y[b]
        assert (found["source"], found["target"]) == (a, b)
        assert found["mean_average_precision"] == pytest.approx(
            mean_average_precision(*given)
        )
        assert found["precision_at_10"] == pytest.approx(precision_at_k(*given, k=10))
        assert found["ndcg"] == pytest.approx(ndcg(*given))
        assert (found["n_queries"], found["n_items"]) == (len(y[a]), len(y[b]))


def test_items_whose_label_was_told_do_not_count(run, folder, capsys):
    assert run(f"evaluate labelled {LABELS} --json") == 0
    found = json.loads(capsys.readouterr().out)["searches"]
    assert [own["n_queries"] for own in found] == [40, 20]
    model, y = ls.load(folder / "labelled"), made_data().labels
    block = model.scores("text", "image")[20:, 20:]
    expected = mean_average_precision(block, y["text"][20:], y["image"][20:])
    assert found[0]["mean_average_precision"] == pytest.approx(expected)
    assert run(f"evaluate labelled {LABELS} --all --json") == 0
    found = json.loads(capsys.readouterr().out)["searches"]
    assert [own["n_queries"] for own in found] == [60, 40]
    assert run(f"evaluate labelled {LABELS}") == 0
    assert "label the model was fitted to are not counted" in capsys.readouterr().out


def test_pairs_are_told_apart_by_their_scores(run, folder, capsys):
    assert run("evaluate model --links held-out.csv --json") == 0
    (found,) = json.loads(capsys.readouterr().out)["pairs"]
    pairs = pandas.read_csv(folder / "held-out.csv")
    block = ls.load(folder / "model").scores("text", "image")
    rows, cols = (pairs[view].str[1:].astype(int) for view in ("text", "image"))
    values = block[rows, cols]
    must = values[pairs["verdict"] == "must"][:, np.newaxis]
    cannot = values[pairs["verdict"] == "cannot"]
    wins = np.mean((must > cannot) + 0.5 * (must == cannot))
    assert found["auc"] == pytest.approx(wins)
    assert found["n_must"] + found["n_cannot"] == 30
    low, high = found["auc_interval"]
    assert low < found["auc"] < high
    assert 0 < found["chance_precision"] < 1
    assert run("evaluate model --links held-out.csv") == 0
    first, note = capsys.readouterr().out.splitlines()
    figure = f"{found['auc']:.2f} (90 % interval {low:.2f} to {high:.2f}, chance 0.50)"
    assert first.startswith(f"text and image: AUC {figure}, average precision ")
    n_must, n_cannot = found["n_must"], found["n_cannot"]
    assert first.endswith(f"from {n_must} must- and {n_cannot} cannot-links.")
    assert note == "0 pairs that the model was fitted to are not counted."


def test_must_links_alone_are_told_from_the_partners_of_others(run, folder, capsys):
    pairs = pandas.read_csv(folder / "held-out.csv")
    pairs[pairs["verdict"] == "must"].to_csv(folder / "must.csv", index=False)
    assert run("evaluate model --links must.csv --json") == 0
    (found,) = json.loads(capsys.readouterr().out)["pairs"]
    must = pairs[pairs["verdict"] == "must"]
    rows, cols = (must[view].str[1:].astype(int) for view in ("text", "image"))
    i, j = np.unique(rows), np.unique(cols)
    block = ls.load(folder / "model").scores("text", "image")[np.ix_(i, j)]
    linked = np.zeros_like(block, dtype=bool)
    linked[np.searchsorted(i, rows), np.searchsorted(j, cols)] = True
    assert found["kind"] == "partners" and found["n_judged"] == len(must)
    assert found["auc"] == pytest.approx(roc_auc_score(linked.ravel(), block.ravel()))


def test_pairs_of_items_whose_labels_were_told_do_not_count(run, folder, capsys):
    assert run("evaluate labelled --links held-out.csv --json") == 0
    (found,) = json.loads(capsys.readouterr().out)["pairs"]
    pairs = pandas.read_csv(folder / "held-out.csv")
    rows, cols = (pairs[view].str[1:].astype(int) for view in ("text", "image"))
    n_known = int(((rows < 20) & (cols < 20)).sum())
    assert n_known > 0 and found["n_known"] == n_known
    assert found["n_judged"] == 30 - n_known


def test_ratings_and_unknown_items_are_measured_when_told_how(run, folder, capsys):
    assert run("evaluate model --links held-out.csv --json") == 0
    expected = json.loads(capsys.readouterr().out)
    text = (folder / "held-out.csv").read_text()
    text = text.replace("must", ".9").replace("cannot", ".1") + "t999,i0,.9\n"
    (folder / "rated.csv").write_text(text)
    assert run("evaluate model --links rated.csv") == 2
    assert "--must-above 0.5" in capsys.readouterr().err
    typed = "evaluate model --links rated.csv --must-above .5 --skip-unknown --json"
    assert run(typed) == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == expected
    assert "1 of 31 pairs name items that no view has" in told.err
    (folder / "l.csv").write_text((folder / "text-labels.csv").read_text() + "t999,a\n")
    labels = LABELS.replace("text-labels", "l")
    assert run(f"evaluate model {labels}") == 2
    assert "--skip-unknown" in capsys.readouterr().err
    assert run(f"evaluate model {labels} --skip-unknown") == 0
    assert "1 of 61 labels are of items that view 'text' does not have" in (
        capsys.readouterr().err
    )


def test_pairs_that_were_told_do_not_count(run, capsys):
    assert run("evaluate model --links pairs.csv") == 2
    assert "got 0 must and 0 cannot between" in capsys.readouterr().err
    assert run("evaluate model --links pairs.csv --all --json") == 0
    (found,) = json.loads(capsys.readouterr().out)["pairs"]
    assert (found["n_must"], found["n_cannot"]) == (14, 26)


@pytest.mark.parametrize(("threshold", "status"), [(0.01, 0), (1.01, 1)])
@pytest.mark.parametrize("given", [LABELS, "--links held-out.csv"])
def test_below_a_threshold_the_status_is_1(run, capsys, given, threshold, status):
    assert run(f"evaluate model {given} --threshold {threshold}") == status
    assert ("is below the threshold" in capsys.readouterr().err) == bool(status)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("evaluate model", "must have --labels of two views or --links, got neither"),
        (f"evaluate model {LABELS} --links pairs.csv", "got both"),
        ("evaluate nowhere --links pairs.csv", "must be the folder of a model"),
        ("evaluate model --labels text=text-labels.csv", "two views that the "
         "model joins"),
        (f"evaluate labelled {LABELS.replace('-labels.', '-some.')}", "must have items "
         "with a label that the model does not know, got none of 20"),
        ("info nowhere", "there is none at 'nowhere'"),
        ("info photos", "must be a model or a features folder, and 'photos' is "
         "neither"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(run, capsys, line, message):
    assert run(line) == 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert message in err
    assert err.startswith("linkspread: ")


def test_info_counts_what_is_in_a_model(run, folder, capsys):
    assert run("info model --json") == 0
    document = json.loads(capsys.readouterr().out)
    model = ls.load(folder / "model")
    assert document["links"] == [
        {"between": ["text", "image"], "must": 14, "cannot": 26}
    ]
    for view, own in document["views"].items():
        assert own["items"] == model.items_[view].n_items
    assert document["estimator"] == "CrossViewSearch"
    assert document["summary"] == model.summary_
    assert document["judgements"] == {"stored": 40, "pending": 0}
    assert document["versions"]["linkspread"] == ls.__version__
    files = [path for path in (folder / "model").rglob("*") if path.is_file()]
    assert document["bytes"] == sum(path.stat().st_size for path in files)
    assert run("info model") == 0
    told = capsys.readouterr().out
    assert "links of text and image: 14 must, 26 cannot" in told
    assert "judgements: 40 in the store, 0 pending" in told


@pytest.mark.slow
def test_features_are_fitted_and_told(run, folder, capsys):
    assert run("featurize photos --output features") == 0
    capsys.readouterr()
    assert run("info features --json") == 0
    document = json.loads(capsys.readouterr().out)
    features = load_features(folder / "features")
    assert document["shared_ids"] == 8
    for view, own in document["views"].items():
        shape = own["items"], own["features"]
        assert shape == features.views[view].shape
        assert own["metric"] == features.metrics[view]
    assert run("fit --features features --matched --output seen --quiet") == 0
    model = ls.load(folder / "seen")
    assert model.metric == features.metrics
    block = model.links_.judged("text", "image").toarray()
    np.testing.assert_array_equal(block, np.eye(8))
    # One view of it beside another table; and a folder of features is no model.
    (folder / "named.csv").write_text("id,x\na,1\nb,2\nc,4\n")
    mixed = "fit --view text=features --view n=named.csv --matched --quiet"
    assert run(f"{mixed} --output mixed") == 0
    assert ls.load(folder / "mixed").metric["text"] == features.metrics["text"]
    assert run(f"{mixed} --output features --overwrite") == 2
    assert "holds other files" in capsys.readouterr().err
    assert run("fit --view sound=features --matched --output none --quiet") == 2
    assert "must have the view 'sound', and has" in capsys.readouterr().err
    assert run("fit --features features --labels features --output none -q") == 2
    assert "features must have labels, and has none of" in capsys.readouterr().err
    assert run("info features") == 0
    assert "8 ids are in all views" in capsys.readouterr().out


def test_info_counts_labels(run, folder, capsys):
    assert run("info labelled") == 0
    told = capsys.readouterr().out
    n_isolated = ls.load(folder / "labelled").report_.graphs["text"].n_isolated
    assert f"{n_isolated} isolated" in told and told.startswith("LinkSpreading ")
    assert "labels of text: 20 of 3 classes" in told
    assert "judgements: no store" in told
