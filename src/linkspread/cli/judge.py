"""``linkspread suggest``, ``doubts``, ``progress`` and ``links``: judging pairs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkspread.cli import options
from linkspread.cli.opening import (
    apply_judgements,
    check_items,
    choose_views,
    default_who,
    open_folder,
    open_model,
    read_contents,
    report_pending,
)
from linkspread.cli.output import (
    clean,
    notice,
    print_json,
    print_line,
    print_table,
    shorten,
)
from linkspread.ground.errors import LinkError, LinkspreadError

if TYPE_CHECKING:
    from linkspread.models import ModelFolder
    from linkspread.storage import Judgement, LinkStore, PairColumns

# Letters of a text in a table, and in a question.
SHOWN, SHOWN_WHOLE = 80, 2000
# Letters of an id that are shown, and fewest that identify it.
SHORT_ID, FEWEST = 8, 4
KEYS = {"y": "must", "n": "cannot", "u": "unsure"}
PROMPT = "Do they belong together? [y]es [n]o [u]nsure, [z] undo, [q]uit: "

SIDES = ("source", "target")
ViewPair = tuple[str, str]

links_app = typer.Typer(
    help="Judge pairs of items, list judgements, take them back.",
    no_args_is_help=True,
    epilog="Example: linkspread links list model",
)


def run_suggest(
    model: options.Model,
    source: options.Source = None,
    target: options.Target = None,
    n: Annotated[
        int, typer.Option("--n-pairs", "-n", min=1, help="Pairs to suggest.")
    ] = 10,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask about them now, one after the other.")
    ] = False,
    who: options.Who = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    store: options.Store = None,
) -> None:
    """Suggest pairs worth judging.

    The gain is the share of the variance of all pairs that one judgement is expected to
    explain. With --ask each answer is stored at once, all are applied at the end, and
    different people get different pairs.
    """
    judge = default_who(who) if ask else ""
    folder, loaded = open_model(model, store)
    if source is None and target is None and len(loaded.view_names_) == 2:
        source = loaded.view_names_[0]
    between = choose_views(loaded, source, target)
    found = _suggest(folder, between, n, seed, judge)
    if ask and found:
        _ask(folder, found, between, judge)
        apply_judgements(folder)
    document: dict[str, Any] = dict(zip(SIDES, between, strict=True))
    if ask:
        document["n_answers"] = sum("verdict" in own for own in found)
    headings, rows = (*between, "score", "gain"), []
    for own in [] if ask else found:
        names = [_name(own, side, SHOWN) for side in SIDES]
        rows.append((*names, f"{own['score']:.4g}", f"{own['gain']:.2%}"))
    _show(document | {"pairs": found}, headings, rows, as_json, title="Pairs to judge")
    _stop_without(found, "there is no pair left to judge")


def run_doubts(
    model: options.Model,
    source: options.Source = None,
    target: options.Target = None,
    n: Annotated[
        int, typer.Option("--n-judgements", "-n", min=1, help="Judgements to list.")
    ] = 20,
    as_json: options.AsJson = False,
    store: options.Store = None,
) -> None:
    """List judgements that are probably wrong, the most doubtful first.

    Each is predicted without it. The last column names the judged pair that contradicts
    it most. Exit status 1 means that there are no judged pairs.
    """
    folder, loaded, between = _open_learner(model, store, source, target)
    found = loaded.doubts(n, source=between[0], target=between[1])
    documents = [asdict(own) for own in found]
    contents, rows = read_contents(folder), []
    for own in found:
        named: dict[str, Any] = {}
        for side, view in zip(SIDES, between, strict=True):
            item = getattr(own, f"{side}_item")
            text = contents.find(view, item)
            named |= {f"{side}_id": item} | ({f"{side}_content": text} if text else {})
        against = "; ".join(
            f"{part.kind} of {part.source_item} and {part.target_item}"
            for part in own.contradictions[:1]
        )
        names = [_name(named, side, SHOWN) for side in SIDES]
        rows.append(
            (names[0], own.verdict, names[1], f"{own.probability:.0%}", against)
        )
    headings = (between[0], "verdict", between[1], "wrong", "contradicted by")
    document = dict(zip(SIDES, between, strict=True)) | {"doubts": documents}
    _show(document, headings, rows, as_json, title="Doubtful judgements")
    _stop_without(found, "there are no judged pairs")


def run_progress(
    model: options.Model,
    source: options.Source = None,
    target: options.Target = None,
    as_json: options.AsJson = False,
    store: options.Store = None,
) -> None:
    """Estimate how good searches are, and what more judgements would bring.

    Judged items are held out and searched by fits without their judgements. Measures
    have 90 % intervals. Exit status 1 means that too little is judged to tell.
    """
    _, loaded, between = _open_learner(model, store, source, target)
    found = loaded.progress(source=between[0], target=between[1])
    if as_json:
        document = asdict(found)
        document["measures"] = {k: v._asdict() for k, v in found.measures.items()}
        document["gain"] = found.gain and found.gain._asdict()
        print_json(dict(zip(SIDES, between, strict=True)) | document)
    else:
        for line in str(found).splitlines():
            print_line(line)
    _stop_without(list(found.measures), "too little is judged to estimate progress")


def _open_learner(
    model: Path, store: str | None, source: str | None, target: str | None
) -> tuple[ModelFolder, Any, ViewPair]:
    """Open a model that learns from judgements, and choose two of its views."""
    folder, loaded = open_model(model, store)
    if not hasattr(loaded, "doubts"):
        raise LinkspreadError(
            f"`MODEL` must be a CrossViewSearch for this, got a "
            f"{type(loaded).__name__}. Fit without --model spreading."
        )
    if source is None and target is None and len(loaded.view_names_) == 2:
        source = loaded.view_names_[0]
    return folder, loaded, choose_views(loaded, source, target)


@links_app.command(
    "add", epilog="Example: linkspread links add model t7 i3 --must --who ann"
)
def add_link(
    model: options.Model,
    left: Annotated[str, typer.Argument(help="An item.", show_default=False)],
    right: Annotated[str, typer.Argument(help="Another.", show_default=False)],
    must: Annotated[bool, typer.Option("--must", help="They belong together.")] = False,
    cannot: Annotated[bool, typer.Option("--cannot", help="They do not.")] = False,
    unsure: Annotated[bool, typer.Option("--unsure", help="It is unclear.")] = False,
    source: options.Source = None,
    target: options.Target = None,
    weight: Annotated[float, typer.Option(help="How much it counts.")] = 1.0,
    note: options.Note = "",
    who: options.Who = None,
    as_json: options.AsJson = False,
    store: options.Store = None,
) -> None:
    """Judge whether two items belong together, and apply the judgement.

    The judgement is stored before the model changes. --source and --target name the
    views of the two items; they are needed if the first id is in several views.
    """
    verdicts = {"must": must, "cannot": cannot, "unsure": unsure}
    given = [verdict for verdict, is_given in verdicts.items() if is_given]
    if len(given) != 1:
        got = " and ".join(f"--{verdict}" for verdict in given) or "none"
        raise LinkspreadError(
            f"a judgement must be one of --must, --cannot and --unsure, got {got}. "
            "Give one of them."
        )
    folder = open_folder(model, store)
    between = choose_views(folder.model, source, target, [left])
    check_items(folder.model, between[0], [left], option="LEFT")
    check_items(folder.model, between[1], [right], option="RIGHT")
    id = folder.judge(
        left,
        right,
        given[0],
        between=between,
        who=default_who(who),
        weight=weight,
        note=note,
    )
    notice(f"Stored as {id}.")
    counts = apply_judgements(folder)
    if as_json:
        print_json({"id": id, "verdict": given[0], "applied": counts._asdict()})


@links_app.command("list", epilog="Example: linkspread links list model --all")
def list_links(
    model: options.Model,
    everything: Annotated[
        bool, typer.Option("--all", help="Include judgements that were taken back.")
    ] = False,
    who: Annotated[
        str | None,
        typer.Option(help="Only judgements of this person.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
    store: options.Store = None,
) -> None:
    """List judgements, the oldest first. Exit status 1 means that there are none."""
    folder = open_folder(model, store)
    found: list[Judgement] = []
    active: set[str] = set()
    if folder.has_store():
        with folder.store() as opened:
            active = {own.id for own in opened.judgements()}
            some = opened.judgements(active_only=not everything)
            found = [own for own in some if who in (None, own.who)]
    report_pending(folder)
    documents, rows = [], []
    for own in found:
        at, counts = own.at, own.id in active
        documents.append(vars(own) | {"at": at.isoformat(), "taken_back": not counts})
        weight = "" if own.weight == 1 else f" × {own.weight:g}"
        verdict = f"{own.verdict}{weight}{'' if counts else ' (taken back)'}"
        items = f"{own.left_view} {own.left_id}", f"{own.right_view} {own.right_id}"
        about = (own.number, own.id[:SHORT_ID], f"{at:%Y-%m-%d %H:%M}", own.who)
        rows.append((*about, items[0], verdict, items[1], own.note))
    headings = "number,id,when (UTC),who,first,verdict,second,note".split(",")
    _show({"judgements": documents}, headings, rows, as_json)
    _stop_without(found, "there are no such judgements")


@links_app.command("undo", epilog="Example: linkspread links undo model 1")
def undo_link(
    model: options.Model,
    id: Annotated[
        str,
        typer.Argument(help="Number or id of a judgement.", show_default=False),
    ],
    note: options.Note = "",
    who: options.Who = None,
    store: options.Store = None,
) -> None:
    """Take a judgement back; it stays in the store but no longer counts."""
    folder = open_folder(model, store)
    with folder.store() as opened:
        judgement = _find_judgement(opened, id)
        opened.undo(judgement.id, who=default_who(who), note=note)
    notice(f"Taken back: {judgement.id}.")
    apply_judgements(folder)


@links_app.command("import", epilog="Example: linkspread links import model pairs.csv")
def import_links(
    model: options.Model,
    pairs: Annotated[
        str, typer.Argument(help="A .csv, .tsv or .parquet file.", show_default=False)
    ],
    who: Annotated[
        str, typer.Option(envvar="LINKSPREAD_WHO", help="Who judged them.")
    ] = "import",
    must_above: options.MustAbove = None,
    skip_unknown: options.SkipUnknown = None,
    store: options.Store = None,
) -> None:
    """Store the judged pairs of a file, and apply them.

    Judgements that the same person already gave are not stored again, even if they were
    taken back.
    """
    from linkspread.cli.inputs import read_judged

    folder = open_folder(model, store)
    rules: Any = {"must_above": must_above, "skip_unknown": bool(skip_unknown)}
    (judged,), notes = read_judged([pairs], folder.model.items_, **rules)
    for text in notes:
        notice(f"linkspread: {text}")
    new = folder.judge_pairs(judged.pairs, between=judged.between, who=who)
    notice(f"{len(new):,} of {len(judged.pairs):,} pairs are new, and stored.")
    apply_judgements(folder)


@links_app.command("export", epilog="Example: linkspread links export model judged.csv")
def export_links(
    model: options.Model,
    output: Annotated[
        Path, typer.Argument(help="A .csv, .tsv or .parquet file.", show_default=False)
    ],
    source: options.Source = None,
    target: options.Target = None,
    overwrite: options.Overwrite = False,
    store: options.Store = None,
) -> None:
    """Write the pairs that count to a file that `linkspread fit --links` reads.

    Exit status 1 means that there are none.
    """
    from linkspread.exchange import write_pairs

    folder = open_folder(model, store)
    columns: dict[ViewPair, PairColumns] = {}
    if folder.has_store():
        with folder.store() as opened:
            columns = opened.pairs().columns
    found = _choose_columns(columns, source, target)
    report_pending(folder)
    _stop_without(found, "there are no judged pairs to write")
    ((between, pairs),) = found
    write_pairs(pairs, output, between=between, overwrite=overwrite)
    notice(f"Written: {output} ({len(pairs.weight):,} pairs).")


@links_app.command("conflicts", epilog="Example: linkspread links conflicts model")
def show_conflicts(
    model: options.Model, as_json: options.AsJson = False, store: options.Store = None
) -> None:
    """Show pairs about which people disagree.

    Exit status 1 means that there are none.
    """
    folder, found = open_folder(model, store), []
    if folder.has_store():
        with folder.store() as opened:
            found = opened.pairs().disagreements
    report_pending(folder)
    rows = []
    for own in found:
        items = f"{own.between[0]} {own.left}", f"{own.between[1]} {own.right}"
        rows.append((*items, ", ".join(own.must), ", ".join(own.cannot)))
    document = {"conflicts": [vars(own) for own in found]}
    _show(document, ("first", "second", "must", "cannot"), rows, as_json)
    _stop_without(found, "nobody disagrees")


@links_app.command("apply", epilog="Example: linkspread links apply model")
def apply_links(
    model: options.Model,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Also if the store was restored; keep both."),
    ] = False,
    as_json: options.AsJson = False,
    store: options.Store = None,
) -> None:
    """Bring the model up to date with all judgements in the store.

    With --repair, pairs that the model has and a restored store has not are stored as
    judgements of "restored".
    """
    counts = apply_judgements(open_folder(model, store), repair=repair)
    if as_json:
        print_json(counts._asdict())


def _show(
    document: dict[str, Any],
    headings: Sequence[str],
    rows: Sequence[Sequence[Any]],
    as_json: bool,
    title: str | None = None,
) -> None:
    """Print a JSON document, or a table if it has rows."""
    if as_json:
        print_json(document)
    elif rows:
        print_table(headings, rows, right=("number", "score", "gain"), title=title)


def _stop_without(found: Sequence[Any], sentence: str) -> None:
    """Stop with exit status 1 if nothing was found."""
    if not found:
        notice(f"linkspread: {sentence}.")
        raise typer.Exit(1)


def _suggest(
    folder: ModelFolder, between: ViewPair, n: int, seed: int, judge: str
) -> list[dict[str, Any]]:
    """Return pairs that are not in the store, in the order of `suggest_pairs`."""
    from linkspread.storage.judgements import pair_of

    in_store = set()
    if folder.has_store():
        with folder.store() as opened:
            in_store = {
                frozenset(pair_of(own))
                for own in opened.judgements()
                if own.verdict == "unsure" or (own.number or 0) > folder.applied
            }
    model, views = folder.model, dict(zip(SIDES, between, strict=True))
    left, right = model.suggest_pairs(
        n + len(in_store), **views, judge=judge, random_state=seed
    )
    pairs = [
        pair
        for pair in zip(left.tolist(), right.tolist(), strict=True)
        if frozenset(zip(between, map(str, pair), strict=True)) not in in_store
    ][:n]
    if not pairs:
        return []
    gains = model.expected_gains(*zip(*pairs, strict=True), **views, random_state=seed)
    contents, found = read_contents(folder), []
    for pair, gain in zip(pairs, gains.tolist(), strict=True):
        score = model.scores(*between, rows=[pair[0]], cols=[pair[1]]).item()
        own = {"source_id": pair[0], "target_id": pair[1], "score": score, "gain": gain}
        for side, view, item in zip(SIDES, between, pair, strict=True):
            content = contents.find(view, item)
            if content is not None:
                own[f"{side}_content"] = content
        found.append(own)
    return found


def _name(own: dict[str, Any], side: str, n_letters: int) -> str:
    """Return the id of an item, and the start of its text."""
    content = own.get(f"{side}_content")
    return f"{own[f'{side}_id']}{f': {shorten(content, n_letters)}' if content else ''}"


def _ask(
    folder: ModelFolder, found: list[dict[str, Any]], between: ViewPair, who: str
) -> None:
    """Ask about pairs on the terminal; store each answer and add it to `found`."""
    answered: list[int] = []
    place = 0
    while place < len(found):
        own = found[place]
        notice(f"\n{place + 1} of {len(found)}")
        for side, view in zip(SIDES, between, strict=True):
            notice(clean(f"{view} {_name(own, side, SHOWN_WHOLE)}"))
        print(PROMPT, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        # The end of the input ends the questions.
        key = line.strip().lower()[:1] if line else "q"
        if key == "q":
            break
        if key in KEYS:
            pair, own["verdict"] = (own["source_id"], own["target_id"]), KEYS[key]
            own["id"] = folder.judge(*pair, KEYS[key], between=between, who=who)
            answered.append(place)
            place += 1
        elif key == "z" and answered:
            place = answered.pop()
            del found[place]["verdict"]
            folder.undo(found[place].pop("id"), who=who)
            notice("The last answer is undone.")
        elif key == "z":
            notice("There is nothing to undo.")
        else:
            notice("Please answer y, n, u, z or q.")


def _find_judgement(store: LinkStore, id: str) -> Judgement:
    """Return the judgement with a number, or with an id that starts with `id`."""
    wanted = id.strip().lower()
    is_number = wanted.isdecimal() and len(wanted) < SHORT_ID
    found = [
        own
        for own in store.judgements(active_only=False)
        if (is_number and own.number == int(wanted))
        or (len(wanted) >= FEWEST and own.id.startswith(wanted))
    ]
    if len(found) != 1:
        raise LinkError(
            f"`ID` must be the number of a judgement, or the first {FEWEST} letters or "
            f"more of its id, got {id!r}, which {len(found):,} have. Look it up with "
            "`linkspread links list`."
        )
    return found[0]


def _choose_columns(
    columns: dict[ViewPair, PairColumns], source: str | None, target: str | None
) -> list[tuple[ViewPair, PairColumns]]:
    """Return the judged pairs of two views, with `source` first, if there are any."""
    wanted = {view for view in (source, target) if view is not None}
    fitting = [own for own in columns if wanted <= set(own)]
    if source is not None and source == target:
        fitting = [own for own in fitting if own == (source, target)]
    if len(fitting) > 1:
        named = "; ".join(" and ".join(own) for own in sorted(fitting))
        raise LinkError(
            f"pairs of two views must be chosen, and the store has pairs of {named}. "
            "Name the views with --source and --target."
        )
    found = []
    for between in fitting:
        pairs = columns[between]
        if between[0] != between[1] and (source == between[1] or target == between[0]):
            pairs = pairs._replace(left=pairs.right, right=pairs.left)
            between = between[::-1]
        found.append((between, pairs))
    return found
