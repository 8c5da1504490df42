"""Runs of ops in columns, and their signatures."""

from __future__ import annotations

import functools
import itertools
from typing import Any, Iterable, Sequence

import numpy as np

from npu_shim.profiles import kinds
from npu_shim.profiles.kinds import Signature

_END = 1 << 62  # nanoseconds
_ROWS = 1 << 16


class Runs:
    """Runs of ops of one source.

    Attributes:
        signatures: the ops; other columns number them.
        category: of each signature.
        only: the category whose runs are added, all that work if it is empty.
    """

    def __init__(self) -> None:
        self.signatures: list[Signature] = []
        self.category: list[str] = []
        self.only = ""
        self._numbers: dict[tuple[str, ...], int] = {}
        self._parts: list[tuple[np.ndarray, ...]] = []  # of the columns
        self._weighted = np.zeros((2, 3, 0))  # the ratios times the durations, and these durations

    def __bool__(self) -> bool:
        return bool(self._parts)

    def number(self, cells: Sequence[str], device: str = "") -> int:
        """Return the number of a signature, -1 if its runs are not added.

        Args:
            cells: of the signature.
            device: of a signature without one.
        """
        made = Signature(*(cell.strip() for cell in cells))
        made = made if made.device else made._replace(device=device)
        key = (self.only, *made)
        if key not in self._numbers:
            busy = kinds.category(made)
            self._numbers[key] = -1 if busy == kinds.OTHER or self.only not in ("", busy) else len(self.signatures)
            if self._numbers[key] >= 0:
                self.signatures.append(made if made.type else made._replace(type=made.name))
                self.category.append(busy)
        return self._numbers[key]

    def add(self, code: np.ndarray, start: np.ndarray, took: np.ndarray, ratios: Sequence[np.ndarray] = ()) -> None:
        """Add runs.

        Args:
            code: numbers of signatures.
            start, took: nanoseconds.
            ratios: use of the matrix unit, the vector unit, memory, and memory by the vector unit, NaN where it is not
                known.
        """
        kept = (code >= 0) & (start >= 0) & (took >= 0) & (took < _END - start)
        code, start, took, *ratios = (each[kept] for each in (code, start, took, *ratios))
        if not len(code):
            return
        self._parts.append((code, start, start + took))
        more = len(self.signatures) - self._weighted.shape[2]
        self._weighted = np.pad(self._weighted, ((0, 0), (0, 0), (0, more)), "constant")
        for place, ratio in enumerate([*ratios[:2], np.fmax(*ratios[2:])] if ratios else []):
            known = np.isfinite(ratio)
            weight = took[known].astype(np.float64)
            for sums, values in zip(self._weighted[:, place], (weight * ratio[known], weight)):
                sums += np.bincount(code[known], values, len(sums))

    def add_rows(self, rows: Iterable[Sequence[Any]], device: str = "") -> None:
        """Add runs, of which cells of the signature, start, duration and perhaps ratios are known.

        Args:
            rows: the runs.
            device: of those without one.
        """
        number = functools.lru_cache(None)(lambda cells: self.number(cells, device))
        known = ((number(cells), *times) for cells, *times in rows)
        for batch in iter(lambda: list(itertools.islice(known, _ROWS)), []):
            code, start, took, *ratios = map(np.array, zip(*batch), (np.int32, np.int64, np.int64, *[np.float32] * 4))
            self.add(code, start, took, ratios)

    def joined(self) -> list[np.ndarray]:
        """Return signatures, starts and ends of all runs, in the order of the starts. The runs are gone then."""
        columns = [np.concatenate(parts) for parts in zip(*self._parts)]
        self._parts = []
        if (columns[1][1:] < columns[1][:-1]).any():
            order = np.argsort(columns[1], kind="stable")
            columns = [column[order] for column in columns]
        return columns

    def ratios(self) -> np.ndarray:
        """Return the mean ratios of each signature, weighted by the durations; NaN where they are not known."""
        total, weight = self._weighted
        return np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 0)
