"""``linkspread demo``: search glyphs by name and by picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkspread.cli.output import print_line, print_table, step_bar

if TYPE_CHECKING:
    from linkspread.studies.report.study import Study

# Hidden glyphs that are queries and results.
N_MEASURED = 2000
# Side of the pictures in pixels.
DRAWN_SIZE = 20


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
    import numpy as np

    from linkspread.datasets import load_glyphs
    from linkspread.studies.collections import Split, choose_labeled
    from linkspread.studies.methods import demo_methods
    from linkspread.studies.report.page import build_page
    from linkspread.studies.report.study import Study, check_folder, write_page
    from linkspread.studies.running import describe_environment
    from linkspread.studies.tables import run_table

    check_folder(output)
    methods = demo_methods()
    with step_bar(n_steps=len(methods) + 2) as step:
        step("Drawing glyphs")
        glyphs = load_glyphs(size=DRAWN_SIZE)
        labeled = choose_labeled(glyphs.labels, labels_per_class, random_state=seed)
        hidden = np.random.default_rng(0).permutation(np.flatnonzero(~labeled))
        test = np.sort(hidden[:N_MEASURED])
        introduction = (
            f"{len(labeled):,} glyphs of {len(glyphs.label_names)} families, each with "
            f"a name and a picture. The family of {labeled.sum()} glyphs is known, "
            f"that of the other {len(hidden):,} is hidden. {len(test):,} hidden glyphs "
            "are searched with each other; a result is right when it is of the same "
            "family as the query."
        )
        print_line(introduction)
        print_line("This takes some fifteen seconds, and ten more the first time.")
        about = introduction, "linkspread demo", "glyphs", describe_environment()
        study = run_table(
            Study("Glyphs by name and by picture", *about),
            glyphs,
            methods,
            [Split("standard", np.flatnonzero(labeled), test)],
            printed=False,
            step=step,
        )
    print_comparison(study)
    print_searches(study)
    path = write_page(output / "index.html", build_page(study)).resolve()
    print_line(f"Page with pictures: {path}")


def print_comparison(study: Study) -> None:
    """Print the table of methods."""
    from linkspread.studies.report.tables import results_table

    table = results_table(study)
    rows = [(row.name, *(cell.text for cell in row.cells)) for row in table.rows]
    print_table(table.head, rows, right=table.head[1:], title="Mean average precision")


def print_searches(study: Study) -> None:
    """Print each query, with + for a right result and - for a wrong one."""
    rows = [
        (
            search.source,
            search.target,
            search.query.title,
            search.query.caption,
            "".join("+" if hit.right else "-" for hit in search.hits),
        )
        for search in study.examples
    ]
    print_table(("From", "To", "Query", "Family", "Results"), rows, title="Searches")
