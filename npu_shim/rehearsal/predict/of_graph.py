"""The prediction of a captured training step."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

from npu_shim._tensorflow.types import Value
from npu_shim.rehearsal.assess.flat import Flat, Node
from npu_shim.rehearsal.assess.lines import creating_lines
from npu_shim.rehearsal.assess.operators import Lists
from npu_shim.rehearsal.assess.precision import are_nodes_in_half
from npu_shim.rehearsal.assess.sizes import element_count
from npu_shim.rehearsal.assess.step_nodes import StepNodes
from npu_shim.rehearsal.assess.work import MATRIX
from npu_shim.rehearsal.precision_modes import ALL_FORCED, ALL_LOWERED, ALL_MIXED, LOWERED
from npu_shim.rehearsal.predict.device_ops import Run, ops_of_step
from npu_shim.rehearsal.predict.op_times import Processor
from npu_shim.rehearsal.predict.ops_of_nodes import NodeProperties
from npu_shim.rehearsal.predict.step import DeviceStep, predict_step


class Unknown(NamedTuple):
    """The properties of a step that its graph does not say: see step_nodes.StepNodes."""

    bounded: frozenset[int] = frozenset()
    branches: Sequence[str] = ()
    loops: Sequence[str] = ()


class OpenSizes(NamedTuple):
    """Runs of ops with sizes that only values decide: without a bound, with bounds as sizes, and seconds of these."""

    unknown: int
    bounded: int
    bounded_seconds: float


class Step(NamedTuple):
    """A training step for a processor.

    Attributes:
        flat: its nodes.
        host: the places of those that run on the host.
        trips: how often each loop runs.
        lists: the operators of the device and the lists of mixed precision.
        parameters: the NPU options of the session.
        device: the processor.
        folder: of the script.
        trainer: what runs it; see configuration_edit.
        properties: of its nodes, if they are known.
        unknown: the properties that its graph does not say.
    """

    flat: Flat
    host: Sequence[int]
    trips: dict[str, int]
    lists: Lists
    parameters: Mapping[str, Value]
    device: Processor
    folder: str
    trainer: str
    properties: NodeProperties | None = None
    unknown: Unknown = Unknown()

    def nodes_in_half(self) -> list[bool]:
        """Return for each node whether it computes in 16 bits, by the precision mode."""
        return _are_in_half(self.flat.nodes, self.lists, precision_mode(self.parameters, self.device.family))

    def runs(self) -> list[Run]:
        """Return the ops that the device runs, with the precision of the session's options."""
        mode = precision_mode(self.parameters, self.device.family)
        half = "bfloat16" if mode.endswith("bf16") or mode == "mixed_bfloat16" else "float16"
        return ops_of_step(
            self.flat, self.nodes_in_half(), self.host, self.trips, self.device.family, half, self.properties
        )

    def on_device(self, runs: Sequence[Run]) -> DeviceStep:
        """Return the step on the device, and its time."""
        nodes = self.flat.nodes
        return predict_step(runs, self.device, lambda i: creating_lines(nodes[i].source, self.folder)[:1])

    def seconds(self) -> float:
        """Return the time of the step on the device."""
        return predict_step(self.runs(), self.device, lambda i: ()).step


def step_on_device(
    own: StepNodes,
    lists: Lists,
    parameters: Mapping[str, Value],
    device: Processor,
    folder: str,
    trainer: str,
) -> Step:
    """Return the nodes of a step as a step of a processor. A loop of steps counts as one on the device."""
    options = dict(parameters)
    if own.steps and own.steps > 1:
        options["iterations_per_loop"] = own.steps
    unknown = Unknown(own.bounded, own.branches, own.loops)
    return Step(own.flat, own.host, own.trips, lists, options, device, folder, trainer, None, unknown)


def count_open_sizes(step: Step, runs: Sequence[Run], seconds: Sequence[float]) -> OpenSizes:
    """Count the runs of ops with sizes that only values decide.

    Args:
        step: with its nodes.
        runs: of its ops.
        seconds: of each of them.
    """
    unknown = bounded = 0
    took = 0.0
    for run, own in zip(runs, seconds):
        if any(_has_unknown_size(step.flat.nodes[place]) for place in run.nodes):
            unknown += run.count
        elif not step.unknown.bounded.isdisjoint(run.nodes):
            bounded, took = bounded + run.count, took + own
    return OpenSizes(unknown, bounded, took)


def _has_unknown_size(node: Node) -> bool:
    return any("float" in dtype and element_count(shape) is None for dtype, shape in zip(node.dtypes, node.shapes))


def precision_mode(parameters: Mapping[str, Value], family: str) -> str:
    """Return the precision mode of a session's options, or the vendor's default for a family of processors."""
    given = parameters.get("precision_mode_v2") or parameters.get("precision_mode") or b""
    mode = given.decode() if isinstance(given, bytes) else str(given)
    return mode or (LOWERED if family == "910" else "must_keep_origin_dtype")


def _are_in_half(nodes: Sequence[Node], lists: Lists, mode: str) -> list[bool]:
    if mode in ALL_MIXED:
        return are_nodes_in_half(nodes, lists)
    is_float = ["float32" in node.dtypes for node in nodes]
    if mode in ALL_FORCED:
        return [floats and "Apply" not in node.op for floats, node in zip(is_float, nodes)]
    return [floats and mode in ALL_LOWERED and bool(MATRIX.match(node.op)) for floats, node in zip(is_float, nodes)]
