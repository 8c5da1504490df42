"""Argument checks of collectives."""

from __future__ import annotations

from typing import Sequence, Union

import numpy as np

Counts = Union[np.ndarray, Sequence[int]]


def check_members(name: str, members: Sequence[int], rank: int, size: int) -> None:
    """Check the members of a group.

    Args:
        name: name of the group.
        members: their world ranks.
        rank: the world rank of this process.
        size: the world size.
    Raises:
        ValueError: the members are not ranks of this job, or this rank is not among them.
    """
    if len(set(members)) != len(members) or rank not in members or not set(members) <= set(range(size)):
        raise ValueError(
            f"ranks={list(members)} is not allowed for group {name!r} on rank {rank}. Name this rank and others of 0 "
            f"to {size - 1}, each once."
        )


def checked_counts_and_displacements(
    key: str, side: str, counts: Counts, displacements: Counts, size: int, total: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts and offsets of the segments of one side of an all-to-all as int64 [size].

    Args:
        key: the key of the collective.
        side: 'send' or 'recv'.
        counts: the number of elements for each rank.
        displacements: the offset of the segment for each rank.
        size: the size of the group.
        total: the number of elements on this side.
    Raises:
        ValueError: the shapes are wrong, or a segment is out of range.
    """
    count, offset = np.asarray(counts, np.int64), np.asarray(displacements, np.int64)
    if count.shape != (size,) or offset.shape != (size,):
        raise ValueError(
            f"{key}: {side}_counts and {side}_displacements have shapes {list(count.shape)} and {list(offset.shape)}. "
            f"Pass one number for each of {size} ranks."
        )
    if count.min() < 0 or offset.min() < 0 or (offset + count).max() > total:
        raise ValueError(
            f"{key}: {side}_counts={count.tolist()} and {side}_displacements={offset.tolist()} are not allowed. Keep "
            f"the segments within {total} elements."
        )
    return count, offset


def checked_count_matrix(key: str, matrix: np.ndarray | Sequence[Sequence[int]], size: int) -> np.ndarray:
    """Return the counts of an all-to-all as int64 [size, size].

    Raises:
        ValueError: the shape is wrong, or a count is negative.
    """
    counts = np.asarray(matrix, np.int64)
    if counts.shape != (size, size) or (counts.size and counts.min() < 0):
        raise ValueError(
            f"{key}: send_count_matrix={counts.tolist()} is not allowed. Pass {size} rows of {size} counts, none "
            "negative."
        )
    return counts


def checked_row_counts_of_ranks(key: str, splits: Counts | None, shape: Sequence[int], size: int) -> np.ndarray:
    """Return the number of rows of a tensor for each rank as int64 [size].

    Args:
        key: the key of the collective.
        splits: the numbers; None for equal parts.
        shape: the shape of the tensor.
        size: the size of the group.
    Raises:
        ValueError: the tensor has no rows, cannot be divided equally, or the numbers do not fit its rows.
    """
    if not shape:
        raise ValueError(f"{key}: a scalar cannot be sent in parts. Pass a tensor with rows.")
    if splits is None and shape[0] % size:
        raise ValueError(
            f"{key}: a tensor of shape {list(shape)} cannot be sent in {size} equal parts. Pass splits, the number of "
            "rows of axis 0 for each rank."
        )
    if splits is None:
        return np.full(size, shape[0] // size, np.int64)
    counts = np.ascontiguousarray(splits, np.int64)
    if counts.shape != (size,) or counts.min() < 0 or counts.sum() > shape[0]:
        raise ValueError(
            f"{key}: splits={counts.tolist()} is not allowed. Pass one number of rows for each of {size} ranks, none "
            f"negative, at most {shape[0]} together."
        )
    return counts
