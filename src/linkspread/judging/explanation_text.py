"""Explanations in sentences, for a terminal."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

# Lines of each split that are shown.
N_SHOWN = 8
# Amounts that need more of them are written in powers of ten.
MAX_DECIMALS = 9
HEADINGS = {
    "links": "What it is made of",
    "source_neighbors": "Through neighbours of {source}",
    "target_neighbors": "Through neighbours of {target}",
    "target_labels": "What labels give, by labelled {target_view} item",
    "classes": "What labels give, by classes",
}


def describe_explanation(explanation: Any) -> str:
    """Return an explanation in some lines."""
    names = {
        "source": name_item(explanation.source, explanation.source_item),
        "target": name_item(explanation.target, explanation.target_item),
        "target_view": explanation.target,
    }
    lines = [f"{names['source']} and {names['target']} score {explanation.score:.4g}"]
    for name, split in explanation.splits.items():
        lines += ["", HEADINGS[name].format(**names)]
        lines += _lines(split, explanation.source, explanation.target)
    return "\n".join(lines)


def describe_part(part: Any, source: str, target: str) -> str:
    """Return what a part of a score is, without its amount."""
    return _PHRASES[part.kind](part, source, target)


def amount_format(amounts: Sequence[float]) -> Callable[[float], str]:
    """Return what writes amounts with equal decimals, three figures of the largest."""
    unit = max(map(abs, amounts), default=0.0)
    decimals = 2 - math.floor(math.log10(unit)) if unit > 0 else 2
    if decimals > MAX_DECIMALS:
        return lambda amount: f"{amount:+.2e}"
    return lambda amount: f"{amount:+.{max(decimals, 0)}f}"


def name_item(view: str, item: Any) -> str:
    """Return how an item is called."""
    return f"the new {view} item" if item is None else f"{view} {item!r}"


def _lines(split: Any, source: str, target: str) -> Iterator[str]:
    """Yield a line for each of the first parts, and one for all others."""
    write = amount_format([part.amount for part in split.parts])
    for part in split.parts[:N_SHOWN]:
        yield f"  {write(part.amount)}  {describe_part(part, source, target)}"
    more = split.parts[N_SHOWN:]
    n_more = len(more) + split.n_rest
    if n_more:
        amount = sum(part.amount for part in more) + split.rest
        others = "another" if n_more == 1 else f"{n_more:,} others"
        yield f"  {write(amount)}  {others}"
    if not split.parts and not n_more:
        yield "  nothing"


def _pair(part: Any, source: str, target: str) -> str:
    """Return what a judged pair is."""
    ends = name_item(source, part.source_item), name_item(target, part.target_item)
    return f"{part.kind} of {ends[0]} and {ends[1]}, weight {abs(part.weight):.3g}"


def _label(part: Any, source: str, target: str) -> str:
    """Return what a labelled item of either view is."""
    if part.source_item is not None:
        own, c, other = name_item(source, part.source_item), part.classes[0], target
    else:
        own, c, other = name_item(target, part.target_item), part.classes[1], source
    return f"{own} of class {c}, with all labelled {other} items"


def _class(part: Any, source: str, target: str) -> str:
    """Return what two classes are."""
    c, d = part.classes
    return f"both of class {c}" if c == d else f"{source} of class {c}, {target} of {d}"


def _neighbor(part: Any, source: str, target: str) -> str:
    """Return what a neighbour of either item is."""
    is_source = part.source_item is not None
    view, item = (source, part.source_item) if is_source else (target, part.target_item)
    return f"{name_item(view, item)}, similarity {part.weight:.3g}"


_PHRASES: dict[str, Callable[[Any, str, str], str]] = {
    "cannot-link": _pair,
    "chance": lambda part, source, target: "what classes give by chance",
    "class": _class,
    "hubs": lambda part, source, target: "correction for what everything finds",
    "label": _label,
    "must-link": _pair,
    "neighbor": _neighbor,
    "own": lambda part, source, target: "the item itself",
    "prior": lambda part, source, target: "how alike both are without judgements",
}
