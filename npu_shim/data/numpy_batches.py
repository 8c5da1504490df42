"""Batches of one size out of NumPy arrays, for loops that feed a session."""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

import numpy as np


class PaddedBatch(NamedTuple):
    """Rows for one ``session.run``.

    Attributes:
        rows: arrays of batch_size rows, nested as the arrays were given.
        real: how many of them, from the first on, are real; the others repeat the last real one.
    """

    rows: Any
    real: int


def padded_batches(arrays: Any, batch_size: int) -> Iterator[PaddedBatch]:
    """Cuts arrays into batches that all have one size: the last one is padded.

    A loop that feeds slices of an array feeds a smaller one at the end, and
    the card compiles the graph once more for it. With this one it does not::

        for batch, real in npu_shim.data.padded_batches({x: images, y: labels}, 100):
            scores = sess.run(predictions, feed_dict=batch)[:real]

    The rows that are added repeat the last real row. What a graph computes over
    a whole batch (a mean loss) counts them; fetch one value for each row, cut
    it by ``[:real]`` and average that, or feed ``np.arange(batch_size) < real``
    as weights.

    Args:
        arrays: an array, or a tuple, list or dict of them, all with the same
            number of rows. The keys of a dict may be placeholders.
        batch_size: rows of each batch.
    Yields:
        PaddedBatch(rows, real), in the order of the rows. A full batch is a
        view of the arrays.
    Raises:
        TypeError: arrays hold something without rows.
        ValueError: batch_size is not positive, or the arrays differ in their number of rows, or have none.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise ValueError(f"batch_size={batch_size!r} is not allowed: it must be an int of at least 1.")
    examples = _rows(arrays)
    return _batches(arrays, examples, int(batch_size))


def _batches(arrays: Any, examples: int, size: int) -> Iterator[PaddedBatch]:
    for start in range(0, examples, size):
        real = min(size, examples - start)
        yield PaddedBatch(_cut(arrays, start, real, size), real)


def _parts(arrays: Any) -> list[tuple[str, Any]]:
    """The arrays one level down, each with its place in words."""
    if isinstance(arrays, dict):
        return [(f"[{key!r}]", value) for key, value in arrays.items()]
    if isinstance(arrays, (tuple, list)):
        return [(f"[{index}]", value) for index, value in enumerate(arrays)]
    return []


def _counts(arrays: Any, place: str) -> dict[str, int]:
    """Rows by place."""
    if isinstance(arrays, (dict, tuple, list)):
        found: dict[str, int] = {}
        for name, value in _parts(arrays):
            found.update(_counts(value, place + name))
        return found
    shape = getattr(arrays, "shape", ())
    if not shape:
        raise TypeError(f"{place}={arrays!r} is {type(arrays).__name__} and has no rows: give an array.")
    return {place: int(shape[0])}


def _rows(arrays: Any) -> int:
    counts = _counts(arrays, "arrays")
    if not counts or len(set(counts.values())) > 1 or 0 in counts.values():
        said = ", ".join(f"{place} has {count:,}" for place, count in counts.items()) or "they are empty"
        raise ValueError(f"arrays must have one number of rows, at least 1, but {said}.")
    return next(iter(counts.values()))


def _cut(arrays: Any, start: int, real: int, size: int) -> Any:
    if isinstance(arrays, dict):
        return {key: _cut(value, start, real, size) for key, value in arrays.items()}
    if isinstance(arrays, (tuple, list)):
        cut = [_cut(value, start, real, size) for value in arrays]
        return type(arrays)(*cut) if hasattr(arrays, "_fields") else type(arrays)(cut)
    rows = arrays[start : start + real]
    if real == size:
        return rows
    return np.concatenate([rows, np.repeat(rows[-1:], size - real, axis=0)])
