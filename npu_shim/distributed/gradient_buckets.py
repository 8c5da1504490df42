"""Which gradients are sent together: HCCL's split of the gradients into buckets.

``set_split_strategy_by_idx`` and ``set_split_strategy_by_size`` put a strategy
here, the fusion of gradients asks ``buckets``. A strategy changes how many
messages are sent, never a number.
"""

from __future__ import annotations

from typing import Sequence

from npu_shim.distributed import groups
from npu_shim.distributed.groups import is_int
from npu_shim.distributed.world import WORLD

MOST_SEGMENTS = 8
DEFAULT_PERCENTAGES = (96.54, 3.46)  # where ResNet-50 is best split
_ends: dict[str, tuple[int, ...]] = {}
_percentages: dict[str, tuple[float, ...]] = {}


def set_by_index(ends: Sequence[int], group: str = WORLD) -> None:
    """Says at which gradients buckets end.

    Args:
        ends: growing indices of gradients, at most 8; each is the last of its bucket.
        group: the group it is for.
    Raises:
        TypeError, ValueError: on other arguments.
    """
    if not isinstance(ends, (list, tuple)) or not all(is_int(i) and i >= 0 for i in ends):
        raise TypeError(f"idxList={ends!r} is not allowed: it must be a list of int, none negative.")
    if not 1 <= len(ends) <= MOST_SEGMENTS or any(b <= a for a, b in zip(ends, ends[1:])):
        raise ValueError(f"idxList={list(ends)} is not allowed: it must have 1 to {MOST_SEGMENTS} growing indices.")
    groups.group(group)
    _ends[group] = tuple(ends)


def set_by_size(percentages: Sequence[float], group: str = WORLD) -> None:
    """Says which shares of the bytes of all gradients make a bucket each; it wins over set_by_index.

    Args:
        percentages: at most 8, none negative, which sum to 100.
        group: the group it is for.
    Raises:
        TypeError, ValueError: on other arguments.
    """
    if not isinstance(percentages, (list, tuple)) or not all(
        isinstance(p, (int, float)) and not isinstance(p, bool) for p in percentages
    ):
        raise TypeError(f"dataSizeList={percentages!r} is not allowed: it must be a list of numbers.")
    if not 1 <= len(percentages) <= MOST_SEGMENTS or not min(percentages) > 0 or not abs(sum(percentages) - 100) < 1e-6:
        raise ValueError(
            f"dataSizeList={list(percentages)} is not allowed: it must have 1 to {MOST_SEGMENTS} positive percentages "
            "that sum to 100."
        )
    groups.group(group)
    _percentages[group] = tuple(float(p) for p in percentages)


def forget(group: str) -> None:
    """Drops the strategies of a group."""
    _ends.pop(group, None)
    _percentages.pop(group, None)


def buckets(sizes_in_bytes: Sequence[int], group: str = WORLD) -> list[list[int]]:
    """Which gradients go together.

    Args:
        sizes_in_bytes: of each gradient, in the order in which they become known.
        group: whose strategy counts; HCCL's default where none was set.
    Returns:
        The indices of all gradients in order, in one list for each bucket; no list is empty.
    Raises:
        ValueError: the indices of the strategy do not end with the last gradient.
    """
    if not sizes_in_bytes:
        return []
    if group in _percentages:
        return by_size(sizes_in_bytes, _percentages[group])
    if group in _ends:
        return by_index(len(sizes_in_bytes), _ends[group])
    return by_size(sizes_in_bytes, DEFAULT_PERCENTAGES)


def by_index(count: int, ends: Sequence[int]) -> list[list[int]]:
    """Buckets that end with the gradients of these indices.

    Raises:
        ValueError: the last index is not that of the last gradient.
    """
    if ends[-1] != count - 1:
        raise ValueError(
            f"set_split_strategy_by_idx({list(ends)}) does not fit: there are {count} gradients, so the last index "
            f"must be {count - 1}."
        )
    starts = [0] + [end + 1 for end in ends]
    return [list(range(start, end + 1)) for start, end in zip(starts, ends)]


def by_size(sizes_in_bytes: Sequence[int], percentages: Sequence[float]) -> list[list[int]]:
    """Buckets that hold these percentages of the bytes, as near as whole gradients allow.

    A bucket ends where the bytes up to there are nearest to the sum of the
    percentages up to there; of two that are as near, at the earlier gradient.
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
    return by_index(len(sums), sorted({end for end in ends if end < last} | {last}))
