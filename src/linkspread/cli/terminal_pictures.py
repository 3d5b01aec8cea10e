"""Pictures in a terminal, in the way that it understands.

Which one is told by variables of the environment: terminals name themselves there, and
asking them by escape codes would hang where nobody answers.
"""

import base64
import io
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from linkspread.ground.errors import LinkspreadError, require

# Pixels of a picture's longer side, and columns of one that is drawn with blocks.
PIXELS, COLUMNS = 320, 40
# Colours of a sixel picture; terminals know 256.
N_COLORS = 255
# Bytes of one piece for kitty.
KITTY_CHUNK = 4096

ITERM = {"iTerm.app", "WezTerm", "mintty"}
KITTY = {"xterm-kitty", "xterm-ghostty"}
SIXEL = ("sixel", "foot", "mlterm", "yaft", "contour")


def choose_display(
    wanted: bool | None,
    *,
    environment: Mapping[str, str] = os.environ,
    is_terminal: bool | None = None,
) -> str | None:
    """Return how pictures are shown: "iterm", "kitty", "sixel", "blocks", or None.

    `wanted` is what --pictures says: blocks are coarse, so they must be asked for.
    """
    if is_terminal is None:
        is_terminal = sys.stdout.isatty()
    if not is_terminal or wanted is False:
        return None
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    # A multiplexer swallows codes that are not its own.
    if "TMUX" not in environment and not term.startswith(("screen", "tmux")):
        if "KITTY_WINDOW_ID" in environment or term in KITTY:
            return "kitty"
        if program in ITERM or environment.get("LC_TERMINAL") == "iTerm2":
            return "iterm"
        if any(name in term for name in SIXEL):
            return "sixel"
    has_colors = environment.get("COLORTERM", "").lower() in ("truecolor", "24bit")
    return "blocks" if wanted and has_colors else None


def show_picture(path: str | Path, display: str, *, file: TextIO | None = None) -> None:
    """Write the picture of a file to a terminal; one that cannot be read is told."""
    try:
        text = ENCODERS[display](_open(path))
    except LinkspreadError:
        raise
    except Exception as error:  # damaged pictures fail anywhere in a reader
        text = f"({Path(path).name} cannot be shown: {type(error).__name__})"
    print(text, file=file or sys.stdout, flush=True)


def _open(path: str | Path) -> Any:
    """Return a picture, no larger than it is shown."""
    pil = require("PIL.Image", extra="images", purpose="Showing pictures")
    with pil.open(path) as picture:
        picture.draft("RGB", (PIXELS, PIXELS))
        picture.thumbnail((PIXELS, PIXELS))
        return picture.convert("RGB")


def _png(picture: Any) -> str:
    """Return a picture as PNG in letters."""
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return base64.b64encode(file.getvalue()).decode()


def _iterm(picture: Any) -> str:
    """Return the code of iTerm2."""
    data = _png(picture)
    size = len(base64.b64decode(data))
    return f"\x1b]1337;File=inline=1;size={size};preserveAspectRatio=1:{data}\a"


def _kitty(picture: Any) -> str:
    """Return the code of kitty, in pieces as it wants them."""
    data = _png(picture)
    pieces = [data[k : k + KITTY_CHUNK] for k in range(0, len(data), KITTY_CHUNK)]
    codes = []
    for number, piece in enumerate(pieces):
        head = "a=T,f=100," if number == 0 else ""
        more = int(number < len(pieces) - 1)
        codes.append(f"\x1b_G{head}m={more};{piece}\x1b\\")
    return "".join(codes)


def _sixel(picture: Any) -> str:
    """Return a picture as sixels: six rows at a time, a colour after the other."""
    few = picture.quantize(N_COLORS)
    pixels = np.asarray(few)
    palette = np.array(few.getpalette()[: 3 * N_COLORS]).reshape(-1, 3)
    used = np.unique(pixels)
    colors = [
        "#{};2;{};{};{}".format(c, *np.round(palette[c] * 100 / 255).astype(int))
        for c in used.tolist()
    ]
    bands = [_sixel_band(pixels[top : top + 6]) for top in range(0, len(pixels), 6)]
    height, width = pixels.shape
    size = f'"1;1;{width};{height}'
    return f"\x1bPq{size}{''.join(colors)}{'-'.join(bands)}\x1b\\"


def _sixel_band(band: np.ndarray) -> str:
    """Return six rows: for each colour a letter for each column, bits from the top."""
    bits = 1 << np.arange(len(band))
    lines = []
    for color in np.unique(band).tolist():
        letters = 63 + bits @ (band == color)
        lines.append(f"#{color}" + "".join(map(chr, letters.tolist())))
    # A dollar goes back to the first column.
    return "$".join(lines)


def _blocks(picture: Any) -> str:
    """Return a picture as half blocks, two pixels in each letter."""
    width = min(COLUMNS, picture.width)
    height = max(2, round(picture.height * width / picture.width / 2) * 2)
    pixels = np.asarray(picture.resize((width, height))).astype(int)
    lines = [
        "".join(_block(*pair) for pair in zip(upper, lower, strict=True)) + "\x1b[0m"
        for upper, lower in zip(pixels[::2], pixels[1::2], strict=True)
    ]
    return "\n".join(lines)


def _block(upper: np.ndarray, lower: np.ndarray) -> str:
    """Return a letter whose upper half has one colour and whose ground another."""
    front, back = ";".join(map(str, upper)), ";".join(map(str, lower))
    return f"\x1b[38;2;{front};48;2;{back}m▀"


ENCODERS: dict[str, Callable[[Any], str]] = {
    "blocks": _blocks,
    "iterm": _iterm,
    "kitty": _kitty,
    "sixel": _sixel,
}
