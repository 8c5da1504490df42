"""The JSON of npu-shim dumps and diagnose is what its schemas in docs say."""

from __future__ import annotations

import json
import pathlib
import struct
from typing import Any

import jsonschema
import numpy as np
import pytest

from npu_shim.cli import main
from npu_shim.dumps import reference
from tests.dumps.test_diagnose import Bench, Card
from tests.dumps.written_reference import write as write_reference
from tests.schemas.test_schemas import closed


def field(number: int, value: bytes | int) -> bytes:
    """Return a field of a message of protobuf: fewer than 128 bytes, or a number below 128."""
    return bytes([number << 3, value] if isinstance(value, int) else [number << 3 | 2, len(value)]) + (
        b"" if isinstance(value, int) else value
    )


def dump(name: str, array: np.ndarray, kind: int) -> bytes:
    """Return a dump with one output, which is an input, too."""
    raw = array.tobytes()
    shape = b"".join(field(1, size) for size in array.shape)
    output = field(1, kind) + field(2, 2) + field(3, shape) + bytes([6 << 3]) + varint(len(raw))
    given = field(1, kind) + field(2, 2) + field(3, shape) + bytes([5 << 3]) + varint(len(raw))
    head = field(3, output) + field(4, given) + field(6, name.encode())
    return struct.pack("<Q", len(head)) + head + raw + raw


def varint(number: int) -> bytes:
    """Return a number as protobuf writes it."""
    made = b""
    while number > 127:
        made, number = made + bytes([number & 127 | 128]), number >> 7
    return made + bytes([number])


def valid(path: pathlib.Path, schema: pathlib.Path) -> Any:
    """Return JSON that its schema accepts, and no more."""
    rules = closed(json.loads(schema.read_text(encoding="utf-8")))
    jsonschema.Draft7Validator.check_schema(rules)
    found = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(found, rules)
    return found


@pytest.mark.parametrize("departs", [False, True])
def test_comparisons_are_valid(departs: bool, tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    given = [(reference.Output(op, inputs=taken), array) for op, taken in (("a", []), ("b", ["a:0"]), ("alone", []))]
    write_reference(str(tmp_path / "cpu"), given)
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / "Add.a.1.2.1700000000000001").write_bytes(dump("a", array, 1))
    other = np.full_like(array, np.nan) if departs else array
    (tmp_path / "card" / "Mul.b.2.2.1700000000000002").write_bytes(dump("b", other, 1))
    (tmp_path / "card" / "Mul.gone.3.2.1700000000000003").write_bytes(dump("gone", array, 34))
    (tmp_path / "card" / "Mul.cut.4.2.1700000000000004").write_bytes(b"cut")
    code = main(["dumps", "compare", str(tmp_path / "card"), str(tmp_path / "cpu"), "-r", str(tmp_path / "out")])
    assert code == departs
    found = valid(tmp_path / "out" / "dumps.json", repo_root / "docs" / "dumps.schema.json")
    assert (found["first_departure"] is not None) == departs and len(found["problems"]) == 1
    assert found["unpaired"] and found["types"]
    page = (tmp_path / "out" / "dumps.html").read_text(encoding="utf-8")
    assert 'id="search"' in page and ('class="path"' in page) == departs


def test_overflows_are_valid(tmp_path: pathlib.Path, repo_root: pathlib.Path) -> None:
    report = bytearray(2048)
    struct.pack_into("<6Q", report, 256, 1, 2, 1, 0, 0, 0)
    struct.pack_into("<Q", report, 1040, 32)
    card = tmp_path / "card"
    card.mkdir()
    (card / "Opdebug.Node_OpDebug.9.9.1700000000000002").write_bytes(
        dump("Node_OpDebug", np.frombuffer(bytes(report), np.uint8).reshape(64, 32), 4)
    )
    (card / "Add.a.1.2.1700000000000001").write_bytes(dump("a", np.array([1, np.inf], np.float16), 2))
    (card / "Add.b.1.2.1700000000000003").write_bytes(b"")
    assert main(["dumps", "overflow", str(card), "-r", str(tmp_path / "out")]) == 1
    found = valid(tmp_path / "out" / "overflow.json", repo_root / "docs" / "overflow.schema.json")
    assert found["overflows"][0]["inputs"][0]["not_finite"] == 1


@pytest.mark.parametrize("planted", ["clean", "script"])
def test_diagnoses_are_valid(
    planted: str, tmp_path: pathlib.Path, repo_root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, monkeypatch)
    bench.diagnose(Card(planted))
    found = valid(bench.out / "diagnose.json", repo_root / "docs" / "diagnose.schema.json")
    assert (found["cause"] is not None) == (planted == "script") and found["findings"]
