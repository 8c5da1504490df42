"""Edits that replace TensorFlow's loss scale managers and optimizers with those of the NPU."""

from __future__ import annotations

import ast

from ..analysis.graph_rewrites import GRAPH_REWRITES
from ..project.context import Context
from ..semantics.signatures import Bound, bind_arguments
from ..syntax.edits import Edit
from ..syntax.expressions import boxed_constant
from .call_edits import edit_to_add_argument, edit_to_rename, edits_to_wrap, rename_keyword

CONTRIB = "tensorflow.contrib.mixed_precision."
TRAIN = "tensorflow.train.experimental."
RENAMED = {
    CONTRIB + "FixedLossScaleManager": "FixedLossScaleManager",
    CONTRIB + "ExponentialUpdateLossScaleManager": "ExponentialUpdateLossScaleManager",
    CONTRIB + "LossScaleOptimizer": "NPULossScaleOptimizer",
}
FIXED, DYNAMIC = TRAIN + "FixedLossScale", TRAIN + "DynamicLossScale"


def edits_and_imports_for_loss_scale(
    context: Context, node: ast.Call, name: str
) -> tuple[list[Edit] | None, list[str]]:
    """Return the edits that make a manager or an optimizer that of the NPU, and the names of npu_shim they use.

    Args:
        context: of the file.
        node: the call that makes it.
        name: the resolved name of its function.
    Returns:
        None as edits if the arguments cannot be converted.
    """
    source = context.source
    if name in RENAMED:
        return [edit_to_rename(source, node.func, RENAMED[name])], [RENAMED[name]]
    if name == FIXED:
        bound = bind_arguments(node, ("loss_scale_value",))
        if bound.hidden or bound.unknown or "loss_scale_value" not in bound.args:
            return None, []
        edits = [edit_to_rename(source, node.func, "FixedLossScaleManager")]
        if bound.keywords:
            edits.append(rename_keyword(source, node, bound.keywords["loss_scale_value"], "loss_scale"))
        return edits, ["FixedLossScaleManager"]
    if name == DYNAMIC:
        bound = bind_arguments(node, ("initial_loss_scale", "increment_period", "multiplier"))
        if bound.hidden or bound.unknown:
            return None, []
        return [edit_to_rename(source, node, _manager_text(context, bound))], ["ExponentialUpdateLossScaleManager"]
    return _edits_and_imports_for_optimizer(context, node, name)


def _edits_and_imports_for_optimizer(
    context: Context, node: ast.Call, name: str
) -> tuple[list[Edit] | None, list[str]]:
    source = context.source
    bound = bind_arguments(node, ("opt", "loss_scale"))
    scale = bound.args.get("loss_scale")
    if bound.hidden or bound.unknown or (scale is None and name not in GRAPH_REWRITES):
        return None, []
    edits = [edit_to_rename(source, node.func, "NPULossScaleOptimizer")]
    uses = ["NPULossScaleOptimizer"]
    if scale is None:
        added = edit_to_add_argument(source, node, _manager_text(context, None))
        return (None if added is None else [*edits, added]), [*uses, "ExponentialUpdateLossScaleManager"]
    if "loss_scale" in bound.keywords:
        edits.append(rename_keyword(source, node, bound.keywords["loss_scale"], "loss_scale_manager"))
    value = boxed_constant(scale)
    if value and value[0] == "dynamic":
        edits.append(edit_to_rename(source, scale, _manager_text(context, None)))
        uses.append("ExponentialUpdateLossScaleManager")
    elif value:
        edits += edits_to_wrap(source, scale, "FixedLossScaleManager(", ")")
        uses.append("FixedLossScaleManager")
    return edits, uses


def _manager_text(context: Context, bound: Bound | None) -> str:
    """Return the text of the manager that behaves as a DynamicLossScale."""
    given: dict[str, ast.expr] = bound.args if bound else {}

    def text(argument: str, default: str) -> str:
        return context.source.segment(given[argument]) if argument in given else default

    ratio = "0.5"
    if "multiplier" in given:
        plain = isinstance(given["multiplier"], (ast.Name, ast.Attribute)) or boxed_constant(given["multiplier"])
        multiplier = text("multiplier", "")
        ratio = f"1 / {multiplier}" if plain else f"1 / ({multiplier})"
    return (
        f"ExponentialUpdateLossScaleManager(init_loss_scale={text('initial_loss_scale', '2 ** 15')}, "
        f"incr_every_n_steps={text('increment_period', '2000')}, decr_every_n_nan_or_inf=1, "
        f"incr_ratio={text('multiplier', '2')}, decr_ratio={ratio})"
    )
