"""Texts of any script as tokens, without a dictionary or a language model.

>>> from linkspread.features import tokenize
>>> tokenize("北京 2008")
['北', '北京', '京', '2008']

Scripts with spaces between words give words. Others give overlapping runs of two or
three characters: two texts about the same thing share many of them, wherever their
words begin and end.
"""

# Other tokenizers for scripts without spaces have dictionaries or trained models, whose
# tokens change with their versions, so that a stored vocabulary would no longer fit.
# This one depends on Python's Unicode tables only.
import re
import unicodedata
from functools import cache

from linkspread.ground.errors import LinkspreadError

# Scripts without spaces between words, as ranges of a regular expression. Han and kana
# are in one run, as Japanese words mix them.
_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff"
_HAN += "\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_KANA += "\u3105-\u312f\u31a0-\u31bf\U0001aff0-\U0001b16f"
# Thai, Lao, Myanmar, Khmer, and those that Unicode treats like them (line break SA).
_SOUTHEAST = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0ecf\u0edc-\u0edf\u1000-\u103f"
_SOUTHEAST += "\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
_SOUTHEAST += "\u1780-\u17d3\u17d7\u17dc\u17dd\u1950-\u1974\u1980-\u19cf"
_SOUTHEAST += "\u1a20-\u1a7f\u1aa7\uaa80-\uaadd\U00011700-\U0001172b"
_SPACELESS = _HAN + _KANA + _SOUTHEAST
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
# Characters within a word that neither begin nor end it: apostrophe, the
# Catalan middle dot, Hebrew geresh and gershayim.
_WITHIN = "'\u00b7\u05f3\u05f4"
# Variants of the apostrophe.
_APOSTROPHES = "\u2019\u02bc\u055a"
# Stretches Arabic letters, without meaning.
_TATWEEL = "\u0640"
# Separates words of Thai and Khmer, so it becomes a space and is not removed.
_ZERO_WIDTH_SPACE = "\u200b"
# Planes in between have ideographs only, so far.
_PLANES = range(0x20000), range(0xE0000, 0xE1000)
# Points and commas join digits only: 3.14 and 1,000.
_JOINT = rf"(?:[{_WITHIN}]|(?<=[0-9])[.,](?=[0-9]))"
# Most texts are ASCII, for which this is several times as fast.
_ASCII_WORD = re.compile(f"[a-z0-9]+(?:{_JOINT}[a-z0-9]+)*")
_is_han = re.compile(f"[{_HAN}]").match


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text, in their order.

    Letters are folded to lower case and Unicode's compatibility form (NFKC), so that
    full-width letters, ligatures and capitals make no difference; digits of all scripts
    become 0 to 9. Scripts with spaces give words: letters with their marks, digits, and
    apostrophes, points and commas within. Han and kana give pairs of neighbours, and
    each Han character; Thai, Lao, Khmer, Myanmar and similar scripts give runs of two
    and three characters with their marks. An emoji is a token.

    Parameters
    ----------
    text : str

    Returns
    -------
    tokens : list of str

    Examples
    --------
    >>> from linkspread.features import tokenize
    >>> tokenize("Привет, world; 天気です")
    ['привет', 'world', '天', '天気', '気', '気で', 'です']
    """
    if not isinstance(text, str):
        raise LinkspreadError(
            f"`text` must be a string, got {type(text).__name__}. Convert it first; "
            "bytes have the method `decode`."
        )
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    found: list[str] = []
    for match in _run_pattern().finditer(fold(text)):
        split = _SPLITS.get(match.lastgroup or "")
        found += split(match[0]) if split else [match[0]]
    return found


def tag_name(tag: str) -> str:
    """Return a tag as one name: folded, its words joined by single spaces."""
    return " ".join(match[0] for match in _run_pattern().finditer(fold(tag)))


def fold(text: str) -> str:
    """Return the form of a text in which its tokens are compared."""
    if text.isascii():
        return text.lower()
    # Decomposed before folding, which needs plain letters and ordered marks, and after
    # it, because folding can compose letters.
    folded = unicodedata.normalize("NFKD", text).casefold()
    # Composed last, when no format sign remains between letter and mark.
    folded = unicodedata.normalize("NFKD", folded).translate(_replacements())
    return unicodedata.normalize("NFKC", folded)


def _split_east(run: str) -> list[str]:
    """Return each Han character and each pair of neighbours, in their order."""
    units = _units(run)
    if len(units) == 1:
        return units
    found = []
    for unit, following in zip(units, [*units[1:], ""], strict=True):
        # A single kana is mostly grammar; a single Han character is mostly a word.
        if _is_han(unit):
            found.append(unit)
        if following:
            found.append(unit + following)
    return found


def _split_southeast(run: str) -> list[str]:
    """Return each run of two and of three characters, in their order."""
    units, found = _units(run), []
    for start in range(len(units) - 1):
        found.append("".join(units[start : start + 2]))
        if start + 3 <= len(units):
            found.append("".join(units[start : start + 3]))
    return found or units


def _units(run: str) -> list[str]:
    """Return the characters of a run, each with its marks."""
    units: list[str] = []
    for character in run:
        if units and _is_mark(character):
            units[-1] += character
        else:
            units.append(character)
    return units


# Words and emojis are not split.
_SPLITS = {"east": _split_east, "southeast": _split_southeast}


@cache
def _run_pattern() -> re.Pattern[str]:
    """Return the pattern of runs, each in the group of its kind."""
    marks = _marks()
    letter = rf"[^\W_{_SPACELESS}]"
    part = f"{letter}+(?:[{marks}]+{letter}*)*"
    groups = {
        "east": f"[{_HAN}{_KANA}][{marks}{_HAN}{_KANA}]*",
        "southeast": f"(?:(?=[{_SOUTHEAST}])[^{marks}])[{marks}{_SOUTHEAST}]*",
        "word": f"{part}(?:{_JOINT}{part})*",
        "emoji": f"[{_EMOJI}]",
    }
    return re.compile("|".join(f"(?P<{name}>{p})" for name, p in groups.items()))


@cache
def _is_mark(character: str) -> bool:
    """Return whether a character is a combining mark."""
    return unicodedata.category(character).startswith("M")


@cache
def _marks() -> str:
    """Return the ranges of all combining marks, which `re` has no class for."""
    codes = set(_codes_of("M"))
    starts = sorted(code for code in codes if code - 1 not in codes)
    stops = sorted(code for code in codes if code + 1 not in codes)
    pairs = zip(starts, stops, strict=True)
    return "".join(f"{chr(start)}-{chr(stop)}" for start, stop in pairs)


@cache
def _replacements() -> dict[int, str | None]:
    """Return the replacements of characters: digits by 0 to 9, format signs by none."""
    found: dict[int, str | None] = dict.fromkeys(_codes_of("Cf"))
    found |= {c: str(unicodedata.decimal(chr(c))) for c in _codes_of("Nd")}
    # Selectors choose between glyphs of the same character.
    selectors = [*range(0x180B, 0x180E), *range(0xFE00, 0xFE10)]
    found |= dict.fromkeys([*selectors, *range(0xE0100, 0xE01F0), ord(_TATWEEL)])
    found |= dict.fromkeys(map(ord, _APOSTROPHES), "'")
    found[ord(_ZERO_WIDTH_SPACE)] = " "
    return found


def _codes_of(category: str) -> list[int]:
    """Return the code points of the categories that begin so, such as "M" or "Nd"."""
    codes = [code for plane in _PLANES for code in plane]
    return [c for c in codes if unicodedata.category(chr(c)).startswith(category)]
