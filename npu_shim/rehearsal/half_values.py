"""The band of each step in a result of ``npu-shim verify --half``."""

from __future__ import annotations

import math

from npu_shim.rehearsal.comparing.comparison import Comparison
from npu_shim.rehearsal.comparing.half_band import HalfBand
from npu_shim.rehearsal.half_result import HalfPart, LargestLoss
from npu_shim.rehearsal.result import HalfPoint, Result
from npu_shim.rehearsal.result_values import loss_to_show


def add_bands(result: Result, half: HalfPart, compared: Comparison, bands: HalfBand) -> None:
    """Add the band of each step to a result: of the loss, and the largest share of a band that a value takes."""
    shares: dict[int, float] = {}
    for pair in compared.compared:
        if not bands.has_band(pair.original):
            continue
        for place, (step, difference) in enumerate(pair.differences):
            limit = bands.widened_limit(0.0, pair.original, place, step)
            if limit and difference != math.inf:
                shares[step] = max(shares.get(step, 0.0), difference / limit)
    shown = loss_to_show(compared)
    loss: dict[int, tuple[float | None, float | None]] = {}
    if shown is not None and shown.differences:
        rows = [
            (difference, step, bands.widened_limit(0.0, shown.original, place, step))
            for place, (step, difference) in enumerate(shown.differences)
        ]
        loss = {step: (_finite_or_none(difference), band) for difference, step, band in rows}
        far, at, band = max({row[1]: row for row in rows}.values(), key=lambda row: row[0])
        half.loss = LargestLoss(shown.original.kind, shown.original.name, at, _finite_or_none(far), band)
    result.curve = [
        HalfPoint(
            point.step,
            point.original,
            point.migrated,
            point.difference,
            *loss.get(point.step, (None, None)),
            share=shares.get(point.step),
        )
        for point in result.curve
    ]
    half.largest_share = max(shares.values(), default=None)
    half.in_steps = sorted(f"{kind} {name}" for kind, name in bands.in_steps)


def _finite_or_none(difference: float) -> float | None:
    return None if difference == math.inf else difference
