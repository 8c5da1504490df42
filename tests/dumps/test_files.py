"""Names and messages of dump files: all forms are read, damaged and hostile ones are one error."""

from __future__ import annotations

import pathlib

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from npu_shim.dumps import dump, files, graph_files, op_debug, reference
from npu_shim.dumps.dump import parse_message
from npu_shim.dumps.formats import DumpError
from tests.dumps.engine import printed
from tests.dumps.messages import CLASSES, dump_bytes, tensor
from tests.dumps.written_reference import write as write_reference

_FAST = hypothesis.settings(max_examples=150, deadline=None, database=None, derandomize=True)
_GOOD = dump_bytes(
    "scope/op", [tensor(np.arange(6, dtype=np.float32), original="a/b")], [tensor(np.ones(3))], {"k": "v"}
)
_GRAPH = printed(
    'graph { op { name: "a" type: "B" input: "c:0" attr { key: "k" value { s: "\\"x\\001" } } } }'
).encode()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Conv2D.conv1.3.2.1700000000000000", ("Conv2D", "conv1", 3, 2, 1700000000000000, -1, -1)),
        ("Conv2D.conv1.3.1700000000000000", ("Conv2D", "conv1", 3, -1, 1700000000000000, -1, -1)),
        ("Add.sgt_graph_0_Add.0.3.1673383728093446.4.1.0.0", ("Add", "sgt_graph_0_Add", 0, 3, 1673383728093446, 1, 0)),
        ("Add.a.0.3.1673383728093446.4.1.7", ("Add", "a", 0, 3, 1673383728093446, 1, 7)),
        ("12345678901234567890", ("MatMul", "a_long_name", 5, 6, 1700000000000001, -1, -1)),
    ],
)
def test_a_name_is_read(name: str, wanted: tuple[object, ...], tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "20231114221320" / "0" / "model" / "11" / "5"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(b"")
    mapping = "12345678901234567890,MatMul.a_long_name.5.6.1700000000000001\n"
    (folder / "mapping.csv").write_text(mapping, encoding="utf-8")
    (found,), problems = files.find_dump_files_and_problems(str(tmp_path))
    fields = ("op_type", "op_name", "task", "stream", "time", "context", "thread")
    assert tuple(getattr(found, field) for field in fields) == wanted
    assert (found.step, found.run) == (5, ("20231114221320", "0"))
    assert problems == {}


def test_a_file_that_is_no_dump_is_named(tmp_path: pathlib.Path) -> None:
    for name in ("Conv2D.conv1.x.y", "core", "123", "readme.txt", "Conv2D.a.1.2.3.4.5", ".hidden"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "mapping.csv").write_text("1,2,3\n", encoding="utf-8")
    found, problems = files.find_dump_files_and_problems(str(tmp_path))
    assert found == []
    assert {pathlib.Path(path).name: text[:22] for path, text in problems.items()} == {
        "Conv2D.conv1.x.y": "its name is not that o",
        "Conv2D.a.1.2.3.4.5": "its name is not that o",
        "core": "its name is not that o",
        "123": "its number has no row ",
        "mapping.csv": "it is no table of two ",
    }


def test_the_last_run_on_the_first_device_counts(tmp_path: pathlib.Path) -> None:
    for time in ("20240101000000", "20240201000000"):
        for device in "01":
            folder = tmp_path / time / device / "m" / "1" / "0"
            folder.mkdir(parents=True)
            (folder / "Op.op.1.2.3").write_bytes(b"")
    ((found,),) = files.last_operator_dumps_by_step(files.find_dump_files_and_problems(str(tmp_path))[0]).values()
    assert found.run == ("20240201000000", "0")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "its message would have 0 bytes, the file has 0"),
        (b"\x01\x00\x00\x00", "its message would have 1 bytes, the file has 4"),
        (_GOOD[:40], "its message would have"),
        (_GOOD[:-1], "its tensors have 48 bytes, 47 are there. It is cut off"),
        (b"#!/bin/sh\nexit\n", "its message would have"),
        (b"\x02" + b"\x00" * 7 + b"\x1a\x7f", "field 3 of its message has 127 bytes where 0 are left"),
        (b"\x02" + b"\x00" * 7 + b"\x0f\x00", "field 1 of its message has the unknown wire type 7"),
        (b"\x02" + b"\x00" * 7 + b"\xff\xff", "a number of its message is cut off"),
        (b"\x02" + b"\x00" * 7 + b"\x18\x01", "its message has a number in the place of a text"),
    ],
)
def test_a_damaged_dump_is_one_error(raw: bytes, message: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "Op.op.1.2.3"
    path.write_bytes(raw)
    with pytest.raises(DumpError, match=message):
        dump.read_dump(str(path))


def test_a_shape_of_many_dimensions_is_an_error() -> None:
    data = CLASSES["DumpData"]()
    data.output.add().shape.dim.extend([1] * 33)
    raw = data.SerializeToString()
    with pytest.raises(DumpError, match="shape of 33 dimensions"):
        parse_message(memoryview(raw), 0, len(raw))


def test_fields_that_are_not_known_are_skipped() -> None:
    data = CLASSES["DumpData"](version="3", dfx_message="text")
    data.buffer.add(buffer_type=0, size=1 << 40)
    data.space.add(data=b"log")
    output = data.output.add(address=1, arg_index=2, data_type=1)
    output.dim_range.add(dim_start=0, dim_end=4)
    raw = data.SerializeToString() + b"\xfd\x07\x01\x02\x03\x04" + b"\xf9\x07" + b"\0" * 8  # fixed 32 and 64 bits
    assert len(parse_message(memoryview(raw), 0, len(raw)).outputs) == 1


@_FAST
@hypothesis.given(
    st.text(max_size=20),
    st.lists(
        st.tuples(st.integers(0, 41), st.lists(st.integers(0, 2**62), max_size=6), st.binary(max_size=9)), max_size=4
    ),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
)
def test_messages_are_read_as_protobuf_writes_them(
    name: str, outputs: list[tuple[int, list[int], bytes]], attributes: dict[str, str]
) -> None:
    data = CLASSES["DumpData"](op_name=name)
    for kind, shape, raw in outputs:
        made = data.output.add(data_type=kind, format=kind, size=len(raw), data=raw)
        made.shape.dim.extend(shape)
        made.original_op.name = name
    for key, value in attributes.items():
        data.attr.add(name=key, value=value)
    raw = data.SerializeToString()
    found = parse_message(memoryview(raw), 0, len(raw))
    assert (found.op_name, found.attributes, len(found.outputs)) == (name, attributes, len(outputs))
    for tensor_found, (kind, shape, inside) in zip(found.outputs, outputs):
        assert (tensor_found.data_type, tensor_found.format, tensor_found.original) == (kind, kind, name)
        assert tensor_found.shape == tensor_found.original_shape == tuple(shape)
        assert raw[slice(*tensor_found.data)] == inside


def _mutated(raw: bytes, place: int, junk: bytes, cut: int) -> bytes:
    place %= len(raw)
    made = raw[:place] + junk + raw[place + len(junk) :]
    return made[: len(made) - cut % len(made)] if cut % 3 else made


@_FAST
@hypothesis.given(st.integers(0, 10**6), st.binary(min_size=1, max_size=12), st.integers(0, 10**6))
def test_any_bytes_are_read_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, place: int, junk: bytes, cut: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / "Op.op.1.2.3"
    path.write_bytes(_mutated(_GOOD, place, junk, cut))
    try:
        for each in dump.read_dump(str(path)).outputs:
            dump.tensor_in_graph_shape(each)
    except DumpError as error:
        assert str(error)
    graph = folder / "ge_proto_1_Build.txt"
    graph.write_bytes(_mutated(_GRAPH, place, junk, cut))
    try:
        assert all(op.name for op in graph_files.read_graph_ops(str(graph)))
    except ValueError as error:
        assert str(error)
    debug = folder / "Opdebug.Node_OpDebug.1.2.3.json"
    debug.write_bytes(
        _mutated(b'{"magic": "0x5a", "acc_list": {"acc_type": "AIC", "data": {"status": [0, 1]}}}', place, junk, cut)
    )
    file = files.parse_dump_name(str(debug), "Opdebug.Node_OpDebug.1.2.3", str(folder))
    assert file
    wrong: dict[str, str] = {}
    with files.collect_problem(wrong, str(debug)):
        assert all(report.status for report in op_debug.read_reports(file))
    assert all(wrong.values())
    index = folder / "index" / "index.json"
    index.parent.mkdir(exist_ok=True)
    index.write_bytes(_mutated(b'{"schema_version": 1, "outputs": [{"op": "a", "file": "a.npy"}]}', place, junk, cut))
    problems: dict[str, str] = {}
    found = reference.read_step(str(index.parent), problems)
    assert found.indexed != bool(problems)


def test_a_graph_with_many_open_blocks_is_an_error(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ge_proto_1_Build.txt"
    path.write_text("a {\n" * 70, encoding="utf-8")
    with pytest.raises(ValueError, match="line 65 in 64 open blocks"):
        list(graph_files.read_graph_ops(str(path)))


def test_a_reference_comes_back(tmp_path: pathlib.Path) -> None:
    long = "scope/" * 50 + "op"
    given = [
        (reference.Output("a/b", 1, type="Add", line="t.py:3", inputs=["x:0"], band=0.25), np.arange(3)),
        (reference.Output(long, type="Mul"), np.ones((2, 0), np.float32)),
    ]
    write_reference(str(tmp_path), given)
    problems: dict[str, str] = {}
    found = reference.read_step(str(tmp_path), problems)
    assert [(each.op, each.output, each.line, each.inputs, each.band) for each in found.outputs] == [
        ("a/b", 1, "t.py:3", ["x:0"], 0.25),
        (long, 0, "", [], None),
    ]
    np.testing.assert_array_equal(found.load_output(0), np.arange(3))
    assert (
        found.outputs[1].shape == [2, 0]
        and found.position_of_output("a_b", 1) == 0
        and found.position_of_output("a/b", 0) is None
    )
    (tmp_path / "index.json").unlink()  # as tfdbg writes it
    named = reference.read_step(str(tmp_path), problems)
    assert {each.op for each in named.outputs} == {"a_b", files.name_in_files(long)} and not named.indexed
    (tmp_path / "other.npy").write_bytes(b"")
    (tmp_path / "a_b.1.9999999999999999.npy").write_bytes(b"no array")
    again = reference.read_step(str(tmp_path), problems)
    with pytest.raises(ValueError, match="is no array of NumPy"):
        again.load_output(again.position_of_output("a/b", 1) or 0)
    assert [text[:15] for text in problems.values()] == ["its name is not"]
