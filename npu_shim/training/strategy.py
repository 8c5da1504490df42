"""NPUStrategy: a tf.distribute strategy with one replica on each rank."""

from __future__ import annotations

import functools
from typing import Callable, Iterator, Sequence

from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api, tf_distribute
from npu_shim._tensorflow.types import (
    ClusterResolver,
    Dataset,
    DType,
    EstimatorSpec,
    Gradient,
    InputContext,
    InputFn,
    ReduceOp,
    Strategy,
    Structure,
    Tensor,
    Value,
    Variable,
)
from npu_shim.distributed import hccl_ops
from npu_shim.distributed.ranks import get_rank_id
from npu_shim.distributed.world import world_size
from npu_shim.optimizer.distributed import npu_allreduce
from npu_shim.optimizer.gradient_averaging import is_sparse
from npu_shim.training.broadcasting import NPUBroadcastGlobalVariablesHook
from npu_shim.training.strategy_data import (
    every_nth_batch,
    is_evaluating_or_predicting,
    is_saving_model,
    slice_each_batch,
)

tf = tf_api.tf
_SUM, _MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


class _RankContext(tf_distribute.ReplicaContext):
    """The replica of this process; its replica id is the rank."""

    def __init__(self, strategy: Strategy) -> None:
        rank = get_rank_id()
        # TF 1.15 wants a tensor
        super().__init__(
            strategy, replica_id_in_sync_group=rank if tf_distribute.REPLICA_ID_IS_INT else tf.constant(rank)
        )

    @property
    def devices(self) -> tuple[str, ...]:
        return self._strategy.extended.worker_devices


class NPUExtended(tf_distribute.OneDeviceExtended):
    """The implementation behind NPUStrategy: one device, with communication between ranks."""

    gradients_are_reduced = False  # True while an optimizer applies gradients that it has reduced itself

    @property
    def _num_replicas_in_sync(self) -> int:
        return world_size()

    def _get_local_replica_id(self, replica_id_in_sync_group: int | Tensor) -> int:
        return 0

    # ---- variables

    def _create_variable(self, next_creator: Callable[..., Variable], *args: object, **kwargs: object) -> Variable:
        if world_size() > 1 and "initial_value" in kwargs and self._shares_initial_values(kwargs):
            kwargs["initial_value"] = functools.partial(
                _value_of_first_rank, kwargs["initial_value"], kwargs.get("dtype")
            )
        variable = super()._create_variable(next_creator, *args, **kwargs)
        return _synchronize_variable(self._container_strategy(), variable, kwargs)

    def _shares_initial_values(self, arguments: dict[str, Value]) -> bool:
        # With an Estimator each rank initializes or restores by itself, and a hook broadcasts the values of rank 0.
        collections = arguments.get("collections")
        is_data = isinstance(arguments.get("colocate_with"), tf_distribute.ArrayDevice)
        return (
            not is_data
            and not tf_distribute.scales_loss_for_estimator(self._container_strategy())
            and (collections is None or tf_api.v1.GraphKeys.GLOBAL_VARIABLES in collections)
        )

    def _local_results(self, value: Structure) -> tuple[Structure]:
        return (_local_value(value),)

    # ---- data

    def _make_dataset_iterator(self, dataset: Dataset) -> Iterator[Structure]:
        return super()._make_dataset_iterator(_dataset_of_rank(dataset))

    def _experimental_distribute_dataset(self, dataset: Dataset, *options: object) -> Dataset:
        return super()._experimental_distribute_dataset(_dataset_of_rank(dataset), *options)

    def _make_input_fn_iterator(self, input_fn: InputFn, *mode: object, **more: object) -> Iterator[Structure]:
        return super()._make_input_fn_iterator(_wrap_input_fn_for_rank(input_fn), *mode, **more)

    def _experimental_distribute_datasets_from_function(self, dataset_fn: InputFn, *options: object) -> Dataset:
        return super()._experimental_distribute_datasets_from_function(_wrap_input_fn_for_rank(dataset_fn), *options)

    def _distribute_datasets_from_function(self, dataset_fn: InputFn, *options: object) -> Dataset:
        return super()._distribute_datasets_from_function(_wrap_input_fn_for_rank(dataset_fn), *options)

    def _experimental_distribute_values_from_function(self, value_fn: Callable[..., Structure]) -> Structure:
        return value_fn(tf.distribute.experimental.ValueContext(get_rank_id(), world_size()))

    # ---- replicas

    def _call_for_each_replica(
        self, fn: Callable[..., Structure], args: Sequence[object], kwargs: dict[str, object]
    ) -> Structure:
        with tf.device(self._device), _RankContext(self._container_strategy()):
            return _with_broadcast_hook(fn(*args, **kwargs))

    def _reduce_to(self, reduce_op: ReduceOp, value: Structure, destinations: object, *options: object) -> Structure:
        parts = tf.nest.flatten(value)
        return tf.nest.pack_sequence_as(
            value,
            _reduce_in_process(reduce_op, parts)
            if is_evaluating_or_predicting() or is_saving_model()
            else _reduce_gradients(reduce_op, [_local_value(part) for part in parts]),
        )

    def _batch_reduce_to(
        self, reduce_op: ReduceOp, value_destination_pairs: Sequence[tuple[Gradient, object]], *options: object
    ) -> list[Gradient]:
        values = [value for value, _ in value_destination_pairs]
        return values if self.gradients_are_reduced else _reduce_gradients(reduce_op, values)

    def _gather_to_implementation(self, value: Tensor, destinations: object, axis: int, *options: object) -> Tensor:
        if world_size() == 1:
            return value
        order = list(range(value.shape.rank))
        order[0], order[axis] = order[axis], order[0]
        gathered = hccl_ops.allgather(tf.transpose(value, order), world_size())
        return tf.transpose(gathered, order)


