"""What items look like, and how they are found by their titles."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkspread.datasets import load_glyphs
from linkspread.datasets.glyphs import make_glyph_image
from linkspread.ground.errors import LinkspreadError
from linkspread.links import Items
from linkspread.web.contents import (
    Contents,
    FeatureContents,
    GlyphContents,
    TitleIndex,
    are_glyphs,
    shorten,
)
from linkspread.web.site import ordinal
from linkspread.web.uploads import PictureCache
from web_sites import make_data, make_features, make_ids


@pytest.fixture(scope="module")
def glyphs():
    return load_glyphs(min_class_size=200)


@pytest.fixture(scope="module")
def glyph_contents(glyphs):
    items = {view: Items(glyphs.ids, view=view) for view in glyphs.views}
    assert are_glyphs(items)
    return GlyphContents(items)


def test_glyphs_are_told_by_their_ids():
    views = {view: Items(["U+0041"], view=view) for view in ("name", "image")}
    assert are_glyphs(views)
    assert not are_glyphs({"name": views["name"]})
    assert not are_glyphs(views | {"name": Items(["a"], view="name")})
    assert not are_glyphs({view: Items(3, view=view) for view in views})


def test_words_and_pictures_of_glyphs_get_the_features_of_the_data_set(
    glyphs, glyph_contents
):
    k = int(np.flatnonzero(glyphs.ids == "U+03A9")[0])
    rows = glyph_contents.rows("name", "GREEK CAPITAL LETTER OMEGA")
    assert abs(rows - glyphs.views["name"][[k]]).max() < 1e-12
    from PIL import Image

    picture = Image.open(io.BytesIO(glyph_contents.picture("image", k, 32)))
    ink = glyph_contents.rows("image", picture)
    assert np.abs(ink - glyphs.views["image"][[k]]).max() < 0.02
    # White on black is the same character.
    negative = Image.fromarray(255 - np.asarray(picture))
    assert np.abs(glyph_contents.rows("image", negative) - ink).max() < 0.02


def test_glyphs_have_names_pictures_and_families(glyphs, glyph_contents):
    assert glyph_contents.title("name", 0) == glyphs.names[0]
    assert glyph_contents.title("image", 0) == glyphs.ids[0]
    assert glyph_contents.caption("image", 0) == glyphs.names[0]
    assert np.array_equal(glyph_contents.labels("image"), glyphs.labels)
    from PIL import Image

    drawn = np.asarray(Image.open(io.BytesIO(glyph_contents.picture("image", 0, 48))))
    wanted = 255 - 255 * make_glyph_image(glyphs.characters[0], 48)
    assert np.abs(drawn - wanted).max() <= 1


def test_words_that_no_name_has_are_told(glyph_contents):
    with pytest.raises(LinkspreadError, match="part of the name.*'qqq'.*Try words"):
        glyph_contents.rows("name", "qqq")


def test_features_in_another_order_and_of_other_items(tmp_path):
    features = make_features(tmp_path)
    # The model has its items the other way round, and one that the folder has not.
    ids = [*reversed(make_ids()["text"]), "stranger"]
    items = {"text": Items(ids, view="text"), "other": Items(2, view="other")}
    contents = FeatureContents(items, features)
    assert contents.text("text", 0) == make_data()[0][-1]
    assert contents.title("text", len(ids) - 1) == "stranger"
    labels = contents.labels("text")
    assert labels[-1] == -1
    # Names of classes are in alphabetical order: blue, green, red.
    assert labels[:3].tolist() == [2 - (k % 3) for k in (59, 58, 57)]
    assert contents.labels("other") is None
    assert contents.title("other", 1) == "1"


def test_items_of_which_nothing_is_known():
    contents = Contents({"text": Items(3, view="text")})
    assert contents.title("text", 2) == "2"
    with pytest.raises(LinkspreadError, match="must have pictures"):
        contents.picture("text", 0, 10)
    with pytest.raises(LinkspreadError, match="need a features folder"):
        contents.rows("text", "words")


TITLES = st.lists(st.text("ab \t\ncAB", max_size=8), min_size=1, max_size=8)


@given(titles=TITLES, words=st.text("abc A", min_size=1, max_size=5))
def test_titles_are_found_as_a_plain_loop_finds_them(titles, words):
    contents = Contents(
        {"text": Items([f"i{k}" for k in range(len(titles))], view="text")}
    )
    contents.text = lambda view, position: titles[position]
    index = TitleIndex(contents, "text")
    known = [
        f"{contents.title('text', k)}\t{id}".lower()
        for k, id in enumerate(contents.items["text"].ids)
    ]
    parts = words.lower().split()
    wanted = [k for k, t in enumerate(known) if parts and all(p in t for p in parts)]
    assert index.find(words, 100) == wanted
    assert index.find(words, 1) == wanted[:1]
    plain = " ".join(parts)
    same = [k for k, title in enumerate(known) if plain and plain in title.split("\t")]
    assert index.exact(words) == (same[0] if len(same) == 1 else None)


def test_a_cache_forgets_what_was_asked_for_longest_ago():
    cache, made = PictureCache(max_bytes=25), []

    def make(key):
        return cache.get((key,), lambda: made.append(key) or b"0123456789")

    for key in ("a", "b", "a", "c", "a", "b"):
        assert make(key) == b"0123456789"
    assert made == ["a", "b", "c", "b"]


def test_texts_are_shortened_to_a_line():
    assert shorten("a\n b\tc", 10) == "a b c"
    assert shorten("word " * 10, 8) == "word wo…"


def test_ordinals():
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 112)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th"
    ]  # fmt: skip
