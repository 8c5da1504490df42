"""Converting files in several processes, which end with the one that started them, whatever ends that."""
from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from typing import Iterator, List, Optional, Tuple

from .config import Settings
from .convert import Converter
from .errors import UsageError
from .project import Project
from .results import FileResult, failed
from .signals import act_on_held_back, held_back, leave_to_parent

_LOOK_S = 0.5
_AT_ONCE = 8, 64  # files, at least and at most: neighbours import each other, and are read once by one process
_SHARES = 16  # for each process, so that all end at about the same time
Converting = Tuple[Settings, Project, bool]  # the arguments of a Converter


def converted(paths: List[str], converting: Converting, jobs: int) -> Iterator[FileResult]:
    """Convert files, in their order.

    Args:
        paths: of the files.
        converting: how.
        jobs: the number of processes.

    Raises:
        UsageError: one of the processes was ended.
    """
    if jobs == 1 or len(paths) < 2:
        converter = Converter(*converting)
        with _collector_at_rest():
            for path in paths:
                yield convert_path(converter, path)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    try:
        # An exception while the processes are started, or while work is handed out, would be lost or block all.
        with held_back(), ProcessPoolExecutor(min(jobs, len(paths)), initializer=_start,
                                              initargs=(os.getpid(), *converting)) as pool:
            at_once = sorted((*_AT_ONCE, len(paths) // (jobs * _SHARES)))[1]
            results = pool.map(_convert, paths, chunksize=at_once)
            try:
                for result in results:
                    yield result
                    act_on_held_back()
            finally:
                results.close()  # type: ignore[attr-defined]  # a generator: what is not begun is given up
    except BrokenProcessPool:
        raise UsageError('a process of the tool was ended from outside, as a rule because memory ran '
                         'out; nothing was written; try again with -j 1')


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
        with open(path, 'rb') as stream:
            raw = stream.read()
    except OSError as error:
        return failed(error.strerror or str(error))
    return converter.convert(raw, path)._replace(edits=())


_worker: Optional[Converter] = None  # of a worker process; made once when it starts


def _start(main: int, *converting: object) -> None:
    global _worker
    import multiprocessing
    leave_to_parent()
    # A fork server stands between, and ends with the main process.
    parent = os.getppid() if multiprocessing.get_start_method() == 'forkserver' else main
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    gc.disable()
    _worker = Converter(*converting)  # type: ignore[arg-type]


def _end_with(parent: int) -> None:
    """End this process soon after the main one: a worker that waits for work would wait for ever."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)


def _convert(path: str) -> FileResult:
    assert _worker is not None
    return convert_path(_worker, path)
