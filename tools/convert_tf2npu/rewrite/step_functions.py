"""Move the statements of a training step in a loop into a function before the loop."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple, Sequence

from ..analysis.lines_before import position_of_line_before
from ..analysis.step_blocks import StepBlock
from ..project.context import Context
from ..syntax.expressions import boxed_constant
from ..syntax.source import Edit
from ..syntax.words import words_in

_NAMES = "train_step", "training_step", "compiled_train_step", "compiled_training_step"
_LINE_END = re.compile(r"\r\n|\r|\n")


class StepFunction(NamedTuple):
    """The function of a step.

    Attributes:
        lines: of the function, without decorator, not indented.
        call: the statement that calls it.
        start, end: the offsets of the statements that the call replaces.
    """

    lines: list[str]
    call: str
    start: int
    end: int


def function_of_block(context: Context, block: StepBlock, narrowed: Sequence[object] = ()) -> StepFunction | None:
    """Return the function that runs the statements of a step.

    Args:
        context: the file.
        block: the statements.
        narrowed: the names of arrays that it gets as float32.
    Returns:
        None if other statements share their lines, a string spans several lines, or all names are taken.
    """
    source, first, last = context.source, block.statements[0], block.statements[-1]
    words = words_in(source.raw)
    name = next((name for name in _NAMES if name.encode("ascii") not in words), None)
    start, end = source.start(first), source.end(last)
    following = source.next_line(end)
    column, behind = source.text[source.line_start(start) : start], source.text[end:following].strip()
    if name is None or column.strip() or behind[:1] not in ("", "#") or _has_long_string(context, block):
        return None
    end += len(source.text[end:following].rstrip())
    assert isinstance(first, ast.With)
    inner = source.start(first.body[0])
    deeper = source.text[source.line_start(inner) : inner]
    if not deeper.startswith(column) or deeper.strip():
        return None
    unit, lines = deeper[len(column) :], _LINE_END.split(column + source.text[start:end])
    body = [line[len(column) :] if line.startswith(column) else line for line in lines]
    given, returned = ", ".join(block.parameters), ", ".join(block.results)
    body += [f"return {returned}"] if returned else []
    lines = [f"def {name}({given}):", *(unit + line if line.strip() else "" for line in body)]
    passed = [f'{word}.astype("float32")' if word in narrowed else word for word in block.parameters]
    call = f"{name}({', '.join(passed)})"
    return StepFunction(lines, f"{returned} = {call}" if returned else call, start, end)


def _has_long_string(context: Context, block: StepBlock) -> bool:
    """Return True if a string spans several lines, whose indentation may be part of it."""
    for statement in block.statements:
        for node in ast.walk(statement):
            constant = boxed_constant(node) or ()
            if isinstance(node, ast.JoinedStr) or any(isinstance(value, (str, bytes)) for value in constant):
                first, last = context.source.first_and_last_line(node)
                if first != last:
                    return True
    return False


def edits_to_compile_block(
    context: Context, block: StepBlock, function: StepFunction, tensorflow: str
) -> tuple[Edit, ...]:
    """Return the edits that define a tf.function of a step before its loops, and call it in its place; () without room.

    Args:
        context: the file.
        block: the statements.
        function: of them.
        tensorflow: the name of TensorFlow.
    """
    place = position_of_line_before(context, block.loop)
    if place is None:
        return ()
    position, indent = place
    newline = context.source.newline
    lines = [f"@{tensorflow}.function", *function.lines, *[""] * (1 if indent else 2)]
    text = "".join((indent + line if line else "") + newline for line in lines)
    return Edit(position, position, text), Edit(function.start, function.end, function.call)
