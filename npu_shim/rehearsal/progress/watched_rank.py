"""The process of a watched rank: ``-m npu_shim.rehearsal.progress.watched_rank SETTINGS (script | -m module) ARGS``."""

from __future__ import annotations

import os
import sys

from npu_shim._host import host_env
from npu_shim._host.process_settings import decode_settings
from npu_shim.import_hook import migrated_run, script
from npu_shim.launching.progress.status import PIPE_VARIABLE
from npu_shim.rehearsal.progress.watching import Watching


def main(arguments: list[str]) -> int:
    """Run a script and watch it.

    Args:
        arguments: a Watching as text, and the script or ``-m`` and the module, with their arguments.
    Returns:
        0 if the script returns. Its exceptions, including SystemExit, go on to the caller.
    """
    from npu_shim.rehearsal.progress.start import (
        watch_and_report,  # needs NumPy, which the verbs without a script do not
    )

    watching, target = decode_settings(arguments[0], Watching), arguments[1:]
    number = host_env.process_environ().pop(PIPE_VARIABLE, None)
    pipe = None if number is None else int(number)
    if pipe is not None:
        os.set_inheritable(pipe, False)
    if pipe is not None or watching.folder:
        watch_and_report(pipe, watching.folder)
    if watching.profile is not None:
        watching.profile()
    script.enter_script_folder(target)
    if host_env.is_alias_wanted():
        migrated_run.use_cpu_forms()
        migrated_run.install_alias_here_and_in_children()
    script.run_unconverted(target)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
