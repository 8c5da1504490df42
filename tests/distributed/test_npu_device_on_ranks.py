"""The collectives and optimizers of npu_device on two and three ranks."""

from __future__ import annotations

import functools
import json
import re
from typing import Any, Callable

import pytest
import tensorflow as tf

from tests.distributed.test_training import SCRIPTS, forked

SCRIPT = SCRIPTS / "npu_device_ranks.py"
_listed = re.search(r"^CASES = \[(.*?)\]", SCRIPT.read_text(), re.M | re.S)
CASES = re.findall(r"\w+", _listed.group(1)) if _listed else []


if tf.__version__ >= "2":

    @pytest.fixture(scope="module")
    def failed(tmp_path_factory: Any) -> Callable[[int], list[dict[str, str]]]:
        """Return a function of the number of ranks. It returns what failed on each of them."""

        @functools.lru_cache(maxsize=None)
        def ranks(size: int) -> list[dict[str, str]]:
            folder = tmp_path_factory.mktemp("npu_device")
            forked(size, str(SCRIPT), str(folder), folder=folder)
            return [json.loads((folder / f"rank_{rank}_of_{size}.json").read_text()) for rank in range(size)]

        return ranks

    @pytest.mark.smoke
    @pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.nightly)])
    @pytest.mark.parametrize("case", CASES)
    def test_ranks(case: str, size: int, failed: Callable[[int], list[dict[str, str]]]) -> None:
        assert [found.get(case, "did not run") for found in failed(size)] == [""] * size
