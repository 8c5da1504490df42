"""The report of overflows as text."""

from __future__ import annotations

from typing import Callable, Iterator, Mapping

from npu_shim.dumps.device_overflows import NOT_NORMAL, Overflow, OverflowReport, TensorRange
from npu_shim.dumps.reports.comparison_text import unread_section
from npu_shim.rehearsal.reports import to_json
from npu_shim.rehearsal.sections import to_lines

_MOST = 20


def to_text(result: OverflowReport, all_rows: bool = False) -> str:
    """Return the report as text that ends with a line feed."""
    return "\n".join(_text_lines(result, None if all_rows else _MOST)) + "\n"


def _text_lines(result: OverflowReport, most: int | None) -> Iterator[str]:
    overflows = result.overflows
    if not overflows:
        yield "no overflow: the folder has no op debug files. Check that it is the dump_path of the run."
    bad = [overflow for overflow in overflows if overflow.verdict == NOT_NORMAL]
    for overflow in (bad or overflows)[:1]:
        of_step = f"step {overflow.step}, " if overflow.step >= 0 else ""
        name = _overflow_name_text(overflow)
        yield f"first overflow{' that is not normal' if bad else ''}: {of_step}{name}\n  {overflow.reason}"
    for overflow in overflows[:most]:
        if overflow.first:
            scale = "" if overflow.loss_scale is None else f", loss scale {overflow.loss_scale:g}"
            yield f"step {overflow.step}{scale}:" if overflow.step >= 0 else "step unknown:"
        of_unit = f"{overflow.unit}, status {overflow.status:#x}, {overflow.verdict}"
        yield f"  {_overflow_name_text(overflow)}: {of_unit}\n    {overflow.reason}"
        for side, tensors in (("input", overflow.inputs), ("output", overflow.outputs)):
            yield from (f"    {side} {place}: {_range_text(tensor)}" for place, tensor in enumerate(tensors))
    if len(overflows[:most]) < len(overflows):
        yield f"... and {len(overflows) - len(overflows[:most])} more: see -r DIR"
    yield from to_lines(unread_section(result.problems), most)


def _overflow_name_text(overflow: Overflow) -> str:
    if not overflow.operator:
        return f"task {overflow.task} of stream {overflow.stream}"
    made_from = f" from {', '.join(overflow.originals)}" if overflow.originals not in ([], [overflow.operator]) else ""
    return f"{overflow.operator} ({overflow.type}{made_from})"


def _range_text(tensor: TensorRange) -> str:
    what = f"{tensor.type} {tensor.shape}"
    if tensor.problem:
        return f"{what}, {tensor.problem}"
    low_to_high = "" if tensor.low is None else f", {tensor.low:g} to {tensor.high:g}"
    bad = f", {tensor.not_finite} Inf or NaN" if tensor.not_finite else ""
    return what + low_to_high + bad + (f", {tensor.saturated} at 65504" if tensor.saturated else "")


WRITERS: Mapping[str, Callable[[OverflowReport], str]] = {
    "overflow.txt": lambda result: to_text(result, all_rows=True),
    "overflow.json": lambda result: to_json(result.to_json()),
}
