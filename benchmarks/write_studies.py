"""Write the tables of stored studies into the documents.

``linkspread reproduce ... --output DIR`` writes ``DIR/study.json``; a copy of it in
``docs/studies/NAME.json`` is shown wherever a document has the marks
``<!-- study NAME -->`` and ``<!-- end of study NAME -->``. Its examples are left out:
they hold pictures and texts, which belong to the collections.
"""

from dataclasses import replace
from pathlib import Path

from harness import replace_between
from linkspread.studies.report.figures import budget_figures
from linkspread.studies.report.study import read_study, write_study
from linkspread.studies.report.tables import (
    details_markdown,
    parameters_markdown,
    results_markdown,
)

ROOT = Path(__file__).parent.parent
STUDIES = ROOT / "docs" / "studies"
FIGURES = ROOT / "docs" / "figures"
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
WITH_PARAMETERS = ("budgets.md", "results.md")


def study_markdown(path, *, with_parameters):
    """Return the table of a study, the command that made it and the machine."""
    study = read_study(path)
    machine = ", ".join(f"{key} {value}" for key, value in study.environment.items())
    parts = [results_markdown(study), f"Made by `{study.command}` ({machine})."]
    if details := details_markdown(study):
        summary = "<details><summary>All measures</summary>"
        parts.append(f"{summary}\n\n{details}\n\n</details>")
    if with_parameters:
        parts.append(parameters_markdown(study))
    return "\n\n".join(part.strip() for part in parts)


def rewrite(document):
    """Return a document with the tables of all studies that it shows."""
    text = document.read_text(encoding="utf-8")
    for path in sorted(STUDIES.glob("*.json")):
        name = f"study {path.stem}"
        if f"<!-- {name}" in text:
            shown = study_markdown(
                path, with_parameters=document.name in WITH_PARAMETERS
            )
            text = replace_between(text, name, shown)
    return text


def leave_out_examples():
    """Rewrite stored tables without their examples."""
    for path in sorted(STUDIES.glob("*.json")):
        study = read_study(path)
        if study.examples:
            write_study(path, replace(study, examples=()))


def draw_budgets():
    """Draw the curves of stored budget studies."""
    for path in sorted(STUDIES.glob("*.json")):
        study = read_study(path)
        if not study.directions:
            for kind, svg in budget_figures(study).items():
                name = f"{path.stem}-{kind.replace(' ', '-')}.svg"
                (FIGURES / name).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    leave_out_examples()
    draw_budgets()
    for document in DOCUMENTS:
        document.write_text(rewrite(document), encoding="utf-8")
