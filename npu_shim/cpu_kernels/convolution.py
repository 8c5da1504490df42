"""Convolutions that the CPU computes in parts: dilated ones, those of groups of channels, and unequal strides in depth.

With channels last, in two or three dimensions:

* A dilated convolution moves each phase of its input to the batch (space_to_batch), where the filter takes neighbors.
  Strides s and dilations d with a common divisor g take every g-th row of the input, with s / g and d / g.
* Groups split the input and the filter, and the parts are concatenated. Groups of one channel are a depthwise
  convolution.
* A depthwise convolution with unequal strides computes with their common divisor, and takes every n-th row of the
  result.

The gradients with respect to input and filter are those of these forms.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Sequence

import tensorflow as tf

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_op_forms import shape_in
from npu_shim.cpu_kernels.layout import channels_last

if TYPE_CHECKING:
    from npu_shim._tensorflow.tf_op_forms import AskedOp
    from npu_shim._tensorflow.types import Tensor

v1 = tf_api.v1
_DEPTHWISE = "DepthwiseConv2dNative"
# The op of a gradient, and of the convolution.
OF_INPUT = {
    "Conv2DBackpropInput": "Conv2D",
    "Conv3DBackpropInputV2": "Conv3D",
    "DepthwiseConv2dNativeBackpropInput": _DEPTHWISE,
}
OF_FILTER = {
    "Conv2DBackpropFilter": "Conv2D",
    "Conv3DBackpropFilterV2": "Conv3D",
    "DepthwiseConv2dNativeBackpropFilter": _DEPTHWISE,
}


class _Plan(NamedTuple):
    """The numbers of a convolution for each axis of space, and its groups of channels."""

    strides: list[int]
    dilations: list[int]
    groups: int

    def is_plain_for(self, op_type: str) -> bool:
        """Return True if the CPU computes the convolution and its gradients."""
        return self.groups == 1 and max(self.dilations) == 1 and (op_type != _DEPTHWISE or len(set(self.strides)) == 1)


def convolution(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of Conv2D, Conv3D or DepthwiseConv2dNative; None where the CPU computes it."""
    moved = channels_last(asked)
    if moved is not None:
        return moved
    plan = _plan(asked, asked.type, asked.inputs["input"].shape[-1:], asked.inputs["filter"].shape)
    return None if plan.is_plain_for(asked.type) else lambda: [_in_parts(asked, plan)]


