"""The process of a recorded run: ``python -m npu_shim.rehearsal.recorded_run SETTINGS script ARGS``."""

from __future__ import annotations

import os
import platform
import resource
import sys
import traceback
from typing import TYPE_CHECKING

from npu_shim._host import host_env
from npu_shim._host.process_settings import decode_settings
from npu_shim.distributed.world import world
from npu_shim.import_hook import migrated_run, script
from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.import_hook.outside_files import imported_from_outside
from npu_shim.import_hook.project_files import ProjectFiles, project_root
from npu_shim.rehearsal.bounded_exit import bound_exit
from npu_shim.rehearsal.comparing.read_recording import read_initial_variables
from npu_shim.rehearsal.files.file_watch import Watch
from npu_shim.rehearsal.files.kept import STORE, Kept
from npu_shim.rehearsal.half_run import HalfRun
from npu_shim.rehearsal.recording import random_seeds
from npu_shim.rehearsal.recording.events import End
from npu_shim.rehearsal.recording.install import install_hooks
from npu_shim.rehearsal.recording.random_seeds import Apart
from npu_shim.rehearsal.recording.recorder import Recorder
from npu_shim.rehearsal.recording.settings import HookSettings
from npu_shim.rehearsal.recording.writer import Writer
from npu_shim.rehearsal.running import Run

if TYPE_CHECKING:
    from npu_shim.rehearsal.half.half_rehearsal import Rehearsal


def main(arguments: list[str]) -> int:
    """Run a script and record it.

    Args:
        arguments: a Run as text, the script, and its arguments.
    Returns:
        0 if the script returns. Its exceptions, including SystemExit, go on to the caller.
    """
    run, target = decode_settings(arguments[0], Run), arguments[1:]
    folder = run.folder
    rank = world().rank if run.ranks is not None else None
    if rank is not None:
        folder = os.path.join(folder, f"rank_{rank}")
    os.makedirs(folder, exist_ok=True)
    writer = Writer(folder, run.keep, run.until, run.whole)
    writer.write_event("start", command=target, python=platform.python_version(), rank=rank)
    recorder = Recorder(writer, run.every, run.steps)
    recorder.is_rank, recorder.of_ranks = rank is not None, run.of_ranks
    apart = Apart(rank, run.apart) if rank and run.apart is not None else None
    random_seeds.seed_python(apart.seed_of_rank(run.seed) if apart else run.seed, recorder.record_seed)
    if run.dumping is not None:  # before the hooks, which run sessions of their own between two steps
        run.dumping.start(recorder)
    given = read_initial_variables(run.initial) if run.initial else None
    hooks = HookSettings(run.seed, run.by_call_site, run.deliberate, run.initial is not None, given, apart, run.ordered)
    install_hooks(recorder, hooks)
    begun = _begin_half_rehearsal_after_tensorflow(run.half, writer, folder) if run.half else []
    ended = "error"
    _watch_files(run)
    if host_env.is_alias_wanted():
        migrated_run.install_alias_here_and_in_children()
    try:
        if run.module is not None:
            target = ["-m", run.module, *target[1:]]
        if run.convert is None:
            script.enter_script_folder(target)
            if run.module is not None:  # the migrated one is in another folder
                sys.path[0] = script.root_of_module(run.script, run.module)
            if run.project is not None and run.moved_to is not None:
                files = ProjectFiles(run.project)
                sys.path[1:] = [_moved_path(folder, files, run.moved_to) for folder in sys.path[1:]]
            script.run_unconverted(target)
        else:
            migrated_run.run_converted(run.convert, target, run.project)
        ended = _record_end(recorder, rank)
    except Exception as error:  # of the script, which may miss what the rest of its training gives
        if not recorder.has_cut_training:
            raise
        traceback.print_exc()
        writer.write_event("note", failed=type(error).__name__)
        ended = _record_end(recorder, rank)
    except SystemExit as error:
        ended = _record_end(recorder, rank) if error.code in (None, 0) else "error"
        raise
    finally:
        writer.write_event("notes", outside=_unconverted_files(run))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        half = begun[0].end_with_report() if begun else None
        end = End(ended, recorder.steps, writer.seconds_since_start(), peak, half, recorder.reduced)
        writer.write_event("end", **end.to_json())
        if ended == "returned" and recorder.is_done():
            bound_exit()
    return 0


def _unconverted_files(run: Run) -> list[str]:
    """Return the files that a migrated script imported without conversion.

    They are outside of the folder in which files are converted in memory, or those of the original. Their paths are
    relative to that folder, or to that of the output.
    """
    if run.convert is not None:
        return imported_from_outside(run.project or project_root(run.script))
    if run.moved_to is None or run.project is None:
        return []
    files, folder = ProjectFiles(run.project), run.moved_to
    return [path for path in imported_from_outside(folder) if files.normalized_path(os.path.join(folder, path))]


def _moved_path(folder: str, files: ProjectFiles, target: str) -> str:
    """Return a folder of the search path, or that of the migrated files in place of one of the project."""
    is_own = files.normalized_path(os.path.join(folder, "__init__.py")) is not None
    return os.path.join(target, os.path.relpath(os.path.realpath(folder), files.root)) if is_own else folder


def _watch_files(run: Run) -> None:
    """Note what the script writes, so that the command can take it back. The runs after this one see no file of it."""
    sys.dont_write_bytecode = True
    dumps = run.dumping.folder if run.dumping is not None else None
    watch = Watch(Kept(os.path.join(run.folder, STORE), [run.folder, *([dumps] if dumps else [])]))
    watch.start()
    after_tensorflow(watch.follow_tensorflow)


def _record_end(recorder: Recorder, rank: int | None) -> str:
    """Record what is recorded when a script has returned, but for ranks. Return the word for this end.

    The moving statistics of a rank are those of its share of the data.
    """
    for act in recorder.at_end if rank is None else ():
        act()
    return "returned"


def _begin_half_rehearsal_after_tensorflow(half_run: HalfRun, writer: Writer, folder: str) -> list[Rehearsal]:
    """Begin the part of half precision when TensorFlow is imported. Return a list that has it from then on."""
    begun: list[Rehearsal] = []

    def begin() -> None:
        from npu_shim.rehearsal.half.half_rehearsal import Rehearsal

        begun.append(Rehearsal(half_run, writer, folder))
        begun[0].start()

    after_tensorflow(begin)
    return begun


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
