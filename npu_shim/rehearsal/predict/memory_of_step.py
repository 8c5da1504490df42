"""The memory of a step on a card, and the largest batch that fits.

A job has the memory of processors.json: 31 GB of an Ascend 910, the sum of graph_memory_max_size and
variable_memory_max_size in the documentation of CANN, and of a 910B its HBM without the 3 or 4 GB that the system uses,
by the documentation of dcmi_get_device_hbm_info.

The workspace is an assumption: the op with the most bytes holds a second copy of its tensors, in another layout, and
ranks have two buffers of HCCL_BUFFSIZE, 200 MB by default.
"""

from __future__ import annotations

import copy
from typing import Sequence

from npu_shim._tensorflow.op_types import VARIABLES
from npu_shim.rehearsal.assess import memory, work
from npu_shim.rehearsal.assess.flat import Flat, Node
from npu_shim.rehearsal.assess.inventory import variable_type
from npu_shim.rehearsal.assess.sizes import size_bytes
from npu_shim.rehearsal.predict.gradients import gradient_outputs, variable_shapes
from npu_shim.rehearsal.predict.other_batches import batch_of_step, flat_at_batch, trips_at_batch
from npu_shim.rehearsal.predict.prediction import PredictedMemory

_HCCL_BUFFERS = 2 * 200 * 2**20


def memory_of_step(
    flat: Flat, half: Sequence[bool], trips: dict[str, int], card: int, ranks: int = 1
) -> PredictedMemory:
    """Return what a step needs of the memory of a card.

    Args:
        flat: the nodes of the step.
        half: for each node if it computes in 16 bits.
        trips: how often each loop runs.
        card: bytes that a job has; 0 if they are not known.
        ranks: of the job.
    """
    parameters, optimizer = _bytes_of_variables(flat.nodes)
    buffers = _HCCL_BUFFERS if ranks > 1 else 0
    activations, workspace = _bytes_at_peak(flat.nodes, half, trips)
    batch = batch_of_step(flat.nodes)
    largest, why = _largest_batch(flat, half, trips, batch, card - parameters - optimizer - buffers if card else 0)
    return PredictedMemory(parameters, optimizer, activations, workspace + buffers, card, batch, largest, why)


def _bytes_of_variables(nodes: Sequence[Node]) -> tuple[int, int]:
    """Return the bytes of the variables on which the gradients depend, and of the others, as slots of optimizers."""
    needed = {place for place, _ in gradient_outputs(nodes)}
    reached = list(needed)
    while reached:
        sources = {source for source, _ in nodes[reached.pop()].inputs} - needed
        needed |= sources
        reached += sources
    sums = [0, 0]
    for place, node in enumerate(nodes):
        if node.op in VARIABLES:
            shape, dtype = variable_type(node)
            sums[bool(needed) and place not in needed] += size_bytes(dtype, shape) or 0
    return sums[0], sums[1]


def _bytes_at_peak(nodes: Sequence[Node], half: Sequence[bool], trips: dict[str, int]) -> tuple[int, int]:
    """Return the bytes of the tensors at the peak, and of all tensors of the largest op of the matrix unit."""
    in_half = [_in_half(node) if is_half else node for node, is_half in zip(nodes, half)]
    workspace = 0
    for node in in_half:
        if work.MATRIX.match(node.op):
            keys = [(in_half[source], output) for source, output in node.inputs]
            tensors = [(maker.dtypes[output], maker.shapes[output]) for maker, output in keys]
            tensors += zip(node.dtypes, node.shapes)
            workspace = max(workspace, sum(size_bytes(dtype, shape) or 0 for dtype, shape in tensors))
    return memory.peak_memory(in_half, trips).peak, workspace


def _in_half(node: Node) -> Node:
    node = copy.copy(node)
    node.dtypes = ["float16" if dtype == "float32" else dtype for dtype in node.dtypes]
    return node


def _largest_batch(
    flat: Flat, half: Sequence[bool], trips: dict[str, int], batch: int | None, room: int
) -> tuple[int | None, str]:
    """Return the largest batch whose activations and workspace fit, or None and why it is not known.

    The peak is the largest of many sums that grow with the batch. So a line through two batches is too low behind them
    and too high between them: the line through the first batch that does not fit gives one that does.
    """
    if not room:
        return None, "the memory of the card is not known"
    if batch is None:
        return None, "no input of the step has a batch"
    if any(len(shape) > 1 and shape[0] == batch for shape in variable_shapes(flat.nodes)):
        # An activation may have the shape of a variable, which stays at other batches.
        return None, f"a variable has {batch:,} rows, too. Predict the step with another batch"

    def needed(size: int) -> int:
        at_size = flat_at_batch(flat, batch or 1, size)
        return sum(_bytes_at_peak(at_size.nodes, half, trips_at_batch(at_size, trips)))

    low, at_low = batch, sum(_bytes_at_peak(flat.nodes, half, trips))
    high = 2 * batch
    at_high = needed(high)
    if at_high <= at_low:
        return None, "the memory of the step does not follow the batch"
    largest = _fits_on_line(low, at_low, high, at_high, room)
    if largest <= high:
        return largest, ""
    at_largest = needed(largest)
    return (largest if at_largest <= room else _fits_on_line(high, at_high, largest, at_largest, room)), ""


def _fits_on_line(low: int, at_low: int, high: int, at_high: int, room: int) -> int:
    return max(0, low + (room - at_low) * (high - low) // (at_high - at_low))
