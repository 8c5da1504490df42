"""The optimizer that reduces gradients, for optimizers of tf.compat.v1.train and of Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Operation, Optimizer, Tensor, TensorShape, Variable
from npu_shim.horovod.common.process_sets import ProcessSet, global_process_set
from npu_shim.horovod.tensorflow.compression import Compression
from npu_shim.horovod.tensorflow.gradient_aggregation import LocalGradientAggregation
from npu_shim.horovod.tensorflow.gradient_reduction import GradientReducer, ReductionSettings, groups_from_arguments
from npu_shim.horovod.tensorflow.keras_optimizer import create_distributed_optimizer
from npu_shim.horovod.tensorflow.mpi_ops import Average
from npu_shim.horovod.tensorflow.util import _executing_eagerly
from npu_shim.optimizer.gradient_averaging import GradientAndVariable
from npu_shim.optimizer.wrapper import WrappingOptimizer

if TYPE_CHECKING:
    from npu_shim.horovod.tensorflow.reductions import AnyCompressor


def DistributedOptimizer(
    optimizer: Optimizer,
    name: str | None = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    sparse_as_dense: bool = False,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: int | list[list[Variable]] | None = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Optimizer:
    """Return an optimizer that reduces the gradients over all ranks before it applies them.

    Args:
        optimizer: an optimizer of tf.compat.v1.train, whose compute_gradients then returns reduced gradients; or a
            Keras optimizer.
        name: the name of the optimizer and the name scope of the collectives.
        use_locking: as for tf.compat.v1.train.Optimizer.
        device_dense: unused: the device of the gradients.
        device_sparse: unused.
        compression: as for hvd.allreduce.
        sparse_as_dense: True if tf.IndexedSlices become dense tensors before the reduction.
        backward_passes_per_step: how many backward passes each rank sums before the reduction.
        op: Average or Sum.
        gradient_predivide_factor: with Average, gradients are divided by it before the sum, and multiplied after.
        average_aggregated_gradients: True if the sum of several passes is divided by their number.
        num_groups: replaced by groups.
        groups: which gradients travel in one message: the number of messages, or lists of variables.
        process_set: the ranks that take part.
        scale_local_gradients: True if the gradients of local variables are divided by the number of ranks.
    Returns:
        An optimizer of the same interface.
    Raises:
        ValueError, NotImplementedError: an argument is not allowed.
    """
    groups = groups_from_arguments(groups, num_groups)
    settings = ReductionSettings(
        compression, sparse_as_dense, op, gradient_predivide_factor, groups, process_set, scale_local_gradients
    )
    if not isinstance(optimizer, tf_api.v1.train.Optimizer):
        return create_distributed_optimizer(
            optimizer, name, backward_passes_per_step, average_aggregated_gradients, settings
        )
    if backward_passes_per_step > 1 and _executing_eagerly():
        raise ValueError(
            f"backward_passes_per_step={backward_passes_per_step} is not allowed eagerly with a tf.compat.v1.train "
            "optimizer. Use an optimizer of tf.keras.optimizers."
        )
    full_name = name or f"Distributed{type(optimizer).__name__}"
    reducer = GradientReducer(full_name, settings)
    return _DistributedOptimizer(
        optimizer,
        full_name,
        use_locking,
        reducer,
        None
        if backward_passes_per_step == 1
        else LocalGradientAggregation(
            backward_passes_per_step, reducer, sparse_as_dense, average_aggregated_gradients, _create_local_variable
        ),
    )


class _DistributedOptimizer(WrappingOptimizer):
    """A tf.compat.v1.train optimizer around another one; see DistributedOptimizer."""

    def __init__(
        self,
        optimizer: Optimizer,
        name: str,
        use_locking: bool,
        reducer: GradientReducer,
        aggregation: LocalGradientAggregation | None,
    ) -> None:
        super().__init__(optimizer, name, use_locking)
        self._optimizer, self._reducer, self._agg_helper = optimizer, reducer, aggregation

    def register_local_var(self, var: Variable) -> None:
        """Keep the gradients of a variable on this rank."""
        self._reducer.register_local(var)

    def compute_gradients(self, *args: object, **kwargs: object) -> list[GradientAndVariable]:
        """Return the wrapped optimizer's gradients, reduced, with their variables."""
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        gradients, variables = [gradient for gradient, _ in pairs], [variable for _, variable in pairs]
        reduce = self._reducer.reduce if self._agg_helper is None else self._agg_helper.compute_gradients
        return list(zip(reduce(gradients, variables), variables))

    def apply_gradients(
        self, grads_and_vars: list[GradientAndVariable], global_step: Variable | None = None, name: str | None = None
    ) -> Operation:
        """Apply reduced gradients with the wrapped optimizer."""
        pairs = list(grads_and_vars)
        if self._agg_helper is None:
            return self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)

        def count() -> Tensor | None:
            return None if global_step is None else global_step.assign_add(tf.constant(1, global_step.dtype))

        return self._agg_helper.apply_gradients(
            lambda: self._optimizer.apply_gradients(pairs, global_step=global_step, name=name),
            count,
            [gradient for gradient, _ in pairs],
        )


def _create_local_variable(shape: TensorShape, dtype: DType, name: str) -> Variable:
    """Return a variable that is not saved, and that the initializer of local variables initializes."""
    local = [tf_api.v1.GraphKeys.LOCAL_VARIABLES]
    return tf_api.v1.Variable(tf.zeros(shape, dtype), trainable=False, collections=local, name=name, use_resource=True)
