"""NPUStrategy: a tf.distribute strategy with one replica per rank."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from npu_shim import _tf, _tf_distribute
from npu_shim.distributed import hccl_ops
from npu_shim.distributed.ranks import get_rank_id
from npu_shim.distributed.world import world_size
from npu_shim.optimizer.distributed import npu_allreduce
from npu_shim.optimizer.gradient_averaging import is_sparse
from npu_shim.training.broadcasting import NPUBroadcastGlobalVariablesHook
from npu_shim.training.strategy_data import every_nth, part_of_batches, reads_all

tf = _tf.tf
_SUM, _MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


class _RankContext(_tf_distribute.ReplicaContext):
    """The replica of this process: its number among the replicas is the rank."""

    def __init__(self, strategy: Any) -> None:
        rank = get_rank_id()
        # TF 1.15 wants a tensor
        super().__init__(
            strategy, replica_id_in_sync_group=rank if _tf_distribute.REPLICA_ID_IS_INT else tf.constant(rank)
        )

    @property
    def devices(self) -> Any:
        return self._strategy.extended.worker_devices


class _RankExtended(_tf_distribute.OneDeviceExtended):
    """What TensorFlow asks of a strategy: as of one device, but for what crosses the ranks."""

    gradients_are_reduced = False  # of an optimizer that reduces them by itself, while it applies them

    @property
    def _num_replicas_in_sync(self) -> int:
        return world_size()

    def _get_local_replica_id(self, replica_id_in_sync_group: Any) -> int:
        return 0

    # ---- variables

    def _create_variable(self, next_creator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if world_size() > 1 and "initial_value" in kwargs and self._shares_initial_values(kwargs):
            kwargs["initial_value"] = functools.partial(_of_first_rank, kwargs["initial_value"], kwargs.get("dtype"))
        made = super()._create_variable(next_creator, *args, **kwargs)
        return _read_by_all(self._container_strategy(), made, kwargs)

    def _shares_initial_values(self, arguments: Any) -> bool:
        # An Estimator either initialises or restores, on each rank by itself, and a hook gives all what rank 0 has.
        collections = arguments.get("collections")
        is_data = isinstance(arguments.get("colocate_with"), _tf_distribute.ArrayDevice)
        return (
            not is_data
            and not _tf_distribute.scales_loss_for_estimator(self._container_strategy())
            and (collections is None or _tf.v1.GraphKeys.GLOBAL_VARIABLES in collections)
        )

    def _local_results(self, value: Any) -> Any:
        return (_local(value),)

    # ---- data

    def _make_dataset_iterator(self, dataset: Any) -> Any:
        return super()._make_dataset_iterator(_for_rank(dataset))

    def _experimental_distribute_dataset(self, dataset: Any, *options: Any) -> Any:
        return super()._experimental_distribute_dataset(_for_rank(dataset), *options)

    def _make_input_fn_iterator(self, input_fn: Any, *mode: Any, **more: Any) -> Any:
        return super()._make_input_fn_iterator(_dealt(input_fn), *mode, **more)

    def _experimental_distribute_datasets_from_function(self, dataset_fn: Any, *options: Any) -> Any:
        return super()._experimental_distribute_datasets_from_function(_dealt(dataset_fn), *options)

    def _distribute_datasets_from_function(self, dataset_fn: Any, *options: Any) -> Any:
        return super()._distribute_datasets_from_function(_dealt(dataset_fn), *options)

    def _experimental_distribute_values_from_function(self, value_fn: Any) -> Any:
        return value_fn(tf.distribute.experimental.ValueContext(get_rank_id(), world_size()))

    # ---- replicas

    def _call_for_each_replica(self, fn: Any, args: Any, kwargs: Any) -> Any:
        with tf.device(self._device), _RankContext(self._container_strategy()):
            return _with_broadcast(fn(*args, **kwargs))

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any, *options: Any) -> Any:
        parts = tf.nest.flatten(value)
        return tf.nest.pack_sequence_as(
            value,
            _of_all_data(reduce_op, parts) if reads_all() else _reduced(reduce_op, [_local(part) for part in parts]),
        )

    def _batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, *options: Any) -> list[Any]:
        values = [value for value, _ in value_destination_pairs]
        return values if self.gradients_are_reduced else _reduced(reduce_op, values)

    def _gather_to_implementation(self, value: Any, destinations: Any, axis: int, *options: Any) -> Any:
        if world_size() == 1:
            return value
        order = list(range(value.shape.rank))
        order[0], order[axis] = order[axis], order[0]
        gathered = hccl_ops.allgather(tf.transpose(value, order), world_size())
        return tf.transpose(gathered, order)


class NPUStrategy(_tf.v1.distribute.Strategy):
    """One replica on each rank, in step with those of the other ranks.

    It takes the place of MirroredStrategy: the script runs on every rank, and
    its replica is that of the rank.

    * Gradients that an optimizer applies in a replica are added up over all
      ranks, as every strategy does; optimizers of an Estimator and losses of
      Keras divide by the number of replicas before, so that the sum is the
      mean. An optimizer that averages by itself (NPUDistributedOptimizer,
      npu_distributed_optimizer_wrapper) adds up when it computes gradients
      instead, so that what is done to them before they are applied, such as
      clipping, sees the mean; they are sent once.
    * Variables start with the values of rank 0.
    * The batches of an input_fn (of an Estimator, of distribute_datasets_from_function)
      are those of one replica: rank r of n takes batch r, r + n, r + 2n ...
      The batches of a dataset for Keras or experimental_distribute_dataset are
      global: rank r takes the r-th part of each. What is left in the end for
      only some of the ranks is dropped. A dataset that ``shard`` has parted by
      the number of ranks stays as it is. What is shuffled needs a seed, its own or
      the graph's, for the ranks to see it in one order.
    * Estimators and Keras models evaluate and predict all data on each rank.
    * ``reduce`` adds up, or averages, over all ranks.

    Args:
        device: '/cpu:0', where the graph is built; the compiler moves it to the card.
    Raises:
        ValueError: another device.
    """

    def __init__(self, device: str = "/cpu:0") -> None:
        if device != "/cpu:0":
            raise ValueError(f"device={device!r} is not allowed: it must be '/cpu:0', from where the card is driven.")
        super().__init__(_RankExtended(self, device))


def _with_broadcast(result: Any) -> Any:
    """What a replica made; that of an Estimator which trains gets the hook that gives all ranks the same variables."""
    if world_size() == 1 or getattr(result, "mode", None) != "train" or not hasattr(result, "training_hooks"):
        return result
    if any(type(hook).__name__ == NPUBroadcastGlobalVariablesHook.__name__ for hook in result.training_hooks):
        return result
    return result._replace(training_hooks=tuple(result.training_hooks) + (NPUBroadcastGlobalVariablesHook(0),))


def _of_first_rank(initial_value: Any, dtype: Any) -> Any:
    """Rank 0's initial value of a variable."""
    value = initial_value() if callable(initial_value) else initial_value
    value = getattr(value, "wrapped_value", value)  # of a checkpoint that waits for the variable
    value = tf.convert_to_tensor(value, dtype=dtype)
    return value if value.dtype == tf.string else hccl_ops.broadcast([value], 0)[0]


