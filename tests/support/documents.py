"""The documents, and the code within them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


FENCE = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def python_blocks(text):
    """Return the Python blocks of a Markdown text, padded to keep line numbers."""
    return [
        "\n" * text.count("\n", 0, match.start(1)) + match[1]
        for match in FENCE.finditer(text)
    ]
