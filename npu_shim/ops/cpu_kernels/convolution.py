"""Convolutions that the CPU computes in parts: dilated ones, those of groups of channels, and unequal strides in depth.

With channels last, in two or three dimensions:

* A dilated convolution moves each phase of its input to the batch (space_to_batch), where the filter takes neighbors.
  Strides s and dilations d with a common divisor g take every g-th row of the input, with s / g and d / g.
* Groups split the input and the filter, and the parts are concatenated. Groups of one channel are a depthwise
  convolution. If the channels are not known, as in an imported function, the filter gets zeros for the channels of
  other groups.
* A depthwise convolution with unequal strides computes with their common divisor, and takes every n-th row of the
  result.

The gradients with respect to input and filter are those of these forms.
"""

from __future__ import annotations

import contextlib
import math
from typing import Callable, NamedTuple, Sequence

import tensorflow as tf

from npu_shim._tensorflow import tf_api, tf_gradients
from npu_shim._tensorflow.tf_op_forms import AskedOp, create_ops_without_forms, static_shape_from_sizes
from npu_shim._tensorflow.types import Tensor, TensorShape
from npu_shim.ops.cpu_kernels.layout import channels_last_form

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
    """The numbers of a convolution for each axis of space, and its groups of channels; 0 if they are not known."""

    strides: list[int]
    dilations: list[int]
    groups: int

    def is_plain_for(self, op_type: str) -> bool:
        """Return True if the CPU computes the convolution and its gradients."""
        return self.groups == 1 and max(self.dilations) == 1 and (op_type != _DEPTHWISE or len(set(self.strides)) == 1)


