"""What newcomers stumbled over in their first hour stays mended.

What concerns one room is tested there: ids and list columns of DataFrames in
tests/tables/test_frames.py, verdicts in tests/links, views of equal rows in
tests/tables/test_validation.py, folders that cannot be written and copies of
run.toml in tests/cli, threads in tests/models/test_threads.py, chained views in
tests/models.
"""

import re
import subprocess
import sys

import numpy as np
import pytest

import linkspread as ls
from documents import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BETWEEN = ("text", "image")


@pytest.fixture(scope="module")
def data():
    widths = {"text": 32, "image": 24}
    return ls.datasets.make_views(200, n_classes=4, n_features=widths, random_state=0)


def judged(data, n):
    """Return pairs with their truth."""
    rng = np.random.default_rng(0)
    rows = rng.integers(200, size=(n, 2))
    same = data.labels["text"][rows[:, 0]] == data.labels["image"][rows[:, 1]]
    return [(i, j, bool(s)) for (i, j), s in zip(rows, same, strict=True)]


def test_the_readme_begins_with_what_works_in_a_clone():
    blocks = re.findall(r"^```bash\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert blocks[0].startswith("make demo")
    installs = [
        line for block in blocks for line in block.splitlines() if "pip" in line
    ]
    assert installs and all(re.match(r"pip install ['.]", line) for line in installs)
    assert "linkspread[" not in README


def test_the_demo_needs_no_tools_of_developers():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    needs = re.search(r"^\$\(VENV\)/product:.*\n\t(.*)$", makefile, re.MULTILINE)[1]
    assert "'.[pictures,web]'" in needs
    for target in ("demo", "serve"):
        assert re.search(rf"^{target}: \$\(VENV\)/product ", makefile, re.MULTILINE)


def test_forty_pairs_give_a_figure_of_quality(data):
    links = ls.Links.from_pairs(judged(data, 40), between=BETWEEN)
    model = ls.CrossViewSearch().fit(data.views(), links)
    assert re.search(r"mean reciprocal rank [\d.]+.* by chance", model.summary_)


def test_more_judgements_make_a_search_better(data):
    found = []
    for n in (40, 1000):
        links = ls.Links.from_pairs(judged(data, n), between=BETWEEN)
        model = ls.CrossViewSearch().fit(data.views(), links)
        scores = model.scores(*BETWEEN)
        labels = (data.labels[view] for view in BETWEEN)
        found.append(ls.metrics.mean_average_precision(scores, *labels))
    assert found[1] > found[0] + 0.02


def test_every_room_is_there_after_one_import():
    names = "linkspread.selection linkspread.exchange linkspread.features "
    names += "linkspread.judging linkspread.manifests linkspread.storage "
    names += "linkspread.studies.baselines linkspread.tables linkspread.learning"
    program = (
        f"import linkspread\nprint([m.__name__ for m in ({names.replace(' ', ', ')},)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_what_people_asked_first_is_answered():
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    for words in (
        "index of my DataFrame",
        "scale embeddings",
        "metric",
        "only=",
        "cell",
    ):
        assert words in page


def test_an_index_of_pandas_is_the_ids(data):
    pd = pytest.importorskip("pandas")
    views = {
        view: pd.DataFrame(X)
        .add_prefix("f")
        .set_index(pd.Index([f"{view}{i}" for i in range(len(X))], name="sku"))
        for view, X in data.views().items()
    }
    links = ls.Links.from_pairs(
        [("text0", "image0", True), ("text1", "image5", False)], between=BETWEEN
    )
    model = ls.CrossViewSearch().fit(views, links)
    ids, _ = model.search("text3", source="text", target="image", n_results=2)
    assert all(str(name).startswith("image") for name in ids)
