"""Checksums of the rows of a batch that do not depend on their order, so that those of several ranks can be added."""

from __future__ import annotations

import zlib

import numpy as np

MODULUS = 2**32


def sum_of_rows(value: np.ndarray) -> np.ndarray:
    """Return the number of rows of an array with one dimension or more, and the sum of their checksums.

    The bytes of a row have a checksum; the sum is modulo 2**32. Equal sums are equal rows, in any order.
    """
    rows = np.ascontiguousarray(value)
    total = sum(zlib.crc32(row.view(np.uint8).data) for row in rows.reshape(len(rows), -1)) if rows.size else 0
    return np.array([len(rows), total % MODULUS], np.float64)
