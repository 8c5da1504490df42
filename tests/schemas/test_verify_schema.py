"""verify.json is what docs/verify.schema.json says."""

from __future__ import annotations

import json
import pathlib

import jsonschema
import numpy as np

from npu_shim.rehearsal.comparing.seeds import mean_band
from tests.recordings import perturbed, verified, verified_half
from tests.schemas.test_schemas import closed


def test_results_are_valid(repo_root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    schema = closed(json.loads((repo_root / "docs" / "verify.schema.json").read_text(encoding="utf-8")))
    jsonschema.Draft7Validator.check_schema(schema)

    def change(step: int, kind: str, name: str, value: np.ndarray) -> np.ndarray:
        return np.asarray(value * np.float32("nan")) if kind == "gradient" else value

    for found in (
        verified(tmp_path / "equal"),
        verified(tmp_path / "different", change),
        verified(tmp_path / "seeds", bands=[mean_band("loss", "loss", 0.5, float("nan"), float("nan"))]),
        verified_half(tmp_path / "inside", perturbed(9)),
        verified_half(tmp_path / "saturated", change, True),
    ):
        text = json.dumps(found.to_json(), allow_nan=False)
        jsonschema.validate(json.loads(text), schema)
