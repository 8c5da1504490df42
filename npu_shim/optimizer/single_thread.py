"""Whether the steps of a loop are so small that handing work from thread to thread takes longer than the work.

TensorFlow runs ops that are ready together in a pool of threads, and splits an
op among the threads of another. With the few thousand numbers of a small model
each hand-over costs more than the op. Such a loop runs as a whole in the thread
that called session.run (IN_CALLERS_THREAD, _tf_threads.unsplit_kernels), and
reads its input there. Results are the same: the ops and what they wait for stay
as they are.
"""

from __future__ import annotations

from typing import Any, Collection, Iterable

from npu_shim import _tf
from npu_shim.distributed.world import world_size

IN_CALLERS_THREAD = _tf.v1.RunOptions(inter_op_thread_pool=-1)
_OPS = 500  # each may take a little of the caller's stack
_ELEMENTS = 60000  # of all tensors of a step; above, ops are worth threads
_WAIT = ("PyFunc", "Unstage")  # parts of the names of ops that may wait, in their thread, for others of the same step
_AROUND = ("ModelDataset", "OptimizeDataset", "OptimizeDatasetV2", "OptionsDataset", "MaxIntraOpParallelismDataset")


def is_light(step: Collection[Any]) -> bool:
    """Whether a loop of a step gains from running in one thread, and loses nothing.

    Several ranks always need their threads: a collective waits in one.

    Args:
        step: the ops of one training step.
    """
    if world_size() > 1 or len(step) > _OPS or any(part in op.type for op in step for part in _WAIT):
        return False
    sizes = [tensor.shape.num_elements() for op in step for tensor in op.outputs if tensor.dtype != _tf.tf.resource]
    return None not in sizes and sum(sizes) <= _ELEMENTS and all(_keeps_threads(op) for op in step)


def _keeps_threads(op: Any) -> bool:
    """Whether input that an op reads has the pool's threads wherever the step runs.

    The functions of a dataset run in the threads of the run that read from it
    first, which a prefetch keeps for good. Without one only a dataset that has
    no functions does not mind.
    """
    if not op.type.startswith("IteratorGetNext"):
        return True
    iterator = op.inputs[0]
    datasets = [user.inputs[0].op for user in iterator.consumers() if user.type == "MakeIterator"]
    return bool(datasets) and all(map(_is_simple, datasets))


def _is_simple(dataset: Any) -> bool:
    while dataset.type in _AROUND:
        dataset = dataset.inputs[0].op
    return dataset.type.startswith("PrefetchDataset") or not any(map(_has_function, _with_inputs(dataset)))


def _has_function(op: Any) -> bool:
    return any(value.WhichOneof("value") == "func" or len(value.list.func) for value in op.node_def.attr.values())


def _with_inputs(op: Any) -> Iterable[Any]:
    yield op
    for tensor in op.inputs:
        yield from _with_inputs(tensor.op)
