"""What notebooks show of models, links, results and reports."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import linkspread as ls
from linkspread.ground.notebook import MAX_PICTURES, Results, html_table

HOSTILE = "<script>alert(1)</script>"
BETWEEN = ("text", "image")
CODE = """
import linkspread as ls
data = ls.datasets.make_views(80, n_classes=3, n_features={"text": 8, "image": 6})
model = ls.LinkSpreading(n_neighbors=5).fit(data.views(), data.labels)
model
"""
PROGRESS = """
from linkspread.ground.progress import track
import time
for step in track(range(3), total=3, label="Working", verbose=True):
    time.sleep(0.15)
"""


class Balance(HTMLParser):
    """Check that each element that is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def model():
    data = ls.datasets.make_views(60, n_classes=3, random_state=0)
    ids = {view: [f"{view}{i}" for i in range(60)] for view in BETWEEN}
    pairs = [(f"text{i}", f"image{i}", 1.0) for i in range(6)]
    pairs += [(f"text{i}", f"image{i + 9}", -1.0) for i in range(6)]
    links = ls.Links.from_pairs(pairs, between=BETWEEN)
    return ls.CrossViewSearch().fit(data.views(), links, ids=ids)


def test_a_model_says_what_it_holds(model):
    text = model._repr_mimebundle_()["text/html"]
    Balance(text)
    assert "image" in text and "<td>60</td>" in text
    assert model.summary_.split(".")[0] in text
    assert "LinkSpreading()" in ls.LinkSpreading()._repr_mimebundle_()["text/html"]


def test_links_matches_and_explanations_are_tables_and_pictures(model):
    between = dict(zip(("source", "target"), BETWEEN, strict=True))
    for shown in (
        model.links_,
        model.match(*BETWEEN),
        model.explain("text0", "image1", **between),
    ):
        text = shown._repr_html_()
        Balance(text)
        assert "text0" in text or "text" in text
    assert model.links_._repr_html_().count("<tr>") == 13
    assert "<svg" in text


def test_a_report_is_its_text(model):
    data = ls.datasets.make_views(60, n_classes=3, random_state=0)
    fit = ls.LinkSpreading(n_neighbors=5).fit(data.views(), data.labels)
    pairs = [("text20", "image20", 1.0), ("text21", "image40", -1.0)]
    links = ls.Links.from_pairs(pairs, between=BETWEEN)
    (quality,) = ls.selection.evaluate_pairs(model, links)
    for report in (fit.report_, quality):
        assert str(report).splitlines()[0] in report._repr_html_()


def test_nothing_of_the_data_becomes_a_tag():
    links = ls.Links.from_pairs([(HOSTILE, HOSTILE, 1.0)], between=BETWEEN)
    text = links._repr_html_() + Results([HOSTILE], [1.0])._repr_html_()
    assert HOSTILE not in text and "&lt;script&gt;" in text


def test_tables_and_results_stay_short():
    text = html_table("", ["a"], ([i] for i in range(1000)), n_rows=1000)
    assert text.count("<tr>") == 21 and "of 1,000" in text
    many = np.arange(1000).reshape(5, 200)
    text = Results(many, many)._repr_html_()
    assert text.count("<figure") == MAX_PICTURES and "of 1,000" in text


def test_pictures_are_small_and_part_of_the_page():
    pil = pytest.importorskip("PIL.Image")
    image = pil.new("RGB", (2000, 1000), (200, 20, 20))
    text = Results(["a", "b"], [2.0, 1.0], picture=lambda item: image)._repr_html_()
    assert len(
        re.findall(r'<img src="data:image/jpeg;base64,[\w+/=]+" alt="[ab]">', text)
    )
    assert len(text) < 5_000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_shows_tables_and_bars(tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(code) for code in (CODE, PROGRESS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    drawn = []
    client = nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        on_notebook_complete=None,
        resources={"metadata": {"path": str(tmp_path)}},
    )
    keep = client.process_message

    def process(message, *rest, **named):
        data = message["content"].get("data", {})
        drawn.append(data.get("text/html", ""))
        return keep(message, *rest, **named)

    client.process_message = process
    client.execute()
    (table,) = cells[0].outputs
    assert "<table>" in table["data"]["text/html"]
    bars = [text for text in drawn if "<progress" in text]
    assert len(bars) >= 2 and "Working" in bars[0]


def test_a_features_folder_shows_its_pictures(tmp_path):
    pil = pytest.importorskip("PIL.Image")
    pytest.importorskip("cv2")
    from linkspread.manifests import featurize, read_collection

    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for name in "abcd":
        noise = rng.integers(0, 255, size=(40, 40, 3), dtype=np.uint8)
        pil.fromarray(noise).save(tmp_path / "photos" / f"{name}.png")
        (tmp_path / "photos" / f"{name}.txt").write_text(f"picture of {name}")
    features = featurize(read_collection(tmp_path / "photos"))
    shown = features.show("image", ["c", "a"], [2.0, 1.0])._repr_html_()
    assert shown.count("data:image/jpeg") == 2 and 'alt="c"' in shown
    assert "picture of d" in features.show("text", ["d"], [1.0])._repr_html_()
    with pytest.raises(ls.errors.LinkspreadError, match="`view`"):
        features.show("sound", ["d"], [1.0])
