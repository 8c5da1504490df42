"""Batches of one size from NumPy arrays, for loops that feed a session."""

from __future__ import annotations

from typing import Iterator, NamedTuple

import numpy as np

from npu_shim._tensorflow.types import Structure


class PaddedBatch(NamedTuple):
    """Rows for one ``session.run``.

    Attributes:
        rows: arrays of batch_size rows, nested like the given arrays.
        real: number of real rows, which come first; the others repeat the last real row.
    """

    rows: Structure
    real: int


def padded_batches(arrays: Structure, batch_size: int) -> Iterator[PaddedBatch]:
    """Split arrays into batches of one size; the last one is padded.

    A loop that feeds slices of an array feeds a partial batch at the end, for
    which the NPU recompiles the graph. This loop avoids it::

        for batch, real in npu_shim.data.padded_batches({x: images, y: labels}, 100):
            scores = sess.run(predictions, feed_dict=batch)[:real]

    The added rows repeat the last real row. A value over a whole batch, such as
    a mean loss, includes them. Fetch one value for each row, cut it by
    ``[:real]`` and average, or feed ``np.arange(batch_size) < real`` as weights.

    Args:
        arrays: an array, or a tuple, list or dict of them, all with the same
            number of rows. The keys of a dict may be placeholders.
        batch_size: rows of each batch.
    Yields:
        PaddedBatch(rows, real), in the order of the rows. A full batch is a
        view of the arrays.
    Raises:
        TypeError: if an element of arrays has no rows.
        ValueError: if batch_size is not positive, or the arrays have no rows or different numbers of rows.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise ValueError(f"batch_size={batch_size!r} is not allowed: it must be an int of at least 1.")
    examples = _common_row_count(arrays)
    return _iterate_batches(arrays, examples, int(batch_size))


def _iterate_batches(arrays: Structure, examples: int, size: int) -> Iterator[PaddedBatch]:
    for start in range(0, examples, size):
        real = min(size, examples - start)
        yield PaddedBatch(_padded_slice(arrays, start, real, size), real)


def _named_children(arrays: Structure) -> list[tuple[str, Structure]]:
    """Return the elements one level down, each with its index as text."""
    if isinstance(arrays, dict):
        return [(f"[{key!r}]", value) for key, value in arrays.items()]
    if isinstance(arrays, (tuple, list)):
        return [(f"[{index}]", value) for index, value in enumerate(arrays)]
    return []


def _row_counts(arrays: Structure, place: str) -> dict[str, int]:
    """Return the number of rows of each array by its place."""
    if isinstance(arrays, (dict, tuple, list)):
        counts: dict[str, int] = {}
        for name, value in _named_children(arrays):
            counts.update(_row_counts(value, place + name))
        return counts
    shape = getattr(arrays, "shape", ())
    if not shape:
        raise TypeError(f"{place}={arrays!r} is {type(arrays).__name__}, which has no rows. Pass an array.")
    return {place: int(shape[0])}


def _common_row_count(arrays: Structure) -> int:
    counts = _row_counts(arrays, "arrays")
    if not counts or len(set(counts.values())) > 1 or 0 in counts.values():
        listed = ", ".join(f"{place} has {count:,}" for place, count in counts.items()) or "they are empty"
        raise ValueError(f"arrays must have one number of rows, at least 1, but {listed}.")
    return next(iter(counts.values()))


def _padded_slice(arrays: Structure, start: int, real: int, size: int) -> Structure:
    if isinstance(arrays, dict):
        return {key: _padded_slice(value, start, real, size) for key, value in arrays.items()}
    if isinstance(arrays, (tuple, list)):
        cut = [_padded_slice(value, start, real, size) for value in arrays]
        return type(arrays)(*cut) if hasattr(arrays, "_fields") else type(arrays)(cut)
    rows = arrays[start : start + real]
    if real == size:
        return rows
    return np.concatenate([rows, np.repeat(rows[-1:], size - real, axis=0)])
