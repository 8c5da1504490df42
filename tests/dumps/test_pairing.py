"""Pairs of dumps and outputs of a reference: without a graph, of files of tfdbg, of slices, and of a second run."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import numpy as np
import pytest

from npu_shim.dumps import bands, dump_comparison, reference
from tests.dumps.messages import dump_bytes, tensor
from tests.dumps.written_reference import write as write_reference

_A = np.random.RandomState(3).normal(size=(4, 6)).astype(np.float32)


def write(folder: pathlib.Path, name: str, array: np.ndarray, number: int = 1, end: str = "", **more: Any) -> None:
    """Write a dump."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = more.pop("op_type", "Add")
    attributes = more.pop("attributes", None)
    flat = more.pop("file_name", name.replace("/", "_"))
    path = folder / f"{kind}.{flat}.{number}.0.{1700000000000000 + number}{end}"
    path.write_bytes(dump_bytes(name, [tensor(array, **more)], (), attributes))


def run(card: pathlib.Path, cpu: pathlib.Path, **more: Any) -> Any:
    """Return the result of a comparison."""
    return dump_comparison.compare_dumps(str(card), str(cpu), **more)


def test_the_op_that_a_dump_names_counts_without_a_graph(tmp_path: pathlib.Path) -> None:
    given = [(reference.Output(op, inputs=taken), _A) for op, taken in (("x", []), ("y", ["x:0"]), ("z", ["y:0"]))]
    write_reference(str(tmp_path / "cpu"), given)
    write(tmp_path / "card", "renamed_by_a_pass", _A, original="y", original_output=0xFFFFFFFF)  # the engine writes -1
    write(tmp_path / "card", "x", _A, 2)
    write(tmp_path / "card", "fused", _A * np.float32(2), 3, attributes={"_datadump_original_op_names": "[1]y[1]z"})
    write(tmp_path / "card", "unknown", _A, 4, attributes={"_datadump_original_op_names": "[4]gone"})
    write(tmp_path / "card", "nameless", _A, 5)
    found = run(tmp_path / "card", tmp_path / "cpu")
    assert {each.operator: each.op for each in found.tensors} == {
        "renamed_by_a_pass": "y:0",
        "x": "x:0",
        "fused": "z:0",
    }
    first = found.first_departure
    assert (first.operator, first.inputs) == ("fused", "agree")
    assert {(each.cause, tuple(each.names)) for each in found.unpaired} == {
        ("original op not in the reference", ("unknown",)),
        ("original op unknown", ("nameless",)),
    }


def test_files_of_tfdbg_have_no_index(tmp_path: pathlib.Path) -> None:
    (tmp_path / "cpu").mkdir()
    np.save(tmp_path / "cpu" / "scope_add.0.1700000000000000.npy", np.zeros_like(_A))
    np.save(tmp_path / "cpu" / "scope_add.0.1700000000000001.npy", _A)  # the last counts
    write(tmp_path / "card", "", _A, file_name="scope_add")
    found = run(tmp_path / "card", tmp_path / "cpu")
    assert (found.verdict, found.pairs) == ("agrees", 1)


def test_steps_are_compared_with_their_own(tmp_path: pathlib.Path) -> None:
    for step in (0, 5):
        write_reference(str(tmp_path / "cpu" / str(step)), [(reference.Output("add"), _A + step)])
        place = tmp_path / "card" / "20240101000000" / "0" / "m" / "1" / str(step)
        write(place, "add", _A + np.float32(step if step == 0 else 6))
    found = run(tmp_path / "card", tmp_path / "cpu")
    assert [(each.step, each.state) for each in found.tensors] == [(0, "agrees"), (5, "departs")]
    assert found.first_departure.step == 5
    assert run(tmp_path / "card", tmp_path / "cpu", step=0).verdict == "agrees"


def test_another_shape_departs(tmp_path: pathlib.Path) -> None:
    write_reference(str(tmp_path / "cpu"), [(reference.Output("add"), _A), (reference.Output("one"), _A[:1])])
    write(tmp_path / "card", "add", _A[:3])
    write(tmp_path / "card", "one", _A[0], 2)  # without the axis of one
    found = run(tmp_path / "card", tmp_path / "cpu")
    assert [each.state for each in found.tensors] == ["departs", "agrees"]
    assert found.first_departure.why == ["shape [3, 6] on the device, [4, 6] in the reference"]


def test_a_band_of_the_reference_takes_the_place_of_the_limit(tmp_path: pathlib.Path) -> None:
    write(tmp_path / "card", "add", _A * np.float32(1.1))
    for band, verdict in ((None, "departs"), (0.2, "agrees")):
        write_reference(str(tmp_path / "cpu"), [(reference.Output("add", band=band), _A)])
        assert run(tmp_path / "card", tmp_path / "cpu").verdict == verdict
    write_reference(str(tmp_path / "cpu"), [(reference.Output("add"), _A)])
    assert run(tmp_path / "card", tmp_path / "cpu", tolerance=10).verdict == "agrees"


