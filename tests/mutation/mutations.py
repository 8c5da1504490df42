"""Small mistakes in a Python file: which can be made, and the file with one of them."""

from __future__ import annotations

import ast
from typing import Iterator, NamedTuple

_COMPARISONS = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "//"}


class Mutation(NamedTuple):
    """A mistake: the part of the text that it replaces, as offsets, and the new text."""

    start: int
    end: int
    text: str
    line: int

    def apply(self, source: str) -> str:
        """Return the file with the mistake."""
        return source[: self.start] + self.text + source[self.end :]

    def describe(self, source: str) -> str:
        """Return the replaced and the new text in one line."""
        return f"{' '.join(source[self.start : self.end].split())!r} becomes {' '.join(self.text.split())!r}"


def mutations(source: str) -> Iterator[Mutation]:
    """Yield the mistakes in the functions of a file."""
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    is_ascii = source.isascii()  # offsets of ast count bytes

    def place(node: ast.AST) -> tuple[int, int]:
        start = lines[getattr(node, "lineno") - 1] + getattr(node, "col_offset")
        return start, lines[getattr(node, "end_lineno") - 1] + getattr(node, "end_col_offset")

    def between(left: ast.AST, right: ast.AST, old: str, new: str) -> Iterator[Mutation]:
        start, end = place(left)[1], place(right)[0]
        if old in source[start:end]:
            at = start + source[start:end].index(old)
            yield Mutation(at, at + len(old), new, getattr(right, "lineno"))

    if not is_ascii:
        return
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    inner = {each for function in functions for each in ast.walk(function) if each is not function}
    for function in functions:
        if function in inner:
            continue
        for node in [part for statement in function.body for part in ast.walk(statement)]:
            if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
                old = {v: k for k, v in _SYMBOLS.items()}[type(node.ops[0])]
                yield from between(node.left, node.comparators[0], old, _COMPARISONS[type(node.ops[0])])
            elif isinstance(node, ast.BoolOp):
                old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                yield from between(node.values[0], node.values[1], old, new)
            elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
                old = {v: k for k, v in _SYMBOLS.items()}[type(node.op)]
                yield from between(node.left, node.right, old, _ARITHMETIC[type(node.op)])
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                start, end = place(node)
                yield Mutation(start, end, "bool(" + source[slice(*place(node.operand))] + ")", node.lineno)
            elif isinstance(node, ast.If):
                start, end = place(node.test)
                yield Mutation(start, end, "False", node.lineno)
            elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
                yield Mutation(*place(node.value), "None", node.lineno)
            elif isinstance(node, ast.Raise):
                yield Mutation(*place(node), "pass", node.lineno)
            elif isinstance(node, ast.Constant) and type(node.value) is bool:
                yield Mutation(*place(node), str(not node.value), node.lineno)
            elif isinstance(node, ast.Constant) and type(node.value) is int:
                yield Mutation(*place(node), str(node.value + 1), node.lineno)


_SYMBOLS = {
    "==": ast.Eq,
    "!=": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
    "in": ast.In,
    "not in": ast.NotIn,
    "is": ast.Is,
    "is not": ast.IsNot,
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
}


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