def _read_by_all(strategy: Any, variable: Any, arguments: Any) -> Any:
    """A variable that each rank updates by itself, and whose value is that of all ranks: those of metrics of Keras in TF 2."""
    if (
        world_size() == 1
        or not tf.executing_eagerly()
        or arguments.get("synchronization") != tf.VariableSynchronization.ON_READ
    ):
        return variable
    return _tf_distribute.SyncOnReadVariable(strategy, [variable], arguments.get("aggregation"))


def _local(value: Any) -> Any:
    """This rank's value of a variable that is read by all."""
    return value.values[0] if isinstance(value, _tf_distribute.DistributedValues) else value


def _for_rank(dataset: Any) -> Any:
    """This rank's part of a dataset with global batches."""
    return dataset if reads_all() else part_of_batches(dataset, get_rank_id(), world_size())


def _dealt(input_fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An input_fn that makes this rank's batches."""
    size, whole = world_size(), reads_all()

    def batches(context: Any) -> Any:
        # One pipeline for all replicas: what the script parts by the number of pipelines is parted by nobody else.
        made = input_fn(tf.distribute.InputContext(1, 0, size))
        return made if whole else every_nth(made, get_rank_id(), size)

    return batches


def _reduced(reduce_op: Any, values: Sequence[Any]) -> list[Any]:
    """Values, each reduced over all ranks."""
    if world_size() == 1:
        return list(values)
    return npu_allreduce([_tensor(value) for value in values], "mean" if reduce_op == _MEAN else "sum")


def _of_all_data(reduce_op: Any, values: Sequence[Any]) -> list[Any]:
    """Values of ranks that have all read all data, so that nothing needs to be sent."""
    size = world_size() if reduce_op == _SUM else 1
    return [_times(value, size) if size > 1 and _local(value) is value else _local(value) for value in values]


def _tensor(value: Any) -> Any:
    return value if is_sparse(value) else tf.convert_to_tensor(value)


def _times(value: Any, size: int) -> Any:
    if is_sparse(value):
        return tf.IndexedSlices(value.values * size, value.indices, value.dense_shape)
    tensor = tf.convert_to_tensor(value)
    return tensor * tf.constant(size, tensor.dtype)
