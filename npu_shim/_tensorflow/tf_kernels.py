"""The kernels that this TensorFlow has for the CPU."""

from __future__ import annotations

import collections
from typing import Iterable

import tensorflow as tf
from tensorflow.python.framework import kernels as _kernels

from npu_shim._tensorflow.tf_op_forms import operator_definition
from npu_shim._tensorflow.types import DType, Message

# Of these, TensorFlow 2 before 2.10 registers kernels for bfloat16 without code, which oneDNN replaces on some
# processors. On others they fail.
_PLACEHOLDERS_IN_BFLOAT16 = set(
    (
        "AvgPool AvgPoolGrad Conv2D Conv2DBackpropFilter Conv2DBackpropInput DepthwiseConv2dNative "
        "FusedBatchNormGradV3 FusedBatchNormV3 MaxPool MaxPoolGrad"
    ).split()
)
_HAS_PLACEHOLDERS = (2, 0) <= tuple(map(int, tf.__version__.split(".")[:2])) < (2, 10)


def dtypes_without_cpu_kernel(dtypes: Iterable[DType]) -> dict[str, dict[str, frozenset[DType]]]:
    """Return which ops have a kernel for float32 on the CPU, and none for some other types.

    Args:
        dtypes: the other types.

    Returns:
        By the type of op and the name of an attribute that is the type of an input, those of dtypes without a kernel.
    """
    by_op: dict[str, list[dict[str, set[int]]]] = collections.defaultdict(list)
    for kernel in _kernels.get_all_registered_kernels().kernel:
        if kernel.device_type in ("CPU", "DEFAULT") and not kernel.op.startswith("_"):
            by_op[kernel.op].append(
                {constraint.name: set(constraint.allowed_values.list.type) for constraint in kernel.constraint}
            )
    attributes_of = {
        op_type: _attributes_without_kernel(op_type, kernels, dtypes) for op_type, kernels in by_op.items()
    }
    return {op_type: attributes for op_type, attributes in attributes_of.items() if attributes}


def _attributes_without_kernel(
    op_type: str, kernels: list[dict[str, set[int]]], dtypes: Iterable[DType]
) -> dict[str, frozenset[DType]]:
    definition = operator_definition(op_type)
    if definition is None or not hasattr(tf.raw_ops, op_type):
        return {}
    if any(arg.is_ref or tf.resource == arg.type for arg in definition.input_arg):
        return {}  # a variable has the type
    if any(arg.number_attr or arg.type_list_attr for arg in definition.output_arg):
        return {}

    def has_kernel(attribute: Message, dtype: DType) -> bool:
        return any(
            not allowed.get(attribute.name) or dtype.as_datatype_enum in allowed[attribute.name] for allowed in kernels
        )

    unsupported = {}
    of_inputs = {arg.type_attr for arg in definition.input_arg}
    for attribute in definition.attr:
        if attribute.type != "type" or not has_kernel(attribute, tf.float32):
            continue
        allowed = attribute.allowed_values.list.type
        missing = {
            dtype
            for dtype in dtypes
            if (not allowed or dtype.as_datatype_enum in allowed)
            and (not has_kernel(attribute, dtype) or _is_placeholder(op_type, dtype))
        }
        if missing:
            unsupported[attribute.name] = frozenset(missing)
    return unsupported if of_inputs & set(unsupported) else {}


def _is_placeholder(op_type: str, dtype: DType) -> bool:
    return _HAS_PLACEHOLDERS and dtype == tf.bfloat16 and op_type in _PLACEHOLDERS_IN_BFLOAT16
