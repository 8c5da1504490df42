"""Convert files in this process or in several.

The processes of a run end with it, whatever ends the run.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from bisect import bisect_left
from itertools import accumulate
from typing import Generator, Sequence, Tuple

from ..files.errors import UsageError
from ..files.signals import leave_signals_to_parent, signals_blocked
from ..project.project import Project
from .converter import Converter
from .results import UNTOUCHED, FileResult, failed_result
from .settings import Settings

# Files import their neighbours, which each process reads for itself: large pieces share more, small ones end together.
_PIECES = 8  # per process
_LOOK_S = 0.5
Converting = Tuple[Settings, Project, bool]  # the arguments of a Converter
Numbered = Tuple[int, FileResult]  # with the place of its path


def convert_files(paths: Sequence[str], converting: Converting, jobs: int) -> Generator[Numbered, None, None]:
    """Convert files. The results of several processes come in any order.

    Args:
        paths: of the files, neighbours beside each other.
        converting: the arguments of the converter.
        jobs: the number of processes.

    Raises:
        UsageError: a process was ended from outside.
    """
    jobs = min(jobs, len(paths))
    converter = Converter(*converting)  # loads the rules, which forked processes share
    if jobs > 1:
        yield from _convert_in_processes(paths, converting, jobs)
    else:
        converting[1].share_memory(1)
        yield from ((number, convert_path(converter, path)) for number, path in enumerate(paths))


def convert_path(converter: Converter, path: str) -> FileResult:
    """Convert the file at a path. The result has no edits: a run needs only the new bytes."""
    try:
        raw = converter.project.files.read(path)
    except OSError as error:
        return failed_result(error.strerror or str(error))
    result = converter.convert(raw, path)._replace(edits=())
    return UNTOUCHED if result == UNTOUCHED else result


def split_into_pieces(sizes: Sequence[int], count: int) -> list[range]:
    """Cut a list of files into neighbouring pieces of about the same size; large files may leave fewer pieces."""
    ends = [0, *accumulate(size + 1 for size in sizes)]
    cuts = [bisect_left(ends, ends[-1] * number // count) for number in range(count + 1)]
    return [range(begin, end) for begin, end in zip(cuts, cuts[1:]) if begin < end]


def may_fork() -> bool:
    """Return True if a copy of this process is safe: with one thread, no other one holds a lock."""
    if not hasattr(os, "fork") or sys.platform == "darwin":  # the libraries of macOS have threads
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1  # counts the threads of libraries too
    except OSError:
        return threading.active_count() == 1


def _convert_in_processes(paths: Sequence[str], converting: Converting, jobs: int) -> Generator[Numbered, None, None]:
    import multiprocessing  # only here: it takes as long to load as the rest of the tool
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    fork = may_fork()
    if fork:
        _ = converting[1].imports.concerned  # read the imports once for all processes
    before = multiprocessing.active_children()
    context = multiprocessing.get_context("fork" if fork else "spawn")
    executor = ProcessPoolExecutor(jobs, context, _prepare_worker, (os.getpid(), tuple(paths), converting, jobs))
    shares = split_into_pieces(list(map(_file_size, paths)), jobs * _PIECES)
    try:
        with signals_blocked():  # an exception while a process starts would lose track of it
            waiting = [executor.submit(_convert_piece, piece) for piece in shares]
        for done in as_completed(waiting):
            yield from done.result()
    except BrokenProcessPool:
        raise UsageError(
            "a worker process was killed, probably because memory ran out. Nothing was written; try again with -j 1"
        )
    except BaseException:
        for child in multiprocessing.active_children():
            if child not in before:
                child.kill()
        raise
    finally:
        executor.shutdown()


def _file_size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0  # reported when the file is read


_work: list[tuple[Sequence[str], Converter]] = []  # of a process of the pool: the files and their converter


def _prepare_worker(main: int, paths: Sequence[str], converting: Converting, jobs: int) -> None:
    """Prepare a process of the pool."""
    leave_signals_to_parent()
    threading.Thread(target=_exit_after_main, args=(main,), daemon=True).start()
    gc.disable()
    gc.freeze()  # memory of the main process stays shared as long as the collector does not look through it
    converting[1].share_memory(jobs)
    _work[:] = [(paths, Converter(*converting))]


def _convert_piece(piece: range) -> list[Numbered]:
    paths, converter = _work[0]
    return [(number, convert_path(converter, paths[number])) for number in piece]


def _exit_after_main(main: int) -> None:
    """End this process soon after the main one, also in the middle of a file."""
    while os.getppid() == main:
        time.sleep(_LOOK_S)
    os._exit(1)
