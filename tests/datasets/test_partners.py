import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from linkspread.datasets import load_catalogues, load_digits_views
from linkspread.ground.errors import LinkspreadError, MissingDependencyError
from reference import recall_at_one

ABT_BUY = {
    "abt.csv": "id|name|description|price\n"
    "a7|Sony Turntable|belt drive|\n"
    "a3|Bose Speaker||399\n"
    "a5|Linksys Switch|eight ports|49\n",
    "buy.csv": "id|name|description|price\n"
    "b1|Linksys Ethernet Switch||49\n"
    "b2|Sony belt Turntable|silver|",
    "gt.csv": "D1|D2\na5|b1\na7|b2",
}
AMAZON_GOOGLE = {
    "amazon.csv": "id#title#description#manufacturer#price\r\n"
    "0#clickart pack##broderbund#0.0\r\n"
    "1#noah's ark|games#for ages 3-8#victory#9.5\r\n",
    "gp.csv": "id#title#description#manufacturer#price\r\n"
    "0#learning quickbooks#learn#intuit#38.99\r\n"
    "1#noah's ark##victory#8\r\n",
    "gt.csv": "D1#D2\n1#1\n",
}


def write_folder(folder, files=ABT_BUY, **changes):
    """Write small catalogues in the published form."""
    for name, text in files.items():
        change = changes.get(name.removesuffix(".csv"), text)
        (folder / name).write_bytes(change.encode("utf-8"))
    return folder


def test_pairs_are_rows_of_the_ids(tmp_path):
    data = load_catalogues("abt-buy", write_folder(tmp_path))
    assert data.ids["abt"].tolist() == ["a7", "a3", "a5"]
    assert data.ids["buy"].tolist() == ["b1", "b2"]
    assert_array_equal(data.pairs, [[2, 0], [0, 1]])
    assert data.metrics == {"abt": "cosine", "buy": "cosine"}
    assert data.shared_space and data.labels is None


def test_texts_leave_out_prices_and_empty_fields(tmp_path):
    data = load_catalogues("abt-buy", write_folder(tmp_path))
    assert data.texts["abt"] == [
        "Sony Turntable belt drive",
        "Bose Speaker",
        "Linksys Switch eight ports",
    ]
    data = load_catalogues("amazon-google", write_folder(tmp_path, AMAZON_GOOGLE))
    assert data.texts == {
        "amazon": ["clickart pack broderbund", "noah's ark|games victory"],
        "google": ["learning quickbooks intuit", "noah's ark victory"],
    }


def test_words_are_weighed_over_both_sides_together(tmp_path):
    data = load_catalogues("abt-buy", write_folder(tmp_path))
    left, right = data.texts.values()
    oracle = TfidfVectorizer(sublinear_tf=True).fit(left + right)
    wanted = [oracle.transform(texts).toarray() for texts in (left, right)]
    shared = wanted[0].any(axis=0) & wanted[1].any(axis=0)
    assert 0 < shared.sum() < len(shared)
    for X, dense in zip(data.views.values(), wanted, strict=True):
        assert X.dtype == np.float64
        assert_allclose(X.toarray(), normalize(dense[:, shared]))


def test_sentences_have_length_one_and_the_encoder_s_direction(tmp_path):
    pytest.importorskip("wordllama")
    from linkspread.features import SentenceFeatures

    data = load_catalogues("abt-buy", write_folder(tmp_path), features="sentences")
    for view, X in data.views.items():
        wanted = SentenceFeatures().fit([]).transform(data.texts[view])
        lengths = np.linalg.norm(wanted, axis=1, keepdims=True)
        assert_allclose(X, wanted / lengths, rtol=1e-5)


def test_missing_encoder_is_one_sentence_with_the_remedy(tmp_path, monkeypatch):
    from linkspread.features import encoders

    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    encoders._sentence_encoder.cache_clear()
    with pytest.raises(MissingDependencyError, match="pip install"):
        load_catalogues("abt-buy", write_folder(tmp_path), features="sentences")


def test_the_environment_variable_names_the_parent_folder(tmp_path, monkeypatch):
    folder = tmp_path / "catalogues" / "abt-buy"
    folder.mkdir(parents=True)
    write_folder(folder)
    monkeypatch.setenv("LINKSPREAD_DATA", str(tmp_path))
    assert len(load_catalogues("abt-buy").pairs) == 2
    with pytest.raises(
        LinkspreadError, match="`folder` must be.*catalogues/amazon-google"
    ):
        load_catalogues("amazon-google")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"name": "abt"}, "`name`"), ({"features": "words"}, "`features`")],
)
def test_unknown_choices_are_named(tmp_path, arguments, named):
    with pytest.raises(LinkspreadError, match=named):
        load_catalogues(**{"name": "abt-buy", "folder": tmp_path} | arguments)


