"""Predicted times of single ops: from the level that has measurements, never less for more work, with sources."""

from __future__ import annotations

import csv
import json
import pathlib

import numpy as np
import pytest

from npu_shim.rehearsal.predict import op_times
from npu_shim.rehearsal.predict.features import DeviceOp, Tensor

pytestmark = pytest.mark.once

PROCESSORS = ("Ascend910A", "Ascend910ProB", "Ascend910B1", "Ascend910B3", "Ascend910B4")


def dense(batch: int, type: str = "MatMulV2") -> DeviceOp:
    shapes = ((batch, 1024), (1024, 4096), (batch, 4096))
    *inputs, output = (Tensor(shape, "FLOAT16") for shape in shapes)
    return DeviceOp(type, inputs, [output])


def relu(batch: int, type: str = "Relu") -> DeviceOp:
    image = Tensor((batch, 4, 56, 56, 16), "FLOAT16", "NC1HWC0")
    return DeviceOp(type, [image], [image])


def gather(batch: int, type: str = "GatherV2") -> DeviceOp:
    table, indices, rows = ((50000, 64), "FLOAT"), ((batch, 20), "INT32"), ((batch, 20, 64), "FLOAT")
    return DeviceOp(type, [Tensor(*table), Tensor(*indices)], [Tensor(*rows)])


@pytest.mark.parametrize("name", PROCESSORS)
@pytest.mark.parametrize("make", [dense, relu, gather])
def test_a_larger_batch_never_takes_less(make, name: str) -> None:  # type: ignore[no-untyped-def]
    ops = [make(batch) for batch in (1, 2, 8, 31, 32, 33, 256, 4096)]
    took = [each.seconds for each in op_times.shipped_op_times().estimates(ops, op_times.processor(name))]
    assert took == sorted(took) and 2e-7 < took[0] and took[0] < took[-1]


@pytest.mark.parametrize("name", PROCESSORS)
def test_an_op_is_within_reach_of_its_memory_and_matrix_unit(name: str) -> None:
    """Measured ops are faster than memory where the cache has what the op before wrote, and slower by 4 at most."""
    device = op_times.processor(name)
    for op in (dense(4096), relu(256)):
        (estimate,) = op_times.shipped_op_times().estimates([op], device)
        memory, matrix, _ = op_times.work_on_processor(op, device)
        best = max(memory, matrix) / 1e6
        assert best / 3 < estimate.seconds < 4 * best, (op.type, estimate)


def test_the_level_says_what_is_measured() -> None:
    table = op_times.shipped_op_times()
    levels = [
        table.row_of_type("910", type)[0] for type in ("MatMulV2", "MatMul", "FusedMulApplyMomentum", "NewWordNorm")
    ]
    assert levels == [op_times.TYPE, op_times.TYPE, op_times.TYPE, op_times.CLASS]
    level, row = table.row_of_type("910B", "UnsortedSegmentSum")
    assert level == op_times.OTHER_FAMILY and (row.family, row.name) == ("910", "UnsortedSegmentSum") and row.runs


def test_a_type_without_own_measurements_is_drawn_from_the_other_family_by_its_distance_to_its_class() -> None:
    def row(family: str, level: str, name: str, *numbers: float) -> op_times.Row:
        return op_times.Row(family, level, name, 7, 5, 3, np.log(numbers))

    rows = [
        row("910", op_times.CLASS, "norm", 2.0, 1.0, 1.0, 100.0),
        row("910", op_times.TYPE, "Softmax", 4.0, 3.0, 1.0, 50.0),
        row("910B", op_times.CLASS, "norm", 1.0, 2.0, 1.0, 10.0),
    ]
    level, borrowed = op_times.OpTimes(rows).row_of_type("910B", "SoftmaxV2")
    assert level == op_times.OTHER_FAMILY and np.allclose(np.exp(borrowed.logs), [2.0, 6.0, 1.0, 5.0])
    level, of_class = op_times.OpTimes(rows).row_of_type("910B", "LayerNorm")
    assert (level, of_class.name) == (op_times.CLASS, "norm")
    level, of_unit = op_times.OpTimes(rows).row_of_type("910", "Relu")
    assert (level, of_unit.runs) == (op_times.UNIT, 0)


def test_the_formula() -> None:
    rows = [op_times.Row("910", op_times.TYPE, "BiasAdd", 1, 1, 1, np.log([3.0, 2.0, 1.0, 8.0]))]
    device = op_times.Processor("made up", "910", 1e12, 1e9, 4, 1.0, 1.0)
    tensor, bias = Tensor((64, 256), "FLOAT"), Tensor((256,), "FLOAT")
    (estimate,) = op_times.OpTimes(rows).estimates([DeviceOp("BiasAdd", [tensor, bias], [tensor])], device)
    us = 3.0 + 2.0 * 1e6 * 4 * (2 * 64 * 256 + 256) / 1e9 + 8.0 * 64 / 4 / 1000
    assert estimate.seconds == pytest.approx(us / 1e6) and estimate.parts[0] == pytest.approx(3e-6)


@pytest.mark.parametrize(
    ("dtype", "share"),
    [
        ("FLOAT16", 1.0),
        ("DT_BF16", 1.0),
        ("FLOAT", 0.25),
        ("INT8", 2.0),
        ("FLOAT64", 0.25),
        ("DT_DOUBLE", 0.25),
        ("COMPLEX64", 0.25),
    ],
)
def test_the_rate_of_the_matrix_unit_is_that_of_the_type(dtype: str, share: float) -> None:
    device, tensor = op_times.processor("Ascend910B3"), Tensor((256, 256), dtype)
    assert device.rate(DeviceOp("MatMulV3", [tensor, tensor], [tensor])) == share * device.flops
    old = op_times.processor("Ascend910A")  # casts float32
    assert old.rate(DeviceOp("MatMul", [Tensor((16, 16), "FLOAT")] * 2, [])) == old.flops


def test_an_unknown_processor_is_one_error_with_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="--processor Ascend910B33: no such processor.*Ascend910B3.*Use one of"
    ) as error:
        op_times.processor("Ascend910B33")
    assert all(name in str(error.value) for name in PROCESSORS)


def test_the_table_says_what_is_behind_each_row_and_its_sources(repo_root: pathlib.Path) -> None:
    text = (repo_root / "npu_shim" / "rehearsal" / "predict" / "op_times.json").read_text(encoding="utf-8")
    table = json.loads(text)
    for family, level, name, runs, signatures, models, numbers in table["rows"]:
        assert runs >= signatures >= models >= 1 and len(numbers) == 4 and min(numbers) > 0, (family, level, name)
    with open(repo_root / "docs" / "op_times" / "sources.tsv", encoding="utf-8", newline="") as stream:
        sources = list(csv.DictReader(stream, delimiter="\t"))
    assert sorted({f"{row['repository']}@{row['commit']}" for row in sources}) == table["sources"]
    assert len(sources) == table["errors"]["one model"]["profiles"]
    assert {row["processor"] for row in sources} == set(PROCESSORS)
    assert all(1.0 < row["within_80"] < row["within_95"] < 3 for row in table["errors"].values())
