"""Advice for names of Horovod that are unsupported on the NPU."""

from __future__ import annotations

from ...syntax.expressions import last_part

_BUILT = "Remove it: it is about the build of Horovod"
_AGAIN = "Restart from the last checkpoint instead"
_SCHEDULE = "Use tf.keras.callbacks.LearningRateScheduler with the learning rate of each epoch"
_PROFILER = "Use the NPU's profiler: profiling_mode=True"
_ADVICE = {
    "rank_op": "Use the number get_rank_id()",
    "local_rank_op": "Use the number get_local_rank_id()",
    "size_op": "Use the number get_rank_size()",
    "local_size_op": "Use the number get_local_rank_size()",
    "broadcast_object": "Give all ranks the same arguments or files",
    "allgather_object": "Exchange tensors with hccl_ops.allgather",
    "start_timeline": _PROFILER,
    "stop_timeline": _PROFILER,
    "is_homogeneous": "Remove it: all hosts of a ranktable have the same number of devices",
    "is_initialized": "Remove it: init_resource() is called where the training starts",
    "run": _AGAIN,
    "TensorFlowKerasState": _AGAIN,
    "KerasState": _AGAIN,
    "DistributedGradientTape": "Keep the plain tape and write npu_allreduce(tape.gradient(loss, variables))",
    "load_model": "Use tf.keras.models.load_model and compile with npu_distributed_optimizer_wrapper(optimizer)",
    "MetricAverageCallback": "Remove it: each rank then logs the metrics of its own data",
    "LearningRateWarmupCallback": _SCHEDULE,
    "LearningRateScheduleCallback": _SCHEDULE,
    "BestModelCheckpoint": "Use tf.keras.callbacks.ModelCheckpoint(path, save_best_only=True)",
    "alltoall": "Use hccl_ops.all_to_all_v with the counts and displacements of each rank",
    "reducescatter": "Use hccl_ops.reduce_scatter(tensor, 'sum', get_rank_size())",
    "Adasum": "Use hvd.Average or remove op: the NPU averages",
}
_ASKS = ("_built", "_enabled", "_supported")


def advice(name: str) -> str:
    """Return the advice for a name of Horovod, as an imperative.

    Args:
        name: the canonical name, as in ``horovod.callbacks.MetricAverageCallback``.
    """
    if name == "horovod":
        return "Pass the functions instead, as get_npu_rank_size"
    last = last_part(name)
    return _ADVICE.get(last, _BUILT if last.endswith(_ASKS) else "Rewrite this part without Horovod, or remove it")
