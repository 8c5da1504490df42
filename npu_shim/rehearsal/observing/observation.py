"""The record of one run: the blocks that ran, and the answers about the watched expressions."""

from __future__ import annotations

import builtins
import os
import sys
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Callable, Mapping, NamedTuple

from npu_shim.import_hook import tool

if TYPE_CHECKING:
    from convert_tf2npu.api import Block, Edit, Facts, FileFacts, FileResult, ObservedRun, Seen

    from npu_shim._tensorflow.types import Value

# Notes what it sees of a value, and returns it, or what takes its place.
Answer = Callable[["Seen", "Value"], "Value"]


class CodeInFrame(NamedTuple):
    """A value of watched code, and a function that its question defines there.

    Attributes:
        code: of the function.
        frame: in which the value was computed.
        value: the value.
    """

    code: str
    frame: FrameType
    value: Value


class Observation:
    """A run that is observed.

    Args:
        answers: the function for each kind of question; expressions of other kinds are only counted.
    """

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        tool.make_importable()
        from convert_tf2npu.api import Seen, Watched

        self._answers = answers
        self._watched = Watched()
        self._seen: dict[int, Seen] = {}
        self._ran: dict[int, int] = {}  # how often each block ran
        self._left: dict[int, Block] = {}  # the beginnings of those that ran once, and that the end of the run left
        self._failed: set[int] = set()  # numbers of expressions that could not be judged
        self._digests: dict[str, str] = {}
        self._make = Seen

    def watching_edits(self, raw: bytes, path: str, result: FileResult) -> list[Edit]:
        """Return the edits of a file, with which its code calls this object. See ``Conversions``."""
        from convert_tf2npu.api import digest

        self._digests[path] = digest(raw)
        return self._watched.edits(path, raw, result.asked, bool(result.findings))

    def install_builtins_for_watched_code(self) -> None:
        """Serve the functions that watched code calls, for the rest of this process."""
        setattr(builtins, self._watched.ran, self._note_block)
        setattr(builtins, self._watched.seen, self._note_value)

    def _note_block(self, number: int) -> None:
        self._ran[number] = self._ran.get(number, 0) + 1

    def note_end(self, trace: TracebackType | None) -> None:
        """Note which statements an exception left that ended the script: those after them did not run."""
        while trace is not None:
            code = trace.tb_frame.f_code
            path = os.path.realpath(code.co_filename)
            first = 0 if code.co_name == "<module>" else code.co_firstlineno
            for number, block in enumerate(self._watched.blocks):
                lines = block.lines
                is_around = first < lines.first <= trace.tb_lineno <= lines.last
                if is_around and self._ran.get(number) == 1 and block.path == path:
                    self._left[number] = block.beginning_until(trace.tb_lineno)
            trace = trace.tb_next

    def _note_value(self, number: int, value: Value) -> Value:
        seen = self._seen.get(number)
        if seen is None:
            seen = self._seen[number] = self._make(runs=1)
        seen.times += 1
        answer = self._answers.get(self._watched.places[number][1].kind)
        if answer is None or number in self._failed:
            return value
        code = self._watched.codes.get(number)
        try:
            return answer(seen, value if code is None else CodeInFrame(code, sys._getframe(1), value))
        except Exception:  # a value of a kind that nobody expected: the script goes on, and the place has no facts
            self._failed.add(number)
            return value

    def facts_of_run(self, root: str, run: ObservedRun) -> Facts:
        """Return what the run saw.

        Args:
            root: the folder of the project.
            run: its description.
        """
        from convert_tf2npu.api import Facts, FileFacts

        root = os.path.realpath(root)
        of_paths: dict[str, FileFacts] = {path: FileFacts(digest) for path, digest in self._digests.items()}
        for number, (path, lines, _) in enumerate(self._watched.blocks):
            blocks = of_paths[path].blocks
            blocks[lines] = int(number in self._ran and number not in self._left)
            if number in self._left:
                blocks[self._left[number]] = 1
        for number, (path, place) in enumerate(self._watched.places):
            if number in self._seen and number not in self._failed:
                of_paths[path].seen[place] = self._seen[number]
        facts = Facts(root, (run,))
        facts.files.update((facts.relative_path_of(path), of_path) for path, of_path in of_paths.items())
        return facts
