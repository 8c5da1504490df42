"""The time of a training step on a processor: its ops by device_ops, the time of each by op_times."""

from __future__ import annotations

import collections
from typing import Callable, NamedTuple, Sequence

from npu_shim.rehearsal.predict.device_ops import Run
from npu_shim.rehearsal.predict.features import Tensor
from npu_shim.rehearsal.predict.op_times import OpTimes, Processor, shipped_op_times
from npu_shim.rehearsal.predict.prediction import PredictedOp, Range, Share
from npu_shim.rehearsal.predict.ranges import range_of_device

AI_CPU = "AI CPU"
_LIMITS = ("launch", "memory", "matrix unit", "rows")
# Median of the ten runs on the AI CPU in the profiles: masks of dropout and casts of one element, 72 to 124 us.
_AI_CPU_SECONDS = 90e-6
# Median from the end of an op to the start of the next, of 2,900 in two compiled graphs (mindinsight/run_1 and run_2).
_GAP_SECONDS = 0.1e-6
_MOST_LINES = 3


class DeviceStep(NamedTuple):
    """The part of a prediction that the device determines; see prediction.Prediction.

    Attributes:
        device, step: seconds of the ops with their range, and of the ops with the gaps between them.
        phases, limits, ops, not_measured, op_runs: as in Prediction.
        seconds: of each run that was given, all its repetitions together.
    """

    device: Range
    step: float
    phases: list[Share]
    limits: list[Share]
    ops: list[PredictedOp]
    not_measured: int
    op_runs: int
    seconds: list[float]


def predict_step(
    runs: Sequence[Run],
    device: Processor,
    lines_of_node: Callable[[int], Sequence[str]],
    table: OpTimes | None = None,
) -> DeviceStep:
    """Predict the time of the ops of a step.

    Args:
        runs: from device_ops.ops_of_step.
        device: the processor.
        lines_of_node: the lines of the script that create a node.
        table: the times of ops; None for the one that ships.
    """
    table = table or shipped_op_times()
    estimates = table.estimates([run.op for run in runs], device)
    seconds, limits = [], []
    for run, estimate in zip(runs, estimates):
        seconds.append(run.count * (_AI_CPU_SECONDS if run.on_ai_cpu else estimate.seconds))
        limits.append(AI_CPU if run.on_ai_cpu else _LIMITS[int(estimate.parts.argmax())])
    levels = ["class" if run.on_ai_cpu else estimate.level for run, estimate in zip(runs, estimates)]
    rows = _op_rows(runs, seconds, limits, levels, lines_of_node)
    op_runs, total = sum(run.count for run in runs), sum(seconds)
    return DeviceStep(
        device=range_of_device(total),
        step=total + op_runs * _GAP_SECONDS,
        phases=_shares([run.phase for run in runs], seconds),
        limits=_shares(limits, seconds),
        ops=rows,
        not_measured=sum(row.count for row in rows if row.measured != "type"),
        op_runs=op_runs,
        seconds=seconds,
    )


def tensor_text(tensor: Tensor) -> str:
    """Return a tensor as profiles name it: ``FLOAT16;ND[32,1024]``."""
    return f"{tensor.dtype};{tensor.layout}[{','.join(map(str, tensor.shape))}]"


def _op_rows(
    runs: Sequence[Run],
    seconds: Sequence[float],
    limits: Sequence[str],
    levels: Sequence[str],
    lines_of_node: Callable[[int], Sequence[str]],
) -> list[PredictedOp]:
    groups: dict[tuple[str, tuple[str, ...], tuple[str, ...], str], list[int]] = collections.defaultdict(list)
    for place, run in enumerate(runs):
        inputs, outputs = (tuple(map(tensor_text, side)) for side in (run.op.inputs, run.op.outputs))
        groups[run.op.type, inputs, outputs, run.phase].append(place)
    rows = []
    for (type, inputs, outputs, phase), places in groups.items():
        nodes = [node for place in places[:_MOST_LINES] for node in runs[place].nodes]
        lines = [line for node in nodes for line in lines_of_node(node)[:1]]
        rows.append(
            PredictedOp(
                type=type,
                count=sum(runs[place].count for place in places),
                seconds=sum(seconds[place] for place in places),
                phase=phase,
                limit=limits[places[0]],
                measured=levels[places[0]],
                inputs=list(inputs),
                outputs=list(outputs),
                lines=list(dict.fromkeys(lines))[:_MOST_LINES],
            )
        )
    return sorted(rows, key=lambda row: (-row.seconds, row.type, row.inputs))


def _shares(names: Sequence[str], seconds: Sequence[float]) -> list[Share]:
    sums: dict[str, float] = collections.defaultdict(float)
    for name, took in zip(names, seconds):
        sums[name] += took
    return [Share(name, took) for name, took in sorted(sums.items(), key=lambda item: (-item[1], item[0]))]
