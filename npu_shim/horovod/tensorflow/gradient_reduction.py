"""The reduction of gradients that optimizers and tapes of Horovod share."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple, Sequence

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Gradient, Value, Variable
from npu_shim.horovod.common.process_sets import ProcessSet, group_name_of
from npu_shim.horovod.common.util import split_list
from npu_shim.horovod.tensorflow.mpi_ops import Adasum, Average, reduction_name
from npu_shim.horovod.tensorflow.reductions import grouped_allreduce
from npu_shim.optimizer.gradient_averaging import group_into_messages

if TYPE_CHECKING:
    from npu_shim.horovod.tensorflow.reductions import AnyCompressor


class ReductionSettings(NamedTuple):
    """The arguments of optimizers and tapes that say how gradients are reduced.

    Attributes:
        compression: as for hvd.allreduce.
        sparse_as_dense: True if tf.IndexedSlices become dense tensors before the reduction.
        op: Average or Sum.
        gradient_predivide_factor: with Average, the gradients are divided by it before the sum, and multiplied after.
        groups: which gradients travel in one message: the number of messages, or lists of variables. By default the
            buckets of HCCL.
        process_set: the ranks that take part; the gradients of other ranks stay.
        scale_local_gradients: True if the gradients of local variables are divided by the number of ranks.
    """

    compression: AnyCompressor
    sparse_as_dense: bool
    op: int
    gradient_predivide_factor: float
    groups: int | list[list[Variable]] | None
    process_set: ProcessSet
    scale_local_gradients: bool


class GradientReducer:
    """Reduces the gradients of variables over the ranks of a process set; those of local variables stay.

    Args:
        name: the name scope of the collectives.
        settings: how gradients are reduced.
    Raises:
        ValueError, NotImplementedError: a setting is not allowed.
    """

    def __init__(self, name: str, settings: ReductionSettings) -> None:
        op, groups = settings.op, settings.groups
        if op == Adasum:
            reduction_name(op, name)
        if settings.gradient_predivide_factor != 1.0 and op != Average:
            raise ValueError(f"{name}: gradient_predivide_factor is not allowed with this op. Use op=hvd.Average.")
        if groups is not None and not isinstance(groups, list) and not groups > 0:
            raise ValueError(f"{name}: groups={groups!r} is not allowed. Pass a positive number or lists of variables.")
        self._name, self._settings = name, settings
        self._process_set = settings.process_set
        self._local: set[object] = set()

    def register_local(self, variable: Variable) -> None:
        """Keep the gradients of a variable from the reduction."""
        self._local.add(_variable_key(variable))

    def is_local(self, variable: Variable) -> bool:
        """Return True for a registered variable."""
        return _variable_key(variable) in self._local

    def reduce(
        self, gradients: Sequence[Gradient], variables: Sequence[Variable], use_generic_names: bool = False
    ) -> list[Gradient]:
        """Return the reduced gradients.

        Args:
            gradients: tensors, tf.IndexedSlices or None.
            variables: one for each gradient.
            use_generic_names: True if the collectives are named by the place of their gradient only.
        """
        results = list(gradients)
        if not self._process_set.included() or self._process_set.size() == 1:
            group_name_of(self._process_set)  # it must have been added
            return results
        with tf.name_scope(self._name + "_Allreduce"):
            if self._settings.sparse_as_dense:
                results = [tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g for g in results]
            reduced = [i for i, g in enumerate(results) if g is not None and not self.is_local(variables[i])]
            for number, members in enumerate(self._group_into_messages(reduced, results, variables)):
                name = f"grad_{number}" if use_generic_names else None
                for index, value in zip(members, self._reduce([results[i] for i in members], name)):
                    results[index] = value
            if self._settings.scale_local_gradients:
                for index, gradient in enumerate(results):
                    if gradient is not None and self.is_local(variables[index]):
                        results[index] = _divide_by_ranks(gradient, len(self._process_set.ranks))
        return results

    def _reduce(self, gradients: list[Gradient], name: str | None) -> list[Gradient]:
        factor = self._settings.gradient_predivide_factor
        scale = {} if factor == 1.0 else dict(prescale_factor=1.0 / factor, postscale_factor=factor)
        given: dict[str, Value] = dict(
            compression=self._settings.compression,
            op=self._settings.op,
            process_set=self._process_set,
            name=name,
            **scale,
        )
        return grouped_allreduce(gradients, ignore_name_scope=name is not None, **given)

    def _group_into_messages(
        self, reduced: list[int], gradients: Sequence[Gradient], variables: Sequence[Variable]
    ) -> list[list[int]]:
        """Return the indices of the gradients of each message."""
        chosen = self._settings.groups
        if isinstance(chosen, list):
            place = {_variable_key(variables[index]): index for index in reduced}
            grouped = [[place.pop(_variable_key(v)) for v in group if _variable_key(v) in place] for group in chosen]
            return [group for group in grouped if group] + [[index] for index in place.values()]
        if chosen:
            return [list(group) for group in split_list(reduced, min(chosen, len(reduced) or 1)) if group]
        sparse = [index for index in reduced if isinstance(gradients[index], tf.IndexedSlices)]
        dense = [index for index in reduced if index not in sparse]
        tensors = [gradients[index] for index in dense]
        buckets = group_into_messages(tensors, group_name_of(self._process_set)) if tensors else []
        return [[dense[i] for i in bucket] for bucket in buckets] + [[index] for index in sparse]


def groups_from_arguments(
    groups: int | list[list[Variable]] | None, num_groups: int
) -> int | list[list[Variable]] | None:
    """Return ``groups``, or the number of groups of an older argument."""
    if num_groups:
        warnings.warn("num_groups is deprecated: pass groups.", DeprecationWarning, stacklevel=3)
    return num_groups or None if groups is None else groups


def _variable_key(variable: Variable) -> object:
    return variable.ref() if hasattr(variable, "ref") else id(variable)


def _divide_by_ranks(gradient: Gradient, ranks: int) -> Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values / ranks, gradient.indices, gradient.dense_shape)
    return gradient / tf.cast(ranks, gradient.dtype)