class RankStrategy(tf_distribute.OneDeviceStrategy):
    """A strategy with one replica on each rank.

    It is a OneDeviceStrategy for libraries that ask for the class, such as Keras' loss scaling.

    Args:
        device: where the strategy places variables and operations.
    """

    def __init__(self, device: str) -> None:
        tf_api.v1.distribute.Strategy.__init__(self, NPUExtended(self, device))

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """A resolver with one worker for each rank; its task_id is the rank."""
        workers = [f"rank-{rank}" for rank in range(world_size())]
        return tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({"worker": workers}), task_type="worker", task_id=get_rank_id()
        )


class NPUStrategy(RankStrategy):
    """Synchronous data-parallel training with one replica on each rank.

    It replaces MirroredStrategy: the script runs on every rank, and each rank
    has one replica.

    * Applied gradients are summed over all ranks, as in every strategy.
      Optimizers of an Estimator and losses of Keras divide by the number of
      replicas first, so that the sum is the mean. An optimizer that averages by
      itself (NPUDistributedOptimizer, npu_distributed_optimizer_wrapper) sums
      the gradients when it computes them. Then a change before they are
      applied, such as clipping, sees the mean. Gradients are sent once.
    * Variables start with the values of rank 0.
    * Batches of an input_fn (of an Estimator or distribute_datasets_from_function)
      belong to one replica: rank r of n takes the batches r, r + n, r + 2n ...
      Batches of a dataset for Keras or experimental_distribute_dataset are
      global: rank r takes the r-th slice of each batch. A remainder for only
      some of the ranks is dropped. A dataset with a ``shard`` step by the number
      of ranks does not change. Shuffling needs a seed, its own or the graph's, so
      that all ranks have the same order.
    * Estimators and Keras models evaluate and predict all data on each rank.
    * ``reduce`` sums or averages over all ranks.

    Args:
        device: '/cpu:0', where the graph is built; the compiler moves it to the NPU.
    Raises:
        ValueError: if it is another device.
        RuntimeError: if the driver shows a card that no package can use, and NPU_SHIM_FALLBACK does not allow the CPU.
    """

    def __init__(self, device: str = "/cpu:0") -> None:
        if device != "/cpu:0":
            raise ValueError(
                f"device={device!r} is not allowed: it must be '/cpu:0'; the compiler moves the graph to the NPU."
            )
        host_device.is_npu()  # raises the error about a card that would stay unused
        super().__init__(device)


def _with_broadcast_hook(result: EstimatorSpec | Structure) -> EstimatorSpec | Structure:
    """Add the broadcast hook to a replica's result if it is the EstimatorSpec of a training."""
    if world_size() == 1 or getattr(result, "mode", None) != "train" or not hasattr(result, "training_hooks"):
        return result
    if any(type(hook).__name__ == NPUBroadcastGlobalVariablesHook.__name__ for hook in result.training_hooks):
        return result
    return result._replace(training_hooks=tuple(result.training_hooks) + (NPUBroadcastGlobalVariablesHook(0),))


