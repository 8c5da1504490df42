"""Fork the runs of a command from one process that has imported TensorFlow, where a script sees no difference."""

from __future__ import annotations

import contextlib
import os
import subprocess
from dataclasses import replace
from typing import Iterator, Sequence

from npu_shim._host import host_device
from npu_shim.import_hook.before_tensorflow import read_before_tensorflow
from npu_shim.import_hook.preloaded import OF_TENSORFLOW
from npu_shim.launching.fork_server import ForkServer
from npu_shim.rehearsal.running import PROCESS, Run


@contextlib.contextmanager
def preloaded(runs: Sequence[Run]) -> Iterator[Sequence[Run]]:
    """Yield the runs. They and those that are made from them start as forks, or else as new Pythons."""
    with contextlib.ExitStack() as stack:
        environ = _shared_environment(runs)
        if environ is not None:
            with contextlib.suppress(OSError, subprocess.SubprocessError):  # then each is a new Python
                server = ForkServer(["-m", PROCESS], environ, starts_session=False)
                stack.callback(server.close)
                if server.wait(lambda: False) is None:
                    runs = [replace(run, server=server) for run in runs]
        yield runs


def _shared_environment(runs: Sequence[Run]) -> dict[str, str] | None:
    """Return the environment variables for the import of TensorFlow; None if the runs cannot share it.

    The process of a run imports NumPy before the script. So scripts may set no variables but those of TensorFlow.
    """
    if any(run.ranks is not None for run in runs) or host_device.detect_without_import().is_npu:
        return None
    environments = []
    for run in runs:
        before = read_before_tensorflow([run.script], [os.path.dirname(os.path.realpath(run.script))])
        own = all(name.startswith(OF_TENSORFLOW) for name in (*before.variables, *before.defaults))
        environments.append(
            before.with_script_variables(run.environment()) if before.imports_tensorflow and own else None
        )
        if (
            before.problem
            or environments[0] is None
            or environments[-1] != {**environments[0], "TMPDIR": run.environment()["TMPDIR"]}
        ):
            return None
    return environments[0]
