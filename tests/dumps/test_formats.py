"""Layouts and types that a writer of the tests makes come back as they were."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
from typing import Any

import numpy as np
import pytest

from npu_shim.dumps import dump, formats, reference, small_types
from npu_shim.dumps.formats import DumpError
from tests.dumps.messages import TYPES, dump_bytes, tensor
from tests.dumps.written_reference import write

LIBRARY: Any = importlib.import_module("ml_dtypes") if importlib.util.find_spec("ml_dtypes") else None
_CASES = [
    ("ND", "", (3, 4)),
    ("ND", "", ()),
    ("NHWC", "NHWC", (2, 3, 4, 5)),
    ("NCHW", "NHWC", (2, 3, 4, 5)),
    ("HWCN", "NCHW", (2, 3, 4, 5)),
    ("NC1HWC0", "NHWC", (2, 3, 4, 17)),
    ("NC1HWC0", "NCHW", (2, 40, 3, 5)),
    ("NC1HWC0", "NHWC", (1, 16, 16, 16)),
    ("FRACTAL_Z", "HWCN", (3, 2, 17, 20)),
    ("FRACTAL_Z", "NCHW", (20, 3, 3, 3)),
    ("FRACTAL_NZ", "", (33, 18)),
    ("FRACTAL_NZ", "", (2, 3, 16, 40)),
    ("FRACTAL_NZ", "", (5,)),
    ("NDC1HWC0", "NDHWC", (2, 3, 4, 5, 17)),
    ("NDC1HWC0", "NCDHW", (2, 18, 3, 4, 5)),
    ("FRACTAL_Z_3D", "DHWCN", (2, 3, 2, 18, 17)),
    ("FRACTAL_Z_3D", "NCDHW", (17, 3, 2, 3, 2)),
]


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return different numbers."""
    chance = np.random.RandomState(1)
    if dtype == "bool":
        return np.asarray(chance.uniform(size=shape) < 0.5)
    return np.asarray(chance.permutation(int(np.prod(shape))).reshape(shape) % 100).astype(dtype)


