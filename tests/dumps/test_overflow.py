"""Op debug files of both generations, joined to dumps, and what a loss scale explains."""

from __future__ import annotations

import json
import pathlib
import struct
from typing import Any

import numpy as np
import pytest

from npu_shim.cli import main
from npu_shim.dumps import device_overflows
from tests.dumps.messages import dump_bytes, tensor

_BIG = np.array([1.0, 6e4], np.float16)
_OVER = np.array([np.inf, 2.0], np.float16)


def old_report(task: int, stream: int, unit: int, status: int) -> bytes:
    """Return a report of the older generation: unit 0 and 1 are atomic additions, 2 the AI Core."""
    made = bytearray(2048)
    struct.pack_into("<6Q", made, (0, 128, 256)[unit], 11, stream, task, 0, 0x10, 0x20)
    struct.pack_into("<Q", made, (512, 768, 1040)[unit], status)
    return bytes(made)


def new_report(task: int, stream: int, unit: int, status: list[int], version: int = 0) -> bytes:
    """Return a report of the newer generation."""
    fields = {0: 11, 1: 11, 2: 8, 3: 10}[unit]
    numbers = [11, stream, task, 0, 0xFFFF, 0xFFFF, *[0] * (fields - 7), *status]
    if unit == 2:
        numbers = [11, stream, task, 0, 0xFFFF, 0, 0xFFFF, *status]
    return struct.pack(f"<6I{len(numbers)}Q", 0x5A5A5A5A, version, 1, unit, 0, 8 * len(numbers), *numbers)


def write(root: pathlib.Path, step: int, name: str, raw: bytes, given: np.ndarray = _BIG, op_type: str = "Mul") -> None:
    """Write the dump of an operator and the report of its overflow."""
    folder = root / "20240101000000" / "0" / "model" / "11" / str(step)
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.iterdir()))
    dump = dump_bytes(name, [tensor(_OVER)], [tensor(given)])
    (folder / f"{op_type}.{name.replace('/', '_')}.7.3.{1700000000000000 + number}").write_bytes(dump)
    report = dump_bytes("Node_OpDebug", [{"raw": raw, "type": "uint8", "shape": [len(raw)]}])
    (folder / f"Opdebug.Node_OpDebug.9.9.{1700000000000001 + number}").write_bytes(report)


@pytest.mark.parametrize(
    ("raw", "unit", "status"),
    [
        (old_report(7, 3, 0, 4), "DHA Atomic Add", 4),
        (old_report(7, 3, 1, 1), "L2 Atomic Add", 1),
        (old_report(7, 3, 2, 32), "AI Core", 32),
        (new_report(7, 3, 0, [8]), "AIC", 8),
        (new_report(7, 3, 1, [0, 0, 16, 0], 1), "AIV", 16),
        (new_report(7, 3, 2, [2]), "AICPU", 2),
        (new_report(7, 3, 3, [64]), "SDMA", 64),
    ],
)
def test_a_report_names_unit_operator_and_ranges(raw: bytes, unit: str, status: int, tmp_path: pathlib.Path) -> None:
    write(tmp_path, 4, "scope/mul", raw)
    (found,) = device_overflows.find_overflows(str(tmp_path), [], None).overflows
    assert (found.unit, found.status, found.task, found.stream) == (unit, status, 7, 3)
    assert (found.operator, found.type, found.step, found.first) == ("scope/mul", "Mul", 4, True)
    assert (found.inputs[0].low, found.inputs[0].high) == (1.0, 60000.0)
    assert (found.outputs[0].not_finite, found.outputs[0].high) == (1, 2.0)


@pytest.mark.parametrize(
    "made",
    [
        {
            "AI Core": {"task_id": 7, "stream_id": 3, "status": 32},
            "L2 Atomic Add": {"task_id": 0, "stream_id": 0, "status": 0},
        },
        {
            "magic": "0x5a5a5a5a",
            "acc_list": {"acc_type": "AIC", "data": {"task_id": 7, "stream_id": 3, "status": [0, 8]}},
        },
    ],
)
def test_json_of_the_vendor_counts_where_its_dump_is_not_there(made: dict[str, Any], tmp_path: pathlib.Path) -> None:
    write(tmp_path, 0, "scope/mul", old_report(7, 3, 2, 32))
    dump = next(tmp_path.rglob("Opdebug*"))
    (dump.parent / f"{dump.name}.output.0.json").write_text(json.dumps(made), encoding="utf-8")
    assert len(device_overflows.find_overflows(str(tmp_path), [], None).overflows) == 1
    dump.unlink()
    (found,) = device_overflows.find_overflows(str(tmp_path), [], None).overflows
    assert found.operator == "scope/mul" and found.status in (8, 32)


GRADIENT = "gradients/dense/MatMul_grad/MatMul"


