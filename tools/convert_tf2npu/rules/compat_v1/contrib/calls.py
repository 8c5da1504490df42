"""Convert the arguments of tf.contrib calls whose replacement takes other arguments."""

from __future__ import annotations

import ast
from typing import Callable

from ....rewrite.call_edits import (
    after_opening_parenthesis,
    argument_start,
    keyword_value_start,
    name_argument,
    rename_keyword,
)
from ....rewrite.removal import remove_arguments
from ....semantics.signatures import bind_arguments
from ....syntax.expressions import boxed_constant, is_none
from ....syntax.source import Edit, Source
from .replacements import Replacement

_MODES = {"FAN_IN": "fan_in", "FAN_OUT": "fan_out", "FAN_AVG": "fan_avg"}
# Expressions that need no parentheses as a factor.
_FACTORS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)


def edits_of_call_arguments(source: Source, call: ast.Call, replacement: Replacement) -> list[Edit] | None:
    """Return the edits that convert the arguments of a call for the replacement of its function.

    Args:
        source: the file.
        call: a call of a function of tf.contrib.
        replacement: the replacement of the function.

    Returns:
        The edits; None if the arguments cannot be converted.
    """
    if replacement.is_plain:
        return []
    if replacement.special:
        return _SPECIAL[replacement.special](source, call, replacement)
    bound = bind_arguments(call, replacement.before)
    if bound.hidden or bound.unknown:
        return None
    renamed = dict(replacement.renamed)
    edits: list[Edit] = []
    named = False
    for index, (parameter, value) in enumerate(zip(bound.positional, call.args)):
        target = renamed.get(parameter, parameter)
        if target not in replacement.after:
            return None
        named = named or replacement.after.index(target) != index
        if named:
            edits.append(name_argument(source, call, value, target))
    gone = [
        keyword.value for name, keyword in bound.keywords.items() if renamed.get(name, name) not in replacement.after
    ]
    if not all(is_none(value) for value in gone):
        return None
    edits += [
        rename_keyword(source, call, keyword, renamed[name])
        for name, keyword in bound.keywords.items()
        if name in renamed and keyword.value not in gone
    ]
    return edits + remove_arguments(source, call, gone)


def _argument_edits_of_xavier(source: Source, call: ast.Call, _: Replacement) -> list[Edit] | None:
    """Remove ``uniform``, which the name of the replacement implies."""
    bound = bind_arguments(call, ("uniform", "seed", "dtype"))
    uniform = bound.args.get("uniform")
    if bound.hidden or bound.unknown or uniform is not None and boxed_constant(uniform) != (True,):
        return None
    return remove_arguments(source, call, [uniform]) if uniform is not None else []


def _argument_edits_of_variance_scaling(source: Source, call: ast.Call, _: Replacement) -> list[Edit] | None:
    """Pass the arguments by name. Only the uniform initializer draws the same numbers."""
    bound = bind_arguments(call, ("factor", "mode", "uniform", "seed", "dtype"))
    mode = boxed_constant(bound.args["mode"]) if "mode" in bound.args else ("FAN_IN",)
    if (
        bound.hidden
        or bound.unknown
        or boxed_constant(bound.args.get("uniform")) != (True,)
        or not mode
        or mode[0] not in _MODES
    ):
        return None
    factor = source.segment(bound.args["factor"]) if "factor" in bound.args else "2.0"
    values = ["scale=" + factor, f"mode='{_MODES[mode[0]]}'", "distribution='uniform'"]
    values += [f"{name}={source.segment(bound.args[name])}" for name in ("seed", "dtype") if name in bound.args]
    return [Edit(after_opening_parenthesis(source, call), source.end(call) - 1, ", ".join(values))]


def _argument_edits_of_regularizer(source: Source, call: ast.Call, replacement: Replacement) -> list[Edit] | None:
    """Halve the scale of L2: tf.contrib uses half the sum of squares, Keras the whole sum."""
    bound = bind_arguments(call, ("scale", "scope"))
    scale = bound.args.get("scale")
    if bound.hidden or bound.unknown or scale is None or "scope" in bound.positional:
        return None
    edits = remove_arguments(source, call, [bound.args["scope"]]) if "scope" in bound.args else []
    start = argument_start(source, call, scale)
    at = keyword_value_start(source, call, bound.keywords["scale"]) if "scale" in bound.keywords else start
    half = "0.5 * " if replacement.name.endswith(".l2") else ""
    simple = isinstance(scale, _FACTORS) or boxed_constant(scale) is not None or at != source.start(scale)
    if half or start != at:
        edits.append(Edit(start, at, half if simple or not half else half + "("))
    if half and not simple:
        edits.append(Edit(source.end(scale), source.end(scale), ")", closing=True))
    return edits


_SPECIAL: dict[str, Callable[[Source, ast.Call, Replacement], list[Edit] | None]] = {
    "xavier": _argument_edits_of_xavier,
    "variance_scaling": _argument_edits_of_variance_scaling,
    "regularizer": _argument_edits_of_regularizer,
}