def convolution_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of Conv2D, Conv3D or DepthwiseConv2dNative; None where the CPU computes it."""
    moved = channels_last_form(asked)
    if moved is not None:
        return moved
    plan = _make_plan(asked, asked.type, asked.inputs["input"].shape[-1:], asked.inputs["filter"].shape)
    return None if plan.is_plain_for(asked.type) else lambda: [_convolve_or_gradient(asked, plan)]


def convolution_gradient_form(asked: AskedOp) -> Callable[[], Sequence[Tensor]] | None:
    """Return the form of the gradient of a convolution with respect to its input or its filter.

    That of the input is a transposed convolution, too.
    """
    moved = channels_last_form(asked)
    if moved is not None:
        return moved
    of, place = (OF_INPUT[asked.type], "input") if asked.type in OF_INPUT else (OF_FILTER[asked.type], "filter")
    shapes = {name: asked.inputs[name].shape for name in ("input", "filter") if name != place}
    shapes[place] = static_shape_from_sizes(asked.inputs[place + "_sizes"])
    plan = _make_plan(asked, of, shapes["input"][-1:], shapes["filter"])
    if plan.is_plain_for(of):
        return None

    def compute() -> list[Tensor]:
        point = tf.zeros(asked.inputs[place + "_sizes"], asked.inputs["out_backprop"].dtype)
        point.set_shape(shapes[place])
        forward = asked._replace(type=of, inputs={**asked.inputs, place: point})
        return [_convolve_or_gradient(forward, plan, point)]

    return compute


def _make_plan(asked: AskedOp, of: str, channels: TensorShape, filter_shape: TensorShape) -> _Plan:
    attributes = asked.attributes
    groups = 1
    if of != _DEPTHWISE:
        given = None if channels.rank is None else channels.as_list()[0]
        sizes = [None, None] if filter_shape.rank is None else filter_shape.as_list()
        taken = sizes[-2]
        if not given or not taken:
            groups = 0
        elif given % taken == 0:
            groups = given // taken
            groups = groups if groups == 1 or all(sizes) else 0
    return _Plan(list(attributes["strides"])[1:-1], list(attributes["dilations"])[1:-1], groups)


def _convolve_or_gradient(forward: AskedOp, plan: _Plan, point: Tensor | None = None) -> Tensor:
    """Return a convolution, or its gradient at a point."""
    # With unknown channels, the convolution inside looks as if it had unknown groups.
    with create_ops_without_forms() if plan.groups == 0 else contextlib.nullcontext():
        return _convolve_in_parts(forward, plan) if point is None else _gradient_at_point(forward, plan, point)


def _gradient_at_point(forward: AskedOp, plan: _Plan, point: Tensor) -> Tensor:
    """Return the gradient at a point, the input or the filter, anywhere: the function is linear in both."""
    upstream = forward.inputs["out_backprop"]
    return tf_gradients.compute_gradients(lambda: [_convolve_in_parts(forward, plan)], [point], [upstream])[0]


def _convolve_in_parts(asked: AskedOp, plan: _Plan) -> Tensor:
    if plan.groups > 1:
        return _convolve_groups(asked, plan)
    if plan.groups == 0:
        asked = asked._replace(inputs={**asked.inputs, "filter": _convolve_each_channel(asked, len(plan.strides))})
        plan = plan._replace(groups=1)
    return asked.run({})[0] if plan.is_plain_for(asked.type) else _convolve_dilated(asked, plan)


def _convolve_each_channel(asked: AskedOp, axes: int) -> Tensor:
    """Return the filter with zeros for the channels of other groups; itself if there is one group."""
    value, filters = asked.inputs["input"], asked.inputs["filter"]
    channels, taken, outputs = tf.shape(value)[-1], tf.shape(filters)[-2], tf.shape(filters)[-1]
    groups = channels // taken
    repeated = tf.tile(filters, tf.stack([*[1] * axes, groups, 1]))
    of_input, of_output = tf.range(channels) // taken, tf.range(outputs) // (outputs // groups)
    is_own = tf.equal(of_input[:, tf.newaxis], of_output[tf.newaxis, :])
    return tf.compat.v2.where(is_own, repeated, tf.zeros([], filters.dtype))


def _convolve_groups(asked: AskedOp, plan: _Plan) -> Tensor:
    value, filters = asked.inputs["input"], asked.inputs["filter"]
    *sizes, taken, outputs = filters.shape.as_list()
    if asked.type == "Conv2D" and taken == 1:
        filters = tf.reshape(filters, [*sizes, plan.groups, outputs // plan.groups])
        return asked.run({"input": value, "filter": filters}, _DEPTHWISE)[0]
    parts = [
        asked.run({"input": one, "filter": kernel})[0]
        for one, kernel in zip(tf.split(value, plan.groups, -1), tf.split(filters, plan.groups, -1))
    ]
    return tf.concat(parts, -1)


def _convolve_dilated(asked: AskedOp, plan: _Plan) -> Tensor:
    value, filters = asked.inputs["input"], asked.inputs["filter"]
    axes = len(plan.strides)
    if value.shape.rank is None:
        value = tf.identity(value)
        value.set_shape([None] * (axes + 2))
    value = _pad_explicitly(asked, plan, value, _sizes_of_axes(filters, range(axes)))
    common = [math.gcd(*pair) for pair in zip(plan.strides, plan.dilations)]
    value = _take_every_nth(value, common)
    strides = [step // by for step, by in zip(plan.strides, common)]
    dilations = [step // by for step, by in zip(plan.dilations, common)]
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
    return _take_every_nth(output, [step // by for step, by in zip(strides, of_op)])


def _take_every_nth(value: Tensor, steps: Sequence[int]) -> Tensor:
    """Return every n-th row of each axis of space."""
    if max(steps) == 1:
        return value
    return value[(slice(None), *(slice(None, None, step) for step in steps))]


def _pad_explicitly(asked: AskedOp, plan: _Plan, value: Tensor, kernel: Sequence[int | Tensor]) -> Tensor:
    """Return the input with the padding of the convolution, which then has none."""
    padding = asked.attributes["padding"]
    if padding == "VALID":
        return value
    if padding == "EXPLICIT":
        given = list(asked.attributes["explicit_paddings"])
        pairs = list(zip(given[2:-2:2], given[3:-2:2]))
    else:
        pairs = []
        for rows, size, stride, dilation in zip(
            _sizes_of_axes(value, range(1, len(kernel) + 1)), kernel, plan.strides, plan.dilations
        ):
            missing = ((rows + stride - 1) // stride - 1) * stride + (size - 1) * dilation + 1 - rows
            total = max(missing, 0) if isinstance(missing, int) else tf.maximum(missing, 0)
            pairs.append((total // 2, total - total // 2))
    if all(isinstance(amount, int) and amount == 0 for pair in pairs for amount in pair):
        return value
    return tf.pad(value, [(0, 0), *pairs, (0, 0)])


def _sizes_of_axes(value: Tensor, axes: Sequence[int]) -> list[int | Tensor]:
    """Return the sizes of axes: numbers, or tensors where they are not known."""
    known = [None] * (max(axes) + 1) if value.shape.rank is None else value.shape.as_list()
    return [tf.shape(value)[axis] if known[axis] is None else known[axis] for axis in axes]
