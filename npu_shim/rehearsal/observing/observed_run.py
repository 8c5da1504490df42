"""Run an unmodified script, and write what was seen."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import shutil
import sys
import tempfile
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, ContextManager, Iterator, Sequence

from npu_shim._host import host_env, whole_file
from npu_shim._host.packages import tensorflow_version
from npu_shim.import_hook import hook, migrated_run, script
from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.import_hook.outside_files import imported_from_outside, outside_sentence
from npu_shim.rehearsal.bounded_exit import bound_exit
from npu_shim.rehearsal.files.taken_back import restoring_files
from npu_shim.rehearsal.observing.counted_steps import start_counting_steps
from npu_shim.rehearsal.observing.observation import Answer, Observation
from npu_shim.rehearsal.observing.progress import reporting_steps
from npu_shim.rehearsal.run_arguments import arguments_of_run

if TYPE_CHECKING:
    from convert_tf2npu.api import Facts


@dataclass(frozen=True)
class Observing:
    """The settings of an observed run.

    Attributes:
        rules: the arguments of the rules that ask.
        output: the file of facts.
        steps: the number of training steps after which the script ends; None to let it run to its end.
        takes_back: True to take back what the script writes.
        project: the folder of the project; None for that of the script.
    """

    rules: argparse.Namespace
    output: str
    steps: int | None = None
    takes_back: bool = False
    project: str | None = None


def run_and_write_facts(target: Sequence[str], is_module: bool, settings: Observing) -> None:
    """Run a script or a module, and write the facts, merged with those of earlier runs, however it ends.

    Args:
        target: the script or module, and its arguments. ``{run}`` in them is a folder of the run, which is removed
            after it, and ``{seed}`` its seed.
        is_module: True for a module.
        settings: of the run.
    Raises:
        UsageError: the file has no facts, or those of other files.
    """
    from convert_tf2npu.api import ObservedRun

    output = os.path.abspath(settings.output)  # the script may change the folder
    facts = _read_earlier_facts(output)
    answers: dict[str, Answer] = {}
    at_end: list[Callable[[], None]] = []

    def begin() -> None:
        from npu_shim.rehearsal.observing.answers import ANSWERS

        answers.update(ANSWERS)

    def watch() -> None:
        from npu_shim.rehearsal.observing import answers as of_tensorflow

        at_end.append(of_tensorflow.watch_uses(recorder))

    after_tensorflow(begin)
    migrated_run.use_cpu_forms()
    if host_env.is_alias_wanted():
        migrated_run.install_alias_here_and_in_children()
    files = migrated_run.enter_script_folder(target[0], is_module)
    observation = Observation(answers)
    conversions = migrated_run.make_conversions(
        files, settings.rules, settings.project, sys.path, edits=observation.watching_edits
    )
    conversions.convert_all()
    observation.install_builtins_for_watched_code()
    recorder = start_counting_steps(settings.steps)
    after_tensorflow(watch)
    finder = hook.install_finder(conversions, watch_shapes=False)
    ended = "error"
    try:
        with reporting_steps(recorder), _own_folder() as folder, _taking_back(settings):
            arguments = arguments_of_run(target[1:], folder)
            if is_module:
                script.run_module(target[0], arguments)
            else:
                script.run_file(target[0], arguments, finder)
        ended = "stopped" if recorder.is_done() else "returned"
    except Exception as error:  # of the script, which may miss what the rest of its training gives
        if not recorder.has_cut_training:
            raise
        observation.note_end(error.__traceback__)
        traceback.print_exc()
        print(
            f"npu-shim observe: the script ended with {type(error).__name__} after its last step. With more --steps, "
            "its training may give what it misses.",
            file=sys.stderr,
        )
        ended = "stopped"
    except SystemExit as error:
        ended = "error" if error.code else "stopped" if recorder.is_done() else "returned"
        raise
    finally:
        for end in at_end:
            end()
        observation.note_end(sys.exc_info()[2])
        root = conversions.files.root
        root = root if os.path.isdir(root) else os.path.dirname(root)
        versions = tensorflow_version() or "", platform.python_version()
        outside = tuple(imported_from_outside(root))
        run = ObservedRun(tuple(target), *versions, recorder.steps, ended, outside)
        seen = observation.facts_of_run(root, run)
        if facts is None:
            facts = seen
        else:
            facts.update(seen)
        whole_file.write_atomically(facts.to_text(output), output)
        if outside:
            sentence = outside_sentence("observe", root, outside, "--project")
            print(f"npu-shim observe: {sentence}", file=sys.stderr)
        if ended == "stopped":
            bound_exit()


@contextlib.contextmanager
def _own_folder() -> Iterator[str]:
    """Yield a folder, and remove it. The script may have threads that still write into it."""
    folder = tempfile.mkdtemp(prefix="npu_shim_observe_")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _taking_back(settings: Observing) -> ContextManager[object]:
    return restoring_files() if settings.takes_back else contextlib.nullcontext()


def _read_earlier_facts(facts_path: str) -> Facts | None:
    """Return the facts of earlier runs; None without any.

    Raises:
        UsageError: they are of other files than those of now.
    """
    from convert_tf2npu.api import UsageError, read_facts

    try:
        return read_facts(facts_path) if os.path.exists(facts_path) else None
    except UsageError as error:
        raise UsageError("{0}: remove {1}, or name another file with -o", error, facts_path)
