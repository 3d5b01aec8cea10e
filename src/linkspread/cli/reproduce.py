"""``linkspread reproduce``: the paper's tables, MAP against supervision, judging."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from linkspread.cli.rendering import step_bar
from linkspread.datasets import Partners
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import LinkspreadError
from linkspread.studies.budgets import (
    AMOUNTS,
    N_START,
    judging_learner,
    needed_judgements,
    plan_budgets,
    run_budgets,
    run_judging,
)
from linkspread.studies.collections import Benchmark, load_benchmark
from linkspread.studies.methods import table_methods
from linkspread.studies.partners import load_partners, plan_partners, run_partners
from linkspread.studies.report import (
    Study,
    build_study_page,
    check_folder,
    details_markdown,
    parameters_markdown,
    read_study,
    results_markdown,
    write_page,
    write_study,
)
from linkspread.studies.running import check_continued, describe_environment
from linkspread.studies.tables import run_table

reproduce_app = typer.Typer(
    help="Measure the paper's methods and fair baselines, and write a report.",
    no_args_is_help=True,
)

Data = Annotated[
    Path | None,
    typer.Option(help="Folder of the data; by default below LINKSPREAD_DATA."),
]
Output = Annotated[Path, typer.Option(help="Folder for the report.")]
Quick = Annotated[bool, typer.Option(help="Fewer choices and folds.")]
Resplits = Annotated[
    int, typer.Option(min=0, help="Random splits besides the standard.")
]
Protocol = Annotated[
    str, typer.Option(help="transductive: queries are in the graphs; or inductive.")
]
Resume = Annotated[bool, typer.Option(help="Go on with the study in the folder.")]

KINDS = {True: "a table", False: "a budget study"}


@reproduce_app.command(
    "wikipedia",
    epilog="Example: linkspread reproduce wikipedia --data wikipedia --quick",
)
def reproduce_wikipedia(
    data: Data = None,
    output: Output = Path("linkspread-wikipedia"),
    protocol: Protocol = "transductive",
    quick: Quick = False,
    resplits: Resplits = 0,
    resume: Resume = False,
) -> None:
    """Table 1: image and text of Wikipedia articles, ten topics.

    Takes about 13 minutes on two cores, two with --quick; each re-split about as
    much again. Results are kept as they come, and --resume goes on from them.
    """
    check_folder(output)
    before = _read_table(output, "wikipedia") if resume else None
    benchmark = load_benchmark("wikipedia", data)
    _reproduce_table(
        benchmark, output, protocol, quick, resplits, printed=True, before=before
    )


@reproduce_app.command(
    "corel5k", epilog="Example: linkspread reproduce corel5k --data corel5k --quick"
)
def reproduce_corel5k(
    data: Data = None,
    output: Output = Path("linkspread-corel5k"),
    protocol: Protocol = "transductive",
    quick: Quick = False,
    resplits: Resplits = 0,
    half: Annotated[
        bool, typer.Option(help="Train on a random half, as the paper's table 2.")
    ] = False,
    resume: Resume = False,
) -> None:
    """Table 2 on Corel5k, a public stand-in for the paper's own pictures.

    The features take a minute or two; the table takes much longer than that of
    Wikipedia. Results are kept as they come, and --resume goes on from them.
    """
    check_folder(output)
    before = _read_table(output, "corel5k") if resume else None
    Console(stderr=True).print("Describing 4,999 pictures takes a minute or two.")
    benchmark = load_benchmark("corel5k", data, half=half, verbose=True)
    _reproduce_table(
        benchmark, output, protocol, quick, resplits, printed=False, before=before
    )


@reproduce_app.command(
    "budgets",
    epilog="Example: linkspread reproduce budgets glyphs --quick --repetitions 1",
)
def reproduce_budgets(
    collection: Annotated[
        str, typer.Argument(help="wikipedia, corel5k or glyphs.")
    ] = "wikipedia",
    data: Data = None,
    output: Output = Path("linkspread-budgets"),
    repetitions: Annotated[
        int, typer.Option(min=1, help="Random splits to measure on.")
    ] = 5,
    quick: Quick = False,
    resume: Resume = False,
) -> None:
    """Precision against how many labels or links are known, all methods tuned.

    Takes long: a cell of the table is a search for parameters in three folds, for
    each repetition. Results are kept as they come, and --resume goes on from them.
    """
    check_folder(output)
    before = _read_before(output, collection) if resume else None
    benchmark = load_benchmark(collection, data, verbose=True)
    amounts: dict[str, Any] = {}
    if quick:
        amounts = {"labels": (3, 30), "links": (1_000,), "matched": False}
    n_cells = len(plan_budgets(benchmark.metrics, **amounts))
    with step_bar(n_steps=n_cells * repetitions, lines=True) as step:
        study = run_budgets(
            _begin(
                f"Precision against supervision: {collection}",
                "Mean average precision, mean of both directions, over "
                f"{repetitions} random splits. Everything is chosen by "
                "cross-validation on what is known; where that is too little to hold "
                "any of it out, defaults are kept.",
                collection,
            ),
            benchmark.collection,
            benchmark.splits(repetitions)[1:],
            metrics=benchmark.metrics,
            n_splits=3,
            before=before,
            keep=partial(write_study, output / "study.json"),
            step=step,
            **amounts,
        )
    _write(study, output)


@reproduce_app.command(
    "partners",
    epilog="Example: linkspread reproduce partners fonts --quick --repetitions 1",
)
def reproduce_partners(
    collection: Annotated[
        str,
        typer.Argument(help="abt-buy, amazon-google, digits-kar-pix, fonts and more."),
    ] = "fonts",
    data: Data = None,
    output: Output = Path("linkspread-partners"),
    repetitions: Annotated[
        int, typer.Option(min=1, help="Random choices of what is known.")
    ] = 5,
    quick: Quick = False,
    resume: Resume = False,
) -> None:
    """Recall of the partner against how many pairs are known, all methods tuned.

    Beside it stands what the user had before: the plain cosine where the views share
    a space. Takes up to 20 minutes on two cores. Results are kept as they come, and
    --resume goes on from them.
    """
    check_folder(output)
    before = _read_before(output, collection) if resume else None
    partners = load_partners(collection, data)
    amounts: dict[str, Any] = {}
    if quick:
        amounts = {"matched": (0, 100), "judged": (0, 300)}
    n_cells = len(plan_partners(partners, **amounts))
    with step_bar(n_steps=n_cells * repetitions, lines=True) as step:
        study = run_partners(
            _begin(
                f"Finding partners: {collection}",
                _partners_introduction(partners, repetitions),
                collection,
            ),
            partners,
            n_repetitions=repetitions,
            n_jobs=count_threads(None),
            before=before,
            keep=partial(write_study, output / "study.json"),
            step=step,
            **amounts,
        )
    _write(study, output)


def _partners_introduction(partners: Partners, repetitions: int) -> str:
    """Say what is searched, what is known and what is measured."""
    sizes = " and ".join(f"{X.shape[0]:,}" for X in partners.views.values())
    start = "" if partners.shared_space else " The first ten are matched pairs."
    return (
        f"{len(partners.pairs):,} pairs of {sizes} items. Recall at 1 of the partner "
        "among all items of the other view, mean of both directions, over "
        f"{repetitions} random choices of what is known. Matched pairs: all others are "
        "searched. Judged pairs: half of the partners are searched, and no item of "
        "theirs is judged; every other judgement is of the first five results of the "
        "search so far (a ridge map from the partners found), the rest of random "
        f"pairs.{start} Everything is chosen by cross-validation on what is known."
    )


@reproduce_app.command(
    "judging", epilog="Example: linkspread reproduce judging glyphs --repetitions 1"
)
def reproduce_judging(
    collection: Annotated[
        str, typer.Argument(help="wikipedia, corel5k or glyphs.")
    ] = "wikipedia",
    data: Data = None,
    output: Output = Path("linkspread-judging"),
    repetitions: Annotated[
        int, typer.Option(min=1, help="Random splits to measure on.")
    ] = 5,
) -> None:
    """Precision against pairs judged: suggested ones against random ones.

    Labels answer every pair. Takes about ten minutes on Wikipedia with one core.
    Results are kept as they come.
    """
    check_folder(output)
    benchmark = load_benchmark(collection, data, verbose=True)
    learner = judging_learner(benchmark.metrics)
    with step_bar(n_steps=2 * repetitions, lines=True) as step:
        study = run_judging(
            _begin(
                f"Judging suggested pairs: {collection}",
                _judging_introduction(repetitions),
                collection,
            ),
            benchmark.collection,
            benchmark.splits(repetitions)[1:],
            learner,
            amounts=AMOUNTS,
            keep=partial(write_study, output / "study.json"),
            step=step,
        )
    _write(study, output)
    _tell_needed(study)


def _judging_introduction(repetitions: int) -> str:
    """Say who asks, who answers and what is measured."""
    return (
        "Mean average precision among test items, mean of both directions, over "
        f"{repetitions} random splits. Pairs of training items are judged by their "
        f"labels; the first {N_START} are random. One learner, "
        "`LinkSpreading` with fixed parameters, learns from those that `suggest_pairs` "
        "asks for and from random ones."
    )


def _tell_needed(study: Study) -> None:
    """Print how many suggested pairs do for the largest number of random ones."""
    n_random = AMOUNTS[-1]
    needed = needed_judgements(study, n_random)
    reached = "not reached with" if needed is None else f"reached with {needed:,}"
    text = f"{n_random:,} random pairs are {reached} suggested pairs."
    Console().print(text, highlight=False)


def _reproduce_table(
    benchmark: Benchmark,
    output: Path,
    protocol: str,
    quick: bool,
    resplits: int,
    *,
    printed: bool,
    before: Study | None,
) -> None:
    """Measure all methods, and write the report."""
    if protocol not in ("transductive", "inductive"):
        raise LinkspreadError(
            "`--protocol` must be transductive or inductive, got "
            f"{protocol!r}. Leave it out for transductive."
        )
    methods = table_methods(benchmark.metrics, benchmark.widths, quick=quick)
    splits = benchmark.splits(resplits)
    with step_bar(len(methods) * len(splits) + 1, lines=True) as step:
        study = run_table(
            _begin(
                f"Cross-view search on {benchmark.name}",
                _introduction(benchmark, protocol),
                benchmark.name,
            ),
            benchmark.collection,
            methods,
            splits,
            protocol=protocol,
            n_splits=3 if quick else 5,
            printed=printed,
            before=before,
            keep=partial(write_study, output / "study.json"),
            step=step,
        )
    _write(study, output)


def _begin(title: str, introduction: str, collection: str) -> Study:
    """Return the study that this command makes, without a result."""
    return Study(
        title, introduction, _command(), collection, environment=describe_environment()
    )


def _read_before(
    output: Path, collection: str, *, is_table: bool = False
) -> Study | None:
    """Return the study that a folder holds, if any, before anything is loaded."""
    path = output / "study.json"
    if not path.exists():
        return None
    study = read_study(path)
    if bool(study.directions) != is_table:
        raise LinkspreadError(
            f"`--resume` must be given the folder of {KINDS[is_table]}, got "
            f"{KINDS[not is_table]} in {path}. Use another folder."
        )
    check_continued(study, collection)
    return study


def _read_table(output: Path, collection: str) -> Study | None:
    """Return the table that a folder holds, if any, made with the same options."""
    study = _read_before(output, collection, is_table=True)
    command = _command()
    if study is not None and _conditions(study.command) != _conditions(command):
        raise LinkspreadError(
            f"`--resume` must have the options that the study was begun with, "
            f"{study.command!r}, got {command!r}. Repeat them, or use another folder."
        )
    return study


def _conditions(command: str) -> list[str]:
    """Return the words of a command that a table depends on, in any order."""
    return sorted(_leave_out(command.replace("=", " ").split(), "--resplits"))


def _introduction(benchmark: Benchmark, protocol: str) -> str:
    """Say what is searched, what is known and how parameters were chosen."""
    n_train, n_test = len(benchmark.standard.train), len(benchmark.standard.test)
    seen = {
        "transductive": "The test items are in the graphs, without a label.",
        "inductive": "The queries are new: they were in no graph.",
    }
    return (
        f"The labels of {n_train:,} items are known; {n_test:,} others search each "
        f"other, and a result is right when it has the class of the query. "
        f"{seen[protocol]} All parameters were chosen by cross-validation on the known "
        "labels."
    )


def _command() -> str:
    """Return the command as it was typed, without folders of this machine."""
    words = [word for word in sys.argv[1:] if word != "--resume"]
    return " ".join(["linkspread", *_leave_out(words, "--data", "--output")])


def _leave_out(words: Sequence[str], *options: str) -> list[str]:
    """Return words without some options and their values, in one word or two."""
    kept, is_value = [], False
    for word in words:
        name, has_value, _ = word.partition("=")
        if is_value or name in options:
            is_value = not is_value and not has_value
        else:
            kept.append(word)
    return kept


def _write(study: Any, output: Path) -> None:
    """Write the page, the tables and the data, and print the table."""
    parts = (results_markdown, details_markdown, parameters_markdown)
    tables = "\n\n".join(filter(None, (part(study) for part in parts))) + "\n"
    write_study(output / "study.json", study)
    write_page(output / "tables.md", tables)
    page = write_page(output / "index.html", build_study_page(study))
    console = Console()
    console.print(results_markdown(study), markup=False, highlight=False)
    console.print(f"Report: {page.resolve()}", soft_wrap=True, highlight=False)