@pytest.mark.parametrize(("layout", "letters", "shape"), _CASES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_layout_comes_back(
    layout: str, letters: str, shape: tuple[int, ...], dtype: str, tmp_path: pathlib.Path
) -> None:
    array = values(shape, dtype)
    path = tmp_path / "Op.op.1.2.3"
    path.write_bytes(dump_bytes("op", [tensor(array, layout, letters)]))
    found = dump.read_dump(str(path)).outputs[0]
    np.testing.assert_array_equal(dump.tensor_in_graph_shape(found, letters), array)
    np.testing.assert_array_equal(dump.tensor_in_graph_shape(found), array)  # by the shapes


def test_the_format_in_the_graph_decides_where_several_fit(tmp_path: pathlib.Path) -> None:
    array = values((2, 16, 16, 16), "float32")
    path = tmp_path / "Op.op.1.2.3"
    for letters in ("NHWC", "NCHW"):
        path.write_bytes(dump_bytes("op", [tensor(array, "NC1HWC0", letters, original_format=letters)]))
        np.testing.assert_array_equal(dump.tensor_in_graph_shape(dump.read_dump(str(path)).outputs[0]), array)


@pytest.mark.parametrize(("n", "c", "groups"), [(8, 1, 8), (32, 4, 2), (40, 1, 20), (6, 5, 3)])
def test_weights_of_a_convolution_with_groups_come_back(n: int, c: int, groups: int, tmp_path: pathlib.Path) -> None:
    array = np.arange(3 * 2 * c * n, dtype=np.float32).reshape(3, 2, c, n)
    path = tmp_path / "Op.op.1.2.3"
    path.write_bytes(dump_bytes("op", [tensor(array, "FRACTAL_Z", "HWCN", groups=groups)]))
    np.testing.assert_array_equal(dump.tensor_in_graph_shape(dump.read_dump(str(path)).outputs[0]), array)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("inside", [True, False])
def test_a_type_comes_back(dtype: str, inside: bool, tmp_path: pathlib.Path) -> None:
    array = values((5, 3), "float32" if dtype == "bfloat16" else dtype)
    path = tmp_path / "Op.op.1.2.3"
    given = [tensor(values((7,), "int16")), tensor(array, dtype=dtype)]
    path.write_bytes(dump_bytes("scope/op", given, [tensor(values((2, 2), "float64"))], {"a": "b"}, inside))
    found = dump.read_dump(str(path))
    assert (found.op_name, found.attributes, len(found.inputs), len(found.outputs)) == ("scope/op", {"a": "b"}, 1, 2)
    assert dump.type_name(found.outputs[1]) == dtype
    np.testing.assert_array_equal(dump.elements_in_memory(found.outputs[1]), array)
    np.testing.assert_array_equal(dump.elements_in_memory(found.inputs[0]), values((2, 2), "float64"))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (37, "type float6_e3m2 cannot be compared: it has no known form in NumPy"),
        (13, "type string cannot be compared"),
        (99, "type type 99 cannot be compared"),
        (1, r"shape \[4\] of float32 needs 16 bytes, 4 are there"),
    ],
)
def test_a_type_or_shape_that_cannot_be_read_is_an_error(kind: int, message: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "Op.op.1.2.3"
    path.write_bytes(dump_bytes("op", [{"raw": b"1234", "type": kind, "shape": [4]}]))
    with pytest.raises(DumpError, match=message):
        dump.elements_in_memory(dump.read_dump(str(path)).outputs[0])


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        (28, [0x21, 0xF8, 0x07], [1, 2, -8, -1, 7]),
        (32, [0x00, 0x3C, 0x00, 0xC0], [1 - 2j]),
        (33, [0, 1, 7, 8, 9, 0x10, 0x18, 0x6E, 0x6F, 0x7E, 0x7F, 0x88, 0xEF], None),
        (36, [0, 127, 128, 254], [2.0**-127, 1, 2, 2.0**127]),
    ],
    ids=["int4", "complex32", "hifloat8", "float8_e8m0"],
)
def test_a_type_that_numpy_lacks_comes_back(
    kind: int, raw: list[int], expected: list[complex] | None, tmp_path: pathlib.Path
) -> None:
    if (
        expected is None
    ):  # by the definition of the type: 1.0, 1.125, 2.0, 0.5, 2**15, Inf, 2**-15, 1.5 * 2**-15, -1, -Inf
        expected = [0, 2.0**-22, 2.0**-16, 1, 1.125, 2, 0.5, 2.0**15, np.inf, 2.0**-15, 1.5 * 2.0**-15, -1, -np.inf]
    path = tmp_path / "Op.op.1.2.3"
    path.write_bytes(dump_bytes("op", [{"raw": bytes(raw), "type": kind, "shape": [len(expected)]}]))
    np.testing.assert_array_equal(dump.elements_in_memory(dump.read_dump(str(path)).outputs[0]), expected)


if LIBRARY:  # later versions of TensorFlow install it

    @pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn", "int4"])
    def test_tensorflow_writes_what_numpy_lacks_as_float32(name: str, tmp_path: pathlib.Path) -> None:
        array = np.array([1, -2, 3]).astype(getattr(LIBRARY, name))
        write(str(tmp_path), [(reference.Output("op"), array)])
        found = reference.read_step(str(tmp_path), {})
        assert found.outputs[0].dtype == name
        np.testing.assert_array_equal(found.load_output(0), [1, -2, 3])

    @pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn"])
    def test_floats_of_8_bits_are_those_of_the_library_for_them(name: str) -> None:
        codes = np.arange(256, dtype=np.uint8)
        theirs = codes.view(getattr(LIBRARY, name)).astype(np.float32)
        np.testing.assert_array_equal(small_types.decode_numbers(name, codes), theirs)


@pytest.mark.parametrize(
    ("layout", "array_shape", "shape", "message"),
    [
        (
            "NC1HWC0",
            (2, 1, 3, 4, 16),
            (2, 3, 4, 17),
            r"shape \[2, 1, 3, 4, 16\] in NC1HWC0 does not fit \[2, 3, 4, 17\]",
        ),
        ("FRACTAL_Z", (6, 1, 16), (3, 2, 4, 5), "in FRACTAL_Z does not fit"),
        ("FRACTAL_NZ", (2, 2, 16, 16), (2, 50, 30), "in FRACTAL_NZ does not fit"),
        ("ND", (2, 3), (3, 3), "in ND does not fit"),
        ("C1HWNC0", (1, 2, 3, 4, 16), (4, 2, 3, 5), "layout C1HWNC0 is unknown, and shape"),
    ],
)
def test_a_layout_that_does_not_fit_is_an_error(
    layout: str, array_shape: tuple[int, ...], shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(DumpError, match=message):
        formats.to_graph_shape(np.zeros(array_shape), layout, shape)
