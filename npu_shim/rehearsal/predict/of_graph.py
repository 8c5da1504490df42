"""The prediction of a captured training step."""

from __future__ import annotations

from typing import Mapping, Sequence

from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.assess.flat import Flat, Node
from npu_shim.rehearsal.assess.lines import creating_lines
from npu_shim.rehearsal.assess.operators import Lists
from npu_shim.rehearsal.assess.precision import are_nodes_in_half
from npu_shim.rehearsal.assess.work import MATRIX
from npu_shim.rehearsal.predict.device_ops import Run, ops_of_step
from npu_shim.rehearsal.predict.op_times import Processor
from npu_shim.rehearsal.predict.prediction import PredictedMemory, Prediction
from npu_shim.rehearsal.predict.step import DeviceStep, predict_step

_MIXED = frozenset(
    "allow_mix_precision allow_mix_precision_fp16 allow_mix_precision_bf16 mixed_float16 mixed_bfloat16".split()
)
_LOWERED = ("allow_fp32_to_fp16", "allow_fp32_to_bf16", "cube_fp16in_fp32out", "force_fp32")
_FORCED = ("force_fp16", "fp16")


def runs_of_step(
    flat: Flat,
    host: Sequence[int],
    trips: dict[str, int],
    lists: Lists,
    parameters: Mapping[str, Value],
    device: Processor,
) -> list[Run]:
    """Return the ops that a processor runs for a step, with the precision of the session's options."""
    mode = precision_mode(parameters, device.family)
    half = "bfloat16" if mode.endswith("bf16") or mode == "mixed_bfloat16" else "float16"
    return ops_of_step(flat, _are_in_half(flat.nodes, lists, mode), host, trips, device.family, half)


def precision_mode(parameters: Mapping[str, Value], family: str) -> str:
    """Return the precision mode of a session's options, or the vendor's default for a family of processors."""
    given = parameters.get("precision_mode_v2") or parameters.get("precision_mode") or b""
    mode = given.decode() if isinstance(given, bytes) else str(given)
    return mode or ("allow_fp32_to_fp16" if family == "910" else "must_keep_origin_dtype")


def _are_in_half(nodes: Sequence[Node], lists: Lists, mode: str) -> list[bool]:
    if mode in _MIXED:
        return are_nodes_in_half(nodes, lists)
    is_float = ["float32" in node.dtypes for node in nodes]
    if mode in _FORCED:
        return [floats and "Apply" not in node.op for floats, node in zip(is_float, nodes)]
    return [floats and mode in _LOWERED and bool(MATRIX.match(node.op)) for floats, node in zip(is_float, nodes)]


def device_step(
    flat: Flat,
    host: Sequence[int],
    trips: dict[str, int],
    lists: Lists,
    parameters: Mapping[str, Value],
    device: Processor,
    folder: str,
) -> DeviceStep:
    """Return what the device does in a step, and its time."""
    runs = runs_of_step(flat, host, trips, lists, parameters, device)
    return predict_step(runs, device, lambda i: creating_lines(flat.nodes[i].source, folder)[:1])


def prediction_of_device(of_device: DeviceStep, device: Processor, parameters: int, activations: int) -> Prediction:
    """Return a prediction of what the device does alone.

    Args:
        of_device: the step.
        device: the processor.
        parameters, activations: their bytes.
    """
    return Prediction(
        processor=device.name,
        device=of_device.device,
        step=of_device.step,
        examples=None,
        phases=of_device.phases,
        limits=of_device.limits,
        ops=of_device.ops,
        not_measured=of_device.not_measured,
        op_runs=of_device.op_runs,
        host=0.0,
        input_rate=None,
        memory=PredictedMemory(parameters, 0, activations, 0, 0, None, None, ""),
        gains=[],
        ranks=[],
        proposals=[],
    )
