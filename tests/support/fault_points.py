"""A program that interrupts work on files at every point at which it changes one.

``LD_PRELOAD=faults.so python fault_points.py FOLDER WORK STEP`` counts the points of a
piece of work in a child process, then repeats it in children that are killed at point
1, 1 + STEP, ..., and in children whose disk is full from there on. What each leaves
behind is examined by another child. Each has one thread, so that processes can be
forked. It prints as JSON how many points there are and what went wrong. Run by
`test_faults.py`.
"""

import ctypes
import json
import os
import shutil
import signal
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import linkspread as ls
from judged_models import BETWEEN, PAIRS, make_data
from linkspread.cli import main as run_command
from linkspread.ground.errors import LinkspreadError
from linkspread.storage import LinkStore

COUNT, KILL, FULL = 1, 2, 3
WHO = "ann"
NEW = [("t30", "i1", 1.0), ("t31", "i2", -1.0), ("t32", "i3", 1.0)]
VERDICT = {1.0: "must", -1.0: "cannot"}


def fitted(pairs=PAIRS):
    """Return a model of the views, fitted to pairs."""
    views, names = make_data()
    links = ls.Links.from_pairs(list(pairs), between=BETWEEN)
    return ls.LinkSpreading(n_neighbors=5).fit(views, links, ids=names)


def command(*words):
    """Run a command of the command line; a refusal is one line and status 2."""
    sys.argv, errors = ["linkspread", *map(str, words)], StringIO()
    try:
        with redirect_stderr(errors), redirect_stdout(StringIO()):
            run_command()
    except SystemExit as end:
        if end.code:
            lines = errors.getvalue().strip().splitlines()
            assert end.code == 2 and lines[-1].startswith("linkspread: "), lines
            raise LinkspreadError(lines[-1]) from None


class Work:
    """A piece of work on a folder, and what must hold after an interruption."""

    def prepare(self, place):
        """Make what is there before; this is not interrupted."""
        ls.ModelFolder.create(place / "model", fitted(), pairs={BETWEEN: PAIRS})

    def do(self, place):
        """Do what is interrupted; what is returned was acknowledged."""

    def examine(self, place, acknowledged):
        """Check what is there, and that the work can be done again."""


def active(place):
    """Return the judged pairs that count in a store, by their items."""
    with LinkStore.open(place / "model" / "judgements.db") as store:
        rows = list(store.judgements())
    return {(r.left_id, r.right_id, r.verdict) for r in rows if r.verdict != "unsure"}


def in_model(model):
    """Return the judged pairs of a model, by their items, each with its weight."""
    Z = model.links_.judged(*BETWEEN).tocoo()
    texts, images = (model.items_[view].ids for view in BETWEEN)
    return {
        (str(texts[i]), str(images[j]), VERDICT[float(z)])
        for i, j, z in zip(Z.row, Z.col, Z.data, strict=True)
    }


def check_counts_once(place):
    """Check that after `apply` the model has each stored judgement once, and works."""
    folder = ls.ModelFolder(place / "model")
    folder.model.search(folder.model.items_["text"].ids[:2], source="text",
                        target="image")  # fmt: skip
    folder.apply()
    loaded = ls.load(place / "model")
    assert in_model(loaded) == active(place)
    assert ls.ModelFolder(place / "model").pending() == 0


class Judge(Work):
    def do(self, place):
        pair = NEW[0][:2]
        folder = ls.ModelFolder(place / "model")
        return folder.judge(*pair, "must", between=BETWEEN, who=WHO)

    def examine(self, place, acknowledged):
        with LinkStore.open(place / "model" / "judgements.db") as store:
            ids = [row.id for row in store.judgements() if row.who == WHO]
        assert len(ids) <= 1
        assert acknowledged is None or ids == [acknowledged]
        check_counts_once(place)


class Undo(Judge):
    def prepare(self, place):
        super().prepare(place)
        (place / "id").write_text(super().do(place))

    def do(self, place):
        return ls.ModelFolder(place / "model").undo((place / "id").read_text(), who=WHO)

    def examine(self, place, acknowledged):
        pair = (*NEW[0][:2], "must")
        assert acknowledged is None or pair not in active(place)
        check_counts_once(place)


class Apply(Work):
    def prepare(self, place):
        super().prepare(place)
        folder = ls.ModelFolder(place / "model")
        folder.judge_pairs(NEW, between=BETWEEN, who=WHO)

    def do(self, place):
        ls.ModelFolder(place / "model").apply()
        return "applied"

    def examine(self, place, acknowledged):
        if acknowledged:
            assert ls.ModelFolder(place / "model").pending() == 0
        check_counts_once(place)


class Save(Work):
    def do(self, place):
        fitted(PAIRS[:12]).save(place / "model")
        return "saved"

    def examine(self, place, acknowledged):
        found = in_model(ls.load(place / "model"))
        assert len(found) in ((12,) if acknowledged else (12, len(PAIRS)))
        self.do(place)
        left = sorted(p.name for p in (place / "model").glob(".*"))
        assert not left, left


