"""Ops without a kernel for float16 or bfloat16 on the CPU, computed in float32 and rounded."""

from __future__ import annotations

from typing import Callable, Mapping, Sequence

import tensorflow as tf

from npu_shim._tensorflow import tf_kernels
from npu_shim._tensorflow.tf_op_forms import AskedOp, Form, flatten_values, operator_definition
from npu_shim._tensorflow.types import DType, Tensor, Value

HALVES = (tf.float16, tf.bfloat16)


def forms_for_half_types() -> dict[str, Form]:
    """Return the forms by the type of op, for those kernels that this TensorFlow lacks."""
    missing = tf_kernels.dtypes_without_cpu_kernel(HALVES)
    return {
        op_type: Form(_float32_form_chooser(attributes), frozenset().union(*attributes.values()))
        for op_type, attributes in missing.items()
    }


def _float32_form_chooser(
    missing: Mapping[str, frozenset[DType]],
) -> Callable[[AskedOp], Callable[[], Sequence[Tensor]] | None]:
    def choose(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
        dtypes = _dtypes_of_attributes(asked)
        if not any(dtypes.get(name) in dtypes_of_name for name, dtypes_of_name in missing.items()):
            return None
        return lambda: _run_in_float32(asked, {name: dtypes[name] for name in missing if dtypes.get(name) in HALVES})

    return choose


def _dtypes_of_attributes(asked: AskedOp) -> dict[str, DType]:
    """Return the types of inputs, and those that are given, by the name of the attribute."""
    definition = operator_definition(asked.type)
    dtypes = {
        attr.name: tf.as_dtype(asked.attributes[attr.name])
        for attr in definition.attr
        if attr.type == "type" and attr.name in asked.attributes
    }
    for arg in definition.input_arg:
        for value in flatten_values([asked.inputs[arg.name]]):
            if arg.type_attr and hasattr(value, "dtype"):
                dtypes[arg.type_attr] = tf.as_dtype(value.dtype).base_dtype
    return dtypes


def _run_in_float32(asked: AskedOp, halves: Mapping[str, DType]) -> list[Tensor]:
    definition = operator_definition(asked.type)
    changes: dict[str, Value] = {name: tf.float32 for name in halves}
    for arg in definition.input_arg:
        if arg.type_attr in halves:
            value = asked.inputs[arg.name]
            is_list = isinstance(value, (list, tuple))
            changes[arg.name] = (
                [tf.cast(tensor, tf.float32) for tensor in value] if is_list else tf.cast(value, tf.float32)
            )
    outputs = asked.run(changes)
    return [
        tf.cast(output, halves[arg.type_attr]) if arg.type_attr in halves else output
        for arg, output in zip(definition.output_arg, outputs)
    ]
