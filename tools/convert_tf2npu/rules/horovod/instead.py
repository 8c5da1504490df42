"""What to write in place of what Horovod has and the NPU has not."""

from __future__ import annotations

from ...syntax.expressions import last_part

_BUILT = "leave it out: it asks how Horovod was built, which the NPU does not use"
_AGAIN = "start again from the last checkpoint instead"
_SCHEDULE = "write tf.keras.callbacks.LearningRateScheduler with the learning rate of each epoch"
_PROFILER = "use the NPU's profiler (profiling_mode=True) instead"
_INSTEAD = {
    "rank_op": "use the number that get_rank_id() gives",
    "local_rank_op": "use the number that get_local_rank_id() gives",
    "size_op": "use the number that get_rank_size() gives",
    "local_size_op": "use the number that get_local_rank_size() gives",
    "broadcast_object": "give every rank the same arguments or files instead",
    "allgather_object": "exchange tensors with hccl_ops.allgather instead",
    "start_timeline": _PROFILER,
    "stop_timeline": _PROFILER,
    "is_homogeneous": "leave it out: every host of a ranktable has the same number of cards",
    "is_initialized": "leave it out: init_resource() stands where the training starts",
    "run": _AGAIN,
    "TensorFlowKerasState": _AGAIN,
    "KerasState": _AGAIN,
    "DistributedGradientTape": "keep the plain tape and write npu_allreduce(tape.gradient(loss, variables))",
    "load_model": "load it with tf.keras.models.load_model and compile it with "
    "npu_distributed_optimizer_wrapper(optimizer)",
    "MetricAverageCallback": "leave it out: each rank then logs the metrics of its own part of the data",
    "LearningRateWarmupCallback": _SCHEDULE,
    "LearningRateScheduleCallback": _SCHEDULE,
    "BestModelCheckpoint": "write tf.keras.callbacks.ModelCheckpoint(path, save_best_only=True)",
    "alltoall": "write hccl_ops.all_to_all_v with the counts and displacements of each rank",
    "reducescatter": "write hccl_ops.reduce_scatter(tensor, 'sum', get_rank_size())",
    "Adasum": "write hvd.Average or leave op out: the NPU averages",
}
_ASKS = ("_built", "_enabled", "_supported")


def instead(name: str) -> str:
    """What to write in place of something of Horovod's.

    Args:
        name: its canonical name, as in ``horovod.callbacks.MetricAverageCallback``.
    """
    if name == "horovod":
        return "hand on what is used of it instead, as in get_npu_rank_size"
    last = last_part(name)
    return _INSTEAD.get(last, _BUILT if last.endswith(_ASKS) else "write this part in another way or leave it out")
