"""Ranks of a script as forks of a process that has imported TensorFlow.

Importing TensorFlow takes a process seconds. Tests of what a script computes start it this way; those of how it is
launched start ``npu-shim launch`` or a launch script.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import pathlib
import sys
import threading
import time
import traceback
import types
import uuid
from typing import Any, Mapping

from npu_shim.launching.plan import RankProcess, RankSlot, processes as planned, share_threads

# Nothing has run in the process that is forked. These are read when TensorFlow and NumPy are imported.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3")
context: Any = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["tests.distributed.preloaded"])


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
    started = [context.Process(target=_run, args=(each, dict(environ)), daemon=True) for each in plan]
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


def _run(process: RankProcess, environ: dict[str, str]) -> None:
    """Be a rank: what a new Python would do with the script."""
    log = os.open(process.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(process.full_environment(environ))
    # PYTHONUNBUFFERED is not read again; what a rank prints shall be there when it is killed.
    sys.stdout = open(1, "w", buffering=1, closefd=False)
    sys.stderr = open(2, "w", buffering=1, closefd=False)
    sys.argv = list(process.command)
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    os._exit(_exit_code(process.command[0]))


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
