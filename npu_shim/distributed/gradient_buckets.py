"""HCCL's gradient buckets: the gradients of one bucket are sent as one message.

``set_split_strategy_by_idx`` and ``set_split_strategy_by_size`` set a strategy, and
gradient averaging calls ``buckets``. A strategy changes the number of messages,
never a result.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim.distributed import groups
from npu_shim.distributed.groups import is_int
from npu_shim.distributed.world import WORLD

MAX_BUCKETS = 8
DEFAULT_PERCENTAGES = (96.54, 3.46)  # HCCL's default, tuned for ResNet-50
_ends: dict[str, tuple[int, ...]] = {}
_percentages: dict[str, tuple[float, ...]] = {}


def set_bucket_ends(ends: Sequence[int], group: str = WORLD) -> None:
    """Set the last gradient of each bucket.

    Args:
        ends: increasing indices of gradients, at most 8.
        group: name of the group.
    Raises:
        TypeError, ValueError: an argument is not allowed.
    """
    if not isinstance(ends, (list, tuple)) or not all(is_int(i) and i >= 0 for i in ends):
        raise TypeError(f"idxList={ends!r} is not allowed. Pass a list of int, none negative.")
    if not 1 <= len(ends) <= MAX_BUCKETS or any(b <= a for a, b in zip(ends, ends[1:])):
        raise ValueError(f"idxList={list(ends)} is not allowed. Pass 1 to {MAX_BUCKETS} increasing indices.")
    groups.find_group(group)
    _ends[group] = tuple(ends)


def set_bucket_percentages(percentages: Sequence[float], group: str = WORLD) -> None:
    """Set the share of each bucket in the bytes of all gradients. It has precedence over set_bucket_ends.

    Args:
        percentages: at most 8 positive numbers that sum to 100.
        group: name of the group.
    Raises:
        TypeError, ValueError: an argument is not allowed.
    """
    if not isinstance(percentages, (list, tuple)) or not all(
        isinstance(p, (int, float)) and not isinstance(p, bool) for p in percentages
    ):
        raise TypeError(f"dataSizeList={percentages!r} is not allowed. Pass a list of numbers.")
    if not 1 <= len(percentages) <= MAX_BUCKETS or not min(percentages) > 0 or not abs(sum(percentages) - 100) < 1e-6:
        raise ValueError(
            f"dataSizeList={list(percentages)} is not allowed. Pass 1 to {MAX_BUCKETS} positive percentages "
            "that sum to 100."
        )
    groups.find_group(group)
    _percentages[group] = tuple(float(p) for p in percentages)


def remove_group_strategies(group: str) -> None:
    """Remove the strategies of a group."""
    _ends.pop(group, None)
    _percentages.pop(group, None)


def bucket_indices(sizes_in_bytes: Sequence[int], group: str = WORLD) -> list[list[int]]:
    """Return the gradients of each bucket.

    Args:
        sizes_in_bytes: the size of each gradient, in the order in which they are computed.
        group: the group whose strategy applies; HCCL's default if it has none.
    Returns:
        The indices of all gradients in order, in one list per bucket; no list is empty.
    Raises:
        ValueError: the last index of the strategy is not the last gradient.
    """
    if not sizes_in_bytes:
        return []
    if group in _percentages:
        return buckets_by_percentages(sizes_in_bytes, _percentages[group])
    if group in _ends:
        return buckets_by_ends(len(sizes_in_bytes), _ends[group])
    return buckets_by_percentages(sizes_in_bytes, DEFAULT_PERCENTAGES)


def buckets_by_ends(count: int, ends: Sequence[int]) -> list[list[int]]:
    """Return buckets that end with the gradients of these indices.

    Raises:
        ValueError: the last index is not the last gradient.
    """
    if ends[-1] != count - 1:
        raise ValueError(
            f"set_split_strategy_by_idx({list(ends)}) does not match the {count} gradients. Make {count - 1} the last "
            "index."
        )
    starts = [0] + [end + 1 for end in ends]
    return [list(range(start, end + 1)) for start, end in zip(starts, ends)]


def buckets_by_percentages(sizes_in_bytes: Sequence[int], percentages: Sequence[float]) -> list[list[int]]:
    """Return buckets with these percentages of the bytes, as closely as whole gradients allow.

    A bucket ends where the sum of the bytes so far is closest to the sum of the
    percentages so far; in a tie, at the earlier gradient.
    """
    total, upto, ends = sum(sizes_in_bytes), 0, []
    sums = []
    for size in sizes_in_bytes:
        upto += size
        sums.append(upto)
    share = 0.0
    for percentage in percentages[:-1]:
        share += percentage
        ends.append(min(range(len(sums)), key=lambda i: abs(sums[i] - total * share / 100.0)))
    last = len(sums) - 1
    return buckets_by_ends(len(sums), sorted({end for end in ends if end < last} | {last}))
