"""Operators that select, scatter, warp and count: against NumPy, with their gradients (see operator_case)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from npu_shim.npu_cpu import npu_cpu_ops
from npu_shim.tbe import npu_cube_ops

from npu_shim.estimator import npu_aicore_ops, npu_ops
from npu_shim.estimator.npu_aicore_ops import npu_aicore_ops as operators
from tests.ops.operator_case import Case, check_gradients, check_values, in_graph, made, random

pytestmark = pytest.mark.twice

INDICES = np.array([[0, -1, 1], [2, 0, 2]], np.int32)
FLOW = random.uniform(-1.4, 1.4, [1, 3, 4, 2]).astype(np.float32)
OFFSETS = random.uniform(-0.9, 0.9, [1, 2, 3, 2 * 4 * 3]).astype(np.float32)  # 2 groups of channels, a filter of 2 x 2
SETTINGS: dict[str, Any] = {"strides": [1, 2, 1, 1], "pads": [1, 0, 0, 1], "dilations": [1, 1, 2, 1]}


def scattered(data: Any, updates: Any) -> Any:
    y = data.copy()
    for place in np.ndindex(INDICES.shape):
        y[place[0], INDICES[place]] = updates[place]
    return y


def pixel(image: Any, y: float, x: float) -> Any:
    """Return a pixel, or 0 outside the image."""
    inside = 0 <= y < image.shape[0] and 0 <= x < image.shape[1]
    return image[int(y), int(x)] if inside else np.zeros_like(image[0, 0])


def between(image: Any, y: float, x: float) -> Any:
    top, left = np.floor(y), np.floor(x)
    return sum(
        (1 - abs(y - row)) * (1 - abs(x - column)) * pixel(image, row, column)
        for row, column in itertools.product((top, top + 1), (left, left + 1))
    )


def warped(image: Any, flow: Any) -> Any:
    y = np.zeros_like(image)
    for b, i, j in np.ndindex(image.shape[:3]):
        row, column = np.clip([i - flow[b, i, j, 0], j - flow[b, i, j, 1]], 0, [image.shape[1] - 1, image.shape[2] - 1])
        y[b, i, j] = between(image[b], row, column)
    return y


def deformed(x: Any, weights: Any, offsets: Any) -> Any:
    """Return the convolution of SETTINGS with two groups of channels."""
    batch, rows, columns, _ = offsets.shape
    parts = offsets.reshape(batch, rows, columns, 3, 2, 2, 2)
    y = np.zeros([batch, rows, columns, weights.shape[-1]])
    half = x.shape[-1] // 2
    for b, r, c, group, i, j in np.ndindex(batch, rows, columns, 2, 2, 2):
        dx, dy, mask = parts[b, r, c, :, group, i, j]
        sample = mask * between(x[b][..., group * half : (group + 1) * half], r * 2 - 1 + i + dy, c - 0 + j * 2 + dx)
        y[b, r, c] += sample @ weights[i, j, group * half : (group + 1) * half]
    return y


def k_means(x: Any, y: Any) -> Any:
    distances = ((x[:, None] - y[None]) ** 2).sum(2)
    nearest = distances.argmin(1)
    sums = np.array([x[nearest == number].sum(0) for number in range(len(y))])
    counts = np.array([[(nearest == number).sum()] for number in range(len(y))], np.float64)
    return [sums, counts, np.array([distances.min(1).sum()])]


def k_means_call(x: Any, y: Any) -> Any:
    return list(npu_ops.k_means_centroids(x, y, tf.reduce_sum(y * y, 1), tf.reduce_sum(x * x, 1)))


CASES = {
    "scatter_elements": Case(
        lambda data, updates: npu_ops.scatter_elements(data, INDICES, updates, axis=1),
        (made(2, 4), made(2, 3)),
        scattered,
        (0,),
    ),
    "scatter_elements_v2 that adds": Case(
        lambda data, updates: operators.scatter_elements_v2(data, [[1], [1]], updates, 0, "add"),
        (made(3, 1), made(2, 1)),
        lambda data, updates: data + np.array([[0.0], [updates.sum()], [0.0]]),
        (0, 1),
    ),
    "dense_image_warp": Case(npu_cpu_ops.dense_image_warp, (made(1, 3, 4, 2), FLOW), warped, (0, 1)),
    "deformable_conv2d": Case(
        lambda x, weights, offsets: npu_cube_ops.deformable_conv2d(
            x, weights, offsets, deformable_groups=2, **SETTINGS
        ),
        (made(1, 4, 4, 2), made(2, 2, 2, 3), OFFSETS),
        deformed,
        (0, 1, 2),
        False,
    ),
    "k_means_centroids": Case(k_means_call, (made(6, 2), made(2, 2) * 2), k_means, (), False),
}
cases = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))


@cases
def test_values_in_graphs_functions_loops_and_eager_code(case: Case) -> None:
    check_values(case)


@cases
def test_gradients_are_those_of_the_reference(case: Case) -> None:
    check_gradients(case)


def test_gradient_operators_of_images() -> None:
    class Op:
        def __init__(self, *inputs: Any, **attributes: Any) -> None:
            self.inputs, self.attributes = inputs, attributes

        def get_attr(self, name: str) -> Any:
            return self.attributes[name]

    def build() -> Any:
        image, flow, x, offsets = (tf.constant(v) for v in (made(1, 3, 4, 2), FLOW, made(1, 4, 4, 2), OFFSETS))
        dy = tf.constant(made(1, 3, 4, 2))
        found = npu_cpu_ops.dense_image_warp_grad(Op(image, flow), dy)
        wanted = tf.gradients(npu_cpu_ops.dense_image_warp(image, flow), [image, flow], dy)
        settings = {**SETTINGS, "ksize": [2, 2], "data_format": "NHWC", "deformable_groups": 2, "modulated": True}
        samples = operators.deformable_offsets(x, offsets, **settings)
        assert samples.shape.as_list() == [1, 4, 6, 2]
        found += npu_cube_ops.deformable_offsets_grad(Op(x, offsets, **settings), tf.ones_like(samples))
        return found, wanted + tf.gradients(samples, [x, offsets])

    for found, wanted in zip(*in_graph(build)):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_deformable_conv2d_with_channels_first_and_wrong_arguments() -> None:
    x, weights, offsets = CASES["deformable_conv2d"].inputs

    def build() -> Any:
        last = npu_cube_ops.deformable_conv2d(x, weights, offsets, deformable_groups=2, **SETTINGS)
        moved = {key: [each[0], each[3], each[1], each[2]] for key, each in SETTINGS.items() if key != "pads"}
        first = npu_cube_ops.deformable_conv2d(
            x.transpose(0, 3, 1, 2),
            weights,
            offsets.transpose(0, 3, 1, 2),
            pads=SETTINGS["pads"],
            data_format="NCHW",
            deformable_groups=2,
            **moved,
        )
        with pytest.raises(RuntimeError, match="groups=2 are not supported"):
            npu_cube_ops.deformable_conv2d(x, weights, offsets, groups=2, **SETTINGS)
        with pytest.raises(ValueError, match="offsets have 3 x 1 groups x 2 x 2 channels"):
            npu_cube_ops.deformable_conv2d(x, weights, offsets, **SETTINGS)
        return last, tf.transpose(first, [0, 2, 3, 1])

    np.testing.assert_allclose(*in_graph(build), rtol=1e-6)


def test_nonzero_and_its_static_form() -> None:
    x = np.array([[0, 3, 0], [5, 0, 7]], np.float32)

    def build() -> Any:
        value, index, count = operators.non_zero_with_value(x, transpose=True)
        assert value.shape.as_list() == [6] and index.shape.as_list() == [12]
        return [
            npu_aicore_ops.nonzero(x),
            npu_aicore_ops.nonzero(x, transpose=True, output_type=tf.int32),
            *npu_aicore_ops.nonzerowithvalue(x),
            *npu_cpu_ops.non_zero_with_value_shape(value, index, count),
        ]

    rows, columns, value, index, count, short, places = in_graph(build)
    np.testing.assert_array_equal(rows, [[0, 1], [1, 0], [1, 2]])
    assert columns.dtype == np.int32 and columns.tolist() == [[0, 1, 1], [1, 0, 2]]
    assert value.tolist() == [3, 5, 7, 0, 0, 0] and count.tolist() == [3] and index.dtype == np.int64
    assert index.tolist() == [0, 1, 1, 0, 1, 2, 0, 0, 0, 0, 0, 0]
    assert short.tolist() == [3, 5, 7] and places.tolist() == [0, 1, 1, 1, 0, 2]


@pytest.mark.parametrize("is_stateless", [False, True])
def test_random_choice(is_stateless: bool) -> None:
    x = np.zeros([4, 5], bool)
    x[1, 1:4] = x[3, 0] = True

    def choose(count: int, seed: int) -> Any:
        def build() -> Any:
            if is_stateless:
                return npu_cpu_ops.stateless_random_choice_with_mask(x, count, seed, 9)
            y, mask = npu_cpu_ops.randomchoicewithmask(x, count, seed, 9)
            assert y.shape.as_list() == [count, 2] and mask.shape.as_list() == [count]
            return y, mask

        return in_graph(build)

    y, mask = choose(6, 1)
    assert y.dtype == np.int32 and mask.tolist() == [True] * 4 + [False] * 2
    assert sorted(y[:4].tolist()) == [[1, 1], [1, 2], [1, 3], [3, 0]] and not y[4:].any()
    firsts = {tuple(choose(1, seed)[0][0]) for seed in range(1, 20)}
    assert len(firsts) > 2 and all(x[place] for place in firsts)
    np.testing.assert_array_equal(choose(2, 3)[0], choose(2, 3)[0])


def test_stateless_dropout() -> None:
    x = np.abs(made(40, 50)) + 1

    def build() -> Any:
        v = tf.constant(x)
        y = npu_cpu_ops.stateless_dropout(v, [40, 50], 0.25, 7, 3)
        other = npu_cpu_ops.stateless_dropout(v, [40, 1], 0.25, 7, 4)
        return y, npu_cpu_ops.stateless_dropout(v, [40, 50], 0.25, 7, 3), other, tf.gradients(y, v)[0]

    y, again, other, gradient = in_graph(build)
    np.testing.assert_array_equal(y, again)
    assert 0.7 < (y > 0).mean() < 0.8 and set((other > 0).sum(1)) == {0, 50}
    np.testing.assert_allclose(y[y > 0], (x / 0.75)[y > 0], rtol=1e-6)
    np.testing.assert_allclose(gradient, (y > 0) / 0.75, rtol=1e-6)


def test_float_status_tells_if_the_control_inputs_are_finite() -> None:
    for bad in (1.0, np.inf, np.nan):

        def build(bad: float = bad) -> Any:
            gradients = [tf.constant([1.0, bad]), tf.constant(2.0)]
            allocated = operators.npu_alloc_float_status()
            with tf.control_dependencies(gradients):
                status = operators.npu_get_float_status(allocated)
                second = operators.npu_get_float_status_v2()
            cleared = operators.npu_clear_float_status(status)
            with tf.control_dependencies([operators.npu_clear_float_status_v2()]):
                is_finite = tf.reduce_all(tf.equal(allocated, cleared))
            return status, second, is_finite, tf.reduce_all(tf.equal(status, cleared))

        status, second, is_finite, is_same = in_graph(build)
        assert status.dtype == np.float32 and second.dtype == np.int32
        assert status.tolist() == second.tolist() == [0 if bad == 1.0 else 1] * 8
        assert is_finite == is_same == (bad == 1.0)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="npu_get_float_status_v2 has no tensors to check"):
        operators.npu_get_float_status_v2()


def test_places_of_embedding_rows() -> None:
    table = np.array([[0, 1000, 640], [1, 5000, 960]], np.uint64)  # two and three rows of 320 bytes
    index = np.array([4, 1, 0, 3, 2], np.int64)

    def build() -> Any:
        found = [npu_cpu_ops.embeddingrankid(table, index, mode=mode) for mode in ("mod", "order")]
        for mode in ("mod", "order"):
            local, nums, recover = npu_cpu_ops.embedding_local_index(table, index, mode=mode)
            found += [local, nums, recover]
        return found

    mod, order, *local = in_graph(build)
    assert mod.dtype == np.uint64
    assert mod.tolist() == [[0, 1640, 320], [1, 5000, 320], [0, 1000, 320], [1, 5320, 320], [0, 1320, 320]]
    assert order.tolist() == [[1, 5640, 320], [0, 1320, 320], [0, 1000, 320], [1, 5320, 320], [1, 5000, 320]]
    assert [each.tolist() for each in local[:3]] == [[2, 0, 1, 0, 1], [3, 2], [0, 3, 1, 4, 2]]
    assert [each.tolist() for each in local[3:]] == [[1, 0, 2, 1, 0], [2, 3], [2, 0, 1, 3, 4]]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="mode='hash' is not allowed"):
        npu_cpu_ops.embeddingrankid(table, index, mode="hash")
