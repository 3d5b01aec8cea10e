import sys
import unicodedata

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linkspread.datasets import load_fonts, load_glyphs
from linkspread.datasets.glyphs import make_glyph_image
from linkspread.datasets.unicode_blocks import BLOCKS, family
from linkspread.ground.errors import LinkspreadError, MissingDependencyError
from reference import recall_at_one


@pytest.fixture(scope="module")
def glyphs():
    return load_glyphs()


def test_thousands_of_glyphs_in_dozens_of_families(glyphs):
    n = len(glyphs.labels)
    assert n > 5000
    assert 25 <= len(glyphs.label_names) <= 40
    assert np.bincount(glyphs.labels).min() >= 20
    for field in (glyphs.ids, glyphs.names, glyphs.characters):
        assert field.shape == (n,)
    assert len(set(glyphs.ids)) == n


def test_views_have_the_promised_types(glyphs):
    name, image = glyphs.views["name"], glyphs.views["image"]
    assert name.dtype == np.float64 and image.dtype == np.float32
    assert image.shape == (len(glyphs.labels), 32 * 32)
    assert image.min() >= 0 and image.max() <= 1
    assert_allclose((name.multiply(name)).sum(axis=1), 1)
    assert image.any(axis=1).all(), "every glyph has ink"


def test_a_letter_is_described_by_its_own_name_and_family(glyphs):
    (i,) = np.flatnonzero(glyphs.ids == "U+0416")
    assert glyphs.characters[i] == "Ж"
    assert glyphs.names[i] == unicodedata.name("Ж")
    assert glyphs.label_names[glyphs.labels[i]] == "Cyrillic"
    assert_array_equal(glyphs.views["image"][i], make_glyph_image("Ж", 32).ravel())


@pytest.mark.slow
def test_two_calls_give_the_same_bits(glyphs):
    again = load_glyphs()
    assert_array_equal(again.views["image"], glyphs.views["image"])
    assert (again.views["name"] != glyphs.views["name"]).nnz == 0
    assert_array_equal(again.ids, glyphs.ids)


def test_small_families_are_left_out():
    glyphs = load_glyphs(size=8, min_class_size=300)
    assert np.bincount(glyphs.labels).min() >= 300
    assert len(glyphs.label_names) == glyphs.labels.max() + 1


def test_a_picture_is_centred_and_stands_on_the_line():
    image = make_glyph_image("I", 40)
    rows, columns = np.nonzero(image)
    assert abs((columns.min() + columns.max()) / 2 - 19.5) <= 1
    below = make_glyph_image("p", 40)
    assert np.nonzero(below)[0].max() > rows.max(), "p hangs below the line"
    assert np.nonzero(make_glyph_image(".", 40))[0].min() > rows.min()


def test_a_wide_glyph_is_shrunk_into_the_square():
    # U+2A0C, a quadruple integral, is wider than the em.
    assert make_glyph_image("\u2a0c", 32).shape == (32, 32)
    assert make_glyph_image("\u2a0c", 32).any()


def test_a_space_has_no_ink():
    assert not make_glyph_image(" ", 16).any()


@pytest.mark.parametrize("parameter", ["size", "min_class_size"])
@pytest.mark.parametrize("value", [0, -1, 2.5])
def test_counts_must_be_positive(parameter, value):
    with pytest.raises(LinkspreadError, match=f"`{parameter}` must be.*got {value}"):
        load_glyphs(**{parameter: value})


def test_no_family_left_is_an_error():
    with pytest.raises(LinkspreadError, match="got 5000. Choose at most"):
        load_glyphs(size=4, min_class_size=5000)


def test_missing_matplotlib_is_one_sentence_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.ft2font", None)
    for load in (load_glyphs, load_fonts):
        with pytest.raises(MissingDependencyError, match=r"linkspread\[pictures\]"):
            load()


def test_blocks_ascend_and_do_not_overlap():
    for (_, last, _), (first, _, _) in zip(BLOCKS[:-1], BLOCKS[1:], strict=True):
        assert last < first


def test_blocks_agree_with_the_unicode_data_of_fonttools():
    block = pytest.importorskip("fontTools.unicodedata").block
    for first, last, name in BLOCKS:
        if first > 0 and block(chr(first)) != "Alphabetic Presentation Forms":
            assert block(chr(first - 1)) != block(chr(first)), name
            assert block(chr(last + 1)) != block(chr(last)), name
        assert "No_Block" not in map(block, map(chr, range(first, last + 1))), name


@pytest.mark.parametrize(
    ("character", "expected"),
    [
        ("\0", "Latin"),
        ("ﬁ", "Latin"),
        ("\ufb2a", "Hebrew"),
        ("ـ", "Arabic"),
        ("中", "Other"),
    ],
)
def test_family_of_a_character(character, expected):
    assert family(character) == expected


@pytest.fixture(scope="module")
def fonts():
    return load_fonts()


def letters(data):
    """Return the letters of the ids."""
    return [chr(int(code.removeprefix("U+"), 16)) for code in data.ids["sans"]]


def test_row_i_is_the_same_letter_in_both_fonts(fonts):
    n = len(fonts.pairs)
    assert 1500 < n < 2000
    assert_array_equal(fonts.pairs, np.column_stack([np.arange(n)] * 2))
    assert_array_equal(fonts.ids["sans"], fonts.ids["serif"])
    i = letters(fonts).index("Ж")
    for view, font in {"sans": "DejaVuSans", "serif": "DejaVuSerif"}.items():
        drawn = make_glyph_image("Ж", 16, font=font).ravel()
        assert_allclose(fonts.views[view][i], drawn / np.linalg.norm(drawn), rtol=1e-6)
    assert fonts.labels[i] == family("Ж") == "Cyrillic"


def test_views_share_a_space_and_rows_have_length_one(fonts):
    assert fonts.shared_space and fonts.metrics == {"sans": "cosine", "serif": "cosine"}
    for X in fonts.views.values():
        assert X.shape == (len(fonts.pairs), 256) and X.dtype == np.float32
        assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-5)


def test_of_letters_drawn_alike_the_first_is_kept(fonts):
    kept = letters(fonts)
    assert "A" in kept and "\u0391" not in kept and "\u0410" not in kept
    assert all(unicodedata.category(c).startswith("L") for c in kept)
    for X in fonts.views.values():
        assert len(np.unique(X, axis=0)) == len(X)


def test_the_plain_cosine_finds_most_partners_but_far_from_all(fonts):
    assert recall_at_one(fonts) == pytest.approx((0.681, 0.708), abs=0.01)


def test_two_calls_draw_the_same_fonts(fonts):
    again = load_fonts()
    for view, X in fonts.views.items():
        assert_array_equal(again.views[view], X)


def test_size_must_be_positive():
    with pytest.raises(LinkspreadError, match="`size` must be.*got 0"):
        load_fonts(size=0)


def test_an_unknown_font_is_named():
    with pytest.raises(LinkspreadError, match="`font` must.*got 'Nowhere'"):
        make_glyph_image("A", font="Nowhere")
