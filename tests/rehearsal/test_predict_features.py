"""Bytes, operations and rows of ops of the device, by closed forms for the shapes in their layouts."""

from __future__ import annotations

import pytest

from npu_shim.rehearsal.predict.features import DeviceOp, Tensor, bytes_moved, matrix_flops, rows_moved

pytestmark = pytest.mark.once

IMAGE = Tensor((8, 4, 28, 28, 16), "FLOAT16", "NC1HWC0")
RESULT = Tensor((8, 8, 14, 14, 16), "FLOAT16", "NC1HWC0")
FILTER = Tensor((36, 8, 16, 16), "FLOAT16", "FRACTAL_Z")
SIZES = Tensor((4,), "INT32")
NUMBER = Tensor((), "FLOAT")
CONVOLUTION = 2 * (8 * 14 * 14) * (3 * 3 * 64 * 128)
QUERY = Tensor((4, 12, 4, 8, 16, 16), "FLOAT16", "FRACTAL_NZ")  # 128 rows of 64
SCORES = Tensor((4, 12, 8, 8, 16, 16), "FLOAT16", "FRACTAL_NZ")


@pytest.mark.parametrize(
    ("type", "inputs", "output", "flops"),
    [
        ("Conv2D", [IMAGE, FILTER, Tensor((128,), "FLOAT16")], RESULT, CONVOLUTION),
        ("FusionOp_Conv2D_BNTrainingReduce", [IMAGE, FILTER], RESULT, CONVOLUTION),
        ("Conv2DBackpropInputD", [FILTER, RESULT], IMAGE, CONVOLUTION),
        ("Conv2DBackpropInput", [SIZES, FILTER, RESULT], IMAGE, CONVOLUTION),
        ("Conv2DBackpropInput", [RESULT, FILTER], IMAGE, CONVOLUTION),
        ("FusionOp_Conv2DBackpropInput_ReluGrad", [FILTER, RESULT, Tensor((8,), "UINT8")], IMAGE, CONVOLUTION),
        ("Conv2DBackpropFilterD", [IMAGE, RESULT], FILTER, CONVOLUTION),
        ("Conv2DBackpropFilter", [IMAGE, SIZES, RESULT], FILTER, CONVOLUTION),
        (
            "Conv2D",
            [Tensor((8, 3, 9, 9), "FLOAT", "NCHW"), Tensor((4, 3, 5, 5), "FLOAT", "NCHW")],
            Tensor((8, 4, 5, 5), "FLOAT", "NCHW"),
            2 * 8 * 25 * 4 * 75,
        ),
        (
            "Conv3D",
            [Tensor((2, 8, 4, 28, 28, 16), "FLOAT16", "NDC1HWC0"), Tensor((108, 8, 16, 16), "FLOAT16", "FRACTAL_Z_3D")],
            Tensor((2, 8, 8, 28, 28, 16), "FLOAT16", "NDC1HWC0"),
            2 * (2 * 8 * 28 * 28) * (27 * 64 * 128),
        ),
        ("Conv2D", [IMAGE, FILTER], Tensor((8, 128, 14), "FLOAT16", "ND"), 0),
        ("BatchMatMul", [QUERY, QUERY], SCORES, 2 * 4 * 12 * 128 * 128 * 64),
        ("BatchMatMul", [SCORES, QUERY], QUERY, 2 * 4 * 12 * 128 * 128 * 64),
        (
            "MatMul",
            [Tensor((20, 40), "FLOAT16"), Tensor((40, 70), "FLOAT16")],
            Tensor((20, 70), "FLOAT16"),
            2 * 32 * 48 * 80,
        ),
        (
            "MatMul",  # transposed: the length that is summed over is the rest of both
            [Tensor((64, 32), "FLOAT16"), Tensor((128, 64), "FLOAT16")],
            Tensor((32, 128), "FLOAT16"),
            2 * 32 * 64 * 128,
        ),
        (
            "BatchMatMul",  # the same matrix for the whole batch
            [Tensor((8, 32, 64), "FLOAT16"), Tensor((64, 128), "FLOAT16")],
            Tensor((8, 32, 128), "FLOAT16"),
            2 * 8 * 32 * 64 * 128,
        ),
        ("MatMul", [Tensor((0, 64), "FLOAT16"), Tensor((64, 16), "FLOAT16")], Tensor((0, 16), "FLOAT16"), 0),
        ("MatMul", [NUMBER, NUMBER], NUMBER, 0),
        ("MatMul", [], NUMBER, 0),
        ("FlashAttentionScore", [Tensor((2, 128, 64), "FLOAT16")] * 3, Tensor((2, 128, 64), "FLOAT16"), 4 * 2 * 128 * 64 * 128),
        ("Relu", [IMAGE], IMAGE, 0),
    ],
)  # fmt: skip
def test_operations_of_the_matrix_unit(type: str, inputs: list[Tensor], output: Tensor, flops: float) -> None:
    assert matrix_flops(DeviceOp(type, inputs, [output])) == pytest.approx(flops)
    assert not flops or rows_moved(DeviceOp(type, inputs, [output])) == 0


TABLE, INDICES = Tensor((50000, 64), "FLOAT"), Tensor((32, 20), "INT32")
ROWS = Tensor((32, 20, 64), "FLOAT")


@pytest.mark.parametrize(
    ("type", "inputs", "output", "moved", "rows"),
    [
        ("GatherV2", [TABLE, INDICES], ROWS, 4 * 640 + 2 * 4 * 640 * 64, 640),
        ("UnsortedSegmentSum", [Tensor((640, 64), "FLOAT"), Tensor((640,), "INT32")], TABLE, 4 * (640 * 65 + 50000 * 64), 640),
        ("ZerosLike", [TABLE], TABLE, 4 * 50000 * 64, 0),
        ("Mul", [TABLE, NUMBER], TABLE, 4 * (2 * 50000 * 64 + 1), 0),
        ("Mul", [ROWS, Tensor((32, 20, 1), "FLOAT")], ROWS, 4 * 640 * 129, 640),
        ("Softmax", [ROWS], ROWS, 8 * 640 * 64, 640),
        ("Softmax", [SCORES], SCORES, 4 * 4 * 12 * 128 * 128, 0),
        ("ReduceSum", [ROWS], Tensor((32, 20), "FLOAT"), 4 * 640 * 65, 640),
        ("ReduceSum", [ROWS], NUMBER, 4 * (640 * 64 + 1), 0),
        ("BiasAddGrad", [ROWS], Tensor((64,), "FLOAT"), 4 * (640 * 64 + 64), 0),
        ("StridedSlice", [ROWS], Tensor((32, 20, 8), "FLOAT"), 4 * 640 * 72, 640),
        ("StridedSlice", [ROWS], Tensor((32, 10, 64), "FLOAT"), 4 * 640 * 96, 32),
        ("Transpose", [ROWS], Tensor((32, 64, 20), "FLOAT"), 8 * 640 * 64, 640 * 64 / 16),
        ("Cast", [Tensor((7,), "BOOL")], Tensor((7,), "HALF"), 7 + 14, 0),
        ("Cast", [Tensor((7,), "STRING")], Tensor((7,), "DT_BF16"), 14, 0),
    ],
)  # fmt: skip
def test_bytes_and_rows_of_an_op(type: str, inputs: list[Tensor], output: Tensor, moved: float, rows: float) -> None:
    op = DeviceOp(type, inputs, [output])
    assert (bytes_moved(op), rows_moved(op)) == (moved, rows)
