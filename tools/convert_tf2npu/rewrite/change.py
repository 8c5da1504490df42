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
    """

    node: ast.AST
    message: str
    edits: tuple[Edit, ...]
    uses: tuple[str, ...] = ()


class _Report(NamedTuple):
    node: ast.AST
    message: str


class Finding(_Report):
    """A report of code that stays unchanged: the node, the reason, and the fix.

    Args:
        node: the node.
        template, values: of the message.
    """

    __slots__ = ()

    def __new__(cls, node: ast.AST, template: str, *values: object) -> Finding:
        return super().__new__(cls, node, Message(template, *values))


Result = Union[Change, Finding]
