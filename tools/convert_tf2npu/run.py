"""A run over a file or a folder: read, convert, and show or write the result."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from .config import Settings
from .convert import Converter, project_of
from .globs import matches
from .progress import Progress
from .project import Project
from .results import FileResult, failed
from .tree import Entry, Tree, UsageError, check_target, read_tree, write_in_place, write_tree

# Below this many files starting processes costs more than it saves.
_WORTH_PROCESSES = 64


class Exclude(NamedTuple):
    """Files of a folder that stay as they are: patterns, and the folder that they start from."""
    patterns: Tuple[str, ...] = ()
    folder: str = ''


class Run(NamedTuple):
    """What a run found: the source, its files, what becomes of each script and notebook, and those that
    the user excluded."""
    source: str
    tree: Tree
    results: Tuple[Tuple[Entry, FileResult], ...]
    excluded: Tuple[str, ...] = ()

    @property
    def new(self) -> Dict[str, bytes]:
        """The new bytes of the changed files, by relative path."""
        return {e.relative: r.new for e, r in self.results if r.new is not None}

    @property
    def said(self) -> bool:
        """Whether anything was said."""
        return any(result.diagnostics for _, result in self.results)

    @property
    def unreadable(self) -> bool:
        """Whether a script or notebook could not be read."""
        return any(result.unreadable for _, result in self.results)


def convert_source(source: str, settings: Settings, jobs: int = 0, exclude: Exclude = Exclude(),
                   list_calls: bool = False) -> Run:
    """Convert a file or all scripts and notebooks of a folder, in memory.

    Args:
        source: a path.
        settings: which rules act.
        jobs: processes; 0 for as many as pay off.
        exclude: which files of a folder are not converted; a file that is named itself always is.
        list_calls: whether the results list the calls of TensorFlow, for a report.

    Raises:
        UsageError: there is no such file or folder.
    """
    tree = read_tree(source)
    entries = [e for e in tree.entries if e.is_python or not os.path.isdir(source)]
    excluded = _excluded(source, entries, exclude)
    project = project_of(settings, [e.path for e in entries],
                         [e.path for e in entries if e.relative in excluded])
    entries = [entry for entry in entries if entry.relative not in excluded]
    if jobs == 0:
        jobs = 1 if len(entries) < _WORTH_PROCESSES else os.cpu_count() or 1
    progress = Progress(len(entries), sys.stderr)
    try:
        results = []
        for result in _results([e.path for e in entries], (settings, project, list_calls), jobs):
            results.append(result)
            progress.step()
    finally:
        progress.close()
    return Run(source, tree, tuple(zip(entries, results)), tuple(sorted(excluded)))


def _excluded(source: str, entries: List[Entry], exclude: Exclude) -> Dict[str, None]:
    if not exclude.patterns or not os.path.isdir(source):
        return {}
    below = os.path.relpath(os.path.realpath(source), os.path.realpath(exclude.folder or source))
    return {e.relative: None for e in entries if matches(
        os.path.normpath(os.path.join(below, e.relative)).replace(os.sep, '/'), exclude.patterns)}


def _results(paths: List[str], converting: Tuple[Settings, Project, bool], jobs: int) -> Iterator[FileResult]:
    if jobs == 1 or len(paths) < 2:
        converter = Converter(*converting)
        for path in paths:
            yield _convert_path(converter, path)
        return
    try:
        with ProcessPoolExecutor(min(jobs, len(paths)), initializer=_start_worker,
                                 initargs=converting) as pool:
            yield from pool.map(_convert_in_worker, paths, chunksize=8)
    except BrokenProcessPool:
        raise UsageError('a process of the tool was ended from outside, as a rule because memory ran '
                         'out; nothing was written; try again with -j 1')


_worker: Optional[Converter] = None  # of a worker process; made once when it starts


def _start_worker(settings: Settings, project: Project, list_calls: bool) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends the others
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _worker = Converter(settings, project, list_calls)


def _convert_in_worker(path: str) -> FileResult:
    assert _worker is not None
    return _convert_path(_worker, path)


def _convert_path(converter: Converter, path: str) -> FileResult:
    try:
        with open(path, 'rb') as stream:
            raw = stream.read()
    except OSError as error:
        return failed(error.strerror or str(error))
    return converter.convert(raw, path)


def write(run: Run, target: str, force: bool) -> List[str]:
    """Write the migrated copy of a run's source; see :func:`tree.write_tree`."""
    check_target(run.source, target)
    return write_tree(run.source, run.tree, run.new, target, force)


def replace(run: Run, force: bool) -> None:
    """Change the source where it is.

    Raises:
        UsageError: it lies in a git work tree with changes that are not committed.
    """
    if not force:
        _refuse_uncommitted(run.source)
    write_in_place(run.tree, run.new)


def _refuse_uncommitted(source: str) -> None:
    folder = source if os.path.isdir(source) else os.path.dirname(os.path.abspath(source))
    try:
        status = subprocess.run(['git', '-C', folder, 'status', '--porcelain', '--', '.'],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        return  # without git there is no work tree to protect
    changed = status.stdout.decode('utf-8', 'replace').splitlines()
    if status.returncode == 0 and changed:
        raise UsageError('%s has changes that are not committed (%s%s); commit them first, so that the '
                         'migration can be undone, or add --force' % (
                             source, changed[0][3:], ', ...' if len(changed) > 1 else ''))
