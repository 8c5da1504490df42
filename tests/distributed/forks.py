"""Scripts, alone and as ranks, in forks of a process that has imported TensorFlow.

Importing TensorFlow takes a process seconds. Tests of what a script computes start it this way; those of how it is
launched start ``npu-shim launch``, ``npu-shim run`` or a launch script.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading
import time
import traceback
import types
import uuid
from typing import Any, Mapping, Sequence

from npu_shim._host.packages import tensorflow_version
from npu_shim.launching.plan import RankSlot, rank_processes as planned, share_threads

# Nothing has run in the process that is forked. These are read when TensorFlow and NumPy are imported.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3")
context: Any = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["tests.distributed.preloaded"])


def is_safe() -> bool:
    """Return True if TensorFlow works in a fork.

    Later versions than 2.15 do not: in one of seven runs of Keras 3 a rank ended with SIGSEGV.
    """
    return tuple(map(int, (tensorflow_version() or "0").split(".")[:2])) <= (2, 15)


def run_script(
    script: pathlib.Path,
    *arguments: str,
    log: pathlib.Path,
    environ: Mapping[str, str],
    cwd: pathlib.Path | None = None,
    timeout_s: float = 300.0,
) -> str:
    """Run a script in one process and return what it prints; it may not fail.

    If TensorFlow is not safe in a fork, the process is a new Python.

    Args:
        script: the script.
        arguments: of the script.
        log: the file for its output.
        environ: the variables of the process.
        cwd: the folder of the process; by default that of this one.
        timeout_s: how long it may take.
    """
    command = (str(script), *arguments)
    if is_safe():
        process = context.Process(target=_run, args=(command, str(log), dict(environ), cwd), daemon=True)
        process.start()
        process.join(timeout_s)
        if process.is_alive():
            process.kill()
            process.join()
        code = process.exitcode
    else:
        with open(log, "wb") as output:
            code = subprocess.run(
                [sys.executable, *command], stdout=output, stderr=output, env=environ, cwd=cwd, timeout=timeout_s
            ).returncode
    said = log.read_text(errors="replace")
    assert code == 0, f"{' '.join(command)} ended with {code}: {said[-3000:]}"
    return said


def run_ranks(
    ranks: int, *command: str, folder: pathlib.Path, environ: Mapping[str, str], timeout_s: float = 300.0
) -> str:
    """Run a script on several ranks and return what rank 0 prints; no rank may fail.

    Args:
        ranks: how many.
        command: the script and its arguments.
        folder: for the logs, ``rank_0.log`` and so on.
        environ: the variables of the launcher.
        timeout_s: how long they may take.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plan = planned(
        [RankSlot(rank, rank) for rank in range(ranks)],
        ranks,
        command,
        f"forks-{uuid.uuid4().hex}",
        str(folder),
        environ=environ,
        threads=share_threads(sorted(os.sched_getaffinity(0)), ranks),
    )
    started = [
        context.Process(target=_run, args=(each.command, each.log, each.full_environment(environ)), daemon=True)
        for each in plan
    ]
    for process in started:
        process.start()
    end = time.monotonic() + timeout_s
    while any(process.is_alive() for process in started) and time.monotonic() < end:
        if any(process.exitcode for process in started):  # the others may wait for it
            end = min(end, time.monotonic() + 10)
        time.sleep(0.01)
    for process in started:
        if process.is_alive():
            process.kill()
        process.join()
    said = [pathlib.Path(each.log).read_text(errors="replace") for each in plan]
    codes = [process.exitcode for process in started]
    assert codes == [0] * ranks, "\n".join(
        f"rank {rank} ended with {code}: {text[-3000:]}" for rank, (code, text) in enumerate(zip(codes, said))
    )
    return said[0]


def _run(command: Sequence[str], log: str, environ: dict[str, str], cwd: pathlib.Path | None = None) -> None:
    """Do what a new Python would do with a script."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(environ)
    if cwd:
        os.chdir(str(cwd))
    # PYTHONUNBUFFERED is not read again; what a rank prints shall be there when it is killed.
    sys.stdout = open(1, "w", buffering=1, closefd=False)
    sys.stderr = open(2, "w", buffering=1, closefd=False)
    sys.argv = list(command)
    added = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    sys.path[:0] = [os.path.dirname(sys.argv[0]), *added]
    os._exit(_exit_code(sys.argv[0]))


def _exit_code(script: str) -> int:
    code = 0
    try:
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        main.__file__ = script
        exec(compile(pathlib.Path(script).read_bytes(), script, "exec"), main.__dict__)
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    return code
