"""How many numbers each rank sends to each other, told by both sides."""

from __future__ import annotations

import numpy as np

from npu_shim.distributed.collectives.errors import Mismatch


def agreed(key: str, told: np.ndarray) -> np.ndarray:
    """Every rank's send counts, after a check that each expects what the others send.

    Args:
        key: the collective's name.
        told: [size, 2 * size]; each rank's send counts, and then its receive counts.
    Returns:
        [size, size]; row i has the numbers that rank i sends to each.
    Raises:
        Mismatch: they do not agree; on every rank with the same text.
    """
    size = len(told)
    sent, expected = told[:, :size], told[:, size:].T
    wrong = np.argwhere(sent != expected)
    if len(wrong):
        source, target = wrong[0]
        raise Mismatch(
            f"{key}: rank {source} of the group sends {sent[source, target]} numbers to rank {target}, "
            f"which expects {expected[source, target]}: send_counts[{target}] of rank {source} and "
            f"recv_counts[{source}] of rank {target} must be the same."
        )
    return sent
