"""Ops with channels first (NCHW, NCDHW), which the CPU computes with channels last, between two transposes.

Ops that compute each element by itself have such a form, too, if they take the result of one. TensorFlow's graph
optimizer then removes the transposes between the ops of a chain. The forms themselves take no tensor from inside
another: a gradient with respect to a result, or a value that is fed for it, counts in all that follows.
"""

from __future__ import annotations

from typing import Callable, NamedTuple, Sequence

import tensorflow as tf

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_op_forms import AskedOp, flatten_values, inner_tensor_of_result
from npu_shim._tensorflow.types import Tensor, Value

CHANNELS_LAST = {"NCHW": "NHWC", "NCDHW": "NDHWC"}
_BY_AXIS = ("strides", "dilations", "ksize")  # attributes with a number for each axis


class Layout(NamedTuple):
    """The parts of an op that are in the layout of its data_format.

    Attributes:
        data: the inputs that are.
        sizes: the inputs with a number for each axis.
        outputs: the outputs that are.
    """

    data: Sequence[str]
    sizes: Sequence[str] = ()
    outputs: Sequence[int] = (0,)


_GRADIENTS_OF_MAXIMUM = ("orig_input", "orig_output", "grad")
_OPS = {
    Layout(("value",)): "AvgPool BiasAdd",
    Layout(("out_backprop",), outputs=()): "BiasAddGrad",
    Layout(("input",)): "AvgPool3D Conv2D Conv3D DepthToSpace DepthwiseConv2dNative MaxPool MaxPool3D SpaceToDepth",
    Layout(("input",), ("ksize", "strides")): "MaxPoolV2",
    Layout(("grad",), ("orig_input_shape",)): "AvgPool3DGrad AvgPoolGrad",
    Layout(("x",)): "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3",
    Layout(("y_backprop", "x")): "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3",
    Layout(_GRADIENTS_OF_MAXIMUM): "MaxPool3DGrad MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad",
    Layout(_GRADIENTS_OF_MAXIMUM, ("ksize", "strides")): "MaxPoolGradGradV2 MaxPoolGradV2",
    Layout(("out_backprop",), ("input_sizes",)): (
        "Conv2DBackpropInput Conv3DBackpropInputV2 DepthwiseConv2dNativeBackpropInput"
    ),
    Layout(("input", "out_backprop"), outputs=()): (
        "Conv2DBackpropFilter Conv3DBackpropFilterV2 DepthwiseConv2dNativeBackpropFilter"
    ),
}
# By the type of op. Those whose kernels take channels first on the CPU are in NATIVE, too.
LAYOUTS = {op: layout for layout, ops in _OPS.items() for op in ops.split()}
NATIVE = {"BiasAdd", "BiasAddGrad"}
# Ops that compute each element by itself; their inputs have one rank or are scalars.
ELEMENTWISE = (
    "Add AddN AddV2 Cast Elu EluGrad Identity LeakyRelu LeakyReluGrad Mul Relu Relu6 Relu6Grad ReluGrad Selu SeluGrad "
    "Sigmoid SigmoidGrad Softplus SoftplusGrad Sub Tanh TanhGrad"
).split()


def channels_last_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of an op of LAYOUTS with channels first; None for channels last."""
    before = asked.attributes.get("data_format", "NHWC")
    after = CHANNELS_LAST.get(before)
    layout = LAYOUTS[asked.type]
    if after is None or (
        asked.type in NATIVE and not any(_is_transposed_to_first(asked.inputs[name]) for name in layout.data)
    ):
        return None
    rank = len(before)
    if any(asked.inputs[name].shape.rank not in (None, rank) for name in layout.data):
        return None  # of other ranks, such as values with a bias, or an error of the script

    def compute() -> list[Tensor]:
        changes: dict[str, Value] = {"data_format": after}
        changes.update((name, to_channels_last(asked.inputs[name], rank)) for name in layout.data)
        changes.update((name, _sizes_to_channels_last(asked.inputs[name], rank)) for name in layout.sizes)
        for name in _BY_AXIS:
            if name in asked.attributes:
                changes[name] = _values_to_channels_last(asked.attributes[name])
        if asked.attributes.get("explicit_paddings"):
            pairs = list(asked.attributes["explicit_paddings"])
            changes["explicit_paddings"] = flatten_values(_values_to_channels_last(list(zip(pairs[::2], pairs[1::2]))))
        outputs = asked.run(changes)
        return [
            to_channels_first(output, rank) if place in layout.outputs else output
            for place, output in enumerate(outputs)
        ]

    return compute


def elementwise_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of an op of ELEMENTWISE that takes the result of a form with channels first; None for others."""
    values = flatten_values(asked.inputs.values())
    if not any(_is_transposed_to_first(tensor) for tensor in values):
        return None
    rank = max(tensor.shape.rank or 0 for tensor in values)
    if any(tensor.shape.rank not in (0, rank) for tensor in values):
        return None

    def compute() -> list[Tensor]:
        changes = {
            name: [to_channels_last(tensor, rank) for tensor in value]
            if isinstance(value, list)
            else to_channels_last(value, rank)
            for name, value in asked.inputs.items()
        }
        (output,) = asked.run(changes)
        return [to_channels_first(output, rank)]

    return compute


def to_channels_last(value: Tensor, rank: int) -> Tensor:
    """Return a tensor with the axis of channels at the end; a scalar as it is."""
    if value.shape.rank == 0:
        return value
    return tf.transpose(value, [0, *range(2, rank), 1])


def to_channels_first(value: Tensor, rank: int) -> Tensor:
    """Return a tensor with the axis of channels behind that of the batch."""
    return tf.transpose(value, [0, rank - 1, *range(1, rank - 1)])


def _is_transposed_to_first(value: Tensor) -> bool:
    """Return True for what to_first() has made, if it is the result of a form."""
    inner = inner_tensor_of_result(value)
    if inner is None or inner.op.type != "Transpose":
        return False
    rank = inner.shape.rank
    order = tf_api.static_value(inner.op.inputs[1])
    return rank in (4, 5) and order is not None and list(order) == [0, rank - 1, *range(1, rank - 1)]


def _sizes_to_channels_last(sizes: Tensor, rank: int) -> Tensor:
    if tf.executing_eagerly():
        return tf.gather(sizes, [0, *range(2, rank), 1])
    shape = tf_api.shape_from_sizes(sizes)
    known = [None] * rank if shape.rank is None else shape.as_list()
    return tf.stack(
        _values_to_channels_last([sizes[axis] if size is None else size for axis, size in enumerate(known)])
    )


def _values_to_channels_last(values: Sequence[Value]) -> list[Value]:
    return [values[0], *values[2:], values[1]] if len(values) in (4, 5) else list(values)
