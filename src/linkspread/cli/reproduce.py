"""``linkspread reproduce``: the paper's tables and studies of supervision."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkspread.cli.options import takes
from linkspread.cli.output import console, notice, print_line, step_bar
from linkspread.ground.errors import LinkspreadError

if TYPE_CHECKING:
    from linkspread.datasets.collection import Partners
    from linkspread.studies.collections import Benchmark
    from linkspread.studies.report.study import Study

reproduce_app = typer.Typer(
    help="Measure the paper's methods and baselines, and write a report.",
    no_args_is_help=True,
)

REPORT = {
    "data": Annotated[
        Path | None,
        typer.Option(help="Folder of the data; by default inside LINKSPREAD_DATA."),
    ],
    "output": Annotated[
        Path | None,
        typer.Option(help="Folder for the report, by default linkspread-NAME."),
    ],
}
RESUMED = {
    "quick": Annotated[
        bool | None, typer.Option("--quick", help="Fewer choices and folds.")
    ],
    "resume": Annotated[
        bool | None,
        typer.Option("--resume", help="Continue the study in the folder."),
    ],
}
Resplits = Annotated[
    int, typer.Option(min=0, help="Random splits besides the standard.")
]
Repetitions = Annotated[int, typer.Option(min=1, help="Random splits to measure.")]
Protocol = Annotated[
    str, typer.Option(help="transductive (queries are in the graphs) or inductive.")
]
Named = Annotated[str, typer.Argument(help="wikipedia, corel5k or glyphs.")]

PROTOCOLS = {
    "transductive": "The test items are in the graphs, without a label.",
    "inductive": "The queries are new: they are in no graph.",
}


@dataclass
class Report:
    """The folder of a study: checked first, written as results come."""

    kind: str
    collection: str
    output: Path
    before: Any = None  # the study to resume

    @classmethod
    def open(cls, name: str, kind: str, collection: str, typed: Any) -> Report:
        """Refuse an unusable folder, before anything is loaded."""
        from linkspread.studies.report.study import check_folder, read_study
        from linkspread.studies.running import check_continued

        report = cls(kind, collection, typed["output"] or Path(f"linkspread-{name}"))
        check_folder(report.output)
        path = report.output / "study.json"
        if not typed.get("resume") or not path.exists():
            return report
        report.before = read_study(path)
        got = "a table" if report.before.directions else "a budget study"
        if got != kind:
            raise LinkspreadError(
                f"`--resume` needs the folder of {kind}, got {got} in {path}. Use "
                "another folder."
            )
        check_continued(report.before, collection)
        return report

    def begin(self, title: str, introduction: str) -> Study:
        """Return the study of this command, without results."""
        from linkspread.studies.report.study import Study
        from linkspread.studies.running import describe_environment

        about = title, introduction, _command(), self.collection
        return Study(*about, environment=describe_environment())

    def measure(
        self, n_steps: int, run: Any, title: str, text: str, *given: Any, **how: Any
    ) -> Study:
        """Run a study, keep its results as they come, and write the report."""
        with step_bar(n_steps, lines=True) as step:
            running: Any = {"before": self.before, "keep": self.keep, "step": step}
            study: Study = run(self.begin(title, text), *given, **running, **how)
        self.write(study)
        return study

    def keep(self, study: Study) -> None:
        """Write an unfinished study."""
        from linkspread.studies.report.study import write_study

        write_study(self.output / "study.json", study)

    def write(self, study: Study) -> None:
        """Write the page, the tables and the data, and print the table."""
        from linkspread.studies.report import tables
        from linkspread.studies.report.page import build_page
        from linkspread.studies.report.study import write_page

        self.keep(study)
        results = tables.results_markdown(study)
        texts = [tables.details_markdown(study), tables.parameters_markdown(study)]
        text = "\n\n".join(filter(None, [results, *texts])) + "\n"
        write_page(self.output / "tables.md", text)
        page = write_page(self.output / "index.html", build_page(study))
        console().print(results)
        print_line(f"Report: {page.resolve()}")


@reproduce_app.command(
    "wikipedia",
    epilog="Example: linkspread reproduce wikipedia --data wikipedia --quick",
)
@takes(REPORT, RESUMED)
def reproduce_wikipedia(
    protocol: Protocol = "transductive",
    resplits: Resplits = 0,
    *,
    typed: dict[str, Any],
) -> None:
    """Table 1: images and texts of Wikipedia articles, ten topics.

    Takes about 13 minutes on two cores, two with --quick; each re-split takes about as
    long again. Results are stored as they come, and --resume continues.
    """
    _reproduce_table("wikipedia", protocol, resplits, typed)


@reproduce_app.command(
    "corel5k", epilog="Example: linkspread reproduce corel5k --data corel5k --quick"
)
@takes(REPORT, RESUMED)
def reproduce_corel5k(
    protocol: Protocol = "transductive",
    resplits: Resplits = 0,
    half: Annotated[
        bool, typer.Option(help="Train on a random half, as the paper's table 2.")
    ] = False,
    *,
    typed: dict[str, Any],
) -> None:
    """Table 2 on Corel5k, in place of the paper's own pictures.

    The features take a minute or two; the table takes much longer than that of
    Wikipedia. Results are stored as they come, and --resume continues.
    """
    notice("The features of 4,999 pictures take a minute or two.")
    _reproduce_table("corel5k", protocol, resplits, typed, half=half, verbose=True)


@reproduce_app.command(
    "budgets",
    epilog="Example: linkspread reproduce budgets glyphs --quick --repetitions 1",
)
@takes(REPORT, RESUMED)
def reproduce_budgets(
    collection: Named = "wikipedia",
    repetitions: Repetitions = 5,
    *,
    typed: dict[str, Any],
) -> None:
    """Precision against the number of known labels or links, all methods tuned.

    Takes long: each cell of the table tunes parameters in three folds, for each
    repetition. Results are stored as they come, and --resume continues.
    """
    from linkspread.studies.budgets import plan_budgets, run_budgets
    from linkspread.studies.collections import load_benchmark

    report = Report.open("budgets", "a budget study", collection, typed)
    benchmark = load_benchmark(collection, typed["data"], verbose=True)
    amounts: dict[str, Any] = {}
    if typed["quick"]:
        amounts = {"labels": (3, 30), "links": (1_000,), "matched": False}
    n_cells = len(plan_budgets(benchmark.metrics, **amounts))
    report.measure(
        n_cells * repetitions,
        run_budgets,
        f"Precision against supervision: {collection}",
        f"Mean average precision, mean of both directions, over {repetitions} random "
        "splits. Everything is chosen by cross-validation on what is known; where that "
        "is too little to hold any of it out, defaults are kept.",
        benchmark.collection,
        benchmark.splits(repetitions)[1:],
        metrics=benchmark.metrics,
        n_splits=3,
        **amounts,
    )


@reproduce_app.command(
    "partners",
    epilog="Example: linkspread reproduce partners fonts --quick --repetitions 1",
)
@takes(REPORT, RESUMED)
def reproduce_partners(
    collection: Annotated[
        str,
        typer.Argument(help="abt-buy, amazon-google, digits-kar-pix, fonts and more."),
    ] = "fonts",
    repetitions: Repetitions = 5,
    *,
    typed: dict[str, Any],
) -> None:
    """Recall of the partner against the number of known pairs, all methods tuned.

    If the views share a space, the cosine is a baseline. Takes up to 20 minutes on two
    cores. Results are stored as they come, and --resume continues.
    """
    from linkspread.ground.cores import count_threads
    from linkspread.studies.partners import load_partners, plan_partners, run_partners

    report = Report.open("partners", "a budget study", collection, typed)
    partners = load_partners(collection, typed["data"])
    amounts: dict[str, Any] = {}
    if typed["quick"]:
        amounts = {"matched": (0, 100), "judged": (0, 300)}
    n_cells = len(plan_partners(partners, **amounts))
    report.measure(
        n_cells * repetitions,
        run_partners,
        f"Finding partners: {collection}",
        _partners_introduction(partners, repetitions),
        partners,
        n_repetitions=repetitions,
        n_jobs=count_threads(None),
        **amounts,
    )


@reproduce_app.command(
    "matching",
    epilog="Example: linkspread reproduce matching abt-buy --quick --repetitions 1",
)
@takes(REPORT, RESUMED)
def reproduce_matching(
    collection: Annotated[
        str, typer.Argument(help="abt-buy or amazon-google.")
    ] = "abt-buy",
    repetitions: Repetitions = 5,
    *,
    typed: dict[str, Any],
) -> None:
    """F1 of matching two catalogues against the number of judgements.

    Suggested judgements beside random ones, beside a logistic regression, and beside
    dedupe and splink if installed. Takes half an hour on two cores. Results are stored
    as they come, and --resume continues.
    """
    from linkspread.studies.matching import plan_matching, run_matching
    from linkspread.studies.pair_classifiers import CLASSIFIERS
    from linkspread.studies.partners import load_partners

    report = Report.open("matching", "a budget study", collection, typed)
    catalogues = load_partners(collection, typed["data"])
    amounts: dict[str, Any] = {"amounts": (0, 30)} if typed["quick"] else {}
    for name in {"dedupe", "splink"} - CLASSIFIERS.keys():
        notice(
            f"linkspread: {name} is not installed, and its row is left out; "
            "`pip install 'linkspread[study]'` installs it."
        )
    report.measure(
        len(plan_matching(**amounts)) * repetitions,
        run_matching,
        f"Matching catalogues: {collection}",
        _matching_introduction(catalogues, repetitions),
        catalogues,
        n_repetitions=repetitions,
        **amounts,
    )


@reproduce_app.command(
    "judging", epilog="Example: linkspread reproduce judging glyphs --repetitions 1"
)
@takes(REPORT)
def reproduce_judging(
    collection: Named = "wikipedia",
    repetitions: Repetitions = 5,
    *,
    typed: dict[str, Any],
) -> None:
    """Precision against the number of judged pairs, suggested or random.

    Pairs are judged by labels. Takes about ten minutes on Wikipedia with one core.
    Results are stored as they come.
    """
    from linkspread.studies import budgets
    from linkspread.studies.collections import load_benchmark

    report = Report.open("judging", "a budget study", collection, typed)
    benchmark = load_benchmark(collection, typed["data"], verbose=True)
    amounts = budgets.AMOUNTS
    study = report.measure(
        2 * repetitions,
        budgets.run_judging,
        f"Judging suggested pairs: {collection}",
        "Mean average precision among test items, mean of both directions, over "
        f"{repetitions} random splits. Pairs of training items are judged by their "
        f"labels; the first {budgets.N_START} are random. One learner, `LinkSpreading` "
        "with fixed parameters, learns from those that `suggest_pairs` asks for and "
        "from random ones.",
        benchmark.collection,
        benchmark.splits(repetitions)[1:],
        budgets.judging_learner(benchmark.metrics),
        amounts=amounts,
    )
    needed = budgets.needed_judgements(study, amounts[-1])
    reached = "not reached with" if needed is None else f"reached with {needed:,}"
    print_line(f"{amounts[-1]:,} random pairs are {reached} suggested pairs.")


@reproduce_app.command(
    "suggesting", epilog="Example: linkspread reproduce suggesting abt-buy"
)
@takes(REPORT, RESUMED)
def reproduce_suggesting(
    collection: Annotated[
        str, typer.Argument(help="wikipedia, corel5k, glyphs, or one of partners.")
    ] = "wikipedia",
    repetitions: Repetitions = 5,
    *,
    typed: dict[str, Any],
) -> None:
    """CrossViewSearch by number of judgements, suggested pairs or random ones.

    Takes about ten minutes on Wikipedia with one core. Results are stored as they come,
    and --resume continues.
    """
    from linkspread.studies import suggesting

    report = Report.open("suggesting", "a budget study", collection, typed)
    amounts: Any = suggesting.AMOUNTS
    if typed["quick"]:
        amounts = {name: own[:2] for name, own in amounts.items()}
    judgings = list(suggesting.make_judgings(collection, typed["data"], repetitions))
    with step_bar(2 * repetitions, lines=True) as step:
        study = suggesting.run_suggesting(
            report.begin(
                f"Judging what CrossViewSearch suggests: {collection}",
                f"Both directions, over {repetitions} random splits. Pairs of items "
                "that are not for the test are judged by what is known of them; the "
                f"first {suggesting.N_START} are random where views share no space, or "
                "known partners. The model learns from each batch of "
                f"{suggesting.BATCH} without another fit.",
            ),
            judgings,
            amounts=amounts,
            before=report.before,
            keep=report.keep,
            step=step,
        )
    report.write(study)


def _reproduce_table(
    name: str, protocol: str, resplits: int, typed: dict[str, Any], **how: bool
) -> None:
    """Measure all methods on a collection, and write the report."""
    from linkspread.studies.collections import load_benchmark
    from linkspread.studies.methods import table_methods
    from linkspread.studies.tables import run_table

    report, quick = Report.open(name, "a table", name, typed), bool(typed["quick"])
    before = report.before
    if before is not None and _conditions(before.command) != _conditions(_command()):
        raise LinkspreadError(
            f"`--resume` must have the options of the study, {before.command!r}, got "
            f"{_command()!r}. Repeat them, or use another folder."
        )
    if protocol not in PROTOCOLS:
        raise LinkspreadError(
            f"`--protocol` must be {' or '.join(PROTOCOLS)}, got {protocol!r}. Leave "
            "it out for transductive."
        )
    benchmark = load_benchmark(name, folder=typed["data"], **how)
    methods = table_methods(benchmark.metrics, benchmark.widths, quick=quick)
    splits = benchmark.splits(resplits)
    report.measure(
        len(methods) * len(splits) + 1,
        run_table,
        f"Cross-view search on {name}",
        _introduction(benchmark, protocol),
        benchmark.collection,
        methods,
        splits,
        protocol=protocol,
        n_splits=3 if quick else 5,
        printed=name == "wikipedia",
    )


def _introduction(benchmark: Benchmark, protocol: str) -> str:
    """Return sentences on the data, the known labels and the choice of parameters."""
    n_train, n_test = len(benchmark.standard.train), len(benchmark.standard.test)
    return (
        f"The labels of {n_train:,} items are known; {n_test:,} others search each "
        f"other, and a result is right when it has the class of the query. "
        f"{PROTOCOLS[protocol]} All parameters were chosen by cross-validation on the "
        "known labels."
    )


def _matching_introduction(catalogues: Partners, repetitions: int) -> str:
    """Return sentences on the data, the judgements and the measure."""
    sizes = " and ".join(f"{X.shape[0]:,}" for X in catalogues.views.values())
    return (
        f"{len(catalogues.pairs):,} pairs of {sizes} rows. F1 of a one-to-one matching "
        f"of all rows, over {repetitions} repetitions. All methods get the same "
        "candidates and judgements, of random candidates or of those that "
        "CrossViewSearch suggests; judged pairs are known to all of them. Thresholds "
        "are chosen on judgements."
    )


def _partners_introduction(partners: Partners, repetitions: int) -> str:
    """Return sentences on the data, the known pairs and the measure."""
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


def _conditions(command: str) -> list[str]:
    """Return the words of a command that a table depends on, in any order."""
    return sorted(_leave_out(command.replace("=", " ").split(), "--resplits"))


def _command() -> str:
    """Return the command as it was typed, without folders of this machine."""
    words = [word for word in sys.argv[1:] if word != "--resume"]
    return " ".join(["linkspread", *_leave_out(words, "--data", "--output")])


def _leave_out(words: Sequence[str], *options: str) -> list[str]:
    """Return words without some options, written as NAME VALUE or NAME=VALUE."""
    kept, is_value = [], False
    for word in words:
        name, has_value, _ = word.partition("=")
        if is_value or name in options:
            is_value = not is_value and not has_value
        else:
            kept.append(word)
    return kept
