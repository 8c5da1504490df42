"""Converting files, in this process or in several, which end with the one that started them, whatever ends that."""

from __future__ import annotations

import contextlib
import gc
import marshal
from typing import Iterator, Sequence, Tuple

from ..cli.config import Settings
from ..files.errors import UsageError
from ..project.project import Project
from .converter import Converter
from .processes import Channel, Process, may_fork, start
from .results import UNTOUCHED, FileResult, failed, of_plain, plain
from .shares import Shares, size_of
from .signals import act_on_held_back, held_back

_AHEAD = 2  # pieces of work that each process has, so that it never waits for the next one
Converting = Tuple[Settings, Project, bool]  # the arguments of a Converter
Numbered = Tuple[int, FileResult]  # with the place of its path


def converted(paths: Sequence[str], converting: Converting, jobs: int) -> Iterator[Numbered]:
    """Convert files; in several processes the results come in any order.

    Args:
        paths: of the files, neighbours beside each other.
        converting: how.
        jobs: the number of processes.

    Raises:
        UsageError: one of the processes was ended.
    """
    jobs = min(jobs, len(paths))
    converter = Converter(*converting)  # whose rules copies of this process need not load any more
    if jobs < 2:
        with _collector_at_rest():
            for number, path in enumerate(paths):
                yield number, convert_path(converter, path)
        return
    if may_fork():
        with _collector_at_rest():
            converting[1].imports.concerned  # read once, and not by each process for itself
    with held_back(), _Pool(paths, converting, jobs) as pool:  # an exception while they are started would leave some
        for result in pool.results():
            yield result
            act_on_held_back()


@contextlib.contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Let the garbage collector run when the project asks for it, and not each time that a few trees were made."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def convert_path(converter: Converter, path: str) -> FileResult:
    """Convert the file at a path; the edits by which are not asked for again."""
    try:
        raw = converter.project.files.read(path)
    except OSError as error:
        return failed(error.strerror or str(error))
    result = converter.convert(raw, path)._replace(edits=())
    return UNTOUCHED if result == UNTOUCHED else result


class _Pool:
    """Processes that convert some files, and end with the block.

    Args:
        paths: of the files.
        converting: how.
        jobs: the number of processes.
    """

    def __init__(self, paths: Sequence[str], converting: Converting, jobs: int) -> None:
        self._shares = Shares([size_of(path) for path in paths], jobs)
        self._jobs = jobs
        self._work = tuple(paths), converting
        self._processes: list[Process] = []

    def __enter__(self) -> _Pool:
        try:
            for _ in range(self._jobs):
                self._processes.append(start(_serve, self._work, self._processes))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.end()

    def results(self) -> Iterator[Numbered]:
        """The result of each file, as they come."""
        begun = [0] * self._jobs
        try:
            for _ in range(_AHEAD):
                for number in range(self._jobs):
                    begun[number] += self._give(number)
            while any(begun):
                for number in self._answering({n for n, pieces in enumerate(begun) if pieces}):
                    found = marshal.loads(self._processes[number].channel.recv_bytes())
                    begun[number] += self._give(number) - 1
                    for place, made in found:
                        yield place, of_plain(made) if made else UNTOUCHED
        except (EOFError, ConnectionError):
            raise UsageError(
                "a process of the tool was ended from outside, as a rule because memory ran "
                "out; nothing was written; try again with -j 1"
            )

    def _give(self, number: int) -> bool:
        """Give a process its next piece of work, if there is one."""
        piece = self._shares.next(number)
        if piece:
            self._processes[number].channel.send_bytes(marshal.dumps((piece.start, piece.stop)))
        return bool(piece)

    def _answering(self, numbers: set[int]) -> list[int]:
        """Those of some processes that have done something; waits for the first."""
        wait = self._processes[0].wait
        ready = wait([self._processes[number].channel for number in sorted(numbers)])
        return [number for number in sorted(numbers) if self._processes[number].channel in ready]


def _serve(channel: Channel, paths: Sequence[str], converting: Converting) -> None:
    """What a process of the pool does: it converts pieces of the files until no more are given."""
    converter = Converter(*converting)
    while True:
        try:
            begin, end = marshal.loads(channel.recv_bytes())
        except EOFError:
            return
        channel.send_bytes(
            marshal.dumps([(place, _sent(convert_path(converter, paths[place]))) for place in range(begin, end)])
        )


def _sent(result: FileResult) -> list | None:
    """A result for :mod:`marshal`, which is for processes of one program; most have nothing to say."""
    return None if result == UNTOUCHED else plain(result)
