"""Faults at random moments, see faults.py. NPU_SHIM_FAULTS=200 runs more of them."""

from __future__ import annotations

import os

import pytest

from tests.distributed import faults

pytestmark = pytest.mark.once

NUMBER = int(os.environ.get("NPU_SHIM_FAULTS", "1"))
FIRST_SEED = 1


def test_faults_leave_nothing_and_do_not_change_the_weights() -> None:
    report = faults.run(NUMBER, FIRST_SEED, with_tensorflow=NUMBER // 5)
    assert not report.problems and sum(report.done.values()) == NUMBER, str(report)
