"""Suppression comments: ``# npu: ignore[NPU101]``, or ``# npu: ignore`` for all rules."""

from __future__ import annotations

import ast
import re

from .source import Source

_IGNORE = re.compile(r"#\s*npu:\s*ignore(?:\[([A-Za-z0-9,\s]*)\])?")


def is_suppressed_at(source: Source, node: ast.AST, code: str) -> bool:
    """Return True if a comment in the lines of a node, or in the head of a function, suppresses a rule."""
    first, last = source.first_and_last_line(node)
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        last = source.first_and_last_line(body[0])[0]
    return any(is_suppressed_by_line(source.line(number), code) for number in range(first, last + 1))


def is_suppressed_by_line(line: str, code: str) -> bool:
    """Return True if a comment in a line suppresses a rule."""
    comment = _IGNORE.search(line)
    codes = [c.strip().upper() for c in (comment.group(1) or "").split(",") if c.strip()] if comment else []
    return comment is not None and (not codes or code in codes)
