"""The step that npu-shim assess --predict expects: the yardstick of a profile."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Mapping, Sequence

from npu_shim.profiles.op_kinds import Signature, device_op
from npu_shim.rehearsal.predict.op_times import TYPE, Estimate, Processor, processor, shipped_op_times, without_version

_FIX = "Make it with npu-shim assess --predict --json FILE"


@dataclass(frozen=True)
class ExpectedTime:
    """A predicted time with its range, in milliseconds of a step."""

    ms: float
    low: float
    high: float


@dataclass(frozen=True)
class ExpectedStep:
    """A predicted step.

    Attributes:
        device: the processor.
        step, ops: the whole step, and the ops of the device.
        exposed: by number of ranks, the collectives that no op hides.
        types: runs and milliseconds of a step by type of op, without its version.
    """

    device: Processor
    step: ExpectedTime
    ops: ExpectedTime
    exposed: Mapping[int, float]
    types: Mapping[str, tuple[int, float]]

    def estimate_measured_types(self, signatures: Sequence[Signature]) -> list[Estimate | None]:
        """Return the time of a run of each op by its own shapes; None for types that were not measured."""
        estimates = shipped_op_times().estimates([device_op(signature) for signature in signatures], self.device)
        return [estimate if estimate.level == TYPE else None for estimate in estimates]


def read_prediction(path: str) -> ExpectedStep:
    """Read the prediction of the first training step in the JSON of npu-shim assess.

    Raises:
        ValueError: there is none.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            assessment = json.load(stream)
        graphs = assessment["graphs"] if assessment["schema_version"] == 1 else []
        predicted = next(filter(None, (graph["prediction"] for graph in graphs)), None)
        if predicted is not None:
            types: dict[str, tuple[int, float]] = {}
            for op in predicted["ops"]:
                type = without_version(op["type"])
                count, ms = types.get(type, (0, 0.0))
                types[type] = count + int(op["count"]), ms + 1e3 * op["seconds"]
            step, ops = (
                ExpectedTime(*(1e3 * predicted[part][key] for key in ("value", "low", "high")))
                for part in ("step", "device")
            )
            exposed = {int(row["ranks"]): 1e3 * row["exposed"] for row in predicted["ranks"]}
            return ExpectedStep(processor(predicted["processor"]), step, ops, exposed, types)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"--against {path}: it cannot be read as a prediction: {error}. {_FIX}") from None
    raise ValueError(f"--against {path}: it has no prediction of a training step. {_FIX}")
