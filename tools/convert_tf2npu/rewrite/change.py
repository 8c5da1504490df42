"""Results of rules: a change of the code, or a finding that reports code they do not change."""

from __future__ import annotations

import ast
from typing import NamedTuple, Union

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


class Finding(NamedTuple):
    """A report of code that stays unchanged: the node, the reason, and the fix."""

    node: ast.AST
    message: str


Result = Union[Change, Finding]