def _value_of_first_rank(initial_value: Tensor | Callable[[], Tensor], dtype: DType | None) -> Tensor:
    """Return rank 0's initial value of a variable."""
    value = initial_value() if callable(initial_value) else initial_value
    value = getattr(value, "wrapped_value", value)  # from a checkpoint that is restored when the variable is created
    value = tf.convert_to_tensor(value, dtype=dtype)
    return value if value.dtype == tf.string else hccl_ops.broadcast([value], 0)[0]


def _synchronize_variable(strategy: Strategy, variable: Variable, arguments: dict[str, Value]) -> Variable:
    """Make a variable that replicas update separately one value in eager TensorFlow 2.

    A sum (of a Keras metric) is reduced over the ranks when it is read. A mean (of batch normalization) is averaged
    when it is assigned, which comes to the same, so that one rank alone may read and save it.
    """
    if (
        world_size() == 1
        or not tf.executing_eagerly()
        or arguments.get("synchronization") != tf.VariableSynchronization.ON_READ
    ):
        return variable
    if arguments.get("aggregation") == tf.VariableAggregation.MEAN:
        for name in ("assign", "assign_add", "assign_sub"):
            setattr(variable, name, _wrap_assign_with_mean(getattr(variable, name), variable.dtype))
        return variable
    return tf_distribute.SyncOnReadVariable(strategy, [variable], arguments.get("aggregation"))


def _wrap_assign_with_mean(assign: Callable[..., Variable], dtype: DType) -> Callable[..., Variable]:
    """Return an assignment that averages its value over the ranks in a replica."""

    @functools.wraps(assign)
    def assign_mean(value: Tensor, *args: object, **kwargs: object) -> Variable:
        if not tf.distribute.in_cross_replica_context() and tf.distribute.has_strategy():
            (value,) = npu_allreduce([tf.convert_to_tensor(value, dtype)], "mean")
        return assign(value, *args, **kwargs)

    return assign_mean


def _local_value(value: Structure) -> Structure:
    """Return this rank's component of a distributed value."""
    return value.values[0] if isinstance(value, tf_distribute.DistributedValues) else value


def _dataset_of_rank(dataset: Dataset) -> Dataset:
    """Return this rank's part of a dataset with global batches."""
    return dataset if is_evaluating_or_predicting() else slice_each_batch(dataset, get_rank_id(), world_size())


def _wrap_input_fn_for_rank(input_fn: InputFn) -> InputFn:
    """Return an input_fn with this rank's batches."""
    size, whole = world_size(), is_evaluating_or_predicting()

    def batches(context: InputContext) -> Dataset:
        # One pipeline for all replicas, so that a script which shards by the number of pipelines does not shard twice.
        dataset = input_fn(tf.distribute.InputContext(1, 0, size))
        return dataset if whole else every_nth_batch(dataset, get_rank_id(), size)

    return batches


def _reduce_gradients(reduce_op: ReduceOp, values: Sequence[Gradient]) -> list[Gradient]:
    """Return the values, each reduced over all ranks."""
    if world_size() == 1:
        return list(values)
    allreduce = host_device.vendor_object_or(npu_allreduce, "npu_bridge.estimator.npu.npu_optimizer")
    return list(allreduce([_as_dense_or_slices(value) for value in values], "mean" if reduce_op == _MEAN else "sum"))


def _reduce_in_process(reduce_op: ReduceOp, values: Sequence[Gradient]) -> list[Gradient]:
    """Reduce values of ranks that have all read all data, without communication."""
    size = world_size() if reduce_op == _SUM else 1
    return [
        _multiply_gradient(value, size) if size > 1 and _local_value(value) is value else _local_value(value)
        for value in values
    ]


def _as_dense_or_slices(value: Gradient) -> Gradient:
    return value if is_sparse(value) else tf.convert_to_tensor(value)


def _multiply_gradient(value: Gradient, size: int) -> Gradient:
    if is_sparse(value):
        return tf.IndexedSlices(value.values * size, value.indices, value.dense_shape)
    tensor = tf.convert_to_tensor(value)
    return tensor * tf.constant(size, tensor.dtype)
