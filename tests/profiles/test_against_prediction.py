"""A profile against a prediction: the ops that take longer than ops of their shapes do are found, and no others."""

from __future__ import annotations

import json
import pathlib
from dataclasses import replace
from typing import Any

import pytest

from npu_shim.profiles import profile_reader
from npu_shim.profiles.expected import read_prediction
from npu_shim.profiles.op_kinds import Signature
from npu_shim.profiles.profile_summary import to_page
from tests.profiles import card

pytestmark = pytest.mark.once

_OP = {"phase": "forward", "limit": "memory", "measured": "type", "inputs": [], "outputs": [], "lines": []}
_PREDICTION = {
    "processor": "Ascend910B3",
    "step": {"value": 0.012, "low": 0.009, "high": 0.016},
    "device": {"value": 0.010, "low": 0.008, "high": 0.014},
    "ranks": [{"ranks": 1, "seconds": 0.012, "collectives": 0.0, "exposed": 0.0, "efficiency": 1.0}],
    "ops": [
        {**_OP, "type": "MatMulV2", "count": 12, "seconds": 0.004},
        {**_OP, "type": "MatMulV2", "count": 8, "seconds": 0.002},
        {**_OP, "type": "LayerNorm", "count": 3, "seconds": 0.001},
    ],
}


def write_prediction(path: pathlib.Path, **changes: Any) -> str:
    """Write the part of an assessment that a profile is compared with."""
    graphs = [{"prediction": None}, {"prediction": {**_PREDICTION, **changes}}]
    path.write_text(json.dumps({"schema_version": 1, "graphs": graphs}), encoding="utf-8")
    return str(path)


def page(folder: pathlib.Path, prediction: str, factor: float) -> dict[str, Any]:
    """Return the page of a profile whose ops take some times as long as predicted by their shapes."""
    expected = read_prediction(prediction)

    def make(number: int) -> card.Step:
        step = card.balanced()
        for place, op in enumerate(step.training):
            if op.type in ("MatMulV2", "Relu"):
                signature = Signature(
                    type=op.type,
                    core=op.core,
                    shapes=op.shapes,
                    types=op.types,
                    out_shapes=op.out_shapes,
                    out_types=op.out_types,
                )
                (estimate,) = expected.estimate_measured_types([signature])
                us = 1e6 * estimate.seconds if estimate else op.us
                step.training[place] = replace(op, us=us * (factor if op.type == "MatMulV2" else 1.0))
        return step

    card.write(folder, card.run(make))
    return to_page(profile_reader.read_profile(str(folder), expected=expected), "profile").to_json()


def test_ops_that_take_twice_the_prediction_are_found_first(tmp_path: pathlib.Path) -> None:
    found = page(tmp_path / "profile", write_prediction(tmp_path / "prediction.json"), 4.0)
    first = found["findings"][0]
    assert first["id"] == "slower-than-predicted"
    products = sum(row["ms"] for row in found["ops"] if row["type"] == "MatMulV2")
    of_all = next(row for row in found["types"] if row["type"] == "MatMulV2")
    assert products and first["ms"] == pytest.approx(of_all["ms"] * 3 / 4, rel=0.02)
    assert {row["type"] for row in first["evidence"]} == {"MatMulV2"}
    assert first["evidence"][0]["why"].startswith("4.0 times the prediction for 4096,1024;1024,1024")


def test_ops_that_take_less_than_twice_the_prediction_are_no_finding(tmp_path: pathlib.Path) -> None:
    found = page(tmp_path / "profile", write_prediction(tmp_path / "prediction.json"), 1.9)
    assert "slower-than-predicted" not in [finding["id"] for finding in found["findings"]]


def test_a_step_is_shown_beside_its_prediction(tmp_path: pathlib.Path) -> None:
    found = page(tmp_path / "profile", write_prediction(tmp_path / "prediction.json"), 1.0)
    step, ops, exposed, *types = found["prediction"]
    assert (step["what"], step["ms"]) == ("step", pytest.approx(found["step"]["mean_ms"]))
    assert [step[key] for key in ("predicted_ms", "low_ms", "high_ms")] == pytest.approx([12.0, 9.0, 16.0])
    assert ops["predicted_ms"] == pytest.approx(10.0) and exposed["predicted_ms"] == 0.0
    by_type = {row["what"]: row for row in types}
    assert by_type["MatMul"]["predicted_calls"] == 20 and by_type["MatMul"]["calls"] == 20.0
    assert by_type["MatMul"]["predicted_ms"] == pytest.approx(6.0)
    assert by_type["LayerNorm"]["calls"] == 0.0 and by_type["Relu"]["predicted_calls"] == 0


@pytest.mark.parametrize(
    "text, problem",
    [
        ("{", "it cannot be read as a prediction"),
        ('{"schema_version": 1, "graphs": [{"prediction": null}]}', "it has no prediction of a training step"),
        ('{"schema_version": 2, "graphs": []}', "it has no prediction of a training step"),
        ("[]", "it cannot be read as a prediction"),
    ],
)
def test_a_file_without_a_prediction_is_refused(text: str, problem: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "prediction.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"--against .*{problem}.*npu-shim assess --predict --json"):
        read_prediction(str(path))


def test_an_unknown_processor_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="Ascend910Z"):
        read_prediction(write_prediction(tmp_path / "prediction.json", processor="Ascend910Z"))
