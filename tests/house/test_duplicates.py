"""No two places share eight lines of logic, which are ten lines of code or more.

A logical line is a statement as Python reads it, whatever its layout and comments; of
`if`, `for`, `with` and `def` it is the head. Names are kept, so a copy with other names
is not found. Imports, docstrings and `self.name = name` are no logic.
"""

import ast
from collections import defaultdict
from pathlib import Path

import linkspread

SOURCE = Path(linkspread.__file__).parent
LEAST = 8
BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


def logical_lines(tree):
    """Return (line number, statement) of the logic of a module, in order."""
    found = []

    def walk(statements):
        for node in statements:
            if is_no_logic(node):
                continue
            inner = [getattr(node, name, []) for name in BLOCKS]
            if any(inner):
                for name in BLOCKS:
                    if hasattr(node, name):
                        setattr(node, name, [])
                found.append((getattr(node, "lineno", 0), head(node)))
                for part in inner:
                    walk(part)
            else:
                found.append((node.lineno, ast.unparse(node)))

    walk(tree.body)
    return found


def head(node):
    """Return a compound statement without what it contains."""
    fields = ((name, value) for name, value in ast.iter_fields(node) if value)
    parts = [f"{name}={written(value)}" for name, value in fields]
    return f"{type(node).__name__}({', '.join(parts)})"


def written(value):
    """Return the text of a field, which may be a list."""
    if isinstance(value, list):
        return [written(entry) for entry in value]
    return ast.unparse(value) if isinstance(value, ast.AST) else repr(value)


def is_no_logic(node):
    """Return whether a statement is an import, a docstring, or stores a parameter."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.Pass):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
        return ast.unparse(node.targets) == f"self.{node.value.id}"
    return False


def duplicates(texts):
    """Return the longest runs of lines that occur twice, as pairs of places."""
    lines = {name: logical_lines(ast.parse(text)) for name, text in texts.items()}
    windows = defaultdict(list)
    for name, own in lines.items():
        for start in range(len(own) - LEAST + 1):
            run = tuple(text for _, text in own[start : start + LEAST])
            windows[run].append((name, start))
    seen, found = set(), []
    for places in windows.values():
        for (one, i), (other, j) in zip(places, places[1:], strict=False):
            if (one, i, other, j) in seen or (one == other and j < i + LEAST):
                continue
            n = 0
            while texts_at(lines, one, i + n) == texts_at(lines, other, j + n):
                seen.add((one, i + n, other, j + n))
                n += 1
            at = [f"{name}:{lines[name][k][0]}" for name, k in ((one, i), (other, j))]
            found.append((n, *at))
    return sorted(found, reverse=True)


def texts_at(lines, name, place):
    """Return a line of a module; past the end, what equals no other line."""
    own = lines[name]
    return own[place][1] if place < len(own) else (name, place)


def test_no_two_places_share_eight_lines_of_logic():
    paths = sorted(SOURCE.rglob("*.py"))
    texts = {
        str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8")
        for path in paths
    }
    assert duplicates(texts) == []


BODY = "\n".join(f"    x{i} = f(x{i - 1}, {i})" for i in range(1, 9))
ONE = f'''def f(x0):
    """Say something."""
    import os
{BODY}
    if x8:
        return x8
'''
OTHER = f'''"""Another module."""

y = 1


def f(x0):
    """Say something else."""
    # A comment.
{BODY.replace(", ", " ,  ")}
    if (x8):
        return x8
'''


def test_the_checker_finds_copies_in_another_layout():
    assert duplicates({"a.py": ONE, "b.py": OTHER}) == [(11, "a.py:1", "b.py:6")]
    renamed = OTHER.replace("x4", "z4")
    assert duplicates({"a.py": ONE, "b.py": renamed}) == []
    assert duplicates({"a.py": ONE + "\n\n" + ONE}) == [(11, "a.py:1", "a.py:16")]
