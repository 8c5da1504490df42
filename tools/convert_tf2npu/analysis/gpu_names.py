"""Device names in which the script fills in the number of a GPU: ``'/gpu:%d' % i``."""

from __future__ import annotations

import ast
import re

from ..project.context import Context
from ..semantics.model import Call
from ..syntax.expressions import boxed_constant, constant_or

_HOLE = "\0"
_ONE_OF_SEVERAL = re.compile(r"(?P<before>/?(?:device:)?)(?P<name>gpu):(?:\0|%[dis]|{0?(?::d)?})", re.IGNORECASE)


def cpu_in_same_case(match: re.Match[str]) -> str:
    """Return ``cpu`` or ``CPU``, in the case of the matched ``name``."""
    return "CPU" if match["name"].isupper() else "cpu"


def literal_without_gpu(context: Context, device: ast.expr, call: Call) -> str | None:
    """Return the literal for an expression that fills a number into the name of a GPU, or None."""
    text, number = _template_and_inserted_values(device)
    match = _ONE_OF_SEVERAL.fullmatch(text)
    if match is None or not all(_has_no_side_effects(context, part, call) for part in number):
        return None
    written = context.source.segment(device)
    try:
        if ast.dump(ast.parse(f"({written})", mode="eval").body) != ast.dump(device):
            return None  # inside an f-string, where older parsers do not know places
    except SyntaxError:
        return None
    quote = '"' if written.lstrip("fF").startswith('"') else "'"
    return quote + match["before"] + cpu_in_same_case(match) + ":0" + quote


def numbers_in_gpu_names(node: ast.AST) -> list[ast.expr]:
    """Return the expressions that an expression fills into names of GPUs as the number."""
    templates = (_template_and_inserted_values(part) for part in ast.walk(node) if isinstance(part, ast.expr))
    return [number for text, numbers in templates if _ONE_OF_SEVERAL.fullmatch(text) for number in numbers]


def _template_and_inserted_values(device: ast.expr) -> tuple[str, list[ast.expr]]:
    """Return the literal part of a string built with %, +, format or f, and the inserted expressions."""
    if isinstance(device, ast.BinOp) and isinstance(device.op, (ast.Mod, ast.Add)):
        text = boxed_constant(device.left)
        tail = _HOLE if isinstance(device.op, ast.Add) else ""
        return (text[0] + tail if text and isinstance(text[0], str) else ""), [device.right]
    if (
        isinstance(device, ast.Call)
        and isinstance(device.func, ast.Attribute)
        and device.func.attr == "format"
        and len(device.args) == 1
        and not device.keywords
    ):
        text = boxed_constant(device.func.value)
        return (text[0] if text and isinstance(text[0], str) else ""), device.args
    if isinstance(device, ast.JoinedStr):
        parts = [str(constant_or(v, _HOLE)) for v in device.values]
        return "".join(parts), [v.value for v in device.values if isinstance(v, ast.FormattedValue)]
    return "", []


def _has_no_side_effects(context: Context, number: ast.expr, call: Call) -> bool:
    """Return True if an expression has no side effects: it calls only str and int."""
    return all(
        isinstance(n.func, ast.Name)
        and n.func.id in ("str", "int")
        and context.names.bindings_of_name(n.func.id, call.where) is None
        for n in ast.walk(number)
        if isinstance(n, ast.Call)
    ) and not any(
        isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) or type(n).__name__ == "NamedExpr"
        for n in ast.walk(number)
    )
