"""The process of a watched rank: ``python -m npu_shim.cli._watched SETTINGS (script.py | -m module) ARGS``."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from npu_shim._host import host_env
from npu_shim.cli import _profiled, _progress, run
from npu_shim.import_hook import script
from npu_shim.launching.progress.status import PIPE_VARIABLE


def main(arguments: list[str]) -> int:
    """Run a script and watch it.

    Args:
        arguments: the settings as JSON (``folder``: of the event files, or null; ``alias``: true to serve the vendor's
            packages; ``profile``: what to profile, or null), and the script or ``-m`` and the module, with their
            arguments.
    Returns:
        0 if the script returns. Its exceptions, including SystemExit, go on to the caller.
    """
    settings: dict[str, Any] = json.loads(arguments[0])
    target = arguments[1:]
    number = host_env.process_environ().pop(PIPE_VARIABLE, None)
    pipe = None if number is None else int(number)
    if pipe is not None:
        os.set_inheritable(pipe, False)
    if pipe is not None or settings["folder"]:
        _progress.start(pipe, settings["folder"])
    _profiled.start(settings["profile"])
    if settings["alias"]:
        run.main(["--alias", *target])
    elif target[0] == "-m":
        script.prepare_path(os.getcwd())
        script.run_module(target[1], target[2:])
    else:
        script.prepare_path(os.path.dirname(os.path.realpath(target[0])))
        script.run_file(target[0], target[1:], None)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
