"""What is said of a file: diagnostics, counts of its TensorFlow calls, its new bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, NamedTuple

if TYPE_CHECKING:
    from ..syntax.source import Edit

CHANGE, FINDING, ERROR = "change", "finding", "error"
FINE = "fine"  # of a call that stays, and of which nothing is said
# Of what ends or spoils the reading of a file; it is no rule and cannot be chosen.
NOT_READ = "NPU000"
# How it begins that a file could not be read for a reason which may be gone the next time.
NO_MEMORY, TOOL_FAILS = "there is not enough memory to read it", "the tool itself fails on it, please report that: "
PASSING = (NO_MEMORY, TOOL_FAILS)


class Diagnostic(NamedTuple):
    """One thing said of a file.

    ``kind`` is ``change``, ``finding`` or ``error``; ``line`` and ``col`` count from 1, in
    characters, and are 0 where no place can be named. In a notebook they count in the cell, and
    ``cell`` is its number, from 1, among all cells; elsewhere it is 0.
    """

    line: int
    col: int
    code: str
    kind: str
    message: str
    cell: int = 0


class ApiCall(NamedTuple):
    """One call of TensorFlow, Keras or Horovod.

    ``name`` is its canonical dotted name; where only a rule knows what is called, as with the method of a
    dataset, a dot and the last word. ``outcome`` is ``fine``, ``change`` or ``finding``, ``codes`` are the
    rules that spoke. The place is that of a :class:`Diagnostic`.
    """

    name: str
    line: int
    col: int
    outcome: str
    codes: tuple[str, ...] = ()
    cell: int = 0


class Calls(NamedTuple):
    """How many calls of TensorFlow, Keras and Horovod there are, by what becomes of them."""

    fine: int = 0
    rewritten: int = 0
    left: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.fine + self.rewritten + self.left

    @staticmethod
    def sum(parts: Iterable[Calls]) -> Calls:
        """The counts of several files together."""
        found = list(parts)
        return Calls(sum(c.fine for c in found), sum(c.rewritten for c in found), sum(c.left for c in found))


class FileResult(NamedTuple):
    """What became of one file: its new bytes, or None where it stays, the diagnostics, the counts, the calls
    themselves where they were asked for, and, of a script that is converted for itself and not in a run, the edits that
    made the new bytes."""

    new: bytes | None
    diagnostics: tuple[Diagnostic, ...]
    calls: Calls = Calls()
    listed: tuple[ApiCall, ...] = ()
    edits: tuple[Edit, ...] = ()

    @property
    def unreadable(self) -> bool:
        """Whether the file could not be read as Python."""
        return any(d.kind == ERROR for d in self.diagnostics)


UNTOUCHED = FileResult(None, ())  # of most files: one for all of them, which may be many


def failed(message: str, line: int = 0, col: int = 0, cell: int = 0) -> FileResult:
    """The result of a file that cannot be read."""
    return FileResult(None, (Diagnostic(line, col, NOT_READ, ERROR, message, cell),))


def by_place(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Diagnostics in the order of the file."""
    return tuple(sorted(diagnostics, key=lambda d: (d.cell,) + d))


def plain(result: FileResult) -> list[Any]:
    """A result of a run as lists of what JSON knows, and bytes."""
    return [
        result.new,
        [list(each) for each in result.diagnostics],
        list(result.calls),
        [list(each) for each in result.listed],
    ]


def of_plain(made: list[Any]) -> FileResult:
    """The result that :func:`plain` has turned into lists."""
    new, diagnostics, calls, listed = made
    return FileResult(
        new,
        tuple([Diagnostic(*each) for each in diagnostics]),
        Calls(*calls),
        tuple(
            [ApiCall(name, line, col, outcome, tuple(codes), cell) for name, line, col, outcome, codes, cell in listed]
        ),
    )
