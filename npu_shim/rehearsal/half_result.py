"""The part of a result of ``npu-shim verify --half`` about half precision."""

from __future__ import annotations

from typing import Any, Mapping

from npu_shim.rehearsal.comparing import half_band
from npu_shim.rehearsal.comparing.comparison import Comparison
from npu_shim.rehearsal.comparing.half_band import HalfBand
from npu_shim.rehearsal.comparing.recording import Recording
from npu_shim.rehearsal.result import Result, loss_of

_MOST_STEPS = 100  # skipped ones that are listed
_MOST_OPS = 20


def with_half(
    made: Result,
    settings: Mapping[str, Any],
    found: Mapping[str, Any],
    rounded: Recording,
    compared: Comparison | None,
    bands: HalfBand | None,
) -> Result:
    """Return a result with the part about half precision.

    Args:
        made: the result of the comparison; it is changed.
        settings: the arguments of half_precision(), ``perturbation``: its size, ``perturbed_runs``: their number.
        found: what the run in half precision reports at its end.
        rounded: the recording of this run.
        compared: the comparison with float32; None if a run did not start.
        bands: the band of each value; None if no perturbed run has started.
    """
    overflow = dict(found["overflow"])
    overflow["saturated_ops"] = len(overflow["saturated"])
    overflow["saturated"] = [{"op": op, "times": n} for op, n in list(overflow["saturated"].items())[:_MOST_OPS]]
    made["half"] = {
        **settings,
        "ops": found["ops"],
        "steps": found["steps"] or rounded.steps,
        "skipped": len(rounded.skips),
        "skipped_steps": [step for _, step in rounded.skips[:_MOST_STEPS]],
        "loss_scale": found["loss_scale"],
        "overflow": overflow,
        "roundoff": half_band.ROUNDOFF[settings["dtype"]],
        "quantile": half_band.quantile(settings["perturbed_runs"]),
        "loss": None,
        "largest_share": None,
        "in_steps": [],
    }
    if compared and bands:
        _add_bands(made, compared, bands)
    return made


def _add_bands(made: Result, compared: Comparison, bands: HalfBand) -> None:
    """Add the band of each step to a result: of the loss, and the largest share of a band that a value takes."""
    shares: dict[int, float] = {}
    for each in compared.compared:
        if not bands.has_band(each.original):
            continue
        for place, (step, difference) in enumerate(each.differences):
            limit = bands.widen(0.0, each.original, place, step)
            if limit and difference != float("inf"):
                shares[step] = max(shares.get(step, 0.0), difference / limit)
    losses = loss_of(compared)
    loss: dict[int, tuple[float, float]] = {}
    if losses is not None:
        for place, (step, difference) in enumerate(losses.differences):
            loss[step] = (difference, bands.widen(0.0, losses.original, place, step))
    for point in made["curve"]:
        found = loss.get(point["step"])
        point["loss_difference"] = None if found is None or found[0] == float("inf") else found[0]
        point["loss_band"] = None if found is None else found[1]
        point["share"] = shares.get(point["step"])
    half = made["half"]
    half["largest_share"] = max(shares.values(), default=None)
    half["in_steps"] = sorted(f"{kind} {name}" for kind, name in bands.in_steps)
    if loss and losses is not None:
        step, (difference, band) = max(loss.items(), key=lambda item: item[1][0])
        half["loss"] = {
            "kind": losses.original.kind,
            "name": losses.original.name,
            "step": step,
            "difference": None if difference == float("inf") else difference,
            "band": band,
        }