class Fit(Work):
    """`linkspread fit` into a new folder."""

    extra: tuple[str, ...] = ()

    def prepare(self, place):
        import numpy as np

        views, names = make_data()
        for view, X in views.items():
            np.savez(place / f"{view}.npz", X=X, ids=names[view])
            lines = [",".join([name, *map(repr, map(float, row))])
                     for name, row in zip(names[view], X, strict=True)]  # fmt: skip
            header = ",".join(["id", *(f"c{k}" for k in range(X.shape[1]))])
            (place / f"{view}.csv").write_text("\n".join([header, *lines]) + "\n")
        rows = [f"{a},{b},{int(w)}" for a, b, w in PAIRS]
        text = "\n".join(["text,image,verdict", *rows]) + "\n"
        (place / "pairs.csv").write_text(text)

    def do(self, place):
        command(
            "fit", "--view", f"text={place}/text.csv", "--view",
            f"image={place}/image.csv", "--links", place / "pairs.csv", "--model",
            "spreading", "--output", place / "model", *self.extra,
        )  # fmt: skip
        return "fitted"

    def examine(self, place, acknowledged):
        model = place / "model"
        if acknowledged or model.exists() and any(model.iterdir()):
            check_counts_once(place)
        self.extra = ("--overwrite",)
        self.do(place)
        check_counts_once(place)


class Refit(Fit):
    """The same over an older model with judgements of its own."""

    extra = ("--overwrite",)

    def prepare(self, place):
        super().prepare(place)
        self.do(place)
        folder = ls.ModelFolder(place / "model")
        folder.judge_pairs(NEW, between=BETWEEN, who=WHO)

    def examine(self, place, acknowledged):
        wanted = {(a, b, VERDICT[w]) for a, b, w in NEW}
        assert wanted <= active(place)
        super().examine(place, acknowledged)
        assert wanted <= active(place)


class Featurize(Work):
    def prepare(self, place):
        (place / "texts").mkdir()
        for k in range(6):
            words = "sea sand sun" if k % 2 else "snow ice frost"
            (place / "texts" / f"t{k}.txt").write_text(f"{words} number {k}")

    def do(self, place):
        command("featurize", place / "texts", "--output", place / "features",
                "--cache", place / "cache")  # fmt: skip
        return "written"

    def examine(self, place, acknowledged):
        from linkspread.manifests import load_features

        features = place / "features"
        if not acknowledged:
            # Whole, or the same command makes it whole.
            try:
                load_features(features)
            except LinkspreadError:
                self.do(place)
        assert len(load_features(features).ids["text"]) == 6


class Export(Work):
    def prepare(self, place):
        super().prepare(place)
        self.do(place)
        (place / "before").write_bytes((place / "images.npz").read_bytes())

    def do(self, place):
        command("export", place / "model", "--source", "text", "--target", "image",
                "--output", place / "images.npz", "--overwrite")  # fmt: skip
        return "written"

    def examine(self, place, acknowledged):
        import numpy as np

        with np.load(place / "images.npz") as found:
            assert found.files and all(found[name].size for name in found.files)
        self.do(place)
        assert not list(place.glob(".linkspread-*"))


WORKS = {
    "judge": Judge(), "undo": Undo(), "apply": Apply(), "save": Save(), "fit": Fit(),
    "refit": Refit(), "featurize": Featurize(), "export": Export(),
}  # fmt: skip


def in_child(do):
    """Run something in a child; return what it returned and the signal, if killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            answer = {"value": do()}
        except LinkspreadError as error:
            answer = {"refused": str(error)}
        except BaseException:
            answer = {"fault": traceback.format_exc()[-2000:]}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    text = b""
    while piece := os.read(reading, 1 << 16):
        text += piece
    os.close(reading)
    status = os.waitpid(child, 0)[1]
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return (json.loads(text) if text else {}), killed


def interrupt(faults, work, ready, how, number):
    """Interrupt a piece of work once; return its points and what is wrong, or None."""
    with TemporaryDirectory(prefix="linkspread-faults-") as folder:
        place = Path(folder) / "place"
        shutil.copytree(ready, place)

        def do():
            os.chdir(place)
            faults.faults_arm(str(place).encode(), how, number)
            try:
                value = work.do(place)
            finally:
                seen = faults.faults_seen()
                faults.faults_arm(b"", 0, -1)
            return value, seen

        answer, killed = in_child(do)
        if killed not in (0, signal.SIGKILL) or "fault" in answer:
            return 0, answer.get("fault", f"signal {killed}")
        value, seen = answer.get("value", (None, 0))
        checked, signalled = in_child(lambda: work.examine(place, value))
        wrong = checked.get("fault") or checked.get("refused")
        if signalled or wrong:
            return seen, wrong or f"signal {signalled} while examining"
        return seen, None


def main():
    folder, name, step = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    faults, work = ctypes.CDLL(None), WORKS[name]
    ready = folder / name
    ready.mkdir()
    # In this process, which loads all code once for its children.
    work.prepare(ready)
    warm = folder / f"{name}-warm"
    shutil.copytree(ready, warm)
    work.examine(warm, work.do(warm))
    n_points, wrong = interrupt(faults, work, ready, COUNT, -1)
    assert wrong is None and n_points > 0, (n_points, wrong)
    found, tried = [], 0
    for how in (KILL, FULL):
        for number in range(0, n_points, step):
            _, wrong = interrupt(faults, work, ready, how, number)
            tried += 1
            if wrong is not None:
                found.append([how, number, wrong])
    print(json.dumps({"points": n_points, "tried": tried, "wrong": found}))


if __name__ == "__main__":
    main()
