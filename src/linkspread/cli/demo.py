"""``linkspread demo``: learn to search glyphs by name and by picture."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from linkspread.cli.rendering import comparison_table, searches_table, step_bar
from linkspread.datasets import Collection, load_glyphs, make_glyph_image
from linkspread.links import Links
from linkspread.models import CrossViewSearch
from linkspread.studies.report import (
    Card,
    ComparisonRow,
    Hit,
    Search,
    build_page,
    check_folder,
    choose_labeled,
    choose_queries,
    compare_chance,
    compare_label_spreading,
    compare_scores,
    ink_data_uri,
    keep_hidden,
    write_page,
)

N_NEIGHBORS = 30
# Hidden glyphs that are searched with each other to measure a method.
N_MEASURED = 2000
N_RESULTS = 10
# Sides of the pictures that are compared, and of those that are shown.
DRAWN_SIZE, PICTURE_SIZE = 20, 96
DIRECTIONS = {"name to image": ("name", "image"), "image to name": ("image", "name")}


def run_demo(
    output: Annotated[
        Path, typer.Option(help="Folder for the page with pictures.")
    ] = Path("linkspread-demo"),
    labels_per_class: Annotated[
        int, typer.Option(help="Labels that are known in each family of glyphs.")
    ] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the choice of labels.")] = 0,
) -> None:
    """Fit glyphs from a few labels, print a table, write a page of searches.

    The glyphs are the characters of a font that comes with matplotlib; their views
    are the words of their Unicode names and their pictures.
    """
    check_folder(output)
    console = Console()
    with step_bar(n_steps=5) as step:
        step("Drawing glyphs")
        glyphs = load_glyphs(size=DRAWN_SIZE)
        labeled = choose_labeled(glyphs.labels, labels_per_class, random_state=seed)
        console.print(_introduction(glyphs, labeled))
        console.print("This takes some fifteen seconds, and ten more the first time.")
        model, rows = _compare(glyphs, labeled, step)
        step("Searching")
        searches = _search_both_ways(model, glyphs, labeled, seed)
    console.print(comparison_table(rows, list(DIRECTIONS)), searches_table(searches))
    path = _write(output, _introduction(glyphs, labeled), rows, searches)
    console.print(f"Page with pictures: {path}", soft_wrap=True, highlight=False)


def _introduction(glyphs: Collection, labeled: np.ndarray) -> str:
    """Say what is searched, what is known and what counts."""
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
) -> tuple[CrossViewSearch, list[ComparisonRow]]:
    """Fit each method to the same labels and measure it on the hidden glyphs."""
    labels = dict.fromkeys(glyphs.views, glyphs.labels)
    some = np.random.default_rng(0).permutation(np.flatnonzero(~labeled))[:N_MEASURED]
    hidden = dict.fromkeys(glyphs.views, np.sort(some))
    known = dict.fromkeys(glyphs.views, np.where(labeled, glyphs.labels, -1))
    step("Fitting linkspread")
    model, seconds = _fit(glyphs, known)
    step("Measuring linkspread")
    ours = compare_scores("linkspread", model.scores, labels, hidden, seconds=seconds)
    step("Fitting and measuring LabelSpreading")
    baseline = compare_label_spreading(
        glyphs.views, known, labels, hidden, n_neighbors=N_NEIGHBORS
    )
    return model, [ours, baseline, compare_chance(labels, hidden)]


def _fit(
    glyphs: Collection, known: dict[str, np.ndarray]
) -> tuple[CrossViewSearch, float]:
    """Fit linkspread to the known labels, and say how many seconds it took."""
    start = time.perf_counter()
    model = CrossViewSearch().fit(glyphs.views, Links.from_labels(known))
    return model, time.perf_counter() - start


def _search_both_ways(
    model: CrossViewSearch, glyphs: Collection, labeled: np.ndarray, seed: int
) -> list[Search]:
    """Search with a few hidden glyphs, for hidden glyphs, in each direction."""
    hidden = np.flatnonzero(~labeled)
    # Even if every labelled glyph is found, enough hidden ones are.
    n_results = N_RESULTS + int(labeled.sum())
    searches = []
    for i, (source, target) in enumerate(DIRECTIONS.values()):
        queries = choose_queries(glyphs.labels, hidden, random_state=seed + i)
        found = model.search(queries, source=source, target=target, n_results=n_results)
        for query, items, scores in zip(queries, *found, strict=True):
            items, scores = keep_hidden(items, scores, labeled, n_results=N_RESULTS)
            card = _card(glyphs, query, pictured=source == "image")
            hits = _hits(glyphs, query, items, scores)
            searches.append(Search(source, target, card, hits))
    return searches


def _hits(
    glyphs: Collection, query: int, items: np.ndarray, scores: np.ndarray
) -> list[Hit]:
    """Describe the results of a search; those of the query's family are right."""
    right = glyphs.labels[items] == glyphs.labels[query]
    found = zip(items, scores.tolist(), right.tolist(), strict=True)
    return [Hit(_card(glyphs, item), score, same) for item, score, same in found]


def _card(glyphs: Collection, item: int, *, pictured: bool = True) -> Card:
    """Describe a glyph by its name, its family and its picture."""
    picture = None
    if pictured:
        picture = ink_data_uri(make_glyph_image(glyphs.characters[item], PICTURE_SIZE))
    family = glyphs.label_names[glyphs.labels[item]]
    return Card(str(glyphs.names[item]), family, picture)


def _write(
    folder: Path,
    introduction: str,
    rows: list[ComparisonRow],
    searches: list[Search],
) -> Path:
    """Write the page and return where it is."""
    page = build_page(
        "Glyphs by name and by picture",
        introduction,
        rows,
        searches,
        directions=list(DIRECTIONS),
    )
    return write_page(folder / "index.html", page).resolve()
