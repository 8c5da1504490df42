"""A run over a file or a folder: read, convert, and show or write the result."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple, Sequence

from ..cli.config import Settings
from ..cli.progress import Progress
from ..files.globs import matches
from ..files.tree import Entry, Tree, check_target, read_tree, staging_in_place, write_in_place, write_tree
from .remembered import Memory, Question, question
from .results import FileResult

# Below this many files starting processes costs more than it saves.
_WORTH_PROCESSES = 64


class Exclude(NamedTuple):
    """Files of a folder that stay as they are: patterns, and the folder that they start from."""

    patterns: tuple[str, ...] = ()
    folder: str = ""


class Run(NamedTuple):
    """What a run found: the source, its files, what becomes of each script and notebook, those that the user
    excluded, and how many processes it may have."""

    source: str
    tree: Tree
    results: tuple[tuple[Entry, FileResult], ...]
    excluded: tuple[str, ...] = ()
    jobs: int = 1

    @property
    def new(self) -> dict[str, bytes]:
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


def convert_source(
    source: str,
    settings: Settings,
    jobs: int = 0,
    exclude: Exclude = Exclude(),
    list_calls: bool = False,
    memory: Memory | None = None,
) -> Run:
    """Convert a file or all scripts and notebooks of a folder, in memory.

    Args:
        source: a path.
        settings: which rules act.
        jobs: processes; 0 for as many as pay off.
        exclude: which files of a folder are not converted; a file that is named itself always is.
        list_calls: whether the results list the calls of TensorFlow, for a report.
        memory: what runs before found; without it nothing is remembered.

    Raises:
        UsageError: there is no such file or folder.
    """
    tree = read_tree(source)
    everything = [e for e in tree.entries if e.is_python or not os.path.isdir(source)]
    excluded = _excluded(source, everything, exclude)
    entries = [entry for entry in everything if entry.relative not in excluded]

    def ask() -> Question | None:
        main = settings.main and os.path.realpath(settings.main)
        options = source, os.path.realpath(source), main, settings, list_calls, sorted(excluded)
        return question(options, [e.path for e in everything]) if memory else None

    def run_of(results: Sequence[FileResult]) -> Run:
        return Run(source, tree, tuple(zip(entries, results)), tuple(sorted(excluded)), jobs)

    if jobs == 0:
        jobs = 1 if len(entries) < _WORTH_PROCESSES else os.cpu_count() or 1
    asked = ask()
    known = memory.recall(asked) if memory and asked else None
    if known is not None:
        return run_of(known)
    from .converter import project_of  # and with it all that understands scripts
    from .workers import converted

    project = project_of(settings, [e.path for e in everything], [e.path for e in everything if e.relative in excluded])
    progress = Progress(len(entries), sys.stderr)
    try:
        found: dict[int, FileResult] = {}
        for number, result in converted([e.path for e in entries], (settings, project, list_calls), jobs):
            found[number] = result
            progress.step()
    finally:
        progress.close()
    results = [found[number] for number in range(len(entries))]
    if memory and asked and ask() == asked:  # else files have changed meanwhile
        memory.keep(asked, results)
    return run_of(results)


def _excluded(source: str, entries: list[Entry], exclude: Exclude) -> dict[str, None]:
    if not exclude.patterns or not os.path.isdir(source):
        return {}
    below = os.path.relpath(os.path.realpath(source), os.path.realpath(exclude.folder or source))
    return {
        e.relative: None
        for e in entries
        if matches(os.path.normpath(os.path.join(below, e.relative)).replace(os.sep, "/"), exclude.patterns)
    }


def write(run: Run, target: str, force: bool) -> list[str]:
    """Write the migrated copy of a run's source; see :func:`tree.write_tree`."""
    check_target(run.source, target)
    return write_tree(run.source, run.tree, run.new, target, force, run.jobs)


def replace(run: Run, force: bool) -> None:
    """Change the source where it is.

    Raises:
        UsageError: it lies in a git work tree with changes that are not committed.
    """
    if not force:
        from ..files.git_status import refuse_uncommitted  # which runs git

        refuse_uncommitted(run.source, [entry.path for entry, result in run.results if result.new is not None])
    write_in_place(run.source, run.tree, run.new)


def recover_in_place(source: str) -> None:
    """Undo what a run that was killed did to a source, before it is read."""
    if os.path.exists(source):
        staging_in_place(source).recover()