@pytest.mark.parametrize(
    ("name", "steps", "scale", "given", "verdict", "reason"),
    [
        ("dense/MatMul", [3], {3: 1024.0}, _BIG, "not normal", "it is in the forward pass"),
        (GRADIENT, [3], {3: 1024.0}, _BIG, "normal", "the step is skipped, the scale falls"),
        (GRADIENT, [3], {3: 1.0}, _BIG, "not normal", "the loss scale has fallen to 1"),
        (GRADIENT, [3], 128.0, _BIG, "not normal", "the loss scale is fixed at 128"),
        (GRADIENT, [3], None, _BIG, "normal with a dynamic loss scale only", "the step must be skipped"),
        (GRADIENT, list(range(12)), {0: 4.0}, _BIG, "not normal", "12 steps in a row overflow"),
        (GRADIENT, list(range(0, 40, 4)), {0: 4.0}, _BIG, "normal", "the step is skipped"),
        (GRADIENT, [3], {3: 1024.0}, _OVER, "not normal", "input 0 has Inf, NaN or 65504 already"),
    ],
)
def test_the_verdict_follows_from_the_loss_scale(
    name: str, steps: list[int], scale: Any, given: np.ndarray, verdict: str, reason: str, tmp_path: pathlib.Path
) -> None:
    for step in steps:
        write(tmp_path, step, name, old_report(7, 3, 2, 32), given)
    found = device_overflows.find_overflows(str(tmp_path), [], scale)
    assert {each.verdict for each in found.overflows} == {verdict}
    assert reason in found.overflows[0].reason


@pytest.mark.parametrize(
    "largest, reason", [(2.0, "enable_overflow_check=False"), (np.inf, "it is in the forward pass")]
)
def test_an_overflow_of_what_fills_a_format_up_differs_from_others(
    largest: float, reason: str, tmp_path: pathlib.Path
) -> None:
    numbers = np.array([[1.0, 2.0, largest], [0.5, 1.0, 1.0]], np.float16)
    nz = tensor(numbers, "FRACTAL_NZ")
    stored = np.frombuffer(nz["raw"], np.float16).copy()
    stored[stored == 0] = -np.inf  # the logarithm of what fills the blocks up
    write(tmp_path, 3, "log", new_report(7, 3, 0, [8]), op_type="Log")
    (file,) = tmp_path.rglob("Log.log.*")
    given = tensor(np.abs(np.where(np.isinf(numbers), 2, numbers)), "FRACTAL_NZ")
    file.write_bytes(dump_bytes("log", [{**nz, "raw": stored.tobytes()}], [given]))
    (overflow,) = device_overflows.find_overflows(str(tmp_path), [], {3: 1024.0}).overflows
    assert overflow.verdict == device_overflows.NOT_NORMAL and reason in overflow.reason


def test_an_operator_after_the_first_has_its_overflow_from_there(tmp_path: pathlib.Path) -> None:
    write(tmp_path, 1, GRADIENT, old_report(7, 3, 2, 32))
    folder = next(tmp_path.rglob("Opdebug*")).parent
    (folder / "Mul.gradients_next.8.3.1700000000000009").write_bytes(dump_bytes("gradients/next", [], [tensor(_OVER)]))
    raw = old_report(8, 3, 2, 32)
    report = dump_bytes("Node_OpDebug", [{"raw": raw, "type": "uint8", "shape": [len(raw)]}])
    (folder / "Opdebug.Node_OpDebug.9.9.1700000000000010").write_bytes(report)
    first, after = device_overflows.find_overflows(str(tmp_path), [], {1: 2.0}).overflows
    assert (first.first, after.first, after.operator) == (True, False, "gradients/next")
    assert after.reason == "input 0 has overflown before: see the first of the step"


def test_the_command_prints_the_first_overflow(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "card", 3, "dense/MatMul", old_report(7, 3, 2, 32))
    write(tmp_path / "card", 4, GRADIENT, b"short")
    scales = tmp_path / "scales.csv"
    scales.write_text("3,1024\n4 512\n\n", encoding="utf-8")
    out = tmp_path / "out"
    assert main(["dumps", "overflow", str(tmp_path / "card"), "--loss-scale", str(scales), "-r", str(out)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "first overflow that is not normal: step 3, dense/MatMul (Mul)"
    assert "step 3, loss scale 1024:" in lines and "    input 0: float16 [2], 1 to 60000" in lines
    assert lines[-1].endswith("5 bytes are no report of an overflow, which has a magic number or 2048 bytes")
    assert json.loads((out / "overflow.json").read_text(encoding="utf-8"))["verdict"] == "not normal"
    assert (out / "overflow.txt").read_text(encoding="utf-8").splitlines() == lines
    (tmp_path / "empty").mkdir()
    assert main(["dumps", "overflow", str(tmp_path / "empty")]) == 2
    assert "no overflow: the folder has no op debug files" in capsys.readouterr().out
