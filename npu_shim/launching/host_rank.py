"""Run one rank that mpirun started on any host: write its log, show its output, and name a failure once.

python -m npu_shim.launching.host_rank LOG_DIR shared|bound first|all COMMAND ...
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import Mapping

from npu_shim._host import host_env
from npu_shim.distributed.world import world
from npu_shim.launching import cores
from npu_shim.launching.failure import (
    CAUSE_WAIT_S,
    advice_lines,
    failure_lines,
    finished_line,
    lost_rank,
    reported_failure,
)
from npu_shim.launching.follow import ALL, Follower, line_prefix_of_rank
from npu_shim.launching.plan import OP_THREADS, share_threads

_POLL_INTERVAL_S = 0.05
_GRACE_S = 10.0
SHARED, BOUND = "shared", "bound"  # the processors of a host
# mpirun and the daemons by which it starts processes, of Open MPI and MPICH
_STARTERS = ("mpirun", "mpiexec", "mpiexec.hydra", "prterun", "prted", "orterun", "orted", "hydra_pmi_proxy")


def main(log_dir: str, command: list[str], bind_cores: bool = False, shows_all: bool = False) -> int:
    """Run the command as the rank that the variables of mpirun and the rank table give.

    Args:
        log_dir: the folder for the log.
        command: program and arguments.
        bind_cores: True to bind the rank to its own share of the processors of its host.
        shows_all: True to show the output of each rank, not of rank 0 only.
    Returns:
        The exit code of the command, 128 + N if signal N ended it. The command ends with the daemon that started this
        process.
    """
    starters, daemon = _starting_processes(), os.getppid()
    here = world()
    device = str(here.device_id)
    ranks = {"RANK_ID": str(here.rank), "RANK_SIZE": str(here.size), "ASCEND_DEVICE_ID": device, "DEVICE_ID": device}
    environ = {**host_env.process_environ(), **ranks}
    available = sorted(os.sched_getaffinity(0))
    threads = share_threads(available, here.local_size)
    if threads is not None:
        environ.setdefault(OP_THREADS, str(threads))
    if bind_cores:
        cores.bind_process(cores.share_processors(available, here.local_devices)[here.local_rank])
    os.makedirs(log_dir, exist_ok=True)
    path = os.path.join(log_dir, f"rank_{here.rank}.log")
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))  # mpirun sends it to the command, too
    with open(path, "ab") as log:
        log.write(f"== rank {here.rank} of job {environ['JOB_ID']}, {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
        log.flush()
        begin = log.tell()
        # MPICH connects its processes by an open file, which the command needs.
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.STDOUT, close_fds=False)
    prefix = line_prefix_of_rank(here.rank) if shows_all else ""
    follower = Follower(path, begin, sys.stdout.buffer, prefix) if here.rank == 0 or shows_all else None
    code, kill_at = None, None
    while code is None:
        is_ended = bool(ended)
        code = process.poll()
        if follower is not None:
            follower.copy()
        if kill_at is None and os.getppid() != daemon:
            kill_at = time.monotonic() + _GRACE_S
            process.terminate()  # mpirun neither sees this rank nor ends it from now on
        elif kill_at is not None and time.monotonic() > kill_at:
            process.kill()
        time.sleep(_POLL_INTERVAL_S)
    if follower is not None:
        follower.finish()
    if os.getppid() != daemon:
        with open(path, "ab") as log:
            log.write(f"npu-shim launch: rank {here.rank} ended with the process of mpirun that started it\n".encode())
        return code if code >= 0 else 128 - code
    with open(path, "rb") as log:
        log.seek(begin)
        output = log.read().decode("utf-8", "replace")
    code = code if code >= 0 else 128 - code
    has_lost = lost_rank(output) is not None  # the failure of another rank is the cause
    if code and has_lost:
        # That rank must end first, because mpirun then kills the others before they can report anything.
        deadline = time.monotonic() + CAUSE_WAIT_S
        while not ended and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL_S)
    if code and not is_ended and not has_lost:
        lines = [reported_failure(here.rank, here.servers[here.rank], code, path)]
        if here.rank:
            lines[0] += " and ends with:"
            lines += ["  " + line for line in failure_lines(output)]
        lines += ["  " + line for line in advice_lines(output)]
        sys.stderr.write("\n".join(lines) + "\n")
    if not code:
        sys.stderr.write(finished_line(here.rank, here.servers[here.rank]))
    if code and starters:
        _kill_starters_later(starters)
    return code


def _kill_starters_later(starters: Mapping[int, str]) -> None:
    """Kill the processes that started a rank which failed if they have not ended after a while.

    mpirun and its daemons end a job when one rank fails, but they wait for a host that is unreachable.

    Args:
        starters: see _starters().
    """
    if os.fork():
        return
    os.setsid()  # else it ends with the rank
    for file in map(int, os.listdir("/proc/self/fd")):  # MPICH sees the end of a rank by that of its files
        with contextlib.suppress(OSError):  # the one of the list itself
            os.close(file)
    deadline = time.monotonic() + _GRACE_S
    while starters and time.monotonic() < deadline:
        # The number of one that has ended may belong to another process now.
        starters = {pid: begin for pid, begin in starters.items() if _process_name_parent_and_start(pid)[2] == begin}
        time.sleep(_POLL_INTERVAL_S)
    for pid in starters:
        with contextlib.suppress(ProcessLookupError):  # it ends with the one before
            os.kill(pid, signal.SIGKILL)
    os._exit(0)


def _starting_processes() -> dict[int, str]:
    """Return the daemon and the mpirun above this process, as far as they are on this host, with their start times."""
    begins: dict[int, str] = {}
    pid = os.getppid()
    while True:
        name, parent, begin = _process_name_parent_and_start(pid)
        if name not in _STARTERS:
            return begins
        begins[pid] = begin
        pid = parent


def _process_name_parent_and_start(pid: int) -> tuple[str, int, str]:
    """Return name, parent and start time of a process; empty values if there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            before, _, after = file.read().rpartition(")")
    except OSError:
        return "", 0, ""
    fields = after.split()
    return before.partition("(")[2], int(fields[1]), fields[19]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[4:], sys.argv[2] == BOUND, sys.argv[3] == ALL))
