"""The help of every command ends with an example, and every example runs.

How a command gets covered: register it with its example as the epilog,

    app.command("fit", epilog="Example: linkspread fit --view text=text.parquet ...")

(or `@links_app.command("export", epilog="Example: linkspread links export ...")`), and
that is all: this file walks the whole app, takes the example of each command from the
end of its help, and runs it in a folder of its own that holds a copy of what the
fixture `prepared` makes. Examples must name these files:

    text.parquet       60 items t0, t1, ...: id, label, and columns x0, x1, ...
    image.parquet      40 items i0, i1, ...: the same
    image.npy          the numbers of image.parquet, without ids
    pairs.csv          40 judged pairs: text,image,verdict
    held-out.csv       30 others
    ours.csv           40 rows of a catalogue: id,title,price; theirs.csv the same
    rows.csv           judged pairs of these rows: ours,theirs,verdict
    text-labels.csv    id,label of all texts; image-labels.csv of all images
    model/             `linkspread fit` of text.parquet, image.parquet and pairs.csv
    photos/            8 texts and 8 pictures, a.txt beside a.png
    features/          `linkspread featurize photos --output features`, once there
                       is such a command

An example that needs another file gets it by a line in `prepare` of example_files.py.
Exit status 0 is expected, or 1 of the commands in `MAY_FIND_NOTHING`. Examples must
have no square brackets, which the help would take for markup.
"""

import shlex
import shutil

import pytest
import typer
from typer.testing import CliRunner

from example_files import prepare
from linkspread.cli import app

# Commands whose example needs data that is not here, or minutes.
NEEDS_DATA = {"reproduce wikipedia", "reproduce corel5k", "reproduce budgets",
              "reproduce judging", "reproduce matching", "reproduce suggesting",
              "reproduce partners"}  # fmt: skip
SLOW = {"demo"}
# Commands that serve until they are stopped.
ENDLESS = {"serve"}
MAY_FIND_NOTHING = {"links conflicts"}


def commands(group=None, above=()):
    """Yield the words and the object of every command, also within groups."""
    group = typer.main.get_command(app) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*above, name))
        else:
            yield " ".join((*above, name)), command


COMMANDS = dict(commands())


def example_of(name):
    """Return the example at the end of the help of a command, or None."""
    head, sign, example = (COMMANDS[name].epilog or "").partition("Example: ")
    return example.strip() if sign and not head.strip() else None


def run(words, folder, monkeypatch):
    """Run a command as it is typed, in a folder."""
    monkeypatch.chdir(folder)
    assert words[0] == "linkspread"
    return CliRunner().invoke(app, words[1:], catch_exceptions=False)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Return a folder with all that examples name."""
    folder = tmp_path_factory.mktemp("examples")
    prepare(folder)
    fit = "fit --view text=text.parquet --view image=image.parquet --links pairs.csv"
    making = [f"{fit} --output model --quiet"]
    if "featurize" in COMMANDS:
        making.append("featurize photos --output features")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for command in making:
            words = ["linkspread", *command.split()]
            done = run(words, folder, monkeypatch)
            assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def folder(prepared, tmp_path):
    """Return a copy of what was prepared, for one example."""
    return shutil.copytree(prepared, tmp_path / "here")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_ends_with_its_example(name):
    example = example_of(name)
    assert example, f"`{name}` has no epilog that begins with 'Example: '"
    assert example.startswith(f"linkspread {name}")
    wide = {"COLUMNS": "400", "NO_COLOR": "1", "TERM": "dumb"}
    done = CliRunner(env=wide).invoke(app, [*name.split(), "--help"])
    assert done.exit_code == 0, done.output
    assert " ".join(done.output.split()).endswith(" ".join(example.split()))


@pytest.mark.parametrize("name", [n for n in COMMANDS if n not in SLOW | ENDLESS])
def test_the_example_runs(name, folder, monkeypatch):
    if name in NEEDS_DATA:
        pytest.skip(f"the example of `{name}` needs a data set, and takes minutes")
    example = example_of(name)
    assert example, f"`{name}` has no epilog that begins with 'Example: '"
    done = run(shlex.split(example), folder, monkeypatch)
    allowed = {0, 1} if name in MAY_FIND_NOTHING else {0}
    assert done.exit_code in allowed, f"{example}\n{done.output}"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOW & COMMANDS.keys()))
def test_the_example_of_a_slow_command_runs(name, tmp_path, monkeypatch):
    done = run(shlex.split(example_of(name)), tmp_path, monkeypatch)
    assert done.exit_code == 0, done.output
