"""Run benchmarks, save their results, and write their tables into the documents.

::

    python benchmarks/run.py                 every benchmark
    python benchmarks/run.py graphs metrics  only bench_graphs.py and bench_metrics.py
    python benchmarks/run.py --tables        only the tables, from results/*.json
"""

import argparse
import importlib
import json
import sys
import traceback

import harness

README = harness.FOLDER / "README.md"
HEADLINES = harness.FOLDER.parent / "docs" / "measured.md"
DOCUMENTS = harness.FOLDER.parent / "docs"


def main(arguments=None):
    """Run the named benchmarks; return the exit status."""
    parser = argparse.ArgumentParser(description="Run benchmarks.")
    parser.add_argument("names", nargs="*", help="such as `graphs` for bench_graphs.py")
    parser.add_argument("--tables", action="store_true", help="only write the tables")
    options = parser.parse_args(arguments)
    known = sorted(
        p.stem.removeprefix("bench_") for p in harness.FOLDER.glob("bench_*.py")
    )
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"no benchmark named {unknown[0]}; there are: {', '.join(known)}")
    names = [] if options.tables else options.names or known
    is_done = [run(name) for name in names]
    write_tables()
    return 0 if all(is_done) else 1


def run(name):
    """Run one benchmark and save its result; return whether it succeeded."""
    print(f"== {name}", flush=True)
    module = load(name)
    try:
        result = module.main()
    except harness.DataMissingError as error:
        print(f"left out: {name} {error}")
        return True
    except Exception:
        # A failing benchmark must not lose the results of the others.
        traceback.print_exc()
        return False
    path = harness.save(name, result)
    print(f"{table(module, result)}\nsaved {path.relative_to(harness.FOLDER.parent)}")
    return True


def load(name):
    """Import ``bench_NAME.py``; the folder of this script is on the path."""
    return importlib.import_module(f"bench_{name}")


def table(module, result):
    """Return the table of a result as Markdown."""
    if hasattr(module, "table"):
        return module.table(result)
    return markdown(module.rows(result))


def markdown(rows):
    """Return rows as a Markdown table; the first row's keys are the head."""
    if not rows:
        return "(no rows)"
    head = list(rows[0])
    lines = [head, ["---"] * len(head)]
    lines += [[cell(row.get(column, "")) for column in head] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(value):
    """Return a value for a table, numbers with three significant digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def write_tables():
    """Write a section per stored result here, and their headlines in the documents.

    A document that has the marks ``<!-- result NAME -->`` and
    ``<!-- end of result NAME -->`` shows the table of that result between them.
    """
    paths = sorted(harness.RESULTS.glob("*.json"))
    for document in sorted(DOCUMENTS.glob("*.md")):
        text = document.read_text(encoding="utf-8")
        for path in paths:
            if f"<!-- result {path.stem} -->" in text:
                write_part(document, f"result {path.stem}", shown(path))
    write_part(README, "results", "\n\n".join(section(path) for path in paths))
    lines = [line for path in paths for line in headline(path)]
    write_part(HEADLINES, "headline", "\n".join(f"- {line}" for line in lines))


def write_part(path, name, body):
    """Replace the text between two marks of a page."""
    text = harness.replace_between(path.read_text(encoding="utf-8"), name, body)
    path.write_text(text, encoding="utf-8")


def headline(path):
    """Return the sentences of a stored result for the front page."""
    module = load(path.stem)
    if not hasattr(module, "headline"):
        return []
    return module.headline(json.loads(path.read_text(encoding="utf-8"))["result"])


def section(path):
    """Return heading, machine and table of one stored result."""
    module = load(path.stem)
    title = (module.__doc__ or path.stem).splitlines()[0].rstrip(".")
    return f"## {title}\n\n{shown(path)}"


def shown(path):
    """Return machine, command and table of one stored result."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    parts = [
        machine(stored["environment"]),
        f"`python benchmarks/run.py {path.stem}`",
        table(load(path.stem), stored["result"]),
    ]
    return "\n\n".join(parts)


def machine(facts):
    """Return one sentence on the machine and versions of a result."""
    modified = " with changes" if facts["modified"] else ""
    return (
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gigabytes']} GB; "
        f"Python {facts['python']}, NumPy {facts['numpy']}, SciPy {facts['scipy']}, "
        f"scikit-learn {facts['scikit-learn']}, Numba {facts['numba']}; "
        f"commit {facts['commit'] or 'none'}{modified}, {facts['date']}."
    )


if __name__ == "__main__":
    sys.exit(main())
