"""The part of a report about half precision."""

from __future__ import annotations

from typing import Iterator

from npu_shim.rehearsal.half_result import HalfPart
from npu_shim.rehearsal.sections import first_names_text

_MOST = 10  # steps and ops that are listed


def half_rows(half: HalfPart) -> Iterator[tuple[str, str]]:
    """Yield a name and a text for each fact: what ran, the band, the loss, skipped steps, overflow."""
    lists = f", mixlist {half.mixlist}" if half.mixlist else ""
    yield "ops in 16 bits", f"{half.ops}, {half.precision_mode}{lists}"
    yield (
        "band",
        f"{half.quantile:g} times the difference of {half.perturbed_runs} float32 runs with values perturbed by "
        f"{half.perturbation:.1e}, plus {half.roundoff:.1e}",
    )
    loss = half.loss
    if loss:
        difference = "infinite" if loss.difference is None else f"{loss.difference:.1e}"
        yield "largest difference of the loss", f"{difference} at step {loss.step}, band {loss.band:.1e}"
    if half.largest_share is not None:
        yield "largest difference of all values", f"{half.largest_share:.2f} of its band"
    yield "steps that the loss scale skipped", _skipped_text(half)
    if half.loss_scale:
        first, lowest, last = half.loss_scale
        yield "loss scale", f"{first:g} at first, {lowest:g} at least, {last:g} at last"
    yield "overflow", _overflow_text(half)
    if half.in_steps:
        yield "not compared, moves in steps", first_names_text(half.in_steps, _MOST)


def _skipped_text(half: HalfPart) -> str:
    where = (
        f" ({first_names_text([str(step) for step in half.skipped_steps], _MOST, half.skipped)})"
        if half.skipped
        else ""
    )
    return f"{half.skipped} of {half.steps}{where}"


def _overflow_text(half: HalfPart) -> str:
    overflow = half.overflow
    if half.saturate:
        saturated = [f"{op.op} ({op.times} times)" for op in overflow.saturated]
        return f"saturated: {first_names_text(saturated, _MOST, overflow.saturated_ops)}" if saturated else "none"
    if not overflow.first_op:
        return "none"
    return (
        f"{overflow.steps} of {half.steps} steps with Inf or NaN, the first op at step {overflow.first_step}: "
        f"{overflow.first_op}"
    )
