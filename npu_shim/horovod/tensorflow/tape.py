"""Gradient tapes whose gradients are reduced over all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Gradient, KerasLayer, Structure, Variable
from npu_shim.horovod.common.process_sets import ProcessSet, global_process_set
from npu_shim.horovod.tensorflow.compression import Compression
from npu_shim.horovod.tensorflow.gradient_reduction import GradientReducer, ReductionSettings, groups_from_arguments
from npu_shim.horovod.tensorflow.mpi_ops import Average

if TYPE_CHECKING:
    from npu_shim.horovod.tensorflow.reductions import AnyCompressor


class _DistributedGradientTape(tf.GradientTape):
    """A tape that continues another one's recording, and reduces what gradient() returns."""

    def __init__(self, tape: tf.GradientTape, reducer: GradientReducer) -> None:
        self.__dict__.update(tape.__dict__)
        self._reducer = reducer

    def register_local_source(self, source: Variable) -> None:
        """Keep the gradients of a variable on this rank."""
        self._reducer.register_local(source)

    def gradient(
        self,
        target: Structure,
        sources: Structure,
        output_gradients: Structure | None = None,
        use_generic_names: bool = False,
        **kwargs: object,
    ) -> Structure:
        """Return the reduced gradients of target, of the structure of sources.

        Args:
            target: tensors.
            sources: variables or tensors.
            output_gradients: the gradients of target; ones when None.
            use_generic_names: True if the collectives are named by the place of their gradient only.
            **kwargs: as for tf.GradientTape.gradient.
        """
        gradients = super().gradient(target, sources, output_gradients, **kwargs)
        reduced = self._reducer.reduce(tf.nest.flatten(gradients), tf.nest.flatten(sources), use_generic_names)
        packed = tf.nest.pack_sequence_as(sources, reduced)
        return list(packed) if type(packed) is tuple else packed  # as Horovod

    def get_local_and_global_gradients(
        self,
        target: Structure,
        sources: Sequence[Variable],
        output_gradients: Structure | None = None,
        use_generic_names: bool = False,
    ) -> tuple[list[tuple[Variable, Gradient]], list[tuple[Variable, Gradient]]]:
        """Return the pairs of source and gradient: those of local variables, and the others."""
        pairs = list(zip(sources, self.gradient(target, sources, output_gradients, use_generic_names)))
        local = [pair for pair in pairs if self._reducer.is_local(pair[0])]
        return local, [pair for pair in pairs if not self._reducer.is_local(pair[0])]


def DistributedGradientTape(
    gradtape: tf.GradientTape,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | list[list[Variable]] | None = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> tf.GradientTape:
    """Return a tape whose gradient() reduces the gradients over all ranks.

    Args:
        gradtape: the tape that has recorded the forward pass.
        device_dense: unused: the device of the gradients.
        device_sparse: unused.
        compression: as for hvd.allreduce.
        sparse_as_dense: True if tf.IndexedSlices become dense tensors before the reduction.
        op: Average or Sum.
        gradient_predivide_factor: with Average, gradients are divided by it before the sum, and multiplied after.
        num_groups: replaced by groups.
        groups: which gradients travel in one message: the number of messages, or lists of variables.
        process_set: the ranks that take part.
        scale_local_gradients: True if the gradients of local variables are divided by the number of ranks.
    Returns:
        A tf.GradientTape, also of the class of gradtape.
    Raises:
        ValueError, NotImplementedError: an argument is not allowed.
    """
    groups = groups_from_arguments(groups, num_groups)
    settings = ReductionSettings(
        compression, sparse_as_dense, op, gradient_predivide_factor, groups, process_set, scale_local_gradients
    )
    reducer = GradientReducer("DistributedGradientTape", settings)
    base = type(gradtape)
    others = () if base is tf.GradientTape else (base,)
    return type(base.__name__, (_DistributedGradientTape, *others), {})(gradtape, reducer)


def PartialDistributedGradientTape(
    gradtape: tf.GradientTape,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | list[list[Variable]] | None = None,
    process_set: ProcessSet = global_process_set,
    local_layers: KerasLayer | Sequence[KerasLayer] | None = None,
    scale_local_gradients: bool = True,
) -> tf.GradientTape:
    """Return a DistributedGradientTape that keeps the gradients of some layers on this rank.

    Args:
        local_layers: a Keras layer, or several. The other arguments are as for DistributedGradientTape.
    """
    tape = DistributedGradientTape(
        gradtape,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        num_groups,
        groups,
        process_set,
        scale_local_gradients,
    )
    for variable in variables_of_layers(local_layers):
        tape.register_local_source(variable)
    return tape


def variables_of_layers(layers: KerasLayer | Sequence[KerasLayer] | None) -> list[Variable]:
    """Return the trainable variables of a layer or several.

    Raises:
        ValueError: something is no Keras layer.
    """
    listed = [layers] if isinstance(layers, tf.keras.layers.Layer) else list(layers or [])
    for layer in listed:
        if not isinstance(layer, tf.keras.layers.Layer):
            raise ValueError(f"local_layers has {layer!r}. Pass layers of tf.keras.layers.Layer only.")
    return [variable for layer in listed for variable in layer.trainable_weights]


__all__ = ["DistributedGradientTape", "PartialDistributedGradientTape"]
