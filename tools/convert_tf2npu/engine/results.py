"""The result of one file: its new bytes, diagnostics, and counts of its TensorFlow calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, NamedTuple

from ..facts.seen import Place
from ..files.message import message_from_json, message_to_json

if TYPE_CHECKING:
    from ..syntax.edits import Edit

CHANGE, FINDING, ERROR = "change", "finding", "error"
UNREACHED = "unreached"  # a finding that no observed run reached
FINE = "fine"  # a call that needs no change
# The code of unreadable files. It is not a rule and cannot be selected.
NOT_READ = "NPU000"
# The beginnings of errors that may not occur in the next run.
NO_MEMORY, TOOL_FAILS = "not enough memory to read it", "the tool itself fails on it, please report this: "
PASSING = (NO_MEMORY, TOOL_FAILS)


class Diagnostic(NamedTuple):
    """A rewrite, a finding or an error in a file.

    Attributes:
        line: from 1, in a notebook within the cell; 0 if unknown.
        col: from 1, in characters; 0 if unknown.
        code: of the rule.
        kind: ``change``, ``finding``, ``unreached`` or ``error``.
        message: a clause, then the fix as an imperative.
        cell: the number of the cell among all cells of a notebook, from 1; 0 in a script.
        runs: the number of observed runs that a rewrite rests on, or that reached the place of a finding; None for a
            rewrite that the source proves, and without facts.
    """

    line: int
    col: int
    code: str
    kind: str
    message: str
    cell: int = 0
    runs: int | None = None


class Asked(NamedTuple):
    """An expression that a run should watch for a rule to decide.

    Attributes:
        start, end: its offsets in the text.
        place: its lines and columns, and what is asked.
        code: of the question.
    """

    start: int
    end: int
    place: Place
    code: str = ""


class ApiCall(NamedTuple):
    """A call of TensorFlow, Keras or Horovod.

    Attributes:
        name: its canonical dotted name; a dot and the last word, as in ``.batch``, if only a rule recognizes it.
        line, col, cell: its place, as in a :class:`Diagnostic`.
        outcome: ``fine``, ``change`` or ``finding``.
        codes: the rules with a diagnostic for it.
    """

    name: str
    line: int
    col: int
    outcome: str
    codes: tuple[str, ...] = ()
    cell: int = 0


class Calls(NamedTuple):
    """The numbers of TensorFlow, Keras and Horovod calls that are fine, rewritten, and left for a manual change."""

    fine: int = 0
    rewritten: int = 0
    left: int = 0

    @property
    def total(self) -> int:
        """The number of all calls."""
        return self.fine + self.rewritten + self.left

    @staticmethod
    def sum(parts: Iterable[Calls]) -> Calls:
        """Return the sum of the counts of several files."""
        counts = list(parts)
        return Calls(sum(c.fine for c in counts), sum(c.rewritten for c in counts), sum(c.left for c in counts))


class FileResult(NamedTuple):
    """The result of one file.

    Attributes:
        new: its new bytes; None if it is unchanged.
        diagnostics: rewrites, findings and errors, by place.
        calls: the counts of its calls.
        listed: the calls, if a report needs them.
        version: the TensorFlow of its programs, "1" or "2", or "" if they do not show it or the calls are not listed.
        on_cpu: "script" if it calls TensorFlow 2 and nothing in its program opens the NPU device, "module" if it is in
            no program of the project; "" otherwise.
        edits: the edits of a script, in order; empty in a run over a folder.
        asked: the expressions of a script that a run should watch; empty in a run over a folder.
    """

    new: bytes | None
    diagnostics: tuple[Diagnostic, ...]
    calls: Calls = Calls()
    listed: tuple[ApiCall, ...] = ()
    version: str = ""
    on_cpu: str = ""
    edits: tuple[Edit, ...] = ()
    asked: tuple[Asked, ...] = ()

    @property
    def changes(self) -> list[Diagnostic]:
        """The rewrites."""
        return [d for d in self.diagnostics if d.kind == CHANGE]

    @property
    def findings(self) -> list[Diagnostic]:
        """The findings."""
        return [d for d in self.diagnostics if d.kind == FINDING]

    @property
    def unreadable(self) -> bool:
        """Return True if the file is not readable as Python."""
        return any(d.kind == ERROR for d in self.diagnostics)


UNTOUCHED = FileResult(None, ())  # of most files, which share it


def failed_result(message: str, line: int = 0, col: int = 0, cell: int = 0) -> FileResult:
    """Return the result of an unreadable file."""
    return FileResult(None, (Diagnostic(line, col, NOT_READ, ERROR, message, cell),))


def sorted_by_place(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return diagnostics in the order of the file."""
    return tuple(sorted(diagnostics, key=lambda d: (d.cell,) + d[:5]))


def result_to_plain(result: FileResult) -> list[object]:
    """Return a result as lists of JSON values, and bytes."""
    return [
        result.new,
        [[*diagnostic[:4], message_to_json(diagnostic.message), *diagnostic[5:]] for diagnostic in result.diagnostics],
        list(result.calls),
        [list(call) for call in result.listed],
        result.version,
        result.on_cpu,
    ]


def result_from_plain(values: list[Any]) -> FileResult:
    """Return the result from the lists of :func:`result_to_plain`."""
    new, diagnostics, calls, listed, version, on_cpu = values
    return FileResult(
        new,
        tuple(
            [
                Diagnostic(line, col, code, kind, message_from_json(message), cell, runs)
                for line, col, code, kind, message, cell, runs in diagnostics
            ]
        ),
        Calls(*calls),
        tuple(
            [ApiCall(name, line, col, outcome, tuple(codes), cell) for name, line, col, outcome, codes, cell in listed]
        ),
        version,
        on_cpu,
    )
