"""The answers of runs about one expression or one file."""

from __future__ import annotations

import threading
from typing import Any, Dict, NamedTuple

Json = Dict[str, Any]
_LOCK = threading.Lock()  # functions of tf.data note from threads of TensorFlow
MOST_DISTINCT = 64  # values that are kept of an attribute; of the others only the least and the greatest


class Place(NamedTuple):
    """An expression of a file, and what is asked about it.

    Attributes:
        line, col: of its first character, from 1, in characters.
        end_line, end_col: of the one after its last.
        kind: one of ``facts.kinds``.
    """

    line: int
    col: int
    end_line: int
    end_col: int
    kind: str


class Values:
    """The values that one attribute had in all runs.

    Attributes:
        distinct: the values, in the order of their first occurrence; JSON values, lists as tuples.
        more: True if there were more than are kept.
        least, most: of all numbers among them; None without any.
    """

    def __init__(
        self,
        distinct: tuple[object, ...] = (),
        more: bool = False,
        least: float | None = None,
        most: float | None = None,
    ):
        self.distinct, self.more, self.least, self.most = distinct, more, least, most

    def add(self, value: object) -> None:
        """Add a value: None, a bool, a number, a text or a tuple of them."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            self._widen_bounds(value, value)
        if not any(type(known) is type(value) and known == value for known in self.distinct):
            if len(self.distinct) < MOST_DISTINCT:
                self.distinct += (value,)
            else:
                self.more = True

    def update(self, other: Values) -> None:
        """Add the values of other runs."""
        for value in other.distinct:
            self.add(value)
        self.more = self.more or other.more
        if other.least is not None and other.most is not None:
            self._widen_bounds(other.least, other.most)

    def _widen_bounds(self, least: float, most: float) -> None:
        self.least = least if self.least is None else min(self.least, least)
        self.most = most if self.most is None else max(self.most, most)

    def to_json(self) -> dict[str, object]:
        """Return the values for a file of facts."""
        return {"distinct": list(self.distinct), "more": self.more, "least": self.least, "most": self.most}

    @classmethod
    def from_json(cls, content: Json) -> Values:
        """Return what to_json() returned."""
        return cls(
            tuple(map(_lists_as_tuples, content["distinct"])), content["more"], content["least"], content["most"]
        )


class Seen:
    """The values that runs saw at one place.

    Attributes:
        runs: the number of runs in which it was evaluated.
        times: how often, in all of them.
        values: by attribute.
    """

    def __init__(self, runs: int = 0, times: int = 0, values: dict[str, Values] | None = None):
        self.runs, self.times, self.values = runs, times, values or {}

    def note(self, attribute: str, value: object) -> None:
        """Note a value of an attribute."""
        with _LOCK:
            self.values.setdefault(attribute, Values()).add(value)

    def all(self, attribute: str) -> tuple[object, ...] | None:
        """Return all values of an attribute; None if it has none or not all are known."""
        values = self.values.get(attribute)
        return None if values is None or values.more else values.distinct

    def only(self, attribute: str) -> object:
        """Return the value that an attribute always had; None if it had several or none."""
        values = self.all(attribute)
        return values[0] if values is not None and len(values) == 1 else None

    def greatest(self, attribute: str) -> float | None:
        """Return the greatest number that an attribute had; None without any."""
        return self.values[attribute].most if attribute in self.values else None

    def update(self, other: Seen) -> None:
        """Add what other runs saw."""
        self.runs, self.times = self.runs + other.runs, self.times + other.times
        for attribute, values in other.values.items():
            self.values.setdefault(attribute, Values()).update(values)

    def to_json(self) -> dict[str, object]:
        """Return it for a file of facts."""
        values = {attribute: self.values[attribute].to_json() for attribute in sorted(self.values)}
        return {"runs": self.runs, "times": self.times, "values": values}

    @classmethod
    def from_json(cls, content: Json) -> Seen:
        """Return what to_json() returned."""
        values = {attribute: Values.from_json(part) for attribute, part in content["values"].items()}
        return cls(content["runs"], content["times"], values)


def only_shape(seen: Seen | None) -> tuple[int, ...] | None:
    """Return the shape that an array always had; None if it had several or none was seen."""
    shape = seen.only("shape") if seen is not None else None
    return shape if isinstance(shape, tuple) else None


def _lists_as_tuples(value: object) -> object:
    return tuple(map(_lists_as_tuples, value)) if isinstance(value, list) else value


class FileFacts:
    """The blocks of one file that ran, and the values at its places.

    Attributes:
        sha256: of its bytes, in hexadecimal digits.
        reached: the first lines of the blocks that ran, of all that are watched; see Block.
        seen: by place.
    """

    def __init__(self, sha256: str, blocks: dict[Block, int] | None = None, seen: dict[Place, Seen] | None = None):
        self.sha256, self.blocks, self.seen = sha256, blocks or {}, seen or {}

    def runs_at(self, line: int) -> int | None:
        """Return the number of runs that reached a line: those of the innermost block around it, and of its beginnings.

        None for a file of which no line was watched: the rules of the run had no finding in it, and it feeds nothing.
        """
        return sum(self._innermost_blocks(line).values()) if self.blocks else None

    def ends_at(self, line: int) -> bool:
        """Return True if a run reached a line, and a block ends there, as at a statement that failed."""
        return any(runs and block.last == line for block, runs in self._innermost_blocks(line).items())

    def _innermost_blocks(self, line: int) -> dict[Block, int]:
        """Return the innermost block around a line and its beginnings, with the runs of each."""
        around = [block for block in self.blocks if block.first <= line <= block.last]
        innermost = max((block.first for block in around), default=0)
        return {block: self.blocks[block] for block in around if block.first == innermost}

    def update(self, other: FileFacts) -> None:
        """Add what other runs of the same file saw."""
        for block, runs in other.blocks.items():
            self.blocks[block] = self.blocks.get(block, 0) + runs
        for place, seen in other.seen.items():
            self.seen.setdefault(place, Seen()).update(seen)

    def to_json(self) -> dict[str, object]:
        """Return it for a file of facts."""
        blocks: list[list[int]] = [[*block, runs] for block, runs in sorted(self.blocks.items())]
        seen = [
            {"at": list(place[:4]), "kind": place.kind, **self.seen[place].to_json()} for place in sorted(self.seen)
        ]
        return {"sha256": self.sha256, "blocks": blocks, "facts": seen}

    @classmethod
    def from_json(cls, content: Json) -> FileFacts:
        """Return what to_json() returned."""
        blocks = {Block(first, last): runs for first, last, runs in content["blocks"]}
        seen = {Place(*[*part["at"], part["kind"]]): Seen.from_json(part) for part in content["facts"]}
        return cls(content["sha256"], blocks, seen)


class Block(NamedTuple):
    """Lines that run together: of a file, a function body or a branch, without the blocks in it.

    After a loop, a ``yield`` and a branch that may leave the block, as with ``return``, another block begins. A body on
    the line of its condition belongs to the block around it. Runs that ended inside of a block count for a block of its
    first lines.
    """

    first: int
    last: int
