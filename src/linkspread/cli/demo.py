"""``linkspread demo``: search glyphs by name and by picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkspread.cli.output import print_line, print_table, step_bar

if TYPE_CHECKING:
    import numpy as np

    from linkspread.datasets.collection import Collection
    from linkspread.models import CrossViewSearch
    from linkspread.studies.report.study import Card, Cell, Search, Study

N_NEIGHBORS = 30
# Hidden glyphs that are queries and results when a method is measured.
N_MEASURED = 2000
N_RESULTS = 10
# Side of pictures in pixels, to compare and to show.
DRAWN_SIZE, PICTURE_SIZE = 20, 96
DIRECTIONS = {"name to image": ("name", "image"), "image to name": ("image", "name")}


def run_demo(
    output: Annotated[
        Path, typer.Option(help="Folder for the page with pictures.")
    ] = Path("linkspread-demo"),
    labels_per_class: Annotated[
        int, typer.Option(help="Known labels of each family of glyphs.")
    ] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the choice of labels.")] = 0,
) -> None:
    """Fit glyphs from a few labels, print a table, write a page of searches.

    The glyphs are the characters of a font that comes with matplotlib; their views
    are the words of their Unicode names and their pictures.
    """
    from linkspread.datasets import load_glyphs
    from linkspread.studies.report.comparison import choose_labeled
    from linkspread.studies.report.page import build_page
    from linkspread.studies.report.study import Study, check_folder, write_page
    from linkspread.studies.running import describe_environment

    check_folder(output)
    with step_bar(n_steps=5) as step:
        step("Drawing glyphs")
        glyphs = load_glyphs(size=DRAWN_SIZE)
        labeled = choose_labeled(glyphs.labels, labels_per_class, random_state=seed)
        introduction = _introduction(glyphs, labeled)
        print_line(introduction)
        print_line("This takes some fifteen seconds, and ten more the first time.")
        model, cells = _compare(glyphs, labeled, step)
        step("Searching")
        searches = _search_both_ways(model, glyphs, labeled, seed)
    study = Study(
        "Glyphs by name and by picture",
        introduction,
        "linkspread demo",
        "glyphs",
        describe_environment(),
        directions=tuple(DIRECTIONS),
        cells=tuple(cells),
        examples=tuple(searches),
    )
    print_comparison(study)
    print_searches(searches)
    path = write_page(output / "index.html", build_page(study)).resolve()
    print_line(f"Page with pictures: {path}")


def print_comparison(study: Study) -> None:
    """Print the table of methods."""
    from linkspread.studies.report.tables import results_table

    table = results_table(study)
    rows = [(row.name, *(cell.text for cell in row.cells)) for row in table.rows]
    print_table(table.head, rows, right=table.head[1:], title="Mean average precision")


def print_searches(searches: Sequence[Search]) -> None:
    """Print each query, with + for a right result and - for a wrong one."""
    rows = [
        (
            search.source,
            search.target,
            search.query.title,
            search.query.caption,
            "".join("+" if hit.right else "-" for hit in search.hits),
        )
        for search in searches
    ]
    print_table(("From", "To", "Query", "Family", "Results"), rows, title="Searches")


def _introduction(glyphs: Collection, labeled: np.ndarray) -> str:
    """Return sentences on the glyphs, the known labels and the measure."""
    n_items, n_labeled = len(glyphs.labels), labeled.sum()
    return (
        f"{n_items:,} glyphs of {len(glyphs.label_names)} families, each with a name "
        f"and a picture. The family of {n_labeled} glyphs is known, that of the other "
        f"{n_items - n_labeled:,} is hidden. "
        f"{min(N_MEASURED, n_items - n_labeled):,} hidden glyphs are searched with "
        "each other; a result is right when it is of the same family as the query."
    )


def _compare(
    glyphs: Collection, labeled: np.ndarray, step: Callable[[str], None]
) -> tuple[CrossViewSearch, list[Cell]]:
    """Fit each method to the same labels and measure it on the hidden glyphs."""
    import numpy as np

    from linkspread.links import Links
    from linkspread.models import CrossViewSearch
    from linkspread.studies.report import comparison

    labels = dict.fromkeys(glyphs.views, glyphs.labels)
    some = np.random.default_rng(0).permutation(np.flatnonzero(~labeled))[:N_MEASURED]
    hidden = dict.fromkeys(glyphs.views, np.sort(some))
    known = dict.fromkeys(glyphs.views, np.where(labeled, glyphs.labels, -1))
    step("Fitting linkspread")
    start = time.perf_counter()
    model = CrossViewSearch().fit(glyphs.views, Links.from_labels(known))
    seconds = time.perf_counter() - start
    step("Measuring linkspread")
    ours = comparison.compare_scores(
        "linkspread", model.scores, labels, hidden, seconds=seconds
    )
    step("Fitting and measuring LabelSpreading")
    baseline = comparison.compare_label_spreading(
        glyphs.views, known, labels, hidden, n_neighbors=N_NEIGHBORS
    )
    return model, [ours, baseline, comparison.compare_chance(labels, hidden)]


def _search_both_ways(
    model: CrossViewSearch, glyphs: Collection, labeled: np.ndarray, seed: int
) -> list[Search]:
    """Search with a few hidden glyphs, for hidden glyphs, in each direction."""
    import numpy as np

    from linkspread.studies.report.comparison import choose_queries, keep_hidden
    from linkspread.studies.report.study import Hit, Search

    hidden = np.flatnonzero(~labeled)
    # Enough for N_RESULTS hidden glyphs, even if all labelled ones are found.
    n_results = N_RESULTS + int(labeled.sum())
    searches = []
    for i, (source, target) in enumerate(DIRECTIONS.values()):
        queries = choose_queries(glyphs.labels, hidden, random_state=seed + i)
        found = model.search(queries, source=source, target=target, n_results=n_results)
        for query, items, scores in zip(queries, *found, strict=True):
            items, scores = keep_hidden(items, scores, labeled, n_results=N_RESULTS)
            right = (glyphs.labels[items] == glyphs.labels[query]).tolist()
            hits = [
                Hit(_card(glyphs, item), score, same)
                for item, score, same in zip(items, scores.tolist(), right, strict=True)
            ]
            card = _card(glyphs, query, pictured=source == "image")
            searches.append(Search(source, target, card, hits))
    return searches


def _card(glyphs: Collection, item: int, *, pictured: bool = True) -> Card:
    """Describe a glyph by its name, its family and its picture."""
    from linkspread.datasets.glyphs import make_glyph_image
    from linkspread.studies.report.page import ink_data_uri
    from linkspread.studies.report.study import Card

    picture = None
    if pictured:
        picture = ink_data_uri(make_glyph_image(glyphs.characters[item], PICTURE_SIZE))
    family = glyphs.label_names[glyphs.labels[item]]
    return Card(str(glyphs.names[item]), family, picture)
