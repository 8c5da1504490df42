"""A run over a file or a folder: read, convert, and show or write the result."""
from __future__ import annotations

import os
import subprocess
from concurrent.futures import ProcessPoolExecutor
from typing import Dict, List, NamedTuple, Optional, Tuple

from .config import Settings
from .convert import ERROR, Converter, Diagnostic, FileResult
from .project import Project
from .tree import Entry, Tree, UsageError, check_target, read_tree, write_in_place, write_tree

# Below this many files starting processes costs more than it saves.
_WORTH_PROCESSES = 64


class Run(NamedTuple):
    """What a run found: the source, its files, and what becomes of each Python file."""
    source: str
    tree: Tree
    results: Tuple[Tuple[Entry, FileResult], ...]

    @property
    def new(self) -> Dict[str, bytes]:
        """The new bytes of the changed files, by relative path."""
        return {e.relative: r.new for e, r in self.results if r.new is not None}


def convert_source(source: str, settings: Settings, jobs: int = 0) -> Run:
    """Convert a file or all Python files of a folder, in memory.

    Args:
        source: a path.
        settings: which rules act.
        jobs: processes; 0 for as many as pay off.

    Raises:
        UsageError: there is no such file or folder.
    """
    tree = read_tree(source)
    entries = [e for e in tree.entries if e.is_python or not os.path.isdir(source)]
    if jobs == 0:
        jobs = 1 if len(entries) < _WORTH_PROCESSES else os.cpu_count() or 1
    paths = [entry.path for entry in entries]
    if jobs == 1 or len(entries) < 2:
        converter = Converter(settings, Project(paths))
        results = [_convert_path(converter, path) for path in paths]
    else:
        with ProcessPoolExecutor(min(jobs, len(entries)), initializer=_start_worker,
                                 initargs=(settings, paths)) as pool:
            results = list(pool.map(_convert_in_worker, paths, chunksize=8))
    return Run(source, tree, tuple(zip(entries, results)))


_worker: Optional[Converter] = None  # of a worker process; made once when it starts


def _start_worker(settings: Settings, paths: List[str]) -> None:
    global _worker
    _worker = Converter(settings, Project(paths))


def _convert_in_worker(path: str) -> FileResult:
    assert _worker is not None
    return _convert_path(_worker, path)


def _convert_path(converter: Converter, path: str) -> FileResult:
    try:
        with open(path, 'rb') as stream:
            raw = stream.read()
    except OSError as error:
        return FileResult(None, (Diagnostic(0, 0, 'NPU000', ERROR, error.strerror or str(error)),))
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
