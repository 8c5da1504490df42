"""Loops that number their batches, and compare the number with one that the script computes from lengths."""

from __future__ import annotations

import ast
import tokenize
from typing import Iterator

_COMPUTING = frozenset({"ceil", "floor", "len"})


def compares_own_count(path: str, line: int) -> bool:
    """Return True if the ``for`` statement at a line has a counter that the file compares with a computed number.

    With another number of batches, as ``step == examples // batch_size`` or ``step % steps_per_epoch == 0``, the script
    would behave otherwise. A number without a division, a length or a rounding, as of an option, is not computed. The
    number of ``enumerate`` is a counter, too. A counter that is an index counts as compared, with the length of what it
    is an index of. So does ``enumerate`` outside of a ``for`` statement that names its number.

    Args:
        path: of the file; False if it cannot be read.
        line: that of the statement.
    """
    try:
        with tokenize.open(path) as stream:
            tree = ast.parse(stream.read())
    except (OSError, SyntaxError, ValueError):
        return False
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For) and node.lineno == line]
    numbers = {_first_target(loop) for loop in loops if any(map(_is_enumerate, ast.walk(loop.iter)))}
    if "" in numbers:
        return True
    if not loops and any(_is_enumerate(node) and getattr(node, "lineno", 0) == line for node in ast.walk(tree)):
        return True
    counters = numbers | {name for loop in loops for name in _names_increased_in(loop)}
    if not counters:
        return False
    if any(
        isinstance(node, ast.Subscript) and not counters.isdisjoint(map(_name_of, ast.walk(node.slice)))
        for loop in loops
        for node in ast.walk(loop)
    ):
        return True
    computed = _computed_names(tree)
    return any(
        not counters.isdisjoint(map(_name_of, ast.walk(node)))
        and any(_is_quotient_or_computed(part, computed) for part in ast.walk(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
    )


def _is_enumerate(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name_of(node.func) == "enumerate"


def _first_target(loop: ast.For) -> str:
    """Return the first of the variables of a loop; the empty string if it has one, or no name."""
    return _name_of(loop.target.elts[0]) if isinstance(loop.target, ast.Tuple) else ""


def _names_increased_in(loop: ast.For) -> Iterator[str]:
    """Yield the names and attributes that a loop increases: ``step += 1``, ``step = step + 1``."""
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            yield _name_of(node.target)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
            name = _name_of(node.targets[0])
            if name and name in (_name_of(node.value.left), _name_of(node.value.right)):
                yield name


def _computed_names(tree: ast.AST) -> set[str]:
    """Return the names and attributes of a file that get a computed number, also through others."""
    assigned = [
        (_name_of(target), node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
    ]
    names: set[str] = set()
    while True:
        more = {
            name
            for name, value in assigned
            if name and any(_is_quotient_or_computed(part, names) for part in ast.walk(value))
        }
        if more <= names:
            return names
        names |= more


def _is_quotient_or_computed(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Div, ast.FloorDiv))
    if isinstance(node, ast.Call):
        return _name_of(node.func) in _COMPUTING
    return _name_of(node) in names


def _name_of(node: ast.AST) -> str:
    """Return a name, or the last part of an attribute; the empty string of anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
