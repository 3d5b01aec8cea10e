"""The site: Markdown pages, a reference from docstrings, a gallery that is run."""

import importlib
import os
import re
import warnings
from pathlib import Path

import linkspread

DOCS = Path(__file__).parent
ROOT = DOCS.parent
# Rooms in the order in which a reader meets them; the loops below them are left out.
ROOMS = [
    "models", "links", "selection", "metrics", "judging", "search", "tables",
    "datasets", "features", "manifests", "exchange", "storage", "web", "cluster",
    "graphs", "propagation", "learning", "studies.baselines",
]  # fmt: skip
# Inherited methods whose documents are those of scikit-learn.
OF_SCIKIT_LEARN = [
    "get_metadata_routing", "set_fit_request", "set_output", "set_score_request",
    "set_transform_request",
]  # fmt: skip

project = "linkspread"
author = copyright = "The linkspread developers"
version = release = linkspread.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["studies", "**/*.py", "**/*.ipynb", "**/*.py.md5", "**/*.json"]
root_doc = "index"
myst_heading_anchors = 4
suppress_warnings = [
    "myst.xref_missing",  # of documents that are included; the test of links has them
    "config.cache",
]

html_theme = "furo"
html_title = f"linkspread {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
# Chosen for contrast: 4.5 to 1 or more for all words, on either background.
pygments_style, pygments_dark_style = (
    "a11y-high-contrast-light",
    "a11y-high-contrast-dark",
)

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"__init__|conftest",
    "download_all_examples": False,
    "plot_gallery": not os.environ.get("LINKSPREAD_SITE_WITHOUT_FIGURES"),
    "show_memory": False,
    "capture_repr": (),
    "show_signature": False,
    "min_reported_time": 10_000,
    "write_computation_times": False,
    "abort_on_example_error": True,
}
# Numba and others warn of themselves; examples are tested with warnings as errors.
warnings.filterwarnings("ignore")


def write_reference(app):
    """Write a page for each room: what its ``__all__`` exports."""
    folder = DOCS / "reference"
    folder.mkdir(exist_ok=True)
    for room in ROOMS:
        module = importlib.import_module(f"linkspread.{room}")
        lines = [f"linkspread.{room}", "=" * len(f"linkspread.{room}"), ""]
        lines += [f".. automodule:: linkspread.{room}", "   :no-members:", ""]
        for name in module.__all__:
            value = getattr(module, name)
            kind = "class" if isinstance(value, type) else "function"
            if not callable(value):
                continue
            lines += [f".. auto{kind}:: linkspread.{room}.{name}"]
            if kind == "class":
                lines += ["   :members:", "   :inherited-members:"]
                lines += [f"   :exclude-members: {', '.join(OF_SCIKIT_LEARN)}"]
            lines += [""]
        write(folder / f"{room.replace('.', '-')}.rst", "\n".join(lines))
    names = "\n".join(f"   {room.replace('.', '-')}" for room in ROOMS)
    head = "Reference\n=========\n\nWritten from the docstrings of each room.\n\n"
    write(folder / "index.rst", f"{head}.. toctree::\n   :maxdepth: 2\n\n{names}\n")


def write(path, text):
    """Write a page if it changed, so that an unchanged one is not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def lead_to_pages(app, name, source):
    """Lead links to files beside ``docs`` to the pages that include them."""
    up = "../" * name.count("/")
    for path, page in (
        ("benchmarks/README.md", "benchmarks.md"),
        ("CONTRIBUTING.md", "contributing.md"),
        ("CHANGELOG.md", "changes.md"),
        ("SECURITY.md", "security.md"),
        ("README.md", "index.md"),
    ):
        pattern = rf"\]\({re.escape(up)}\.\./{re.escape(path)}"
        source[0] = re.sub(pattern, f"]({up}{page}", source[0])


# What theme and gallery leave out for people who use a keyboard or hear a page.
FOR_READERS = [
    (r'role="heading">', r'role="heading" aria-level="2">'),
    (r'class="sidebar-drawer">', r'class="sidebar-drawer" aria-label="Pages">'),
    (r'class="toc-drawer', r'aria-label="On this page" class="toc-drawer'),
    (r"<pre>", r'<pre tabindex="0">'),
    (r'<div class="table-wrapper', r'<div tabindex="0" class="table-wrapper'),
    (r'(href="[\w.]+")(><span class="doc">)([^<]+)', r'\1 aria-label="\3"\2\3'),
    (r'<div id="search-results">', r'<h1>Search</h1><div id="search-results">'),
]


def mend(app, exception):
    """Complete written pages for all readers."""
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for pattern, better in FOR_READERS:
            text = re.sub(pattern, better, text)
        write(path, text)


def setup(app):
    """Connect the three steps above."""
    app.connect("builder-inited", write_reference)
    app.connect("source-read", lead_to_pages)
    app.connect("build-finished", mend)
