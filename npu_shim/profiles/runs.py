"""Runs of ops in columns, and their signatures."""

from __future__ import annotations

import collections
import itertools
from typing import Iterable, Sequence

import numpy as np

from npu_shim._tensorflow.types import Value
from npu_shim.profiles import op_kinds

END = 1 << 62  # nanoseconds
_ROWS = 1 << 16
BETWEEN = "\0"  # cells of a signature; no table has it


class Runs:
    """Runs of ops of one source.

    Attributes:
        signatures: the ops; other columns number them.
        category: of each signature.
        wanted: the categories whose runs are added.
        marks: begin and end of the steps that a data base marks, in nanoseconds.
        links: ranks of source and target, and transport -> bytes and nanoseconds.
    """

    def __init__(self) -> None:
        self.signatures: list[op_kinds.Signature] = []
        self.category: list[str] = []
        self.wanted: tuple[str, ...] = op_kinds.CATEGORIES
        self.marks = np.zeros((0, 2), np.int64)
        self.links: dict[tuple[int, int, str], np.ndarray] = collections.defaultdict(lambda: np.zeros(2))
        self._numbers: dict[tuple[object, ...], int] = {}
        self._parts: list[tuple[np.ndarray, ...]] = []  # of the columns
        self._weighted = np.zeros((2, 3, 0))  # the ratios times the durations, and these durations

    def __bool__(self) -> bool:
        return any(len(code) for code, *_ in self._parts)

    def number_of_signature(self, text: str, device: str = "") -> int:
        """Return the number of a signature, -1 if its runs are not added.

        Args:
            text: its cells, with BETWEEN between them.
            device: of a signature without one.
        """
        key = (self.wanted, device, text)
        if key not in self._numbers:
            signature = op_kinds.Signature(*map(str.strip, text.split(BETWEEN, len(op_kinds.Signature._fields) - 1)))
            busy = op_kinds.unit_category(signature)
            self._numbers[key] = len(self.signatures) if busy in self.wanted else -1
            if busy in self.wanted:
                self.signatures.append(
                    signature._replace(device=signature.device or device, type=signature.type or signature.name)
                )
                self.category.append(busy)
        return self._numbers[key]

    def add_runs(
        self, code: np.ndarray, start: np.ndarray, took: np.ndarray, ratios: Sequence[np.ndarray] = ()
    ) -> None:
        """Add runs.

        Args:
            code: numbers of signatures.
            start, took: nanoseconds.
            ratios: use of the matrix unit, the vector unit, memory, and memory by the vector unit, NaN where it is not
                known.
        """
        kept = (code >= 0) & (start >= 0) & (took >= 0) & (took < END - start)
        code, start, took, *ratios = (column[kept] for column in (code, start, took, *ratios))
        self._parts.append((code, start, start + took))
        more = len(self.signatures) - self._weighted.shape[2]
        self._weighted = np.pad(self._weighted, ((0, 0), (0, 0), (0, more)), "constant")
        for place, ratio in enumerate([*ratios[:2], np.fmax(*ratios[2:])] if ratios else []):
            known = np.isfinite(ratio)
            for sums, values in zip(self._weighted, (took * np.where(known, ratio, 0.0), took * known)):
                sums[place] += np.bincount(code, values, len(self.signatures))

    def add_rows(self, rows: Iterable[Sequence[Value]], device: str = "") -> None:
        """Add runs, of which cells of the signature, start, duration and perhaps ratios are known.

        Args:
            rows: the runs.
            device: of those without one.
        """
        known = ((self.number_of_signature(BETWEEN.join(cells), device), *times) for cells, *times in rows)
        for batch in iter(lambda: list(itertools.islice(known, _ROWS)), []):
            code, start, took, *ratios = map(np.array, zip(*batch), (np.int32, np.int64, np.int64, *[np.float32] * 4))
            self.add_runs(code, start, took, ratios)

    def add_link(self, link: Sequence[Value], took: float) -> None:
        """Add what went over a link, if anything did: source, target, transport and bytes; and nanoseconds."""
        source, target, transport, size = link
        if None not in link and float(size) > 0 and source != target:
            self.links[int(source), int(target), str(transport)] += float(size), took

    def take_all_sorted(self) -> list[np.ndarray]:
        """Return signatures, starts and ends of all runs, in the order of the starts. The runs are gone then."""
        columns = [np.concatenate(parts) for parts in zip(*self._parts)]
        self._parts = []
        if (columns[1][1:] < columns[1][:-1]).any():
            order = np.argsort(columns[1], kind="stable")
            columns = [column[order] for column in columns]
        return columns

    def mean_ratios(self) -> np.ndarray:
        """Return the mean ratios of each signature, weighted by the durations; NaN where they are not known."""
        total, weight = self._weighted
        return np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 0)
