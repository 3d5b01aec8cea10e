"""The script, or family of symbols, of a Unicode character.

Python has the names of characters but not their blocks. The table covers the font
DejaVu Sans. Blocks such as "Latin Extended-A" and "-B" are one family, because neither
pictures nor names distinguish them.

>>> from linkspread.datasets.unicode_blocks import family
>>> family("A"), family("é"), family("Ω"), family("→")
('Latin', 'Latin', 'Greek', 'Arrows')
"""

# First and last code points of the blocks of each family. Alphabetic Presentation Forms
# (FB00 to FB4F) hold the ligatures of three scripts.
_FAMILIES = {
    "Latin": "0000-02AF 1D00-1DBF 1E00-1EFF 2C60-2C7F A720-A7FF FB00-FB0F",
    "Modifier letters": "02B0-02FF A700-A71F",
    "Combining marks": "0300-036F 1DC0-1DFF 20D0-20FF FE20-FE2F",
    "Greek": "0370-03FF 1F00-1FFF",
    "Cyrillic": "0400-052F A640-A69F",
    "Armenian": "0530-058F FB10-FB1C",
    "Hebrew": "0590-05FF FB1D-FB4F",
    "Arabic": "0600-06FF FB50-FDFF FE70-FEFF 1EE00-1EEFF",
    "NKo": "07C0-07FF",
    "Thai": "0E00-0E7F",
    "Lao": "0E80-0EFF",
    "Georgian": "10A0-10FF 2D00-2D2F",
    "Canadian syllabics": "1400-167F",
    "Ogham": "1680-169F",
    "Punctuation": "2000-206F 2E00-2E7F",
    "Numbers": "2070-209F 2150-218F 2460-24FF",
    "Currency": "20A0-20CF",
    "Letterlike symbols": "2100-214F 1D400-1D7FF",
    "Arrows": "2190-21FF 27F0-27FF 2900-297F 2B00-2BFF",
    "Mathematical operators": "2200-22FF 27C0-27EF 2980-2AFF",
    "Technical symbols": "2300-243F",
    "Box drawing": "2500-257F",
    "Block elements": "2580-259F",
    "Geometric shapes": "25A0-25FF",
    "Pictorial symbols": "2600-26FF",
    "Dingbats": "2700-27BF",
    "Braille": "2800-28FF",
    "Tifinagh": "2D30-2D7F",
    "Yijing hexagrams": "4DC0-4DFF",
    "Lisu": "A4D0-A4FF",
    "Variation selectors": "FE00-FE0F",
    "Specials": "FFF0-FFFF",
    "Old Italic": "10300-1032F",
    "Tai Xuan Jing": "1D300-1D35F",
    "Domino tiles": "1F030-1F09F",
    "Playing cards": "1F0A0-1F0FF",
    "Emoticons": "1F300-1F64F",
}
# First and last code point of a block, and its family; ascending.
BLOCKS = sorted(
    (int(first, 16), int(last, 16), name)
    for name, blocks in _FAMILIES.items()
    for first, last in (block.split("-") for block in blocks.split())
)


def family(character: str) -> str:
    """Return the family of a character, or ``"Other"`` outside the table."""
    code = ord(character)
    names = (name for first, last, name in BLOCKS if first <= code <= last)
    return next(names, "Other")
