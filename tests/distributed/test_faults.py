"""Faults at random moments: see faults.py, which also runs more of them (NPU_SHIM_FAULTS=200 does here)."""

from __future__ import annotations

import os

from tests.distributed import faults

NUMBER = int(os.environ.get("NPU_SHIM_FAULTS", "10"))
FIRST_SEED = 1


def test_nothing_is_left_nothing_hangs_and_training_comes_to_the_same_end() -> None:
    report = faults.run(NUMBER, FIRST_SEED, with_tensorflow=NUMBER // 5)
    assert not report.problems and sum(report.done.values()) == NUMBER, str(report)
