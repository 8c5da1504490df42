"""Run an unmodified script, and write what was seen."""

from __future__ import annotations

import argparse
import os
import platform
from typing import TYPE_CHECKING, Sequence

from npu_shim._host import whole_file
from npu_shim._host.packages import tensorflow_version
from npu_shim.import_hook import hook, migrated_run, script
from npu_shim.import_hook.after_tensorflow import after_tensorflow
from npu_shim.rehearsal.observing.observation import Answer, Observation

if TYPE_CHECKING:
    from convert_tf2npu.api import Facts


def observe(target: Sequence[str], is_module: bool, rules: argparse.Namespace, output: str) -> None:
    """Run a script or a module, and write the facts, merged with those of earlier runs, however it ends.

    Args:
        target: the script or module, and its arguments.
        is_module: True for a module.
        rules: the arguments of the rules that ask.
        output: the file of facts.
    Raises:
        UsageError: the file has no facts, or those of other files.
    """
    answers: dict[str, Answer] = {}

    def begin() -> None:
        from npu_shim.rehearsal.observing.answers import ANSWERS

        answers.update(ANSWERS)

    after_tensorflow(begin)
    before = _facts_before(output)
    migrated_run.use_forms()
    files = migrated_run.enter(target[0], is_module)
    observation = Observation(answers)
    conversions = migrated_run.conversions(files, rules, edits=observation.edits)
    conversions.convert_all()
    observation.install()
    finder = hook.install(conversions, watch_shapes=False)
    ended = "error"
    try:
        if is_module:
            script.run_module(target[0], [*target[1:]])
        else:
            script.run_file(target[0], [*target[1:]], finder)
        ended = "returned"
    except SystemExit as error:
        ended = "error" if error.code else "returned"
        raise
    finally:
        from convert_tf2npu.api import ObservedRun

        root = conversions.files.root
        run = ObservedRun(tuple(target), tensorflow_version() or "", platform.python_version(), 0, ended)
        facts = observation.facts(root if os.path.isdir(root) else os.path.dirname(root), run)
        if before is not None:
            before.update(facts)
        whole_file.write((before or facts).to_text(output), output)


def _facts_before(output: str) -> Facts | None:
    """Return the facts of earlier runs; None without any.

    Raises:
        UsageError: they are of other files than those of now.
    """
    from convert_tf2npu.api import read_facts

    return read_facts(output) if os.path.exists(output) else None
