"""Images resized and warped against NumPy, with their gradients (see operator_case)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from npu_shim.image import image_ops
from npu_shim.npu_cpu import npu_cpu_ops

from npu_shim.estimator.npu_aicore_ops import npu_aicore_ops as operators
from tests.ops.operator_case import Case, check_gradients, check_values, in_graph, made, random

pytestmark = pytest.mark.twice

MAP = np.array([[0.8, 0.3, 0.4], [-0.2, 1.1, 0.7]])


def weights(method: str, size: int, source: int) -> Any:
    """Return the weights of source pixels, [size, source]."""
    y, scale = np.zeros([size, source]), source / size
    for i in range(size):
        center = (i + 0.5) * scale - 0.5
        first = int(np.floor(center))
        if method == "nearest":
            y[i, int(i * scale)] = 1
        elif method == "bilinear":
            for place in (first, first + 1):
                y[i, min(max(place, 0), source - 1)] += 1 - abs(center - place)
        elif method == "cubic":
            for place in range(first - 1, first + 3):
                d = abs(center - place)
                kernel = 1.25 * d**3 - 2.25 * d**2 + 1 if d <= 1 else -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)
                y[i, min(max(place, 0), source - 1)] += kernel
        else:
            for place in range(source):
                y[i, place] = max(0, min((i + 1) * scale, place + 1) - max(i * scale, place)) / scale
    return y


def resized(x: Any, method: str, height: int, width: int) -> Any:
    rows, columns = weights(method, height, x.shape[0]), weights(method, width, x.shape[1])
    return np.einsum("ir,jc,rcn->ijn", rows, columns, x)


def pixel(x: Any, row: int, column: int) -> Any:
    inside = 0 <= row < x.shape[0] and 0 <= column < x.shape[1]
    return x[row, column] if inside else np.full(x.shape[2], 5.0)


def warped(x: Any, is_nearest: bool) -> Any:
    y = np.zeros([3, 5, x.shape[2]])
    for i, j in np.ndindex(3, 5):
        column, row = np.linalg.solve(MAP[:, :2], np.array([j, i]) - MAP[:, 2])
        if is_nearest:
            y[i, j] = pixel(x, int(round(row)), int(round(column)))
            continue
        top, left = int(np.floor(row)), int(np.floor(column))
        for r, c in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
            y[i, j] += (1 - abs(row - r)) * (1 - abs(column - c)) * pixel(x, r, c)
    return y


def resize_case(method: str, height: int, width: int) -> Case:
    return Case(
        lambda x: operators.resize_v2(x, [height, width], method),
        (made(4, 5, 2),),
        lambda x: resized(x, method, height, width),
        (0,),
    )


CASES = {
    "nearest": resize_case("nearest", 3, 7),
    "bilinear, larger and smaller": resize_case("bilinear", 7, 3),
    "cubic": resize_case("cubic", 7, 3),
    "area": resize_case("area", 7, 3),
    "warp_affine_v2": Case(
        lambda x: npu_cpu_ops.warp_affine_v2(x, MAP.astype(np.float32), [3, 5], border_value=5),
        (made(4, 5, 2),),
        lambda x: warped(x, False),
        (0,),
    ),
    "warp_affine_v2, nearest": Case(
        lambda x: operators.warp_affine_v2(x, MAP.astype(np.float32), [3, 5], "nearest", "constant", 5),
        (made(4, 5, 2),),
        lambda x: warped(x, True),
        (0,),
    ),
}
cases = pytest.mark.parametrize("case", list(CASES.values()), ids=list(CASES))


@cases
def test_values_in_graphs_functions_loops_and_eager_code(case: Case) -> None:
    check_values(case)


@cases
def test_gradients_are_those_of_the_reference(case: Case) -> None:
    check_gradients(case)


def test_bytes_and_jpegs() -> None:
    photo = random.randint(0, 256, [8, 8, 1]).repeat(4, 0).repeat(4, 1).repeat(3, 2).astype(np.uint8)  # gray

    def build() -> Any:
        jpeg = tf.io.encode_jpeg(photo)
        return [
            npu_cpu_ops.resize_v2(photo, tf.constant([5, 9], tf.int64)),
            tf.io.decode_jpeg(jpeg),
            image_ops.decode_and_resize_jpeg(jpeg, [5, 9]),
            image_ops.decode_and_crop_and_resize_jpeg(jpeg, [4, 8, 20, 16], [5, 9]),
            npu_cpu_ops.warp_affine_v2(photo, [[1.0, 0, 1], [0, 1, 2]], [4, 4], "INTER_LINEAR"),
        ]

    small, pixels, whole, part, moved = in_graph(build)
    for found, source in ((small, photo), (whole, pixels), (part, pixels[4:24, 8:24])):
        assert found.dtype == np.uint8 and found.shape == (5, 9, 3)
        difference = np.abs(found - resized(source.astype(np.float64), "bilinear", 5, 9))
        assert difference.max() < 0.51
    assert moved.dtype == np.uint8 and not moved[:2].any() and not moved[:, :1].any()
    np.testing.assert_array_equal(moved[2:, 1:], photo[:2, :3])


def test_wrong_arguments() -> None:
    image = np.zeros([2, 2, 1], np.float32)
    with pytest.raises(
        ValueError, match="resize_v2: interpolation='lanczos' is not supported. Use nearest or bilinear"
    ):
        npu_cpu_ops.resize_v2(image, [1, 1], "lanczos")
    with pytest.raises(ValueError, match="warp_affine_v2: border_type='reflect' is not supported"):
        operators.warp_affine_v2(image, np.eye(2, 3), [1, 1], "nearest", "reflect")
