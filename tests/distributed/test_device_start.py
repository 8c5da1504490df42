"""The device is started by hand on each rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.distributed.test_training import results
from tests.marks import OF_VERSION_1

pytestmark = OF_VERSION_1


def test_device_starts_on_every_rank_and_overflow_is_shared(tmp_path_factory: Any) -> None:
    found = results("system_ranks.py", [], tmp_path_factory)
    assert [rank["ranks"] for rank in found[2]] == [[0, 2, 0, 2], [1, 2, 1, 2]] and found[1][0]["ranks"] == [
        0,
        1,
        0,
        1,
    ]
    assert [rank["sum"] for rank in found[2]] == 2 * [[2, 1]] and found[1][0]["sum"] == [1, 0]
    for rank in found[1] + found[2]:  # global step, scale and weight: the second step is left out by all
        steps = np.array(rank["steps"])
        assert steps[:, 0].tolist() == [1, 1, 2, 3] and steps[0, 1] == 16 and (steps[1:, 1] < 16).all()
        np.testing.assert_allclose(steps[:, 2], [0.8, 0.8, 0.6, 0.4], rtol=1e-5)
