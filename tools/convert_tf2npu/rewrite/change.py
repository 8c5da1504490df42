"""Results of rules: a change of the code, or a finding that reports code they do not change."""

from __future__ import annotations

import ast
from typing import NamedTuple, Union

from ..files.message import Message
from ..syntax.source import Edit


class Change(NamedTuple):
    """A rewrite of a node.

    Attributes:
        node: the node that is reported as changed.
        message: a short description of the change.
        edits: the edits of the text.
        uses: the names of npu_init that the new text uses.
        runs: the number of observed runs that it rests on; None if the source proves it.
    """

    node: ast.AST
    message: str
    edits: tuple[Edit, ...]
    uses: tuple[str, ...] = ()
    runs: int | None = None


class Question(NamedTuple):
    """A question that a run can answer, and that decides a rule.

    Attributes:
        kind: one of ``facts.kinds``.
        node: the expression that is watched.
        code: a function that the run defines at the expression, to answer the question; empty for none.
    """

    kind: str
    node: ast.AST
    code: str = ""


class _Report(NamedTuple):
    node: ast.AST
    message: str
    asks: tuple[Question, ...] = ()
    unused: bool = False


class Finding(_Report):
    """A report of code that stays unchanged: the node, the reason, and the fix.

    Args:
        node: the node.
        template, values: of the message.
        asks: what a run would settle.
        unused: True if observed runs reached the node and never used its value. It counts as not reached.
    """

    __slots__ = ()

    def __new__(
        cls, node: ast.AST, template: str, *values: object, asks: tuple[Question, ...] = (), unused: bool = False
    ) -> Finding:
        return super().__new__(cls, node, Message(template, *values), asks, unused)


Result = Union[Change, Finding]