def gradient(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of the gradient of a convolution with respect to its input or its filter.

    That of the input is a transposed convolution, too.
    """
    moved = channels_last(asked)
    if moved is not None:
        return moved
    of, place = (OF_INPUT[asked.type], "input") if asked.type in OF_INPUT else (OF_FILTER[asked.type], "filter")
    shapes = {name: asked.inputs[name].shape for name in ("input", "filter") if name != place}
    shapes[place] = shape_in(asked.inputs[place + "_sizes"])
    plan = _plan(asked, of, shapes["input"][-1:], shapes["filter"])
    if plan.is_plain_for(of):
        return None

    def compute() -> list[Tensor]:
        point = tf.zeros(asked.inputs[place + "_sizes"], asked.inputs["out_backprop"].dtype)
        point.set_shape(shapes[place])
        return [_slope(asked._replace(type=of, inputs={**asked.inputs, place: point}), plan, point)]

    return compute


def _plan(asked: AskedOp, of: str, channels: Any, filter_shape: Any) -> _Plan:
    attributes = asked.attributes
    groups = 1
    channels = channels.as_list() if channels.rank is not None else [None]
    if of != _DEPTHWISE and filter_shape.rank is not None and channels[0]:
        taken = filter_shape.as_list()[-2]
        if taken and channels[0] % taken == 0:
            groups = channels[0] // taken
    return _Plan(list(attributes["strides"])[1:-1], list(attributes["dilations"])[1:-1], groups)


def _slope(forward: AskedOp, plan: _Plan, point: Tensor) -> Tensor:
    """Return the gradient at a point, the input or the filter, anywhere: the function is linear in both."""
    upstream = forward.inputs["out_backprop"]
    if not tf.executing_eagerly():
        return v1.gradients(_in_parts(forward, plan), point, upstream)[0]
    with tf.GradientTape() as tape:
        tape.watch(point)
        output = _in_parts(forward, plan)
    return tape.gradient(output, point, output_gradients=upstream)


def _in_parts(asked: AskedOp, plan: _Plan) -> Tensor:
    return _of_groups(asked, plan) if plan.groups > 1 else _spaced(asked, plan)


def _of_groups(asked: AskedOp, plan: _Plan) -> Tensor:
    value, filters = asked.inputs["input"], asked.inputs["filter"]
    *sizes, taken, made = filters.shape.as_list()
    if asked.type == "Conv2D" and taken == 1:
        filters = tf.reshape(filters, [*sizes, plan.groups, made // plan.groups])
        return asked.run({"input": value, "filter": filters}, _DEPTHWISE)[0]
    parts = [
        asked.run({"input": one, "filter": each})[0]
        for one, each in zip(tf.split(value, plan.groups, -1), tf.split(filters, plan.groups, -1))
    ]
    return tf.concat(parts, -1)


def _spaced(asked: AskedOp, plan: _Plan) -> Tensor:
    value, filters = asked.inputs["input"], asked.inputs["filter"]
    axes = len(plan.strides)
    value = _padded(asked, plan, value, filters.shape.as_list()[:axes])
    common = [math.gcd(*each) for each in zip(plan.strides, plan.dilations)]
    value = _every(value, common)
    strides = [each // by for each, by in zip(plan.strides, common)]
    dilations = [each // by for each, by in zip(plan.dilations, common)]
    of_op = [1] * axes
    if max(dilations) == 1:
        of_op = [math.gcd(*strides)] * axes if asked.type == _DEPTHWISE else strides

    def convolved(phases: Tensor, *_: object, **__: object) -> Tensor:
        changes = {
            "input": phases,
            "padding": "VALID",
            "explicit_paddings": [],
            "strides": [1, *of_op, 1],
            "dilations": [1] * (axes + 2),
        }
        return asked.run(changes)[0]

    if max(dilations) == 1:
        output = convolved(value)
    else:
        output = v1.nn.with_space_to_batch(
            value, dilations, "VALID", convolved, tf.shape(filters), spatial_dims=list(range(1, axes + 1))
        )
    return _every(output, [each // by for each, by in zip(strides, of_op)])


def _every(value: Tensor, steps: Sequence[int]) -> Tensor:
    """Return every n-th row of each axis of space."""
    if max(steps) == 1:
        return value
    return value[(slice(None), *(slice(None, None, step) for step in steps))]


def _padded(asked: AskedOp, plan: _Plan, value: Tensor, kernel: Sequence[int]) -> Tensor:
    """Return the input with the padding of the convolution, which then has none."""
    padding = asked.attributes["padding"]
    if padding == "VALID":
        return value
    if padding == "EXPLICIT":
        given = list(asked.attributes["explicit_paddings"])
        pairs = list(zip(given[2:-2:2], given[3:-2:2]))
    else:
        pairs = []
        dynamic = tf.shape(value)
        for axis, (size, stride, dilation) in enumerate(zip(kernel, plan.strides, plan.dilations), 1):
            length = value.shape.as_list()[axis]
            rows = dynamic[axis] if length is None else length
            all_rows = ((rows + stride - 1) // stride - 1) * stride + (size - 1) * dilation + 1
            total = tf.maximum(all_rows - rows, 0) if length is None else max(all_rows - rows, 0)
            pairs.append((total // 2, total - total // 2))
    if all(isinstance(each, int) and each == 0 for pair in pairs for each in pair):
        return value
    return tf.pad(value, [(0, 0), *pairs, (0, 0)])
