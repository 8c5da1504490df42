"""A run over a file or a folder: read, convert, and show or write the result."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Callable, NamedTuple, Sequence

from ..files.globs import matches_any_glob
from ..files.targets import check_target
from ..files.texts import has_server_words, is_server_file
from ..files.tree import Entry, Tree, read_tree
from ..files.writer import Unreadable, staging_in_place, write_copy, write_in_place
from .remembered import Memory, Question, question_of_run
from .results import FileResult
from .settings import Settings

# Below this many files starting processes costs more than it saves.
_WORTH_PROCESSES = 64
Progress = Callable[[int, int], None]  # is called with the number of converted files and of all files


class Exclude(NamedTuple):
    """Files of a folder that the run does not convert: patterns, and the folder that they start from."""

    patterns: tuple[str, ...] = ()
    folder: str = ""


class Run(NamedTuple):
    """The source of a run, its files, the result of each script and notebook, and the excluded files."""

    source: str
    tree: Tree
    results: tuple[tuple[Entry, FileResult], ...]
    excluded: tuple[str, ...] = ()

    @property
    def new_bytes_by_path(self) -> dict[str, bytes]:
        """The new bytes of the changed files, by relative path."""
        return {e.relative: r.new for e, r in self.results if r.new is not None}

    @property
    def has_diagnostics(self) -> bool:
        """Return True if there is any diagnostic."""
        return any(result.diagnostics for _, result in self.results)

    @property
    def unreadable(self) -> bool:
        """Return True if a script or notebook could not be read."""
        return any(result.unreadable for _, result in self.results)


def _no_progress(done: int, total: int) -> None:
    """Show nothing."""


def convert_source(
    source: str,
    settings: Settings,
    jobs: int = 0,
    exclude: Exclude = Exclude(),
    list_calls: bool = False,
    memory: Memory | None = None,
    progress: Progress = _no_progress,
) -> Run:
    """Convert a file or all scripts and notebooks of a folder, in memory.

    Args:
        source: a path.
        settings: which rules act.
        jobs: processes; 0 for as many as pay off.
        exclude: the files of a folder that are not converted; a file given as the source always is.
        list_calls: list the TensorFlow calls in the results, for a report.
        memory: the results of earlier runs; None to neither use nor keep any.
        progress: is called after each file.

    Raises:
        UsageError: there is no such file or folder.
    """
    tree = read_tree(source)
    in_folder = os.path.isdir(source)
    texts = {
        e for e in tree.entries if not e.is_link and (has_server_words(e.path) if in_folder else is_server_file(e.path))
    }
    everything = [e for e in tree.entries if e.is_python or e in texts or not in_folder]
    excluded = _excluded_paths(source, everything, exclude)
    entries = [entry for entry in everything if entry.relative not in excluded]

    def make_question() -> Question | None:
        main = settings.main and os.path.realpath(settings.main)
        options = source, os.path.realpath(source), main, settings, list_calls, sorted(excluded)
        return question_of_run(options, [e.path for e in everything]) if memory else None

    def make_run(results: Sequence[FileResult]) -> Run:
        return Run(source, tree, tuple(zip(entries, results)), tuple(sorted(excluded)))

    asked = make_question()
    known = memory.recall(asked) if memory and asked else None
    if known is not None:
        return make_run(known)
    from .converter import make_project  # only here: a remembered run needs neither rules nor processes
    from .pool import convert_files

    scripts = [e for e in everything if e not in texts]
    project = make_project(settings, [e.path for e in scripts], [e.path for e in scripts if e.relative in excluded])
    jobs = jobs or (1 if len(entries) < _WORTH_PROCESSES else os.cpu_count() or 1)
    by_number: dict[int, FileResult] = {}
    with closing(convert_files([e.path for e in entries], (settings, project, list_calls), jobs)) as results:
        for number, result in results:
            by_number[number] = result
            progress(len(by_number), len(entries))
    in_order = [by_number[number] for number in range(len(entries))]
    if memory and asked and make_question() == asked:  # no file has changed in the meantime
        memory.store(asked, in_order)
    return make_run(in_order)


def _excluded_paths(source: str, entries: list[Entry], exclude: Exclude) -> dict[str, None]:
    if not exclude.patterns or not os.path.isdir(source):
        return {}
    below = os.path.relpath(os.path.realpath(source), os.path.realpath(exclude.folder or source))
    return {
        e.relative: None
        for e in entries
        if matches_any_glob(os.path.normpath(os.path.join(below, e.relative)).replace(os.sep, "/"), exclude.patterns)
    }


def write_migrated_copy(run: Run, target: str, force: bool) -> Unreadable:
    """Write the migrated copy of a run's source; see :func:`convert_tf2npu.files.writer.write_copy`."""
    check_target(run.source, target)
    return write_copy(run.source, run.tree, run.new_bytes_by_path, target, force)


def replace_in_place(run: Run, force: bool) -> None:
    """Change the source in place.

    Raises:
        UsageError: it lies in a git work tree with uncommitted changes.
    """
    if not force:
        from ..files.git_status import refuse_uncommitted  # only here: it runs git

        refuse_uncommitted(run.source, [entry.path for entry, result in run.results if result.new is not None])
    write_in_place(run.source, run.tree, run.new_bytes_by_path)


def recover_in_place(source: str) -> None:
    """Undo the unfinished changes of a killed run, before the source is read."""
    if os.path.exists(source):
        staging_in_place(source).recover()