def test_slices_are_put_together(tmp_path: pathlib.Path) -> None:
    cut = {"_ffts": json.dumps({"threadMode": 1, "outputCutList": [[2, 1]]})}
    write_reference(str(tmp_path / "cpu"), [(reference.Output("add"), _A), (reference.Output("mul"), _A.T)])
    card = tmp_path / "card"
    for thread in (0, 1):
        part, name = _A[2 * thread : 2 * thread + 2], "sgt_graph_0_add"
        write(card, name, part, 1, f".4.{thread}.{thread}.0", attributes=cut)
    manual = {"_ffts": json.dumps({"threadMode": 0, "outputCutList": [[1, 2]]})}
    for part in (0, 1):
        piece = np.ascontiguousarray(_A.T[:, 2 * part : 2 * part + 2])
        write(card, f"mul_lxslice{part}", piece, 2 + part, op_type="Mul", attributes=manual)
    found = run(card, tmp_path / "cpu")
    assert [(each.op, each.state) for each in found.tensors] == [("add:0", "agrees"), ("mul:0", "agrees")]
    next(card.glob("Mul.mul_lxslice1*")).unlink()
    assert "a slice is missing" in run(card, tmp_path / "cpu").first_departure.cause


def test_a_second_run_shows_what_is_not_repeatable(tmp_path: pathlib.Path) -> None:
    for side in ("one", "two"):
        write(tmp_path / side, "mul", _A, 1, original="x")
        write(tmp_path / side, "add", _A if side == "one" else _A + np.float32(1), 2, original="x")
    found = run(tmp_path / "one", tmp_path / "two")
    assert [(each.operator, each.op, each.state) for each in found.tensors] == [
        ("mul", "mul:0", "agrees"),
        ("add", "add:0", "departs"),
    ]


def test_perturbed_runs_give_each_output_its_band(tmp_path: pathlib.Path) -> None:
    exact = np.linspace(1, 2, 64, dtype=np.float32)
    names = [str(tmp_path / "cpu" / f"perturbed_{number}") for number in range(1, 5)]
    for folder, share in zip([str(tmp_path / "cpu"), *names], (0.0, 1e-3, -1e-3, 1e-3, -1e-3)):
        made = [("a", exact * np.float32(1 + share)), ("same", exact), ("count", np.arange(3)), ("zero", exact * 0)]
        write_reference(f"{folder}/0", [(reference.Output(op), array) for op, array in made])
    bands.add_bands_and_remove_perturbed_runs(str(tmp_path / "cpu"), [*names, str(tmp_path / "missing")], "float16")
    found = {each.op: each.band for each in reference.read_step(str(tmp_path / "cpu" / "0"), {}).outputs}
    assert found["a"] == pytest.approx(8.61e-3 + 2**-11, rel=1e-4) and found["same"] == 2**-11
    assert found["count"] is None and found["zero"] == 2**-11
    assert os.listdir(str(tmp_path / "cpu")) == ["0"]


def test_random_numbers_are_not_compared_nor_what_follows(tmp_path: pathlib.Path) -> None:
    ops = [("draw", "RandomUniform", []), ("scaled", "Mul", ["draw:0"]), ("x", "Add", []), ("y", "Add", ["x:0"])]
    given = [(reference.Output(op, type=kind, inputs=taken), _A) for op, kind, taken in ops]
    write_reference(str(tmp_path / "cpu"), given)
    for number, (op, kind, _) in enumerate(ops, 1):
        write(tmp_path / "card", op, _A[::-1] if number < 3 else _A, number, op_type=kind)
    found = run(tmp_path / "card", tmp_path / "cpu")
    assert (found.verdict, found.states) == ("agrees", {"not compared": 2, "agrees": 2})
    write(tmp_path / "card", "y", _A * 2, 4)
    assert run(tmp_path / "card", tmp_path / "cpu").first_departure.operator == "y"
    write(tmp_path / "card", "draw", _A, 1, op_type="RandomUniform")  # equal random numbers excuse nothing
    assert run(tmp_path / "card", tmp_path / "cpu").first_departure.operator == "scaled"
    write(tmp_path / "card", "scaled", _A * 2, 2)
    draws = tmp_path / "card" / "draws.json"
    draws.write_text(
        '{"schema_version": 1, "shared": ["draw"], "left": []}', encoding="utf-8"
    )  # and those of the host excuse nothing
    next((tmp_path / "card").glob("RandomUniform*")).unlink()
    assert run(tmp_path / "card", tmp_path / "cpu").first_departure.operator == "scaled"
    draws.write_text("[]", encoding="utf-8")
    found = run(tmp_path / "card", tmp_path / "cpu")
    assert found.first_departure.operator == "y"
    assert found.problems[0].problem.startswith("it has no list of random ops")
