"""Which script or family of signs a Unicode character belongs to.

Python knows the name of a character but not its block. The table below holds the
block limits of the Unicode standard for the blocks that the DejaVu Sans font
covers. Blocks that continue one another ("Latin Extended-A", "-B", ...) share one
family, because neither a picture nor a name tells them apart.

>>> from linkspread.datasets.unicode_blocks import family
>>> family("A"), family("é"), family("Ω"), family("→")
('Latin', 'Latin', 'Greek', 'Arrows')
"""

from bisect import bisect_right

# First and last code point of neighbouring blocks of one family; ascending.
BLOCKS: tuple[tuple[int, int, str], ...] = (
    (0x0000, 0x02AF, "Latin"),
    (0x02B0, 0x02FF, "Modifier letters"),
    (0x0300, 0x036F, "Combining marks"),
    (0x0370, 0x03FF, "Greek"),
    (0x0400, 0x052F, "Cyrillic"),
    (0x0530, 0x058F, "Armenian"),
    (0x0590, 0x05FF, "Hebrew"),
    (0x0600, 0x06FF, "Arabic"),
    (0x07C0, 0x07FF, "NKo"),
    (0x0E00, 0x0E7F, "Thai"),
    (0x0E80, 0x0EFF, "Lao"),
    (0x10A0, 0x10FF, "Georgian"),
    (0x1400, 0x167F, "Canadian syllabics"),
    (0x1680, 0x169F, "Ogham"),
    (0x1D00, 0x1DBF, "Latin"),
    (0x1DC0, 0x1DFF, "Combining marks"),
    (0x1E00, 0x1EFF, "Latin"),
    (0x1F00, 0x1FFF, "Greek"),
    (0x2000, 0x206F, "Punctuation"),
    (0x2070, 0x209F, "Numbers"),
    (0x20A0, 0x20CF, "Currency"),
    (0x20D0, 0x20FF, "Combining marks"),
    (0x2100, 0x214F, "Letterlike symbols"),
    (0x2150, 0x218F, "Numbers"),
    (0x2190, 0x21FF, "Arrows"),
    (0x2200, 0x22FF, "Mathematical operators"),
    (0x2300, 0x243F, "Technical symbols"),
    (0x2460, 0x24FF, "Numbers"),
    (0x2500, 0x257F, "Box drawing"),
    (0x2580, 0x259F, "Block elements"),
    (0x25A0, 0x25FF, "Geometric shapes"),
    (0x2600, 0x26FF, "Pictorial symbols"),
    (0x2700, 0x27BF, "Dingbats"),
    (0x27C0, 0x27EF, "Mathematical operators"),
    (0x27F0, 0x27FF, "Arrows"),
    (0x2800, 0x28FF, "Braille"),
    (0x2900, 0x297F, "Arrows"),
    (0x2980, 0x2AFF, "Mathematical operators"),
    (0x2B00, 0x2BFF, "Arrows"),
    (0x2C60, 0x2C7F, "Latin"),
    (0x2D00, 0x2D2F, "Georgian"),
    (0x2D30, 0x2D7F, "Tifinagh"),
    (0x2E00, 0x2E7F, "Punctuation"),
    (0x4DC0, 0x4DFF, "Yijing hexagrams"),
    (0xA4D0, 0xA4FF, "Lisu"),
    (0xA640, 0xA69F, "Cyrillic"),
    (0xA700, 0xA71F, "Modifier letters"),
    (0xA720, 0xA7FF, "Latin"),
    # Alphabetic Presentation Forms hold the ligatures of three scripts.
    (0xFB00, 0xFB0F, "Latin"),
    (0xFB10, 0xFB1C, "Armenian"),
    (0xFB1D, 0xFB4F, "Hebrew"),
    (0xFB50, 0xFDFF, "Arabic"),
    (0xFE00, 0xFE0F, "Variation selectors"),
    (0xFE20, 0xFE2F, "Combining marks"),
    (0xFE70, 0xFEFF, "Arabic"),
    (0xFFF0, 0xFFFF, "Specials"),
    (0x10300, 0x1032F, "Old Italic"),
    (0x1D300, 0x1D35F, "Tai Xuan Jing"),
    (0x1D400, 0x1D7FF, "Letterlike symbols"),
    (0x1EE00, 0x1EEFF, "Arabic"),
    (0x1F030, 0x1F09F, "Domino tiles"),
    (0x1F0A0, 0x1F0FF, "Playing cards"),
    (0x1F300, 0x1F64F, "Emoticons"),
)

_STARTS = [first for first, _, _ in BLOCKS]


def family(character: str) -> str:
    """Return the family of a character, or ``"Other"`` outside the table."""
    code = ord(character)
    # Basic Latin starts at zero, so a block that starts at or before `code` exists.
    _, last, name = BLOCKS[bisect_right(_STARTS, code) - 1]
    return name if code <= last else "Other"
