import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkspread.features import tokenize
from linkspread.features.tokens import fold, tag_name
from linkspread.ground.errors import LinkspreadError

# Characters at which scripts, marks and joiners meet, mixed with any others.
TRICKY = "aßİıΣς\u0345\u0301\u200b\u200c\u200d\u00ad'’·.,_-1٣๓०é e\u3099かカｶ漢กำเ်ကខ្ម👍"
TEXTS = st.text(st.sampled_from(TRICKY) | st.characters())
FORMS = ["NFC", "NFD", "NFKC", "NFKD"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The cat's hat, AND the hat.", "the|cat's|hat|and|the|hat"),
        ("rock 'n' roll ‘quoted’", "rock|n|roll|quoted"),
        ("don’t donʼt don't", "don't|don't|don't"),
        ("3.14 is 1,000 or 2. v1.5", "3.14|is|1,000|or|2|v1.5"),
        ("snake_case e-mail a.b", "snake|case|e|mail|a|b"),
        ("ＦＵＬＬ ﬁne Straße", "full|fine|strasse"),
        ("Ёлка ΟΔΟΣ", "ёлка|οδοσ"),
        ("हिन्दी में किताबें", "हिन्दी|में|किताबें"),
        ("كتابٌ جديد ٣٤", "كتابٌ|جديد|34"),
        ("می‌خواهم", "میخواهم"),
        ("ســـلام سلام", "سلام|سلام"),
        ('צה״ל ב"ה', "צה״ל|ב|ה"),
        ("col·lecció", "col·lecció"),
        ("학교에 갔다", "학교에|갔다"),
        ("co\u00adop", "coop"),
        ("北京大学", "北|北京|京|京大|大|大学|学"),
        ("猫", "猫"),
        ("の 本を", "の|本|本を"),
        ("ﾃﾚﾋﾞ", "テレ|レビ"),
        ("ราคา", "รา|ราค|าค|าคา|คา"),
        ("ที่นี่", "ที่นี่"),
        ("ตา\u200bปู", "ตา|ปู"),
        ("ກາ ကာ កា", "ກາ|ကာ|កា"),
        ("iPhone手机3台", "iphone|手|手机|机|3|台"),
        ("abcกข", "abc|กข"),
        ("กข漢字", "กข|漢|漢字|字"),
        ("nice 👍🏽!!", "nice|👍|🏽"),
        ("\u0301a \u0e31", "a"),
        ("...  \n", ""),
        ("", ""),
    ],
)
def test_tokens_of_many_scripts(text, tokens):
    assert tokenize(text) == [token for token in tokens.split("|") if token]


@given(TEXTS)
def test_any_text_has_tokens_without_space_or_capital(text):
    for token in tokenize(text):
        assert token and token == fold(token)
        assert not any(character.isspace() for character in token)


@given(TEXTS)
def test_normal_forms_and_case_make_no_difference(text):
    tokens = tokenize(text)
    assert tokenize(fold(text)) == tokens
    for form in FORMS:
        changed = unicodedata.normalize(form, text)
        assert tokenize(changed) == tokens
        # Folded in a normal form: before that, marks may stand in any order.
        assert tokenize(changed.casefold()) == tokens


@pytest.mark.slow
def test_no_character_is_changed_by_its_forms():
    for code in range(sys.maxunicode + 1):
        text = chr(code)
        forms = {text.casefold(), *(unicodedata.normalize(f, text) for f in FORMS)}
        for form in forms - {text}:
            assert tokenize(f"a{form}b") == tokenize(f"a{text}b"), hex(code)


@given(TEXTS, TEXTS)
def test_texts_joined_by_a_space_have_the_tokens_of_both(first, second):
    assert tokenize(f"{first} {second}") == tokenize(first) + tokenize(second)


@given(st.text(st.sampled_from("aB1'.,_- ") | st.characters(max_codepoint=127)))
def test_ascii_is_read_as_any_other_text(text):
    assert [*tokenize(text), "é"] == tokenize(f"{text} é")


def test_no_mark_and_no_digit_is_forgotten():
    for code in range(sys.maxunicode + 1):
        kind, text = unicodedata.category(chr(code)), f"a{chr(code)}b"
        if kind.startswith("M") or kind == "Cf" and code != 0x200B:
            assert len(tokenize(text)) == 1, hex(code)
        elif kind == "Nd":
            assert tokenize(chr(code)) == [str(unicodedata.decimal(chr(code)))]


@given(st.lists(st.text("abcxyzäñжщאبहक", min_size=1)))
def test_letters_between_spaces_are_the_words(words):
    assert tokenize(" ".join(words)) == words


@given(st.text("漢字学校北京", min_size=2))
def test_han_gives_each_character_and_each_pair(text):
    pairs = [a + b for a, b in zip(text, text[1:], strict=False)]
    assert sorted(tokenize(text)) == sorted([*text, *pairs])


@given(st.lists(st.sampled_from(["ก", "ที่", "น้", "า", "เ"]), min_size=2))
def test_thai_gives_runs_of_two_and_three_with_their_marks(units):
    twos = ["".join(units[i : i + 2]) for i in range(len(units) - 1)]
    threes = ["".join(units[i : i + 3]) for i in range(len(units) - 2)]
    assert sorted(tokenize("".join(units))) == sorted(twos + threes)


def test_every_script_without_spaces_is_split():
    named = {}
    for code in range(sys.maxunicode + 1):
        script = unicodedata.name(chr(code), "").split(" ")[0]
        if unicodedata.category(chr(code)) == "Lo" and chr(code) == fold(chr(code)):
            named.setdefault(script, []).append(chr(code))
    for script in ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR"):
        for letter in named[script]:
            assert tokenize(letter * 4)[0] != letter * 4, (script, hex(ord(letter)))
    for script in ("DEVANAGARI", "ARABIC", "HANGUL", "TIBETAN", "HEBREW", "ETHIOPIC"):
        assert all(tokenize(letter * 4) == [letter * 4] for letter in named[script])


@pytest.mark.parametrize("tag", ["New York", "new-york", "#NEW_YORK", " ｎｅｗ  york!"])
def test_one_tag_has_one_name(tag):
    assert tag_name(tag) == "new york"


def test_tags_stay_whole_in_every_script():
    assert tag_name("#北京大学") == "北京大学"
    assert tag_name("สวัสดี") == "สวัสดี"


@pytest.mark.parametrize(("text", "got"), [(b"abc", "bytes"), (None, "NoneType")])
def test_what_is_no_string_is_refused(text, got):
    with pytest.raises(LinkspreadError, match=f"`text` must be a string, got {got}"):
        tokenize(text)
