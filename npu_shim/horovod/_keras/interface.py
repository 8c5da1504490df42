"""DistributedOptimizer and load_model, as Horovod's Keras modules have them."""

from __future__ import annotations

from typing import Callable, Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import KerasLayer, KerasModel, Optimizer, Value, Variable
from npu_shim.horovod.common.process_sets import ProcessSet, global_process_set
from npu_shim.horovod.tensorflow.compression import Compression
from npu_shim.horovod.tensorflow.gradient_reduction import ReductionSettings, groups_from_arguments
from npu_shim.horovod.tensorflow.keras_optimizer import create_distributed_optimizer
from npu_shim.horovod.tensorflow.mpi_ops import Average
from npu_shim.horovod.tensorflow.reductions import AnyCompressor
from npu_shim.horovod.tensorflow.tape import variables_of_layers


def DistributedOptimizer(
    optimizer: Optimizer,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: int | list[list[Variable]] | None = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Optimizer:
    """Return a Keras optimizer that reduces the gradients over all ranks before it applies them.

    Args:
        optimizer: a Keras optimizer.
        name: the name scope of the collectives.
        device_dense: unused: the device of the gradients.
        device_sparse: unused.
        compression: as for hvd.allreduce.
        sparse_as_dense: True if tf.IndexedSlices become dense tensors before the reduction.
        gradient_predivide_factor: with Average, gradients are divided by it before the sum, and multiplied after.
        op: Average or Sum.
        backward_passes_per_step: how many backward passes each rank sums before the reduction.
        average_aggregated_gradients: True if the sum of several passes is divided by their number.
        num_groups: replaced by groups.
        groups: which gradients travel in one message: the number of messages, or lists of variables.
        process_set: the ranks that take part.
        scale_local_gradients: True if the gradients of local variables are divided by the number of ranks.
    Returns:
        An optimizer whose class has the name of the optimizer's own, so that a saved model loads without Horovod.
    Raises:
        ValueError, NotImplementedError: an argument is not allowed.
    """
    groups = groups_from_arguments(groups, num_groups)
    settings = ReductionSettings(
        compression, sparse_as_dense, op, gradient_predivide_factor, groups, process_set, scale_local_gradients
    )
    return create_distributed_optimizer(
        optimizer, name, backward_passes_per_step, average_aggregated_gradients, settings
    )


def PartialDistributedOptimizer(
    optimizer: Optimizer,
    *args: Value,
    local_layers: KerasLayer | Sequence[KerasLayer] | None = None,
    **kwargs: Value,
) -> Optimizer:
    """Return a DistributedOptimizer that keeps the gradients of some layers on this rank.

    Args:
        optimizer: a Keras optimizer.
        *args: as for DistributedOptimizer.
        local_layers: a Keras layer, or several.
        **kwargs: as for DistributedOptimizer.
    """
    distributed = DistributedOptimizer(optimizer, *args, **kwargs)
    for variable in variables_of_layers(local_layers):
        distributed.register_local_var(variable)
    return distributed


def load_model(
    filepath: str,
    custom_optimizers: Sequence[type] | None = None,
    custom_objects: dict[str, object] | None = None,
    compression: AnyCompressor = Compression.none,
    legacy_opts: bool = False,
) -> KerasModel:
    """Load a Keras model whose optimizer then reduces gradients.

    Args:
        filepath: the saved model.
        custom_optimizers: optimizer classes of the script.
        custom_objects: classes and functions of the script by name.
        compression: as for hvd.allreduce.
        legacy_opts: True if the model has an optimizer of tf.keras.optimizers.legacy.
    """
    optimizers = tf.keras.optimizers
    parent = optimizers.legacy.Optimizer if legacy_opts else optimizers.Optimizer

    def wrapped(cls: type) -> Callable[..., Optimizer]:
        return lambda **kwargs: DistributedOptimizer(cls(**kwargs), compression=compression)

    known = [
        optimizer_class for optimizer_class in _subclasses(parent) if not getattr(optimizer_class, "is_horovod", False)
    ]
    objects: dict[str, object] = {}
    for cls in known:
        objects[cls.__name__] = objects[cls.__name__.lower()] = wrapped(cls)
    objects.update({cls.__name__: wrapped(cls) for cls in custom_optimizers or ()})
    objects.update(custom_objects or {})
    return tf.keras.models.load_model(filepath, custom_objects=objects)


def _subclasses(cls: type) -> list[type]:
    """Return the classes that inherit from a class, and these in turn."""
    direct: list[type] = cls.__subclasses__()
    return direct + [descendant for sub in direct for descendant in _subclasses(sub)]
