"""Data that stand in for those of public programs: formats, shapes and limits."""

from __future__ import annotations

import gzip
import os
import pathlib
import pickle
import re
import struct
import sys
import types
import zlib
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest

from tests.docs_modules import load

pytestmark = pytest.mark.once


def test_the_digits_have_the_format_of_mnist(tmp_path: pathlib.Path) -> None:
    data = load("public_data")
    data.main(["digits", str(tmp_path / "a" / "b"), "20", "10", "gz"])
    with gzip.open(str(tmp_path / "a" / "b" / "t10k-images-idx3-ubyte.gz")) as stream:
        images = stream.read()
    with gzip.open(str(tmp_path / "a" / "b" / "train-labels-idx1-ubyte.gz")) as stream:
        labels = stream.read()
    assert struct.unpack(">IIII", images[:16]) == (2051, 10, 28, 28) and len(images) == 16 + 10 * 28 * 28
    assert struct.unpack(">II", labels[:8]) == (2049, 20) and set(labels[8:]) <= set(range(10))


def test_pictures_are_png_of_one_and_three_channels() -> None:
    data = load("public_data")
    for channels, colours in ((1, 0), (3, 2)):
        pixels = np.arange(4 * 5 * channels).reshape(4, 5, channels)
        made = data._png(pixels)
        assert struct.unpack(">IIBB", made[16:26]) == (5, 4, 8, colours)
        length = struct.unpack(">I", made[33:37])[0]
        lines = np.frombuffer(zlib.decompress(made[41 : 41 + length]), np.uint8).reshape(4, -1)
        assert not lines[:, 0].any() and (lines[:, 1:] == pixels.reshape(4, -1)).all()


def test_arrays_have_their_shapes_and_classes(tmp_path: pathlib.Path) -> None:
    load("public_data").main(["arrays", str(tmp_path), "a/x:8,3", "y:8,2:classes"])
    assert np.load(str(tmp_path / "a" / "x.npy")).shape == (8, 3)
    labels = np.load(str(tmp_path / "y.npy"))
    assert labels.shape == (8, 2) and (labels.sum(1) == 1).all()


def test_packed_arrays_have_their_keys_and_limits(tmp_path: pathlib.Path) -> None:
    load("public_data").main(["packed", str(tmp_path), "a", "x:8,3", "y:8:5"])
    with np.load(str(tmp_path / "a.npz")) as arrays:
        assert arrays["x"].shape == (8, 3) and set(arrays["y"]) <= set(range(5))


def test_a_file_of_hdf5_has_the_arrays(tmp_path: pathlib.Path) -> None:
    load("public_data").main(["hdf5", str(tmp_path), "a.h5", "x:8,3", "y:8,1:5"])
    with h5py.File(str(tmp_path / "a.h5"), "r") as file:
        assert file["x"].shape == (8, 3) and set(file["y"][:, 0]) <= set(range(5))


def test_protocol_buffers_are_compiled_with_their_imports(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.proto").write_text('syntax = "proto2";', encoding="utf-8")
    calls: list[list[str]] = []
    compiler = types.ModuleType("grpc_tools.protoc")  # of a package that only some programs need
    compiler.__file__ = "grpc_tools/protoc.py"
    compiler.main = lambda words: calls.append(words) or int(len(calls) > 1)  # type: ignore[attr-defined]
    package = types.ModuleType("grpc_tools")
    package.protoc = compiler  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "grpc_tools", package)
    compile_protos = load("public_data").KINDS["protos"]
    compile_protos(str(tmp_path), "*.proto")
    of_protobuf = "-I" + os.path.join("grpc_tools", "_proto")
    assert calls == [["protoc", f"-I{tmp_path}", of_protobuf, f"--python_out={tmp_path}", str(tmp_path / "a.proto")]]
    with pytest.raises(RuntimeError, match="protoc failed"):
        compile_protos(str(tmp_path), "*.proto")


def test_lines_have_the_fields_of_their_form(tmp_path: pathlib.Path) -> None:
    form = 'p{number:3:7},{word},{int:4}\\t{float},{of:a|b},"{words:2:3}"'
    load("public_data").main(["lines", str(tmp_path / "a"), "b/x.csv", "12", form, "head"])
    head, *lines = (tmp_path / "a" / "b" / "x.csv").read_text(encoding="utf-8").splitlines()
    assert head == "head" and len(lines) == 12
    for number, line in enumerate(lines):
        assert re.fullmatch(
            rf'p{number + 7:03},a{chr(97 + number)},[0-3]\t0\.\d{{4}},[ab],"[a-z]+( [a-z]+){{1,2}}"', line
        )


def test_a_graph_has_the_pickles_of_planetoid(tmp_path: pathlib.Path) -> None:
    load("public_data").main(["graph", str(tmp_path), "cora", "300", "12", "7"])
    parts = {key: pickle.loads((tmp_path / f"ind.cora.{key}").read_bytes()) for key in ("x", "allx", "ty", "graph")}
    assert parts["x"].shape == (140, 12) and parts["allx"].shape == (200, 12) and parts["ty"].shape == (100, 7)
    assert all(0 <= node < 300 and len(others) == 3 for node, others in parts["graph"].items())
    assert (tmp_path / "ind.cora.test.index").read_text(encoding="utf-8").split()[0] == "200"


def test_pictures_have_objects_in_the_folders_of_pascal_voc(tmp_path: pathlib.Path) -> None:
    data = load("public_data")
    data._write = lambda path, image: pathlib.Path(path).write_bytes(bytes(image.shape))  # without TensorFlow
    data.main(["boxes", str(tmp_path), "3", "30", "cat", "dog"])
    tree = ElementTree.parse(str(tmp_path / "Annotations" / "0002.xml"))
    assert (tmp_path / "JPEGImages" / (tree.findtext("filename") or "")).read_bytes() == bytes((30, 30, 3))
    assert {node.text for node in tree.iter("name")} <= {"cat", "dog"}
    for box in tree.iter("bndbox"):
        left, top, right, bottom = (int(box.findtext(key) or "") for key in ("xmin", "ymin", "xmax", "ymax"))
        assert 1 <= left < right <= 30 and 1 <= top < bottom <= 30
    assert (tmp_path / "ImageSets" / "Main" / "trainval.txt").read_text(encoding="utf-8").split() == [
        "0000",
        "0001",
        "0002",
    ]
    assert (tmp_path / "SegmentationClass" / "0001.png").read_bytes().startswith(b"\x89PNG")
