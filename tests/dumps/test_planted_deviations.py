"""Deviations planted in the dumps of a sample's step are found and named; clean dumps have none."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
from typing import Any, Callable

import numpy as np
import pytest

from npu_shim.cli import main
from npu_shim.dumps import dump_comparison, reference
from npu_shim.dumps.reports.comparison_text import answer_sentences
from tests.dumps.engine import Engine
from tests.dumps.messages import tensor
from tests.rehearsal.recorded_runs import HAS_ESTIMATOR

pytestmark = [pytest.mark.once, pytest.mark.slow]
Change = Callable[[np.ndarray], np.ndarray]

CONV = "Conv2D_1BiasAdd_1Relu_1_of_cnn/Conv2D_1"
CONV_ALONE = "gradients/cnn/Conv2D_1_grad/Conv2DBackpropInput"
WEIGHTS = "gradients/cnn/Conv2D_1_grad/Conv2DBackpropFilter"
DENSE = "MatMuladdRelu_2_of_cnn/MatMul"
LOGITS = "MatMul_1add_1_of_cnn/MatMul_1"
POOL = "cnn/MaxPool"
RESHAPED = "cnn/Reshape_renamed_by_a_pass"
LOSS = "sparse_softmax_cross_entropy_loss/xentropy/xentropy"
PRODUCT = "gradients/cnn/MatMul_1_grad/MatMul_1"
RELU_GRADIENT = "gradients/cnn/Relu_1_grad/ReluGrad"
MASK = "cnn/dropout/GreaterEqual"
SIZES = "cnn/Reshape/shape"


def at(places: int, value: float) -> Change:
    """Put a value to some places."""

    def change(array: np.ndarray) -> np.ndarray:
        made = array.copy()
        made.reshape(-1)[np.linspace(0, made.size - 1, places).astype(int)] = value
        return made

    return change


def noise(share: float) -> Change:
    """Add noise of a share of the root mean square."""
    return lambda a: a + np.random.RandomState(1).normal(0, share * np.sqrt((a**2).mean()), a.shape).astype(a.dtype)


def moved(*axes: int) -> Change:
    """Return the elements in the order of other axes, in the same shape."""
    return lambda array: np.ascontiguousarray(array.transpose(axes)).reshape(array.shape)


PLANTED: dict[str, tuple[str, Change, str]] = {
    "one op, factor": (LOSS, lambda a: a * np.float32(1.1), "factor: the elements are 1.1 times"),
    "one op, sign": (PRODUCT, lambda a: -a, "factor: the elements are -1 times"),
    "one op, offset": (LOSS, lambda a: a + np.float32(0.5), "offset: the elements are those of the reference and 0.5"),
    "one op, zeros": (POOL, np.zeros_like, "zeros"),
    "one op, noise": (LOSS, noise(0.1), "spread"),
    "one op, other data": (
        RESHAPED,
        lambda a: np.random.RandomState(2).permutation(a.reshape(-1)).reshape(a.shape),
        "spread",
    ),
    "one op, not normalized": (PRODUCT, lambda a: a * np.float32(8), "factor: the elements are 8 times"),
    "one op, whole numbers": (SIZES, lambda a: a * 2, "factor: the elements are 2 times"),
    "one op, booleans": (MASK, lambda a: ~a, "spread"),
    "gradient, factor": (WEIGHTS, lambda a: a / np.float32(2), "factor: the elements are 0.5 times"),
    "gradient, stale": (RELU_GRADIENT, np.zeros_like, "zeros"),
    "renamed op": (RESHAPED, lambda a: a * np.float32(0.5), "factor: the elements are 0.5 times"),
    "fused op, factor": (CONV, lambda a: a * np.float32(1.25), "factor: the elements are 1.25 times"),
    "fused op, noise": (DENSE, noise(0.2), "spread"),
    "fused op, without its last op": (CONV, lambda a: a - np.float32(0.3), "offset"),
    "fused op, no bias": (LOGITS, lambda a: a - np.float32(0.25), "offset"),
    "fused op, zeros": (DENSE, np.zeros_like, "zeros"),
    "format, rows and columns": (
        CONV,
        moved(0, 2, 1, 3),
        "layout: the elements are those of the reference with its axes",
    ),
    "format, weights": (WEIGHTS, moved(1, 0, 2, 3), "layout"),
    "wrong layout, channels first": (POOL, moved(0, 3, 1, 2), "layout"),
    "wrong layout, transposed": (PRODUCT, moved(1, 0), "layout: the elements are those of the reference with its axes"),
    "wrong layout, channels last": (RELU_GRADIENT, moved(0, 2, 3, 1), "layout"),
    "random error, one element": (CONV, at(1, 3.0), "isolated: 1 of"),
    "random error, some elements": (CONV_ALONE, at(12, 0.7), "isolated: 12 of"),
    "random error in a product": (PRODUCT, at(3, -2.0), "isolated: 3 of"),
    "overflow, Inf": (DENSE, at(2, np.inf), "Inf or NaN: 2 elements"),
    "overflow, NaN": (LOSS, at(1, np.nan), "Inf or NaN: 1 elements"),
    "overflow, all": (CONV, lambda a: np.full_like(a, np.nan), "Inf or NaN"),
    "overflow of float16": (LOGITS, at(2, np.inf), "float16 overflow: 2 elements are above 65504"),
    "saturation of float16": (LOGITS, at(2, 65504.0), "float16 saturation: 2 elements are above 65504"),
}


def rounds() -> list[list[str]]:
    """Return the names of deviations in groups in which no two are of one operator."""
    groups: list[list[str]] = []
    for name, (operator, _, _) in PLANTED.items():
        free = [group for group in groups if operator not in {PLANTED[each][0] for each in group}]
        if not free:
            groups.append([])
        (free or groups[-1:])[0].append(name)
    return groups


def recorded(script: pathlib.Path, folder: pathlib.Path) -> Engine:
    """Run a sample to its first step, write what TensorFlow computes in it, and clean dumps of it."""
    subprocess.run(
        [sys.executable, "-m", "tests.dumps.recorded_step", str(script), str(folder / "cpu"), "--batch_size=4"],
        cwd=script.parents[2],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    engine = Engine(reference.read_step(str(folder / "cpu"), {}))
    engine.write(folder / "card", with_inputs=False)
    return engine


@pytest.fixture(scope="module")
def step(
    repo_root: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[pathlib.Path, Engine, pathlib.Path]:
    """A step of digits_session in TensorFlow, and clean dumps of it."""
    folder = tmp_path_factory.mktemp("dumps")
    engine = recorded(repo_root / "samples" / "digits_session" / "original.py", folder)
    return folder / "cpu", engine, folder / "card"


def compared(card: pathlib.Path, cpu: pathlib.Path) -> Any:
    """Return the result of a comparison."""
    return dump_comparison.compare_dumps(str(card), str(cpu))


def test_clean_dumps_agree(step: tuple[pathlib.Path, Engine, pathlib.Path], tmp_path: pathlib.Path) -> None:
    cpu, engine, card = step
    found = compared(card, cpu)
    assert (found.verdict, found.first_departure, found.problems) == ("agrees", None, [])
    assert found.states == {"agrees": found.pairs}
    causes = {(each.side, each.cause): each.number for each in found.unpaired}
    added = sum(not made.originals for made in engine.operators.values())
    inside = sum(len(made.originals) - 1 for made in engine.operators.values() if made.originals)
    assert causes == {("device", "added by the engine"): added, ("reference", "inside a fused operator"): inside}
    assert found.pairs == len(engine.reference.outputs) - inside
    engine.write(tmp_path / "with inputs")  # and a graph in the other form
    (tmp_path / "with inputs" / "ge_proto_00000001_graph_1_Build.txt").unlink()
    (tmp_path / "with inputs" / "ge_onnx_00000001_graph_1_Build.pbtxt").write_text(engine.onnx(), encoding="utf-8")
    whole = compared(tmp_path / "with inputs", cpu)
    assert whole.states == {"agrees": whole.pairs} and whole.pairs > 1.5 * found.pairs


def planted(names: list[str], step: tuple[pathlib.Path, Engine, pathlib.Path], folder: pathlib.Path) -> Any:
    """Return the result of a comparison with deviations planted."""
    cpu, engine, card = step
    shutil.copytree(cpu, folder / "cpu")
    try:
        for name in names:
            operator, change, _ = PLANTED[name]
            made = engine.operators[operator]
            array = made.arrays[0]
            place = engine.reference.position_of_output(made.originals[-1], 0)
            assert place is not None
            if "of float16" in name:  # the reference has numbers that float16 lacks
                np.save(folder / "cpu" / engine.reference.outputs[place].file, at(2, 7e4)(array))
            output = tensor(change(array), made.layout, made.letters, made.dtype)
            engine.write_operator(card, operator, lambda _, output=output: output, with_inputs=False)
        return compared(card, folder / "cpu")
    finally:
        for name in names:
            engine.write_operator(card, PLANTED[name][0], with_inputs=False)


def check(found: Any, names: list[str], engine: Engine) -> None:
    """Check that each deviation is found and named, and nothing else, and that the first of the graph comes first."""
    departing = {each.operator: each for each in found.tensors if each.state != "agrees"}
    assert set(departing) == {PLANTED[name][0] for name in names}
    for name in names:
        operator, _, cause = PLANTED[name]
        assert departing[operator].state == "departs" and departing[operator].cause.startswith(cause), name
        assert departing[operator].op == f"{engine.operators[operator].originals[-1]}:0"
    order = list(engine.operators)
    first = found.first_departure
    assert first.operator == min(departing, key=order.index) and first.path[-1].operator == first.operator
    assert first.line.startswith("original.py:") and first.inputs in ("agree", "not compared")
    assert f"{first.operator} ({engine.operators[first.operator].op_type}), original.py" in answer_sentences(found)[0]


@pytest.mark.parametrize("names", rounds(), ids=lambda names: f"{len(names)} deviations")
def test_planted_deviations_are_found_and_named(
    names: list[str], step: tuple[pathlib.Path, Engine, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    check(planted(names, step, tmp_path), names, step[1])


@pytest.mark.nightly
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_deviation_is_found_and_named(
    name: str, step: tuple[pathlib.Path, Engine, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    check(planted([name], step, tmp_path), [name], step[1])


@pytest.mark.nightly
@pytest.mark.parametrize("sample", ["digits_gan/expected_npu.py", *["digits_estimator/original.py"] * HAS_ESTIMATOR])
def test_operators_of_other_samples_are_found(sample: str, repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    engine = recorded(repo_root / "samples" / sample, tmp_path)
    assert compared(tmp_path / "card", tmp_path / "cpu").verdict == "agrees"
    of_floats = [
        (name, made)
        for name, made in engine.operators.items()
        if made.originals and made.arrays[0].dtype == np.float32 and np.abs(made.arrays[0]).max() > 0
    ]
    assert len(of_floats) > 50
    for name, made in of_floats[::9]:
        output = tensor(made.arrays[0] * np.float32(1.5), made.layout, made.letters, made.dtype)
        engine.write_operator(tmp_path / "card", name, lambda _, output=output: output, with_inputs=False)
        first = compared(tmp_path / "card", tmp_path / "cpu").first_departure
        assert first.operator == name
        engine.write_operator(tmp_path / "card", name, with_inputs=False)


def test_damaged_files_are_named_and_the_rest_is_compared(
    step: tuple[pathlib.Path, Engine, pathlib.Path], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cpu, _, card = step
    shutil.copytree(card, tmp_path / "card")
    place = Engine.place(tmp_path / "card")
    dumps = sorted(path for path in place.iterdir() if path.name != "mapping.csv" and path.stat().st_size > 200)[::20]
    for number, path in enumerate(dumps):
        raw = path.read_bytes()
        damaged = [raw[:5], raw[: len(raw) // 2], raw[:-1], b"\xff" * 64, b"#!/bin/sh\n" * 9, raw[:8] + b"\xff" * 200]
        path.write_bytes(damaged[number % len(damaged)])
    (place / "notes").write_text("foreign", encoding="utf-8")
    (tmp_path / "card" / "ge_proto_00000002_graph_2_Build.txt").write_text("op { name: ", encoding="utf-8")
    assert main(["dumps", "compare", str(tmp_path / "card"), str(cpu), "-r", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "files that were not read:" in shown
    made = json.loads((tmp_path / "out" / "dumps.json").read_text(encoding="utf-8"))
    bad = {pathlib.Path(each["file"]).name for each in made["problems"]}
    assert bad == {path.name for path in dumps} | {"notes", "ge_proto_00000002_graph_2_Build.txt"}
    assert made["states"] == {"agrees": made["pairs"]} and made["pairs"] > 100