@pytest.mark.parametrize("name", sorted(ABT_BUY))
def test_missing_file_is_named(tmp_path, name):
    (write_folder(tmp_path) / name).unlink()
    with pytest.raises(LinkspreadError, match=f"{name} must exist.*pyJedAI"):
        load_catalogues("abt-buy", tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"abt": "id|name|price\na7|Sony|1\n"}, r"abt\.csv.*no 'description'"),
        ({"buy": ABT_BUY["buy.csv"].replace("|", ",")}, r"buy\.csv.*no 'id'"),
        ({"gt": "abt|buy\na5|b1\n"}, r"gt\.csv.*no 'D1'"),
        ({"abt": ABT_BUY["abt.csv"][:-8]}, r"abt\.csv must have 4 fields.*line 4"),
        ({"gt": "D1|D2\na5|b1\na7"}, r"gt\.csv must have 2 fields.*1 on line 3"),
        ({"gt": "D1|D2\na5|b1\na7|b"}, r"gt\.csv.*'buy'.* got 'b', which is none"),
        ({"gt": "D1|D2\na9|b1\n"}, r"gt\.csv.*'abt'.* got 'a9'"),
        (
            {"gt": "D1|D2\na5|b1\na7|b1\n"},
            r"gt\.csv.*'buy', each at most once, got 'b1'",
        ),
        ({"gt": "D1|D2\n"}, r"gt\.csv must have rows"),
        ({"abt": ABT_BUY["abt.csv"].replace("a3", "a7")}, r"abt\.csv.*different id"),
        ({"buy": ""}, r"buy\.csv must have at least one line"),
    ],
)
def test_damaged_files_give_one_sentence(tmp_path, changes, message):
    write_folder(tmp_path, **changes)
    with pytest.raises(LinkspreadError, match=f"{message}.*Unpack.*pyJedAI"):
        load_catalogues("abt-buy", tmp_path)


@pytest.mark.parametrize(
    ("name", "features", "sizes", "recalls"),
    [
        ("abt-buy", "tfidf", (1076, 1076, 1076), (0.798, 0.809)),
        ("abt-buy", "sentences", (1076, 1076, 1076), (0.638, 0.636)),
        ("amazon-google", "tfidf", (1354, 3039, 1103), (0.757, 0.833)),
        ("amazon-google", "sentences", (1354, 3039, 1103), (0.660, 0.780)),
    ],
)
@pytest.mark.slow
def test_the_published_catalogues(data_folder, name, features, sizes, recalls):
    if not (data_folder / "catalogues" / name).is_dir():
        pytest.skip(f"LINKSPREAD_DATA holds no folder catalogues/{name}")
    if features == "sentences":
        pytest.importorskip("wordllama")
    data = load_catalogues(name, features=features)
    left, right = data.views.values()
    assert (left.shape[0], right.shape[0], len(data.pairs)) == sizes
    assert left.shape[1] == right.shape[1]
    assert len(np.unique(data.pairs[:, 0])) == len(np.unique(data.pairs[:, 1]))
    for X in (left, right):
        lengths = np.sqrt((X * X).sum(axis=1))
        # A few products have no word that the other shop uses.
        assert_allclose(lengths[lengths > 0], 1, rtol=1e-5)
    assert recall_at_one(data) == pytest.approx(recalls, abs=0.003)


VIEWS = ("fac", "fou", "kar", "mor", "pix", "zer")
WIDTHS = (216, 76, 64, 6, 240, 47)


def write_digits(folder, **changes):
    """Write three digits in six views of one to six features."""
    for width, view in enumerate(VIEWS, start=1):
        header = ",".join(map(str, [*range(width), 0]))
        rows = [
            [f"{10 * row + column}.5" for column in range(width)] + [str(row)]
            for row in range(3)
        ]
        text = "\n".join([header, *map(",".join, rows)]) + "\n"
        (folder / f"mfeat-{view}.csv").write_text(changes.get(view, text))
    return folder


def test_digits_are_matched_and_the_last_column_is_the_digit(tmp_path):
    data = load_digits_views(write_digits(tmp_path))
    assert tuple(data.views) == VIEWS
    assert_array_equal(data.views["fou"], [[0.5, 1.5], [10.5, 11.5], [20.5, 21.5]])
    assert [X.shape[1] for X in data.views.values()] == [1, 2, 3, 4, 5, 6]
    assert_array_equal(data.labels, [0, 1, 2])
    assert_array_equal(data.pairs, [[0, 0], [1, 1], [2, 2]])
    assert data.ids["zer"].tolist() == ["0", "1", "2"]
    assert not data.shared_space and set(data.metrics) == set(VIEWS)


def test_digits_are_found_by_the_environment_variable(tmp_path, monkeypatch):
    (tmp_path / "digits").mkdir()
    write_digits(tmp_path / "digits")
    monkeypatch.setenv("LINKSPREAD_DATA", str(tmp_path))
    assert len(load_digits_views().labels) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1,0\n1,2,0\n3,4,1\n5,6\n", "must have 3 fields.*got 2 on line 4"),
        ("0,1,0\n1,2,0\n3,4,1\n", "must have the digits of mfeat-fac.*in its 2 rows"),
        ("0,1,0\n1,2,0\n3,4,1\n5,6,7\n", "must have the digits of mfeat-fac"),
        ("0,1,0\n1,two,0\n3,4,1\n5,6,2\n", "must hold numbers, got .*'two'"),
        ("0,1,0\n1,nan,0\n3,4,1\n5,6,2\n", "must hold finite numbers"),
        ("0,1,0\n1,2,0\n3,4,1\n5,6,12\n", "must have a digit from 0 to 9 .*, got 12"),
        ("0,1,0\n", "must have rows"),
        ("", "must have at least one line"),
    ],
)
def test_damaged_digits_give_one_sentence(tmp_path, text, message):
    write_digits(tmp_path, fou=text)
    with pytest.raises(LinkspreadError, match=f"mfeat-fou.csv {message}.*Unpack.*UCI"):
        load_digits_views(tmp_path)


def test_the_published_digits(data_folder):
    if not (data_folder / "digits").is_dir():
        pytest.skip("LINKSPREAD_DATA holds no folder digits")
    data = load_digits_views()
    assert tuple(X.shape for X in data.views.values()) == tuple(
        (2000, w) for w in WIDTHS
    )
    assert_array_equal(np.bincount(data.labels), [200] * 10)
    assert_array_equal(data.pairs, np.column_stack([np.arange(2000)] * 2))
