"""Public names: declared, sorted, complete; and a bare import stays light."""

import json
import re
import subprocess
import sys
from pathlib import Path

import linkspread
from modules import ROOMS, load

ROOT = Path(__file__).parents[2]
# Not pandas and pyarrow: scikit-learn itself imports them where they are installed.
HEAVY = {
    "PIL",
    "cv2",
    "dask",
    "distributed",
    "fastapi",
    "jinja2",
    "matplotlib",
    "polars",
    "rich",
    "sqlalchemy",
    "starlette",
    "tokenizers",
    "torch",
    "typer",
}


def test_every_room_declares_its_public_names_sorted():
    offences = []
    for name in ROOMS:
        module = load(name)
        public = list(getattr(module, "__all__", ["nothing declared"]))
        missing = [entry for entry in public if not hasattr(module, entry)]
        if public != sorted(set(public)) or missing:
            offences.append((name, public, missing))
    assert offences == []


def test_a_bare_import_is_light():
    program = "import json, sys, linkspread; print(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert loaded & HEAVY == set()


def test_rooms_are_imported_when_they_are_first_used():
    program = (
        "import sys, linkspread as ls\n"
        "rooms = ('linkspread.studies', 'linkspread.selection')\n"
        "assert not any(room in sys.modules for room in rooms)\n"
        "assert {'studies', 'selection'} <= set(dir(ls)) & set(ls.__all__)\n"
        "ls.selection.tune, ls.studies.baselines.BilinearRidge\n"
        "assert not hasattr(ls, 'nowhere')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_changelog_starts_with_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    # A heading such as "## [0.2.0] - 2026-01-31" or "## 0.2.0 (unreleased)".
    versions = re.findall(r"^## \[?v?(\d+\.[\w.]+)", changelog, flags=re.MULTILINE)
    assert versions[:1] == [linkspread.__version__]
