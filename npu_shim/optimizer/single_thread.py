"""Decide if a loop of steps runs faster in the thread that called session.run.

TensorFlow runs ops that are ready together in a pool of threads, and splits an
op among the threads of another pool. In a small model, with a few thousand
numbers, each hand-over costs more than the op. Such a loop runs as a whole in
the calling thread (CALLING_THREAD, _tf_threads.run_kernels_in_one_thread), and reads its
input there. Results do not change: the ops and their dependencies are the same.
"""

from __future__ import annotations

from typing import Collection, Iterator

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.types import Operation
from npu_shim.distributed.world import world_size

CALLING_THREAD = tf_api.v1.RunOptions(inter_op_thread_pool=-1)
_MAX_OPS = 500  # each may need some stack of the calling thread
_MAX_ELEMENTS = 60000  # of all tensors of a step; above, ops gain from threads
_BLOCKING_TYPES = ("PyFunc", "Unstage")  # parts of the types of ops that may block until other ops of the step ran
_PASS_THROUGH = (
    "ModelDataset",
    "OptimizeDataset",
    "OptimizeDatasetV2",
    "OptionsDataset",
    "MaxIntraOpParallelismDataset",
)


def suits_single_thread(step: Collection[Operation]) -> bool:
    """Return True if a loop of a step is faster in one thread and cannot deadlock there.

    Several ranks always need their threads, because a collective blocks one.

    Args:
        step: the ops of one training step.
    """
    if world_size() > 1 or len(step) > _MAX_OPS or any(part in op.type for op in step for part in _BLOCKING_TYPES):
        return False
    sizes = [tensor.shape.num_elements() for op in step for tensor in op.outputs if tensor.dtype != tf_api.tf.resource]
    return None not in sizes and sum(sizes) <= _MAX_ELEMENTS and all(_needs_thread_pool(op) for op in step)


def _needs_thread_pool(op: Operation) -> bool:
    """Return True if the input that an op reads uses the pool's threads wherever the step runs.

    The functions of a dataset run in the threads of the first run that reads
    from it. A prefetch keeps these threads. Without a prefetch, only a dataset
    without functions is safe.
    """
    if not op.type.startswith("IteratorGetNext"):
        return True
    iterator = op.inputs[0]
    datasets = [user.inputs[0].op for user in iterator.consumers() if user.type == "MakeIterator"]
    return bool(datasets) and all(map(_is_simple_dataset, datasets))


def _is_simple_dataset(dataset: Operation) -> bool:
    while dataset.type in _PASS_THROUGH:
        dataset = dataset.inputs[0].op
    return dataset.type.startswith("PrefetchDataset") or not any(map(_has_function, _op_and_input_ops(dataset)))


def _has_function(op: Operation) -> bool:
    return any(value.WhichOneof("value") == "func" or len(value.list.func) for value in op.node_def.attr.values())


def _op_and_input_ops(op: Operation) -> Iterator[Operation]:
    yield op
    for tensor in op.inputs:
        yield from _op_and_input_ops(tensor.op)
