"""The collectives and optimizers of npu_device on two and three ranks."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import tensorflow as tf

from tests.distributed.test_training import SCRIPTS, forked

SCRIPT = SCRIPTS / "npu_device_ranks.py"
_listed = re.search(r"^CASES = \[(.*?)\]", SCRIPT.read_text(), re.M | re.S)
CASES = re.findall(r"\w+", _listed.group(1)) if _listed else []


if tf.__version__ >= "2":

    @pytest.fixture(scope="module")
    def failed(tmp_path_factory: Any) -> dict[int, list[dict[str, str]]]:
        """By number of ranks what failed on each of them."""
        found = {}
        for size in (2, 3):
            folder = tmp_path_factory.mktemp("npu_device")
            forked(size, str(SCRIPT), str(folder), folder=folder)
            found[size] = [json.loads((folder / f"rank_{rank}_of_{size}.json").read_text()) for rank in range(size)]
        return found

    @pytest.mark.smoke
    @pytest.mark.parametrize("size", [2, 3])
    @pytest.mark.parametrize("case", CASES)
    def test_ranks(case: str, size: int, failed: dict[int, list[dict[str, str]]]) -> None:
        assert [found.get(case, "did not run") for found in failed[size]] == [""] * size
