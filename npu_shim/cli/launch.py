"""Start a script on several ranks: one process each, on cards or on the CPU.

All end well, or all are ended: the first rank that fails is named with its
traceback, its exit code is the command's, and nothing is left running, even
when the command itself is killed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shlex
import sys
import time
from typing import NamedTuple

from npu_shim import _device, _env
from npu_shim.cli import USAGE_ERROR, show
from npu_shim.distributed.ranktable import writer as ranktable_write
from npu_shim.launching.cards import table_of_this_host
from npu_shim.launching.job import TIMED_OUT, Job
from npu_shim.launching.plan import RankProcess, Seat, processes, share_cores, share_threads
from npu_shim.launching.waiting import WAIT_SECONDS, NotCompleted, completed_table
from npu_shim.launching.who import seats_of_one_host, seats_of_server

_INTERRUPTED = 130  # 128 + the signal's number, as when ranks run


class _Who(NamedTuple):
    """The ranks of this host, the number of all, the path of the rank table, and its text where it has to be written."""

    seats: list[Seat]
    size: int
    table: str | None = None
    text: str | None = None


def main(arguments: list[str]) -> int:
    """Starts the ranks of this host and waits for them.

    Args:
        arguments: options, the script or ``-m`` and the module, and the script's own arguments.
    Returns:
        0 when all ranks ended with 0, else what Job.run() says; 2 on wrong usage.
    """
    args = _parser().parse_args(arguments)
    try:
        command = _command(args)
        given = args.job_id or os.environ.get("JOB_ID", "").strip()
        job_id = given or f"launch-{int(time.time())}-{os.getpid()}"
        _env.read({"JOB_ID": job_id})
        log_dir = args.log_dir or os.path.join("npu_shim_logs", job_id)
        who = _who(args, log_dir)
        if not given and len(who.seats) < who.size:
            job_id = _job_of_table(str(who.table))
        available = sorted(os.sched_getaffinity(0))
        cores = share_cores(available, len(who.seats)) if args.bind_cores else None
        threads = None if _device.look().is_npu else share_threads(available, len(who.seats))
    except (OSError, ValueError) as error:
        _say(f"error: {error}")
        return USAGE_ERROR
    except NotCompleted as error:
        _say(f"error: {error}")
        return TIMED_OUT
    except KeyboardInterrupt:  # while it waited for a rank table
        return _INTERRUPTED
    plan = processes(who.seats, who.size, command, job_id, log_dir, who.table, cores, threads=threads)
    if args.dry_run:
        lines = [process.as_shell() for process in plan]
        if who.text is not None:
            lines.insert(0, f"printf %s {shlex.quote(who.text)} > {shlex.quote(str(who.table))}")
        return show("\n".join(lines))
    return _run(plan, args, log_dir, who)


def _job_of_table(path: str) -> str:
    """A name to which the launchers of all hosts come that have the same rank table."""
    with open(path, "rb") as file:
        return "table-" + hashlib.blake2b(file.read(), digest_size=8).hexdigest()


def _run(plan: list[RankProcess], args: argparse.Namespace, log_dir: str, who: _Who) -> int:
    try:
        os.makedirs(log_dir, exist_ok=True)
        if who.text is not None:
            ranktable_write.write(who.text, str(who.table))
    except OSError as error:
        _say(f"error: --log-dir {log_dir} cannot be made: {error.strerror}. Name a folder that can be written to.")
        return USAGE_ERROR
    here = f"{len(plan)} ranks" if len(plan) == who.size else f"ranks {plan[0].rank} to {plan[-1].rank} of {who.size}"
    _say(f"job {plan[0].environment['JOB_ID']}: {here}, logs in {log_dir}; what follows is rank {plan[0].rank}'s")
    begin = time.monotonic()
    code = Job(plan, _say, sys.stdout.buffer, args.timeout, args.max_restarts).run()
    if not code:
        _say(f"all {len(plan)} ranks are done after {time.monotonic() - begin:.0f} s")
    return code


def _say(line: str) -> None:
    print(f"npu-shim launch: {line}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="npu-shim launch",
        usage="%(prog)s (--ranks N | --ranktable FILE) [options] (script.py | -m module) ...",
        allow_abbrev=False,
        description="Starts one process per rank and waits for them. Each rank finds JOB_ID, RANK_ID, RANK_SIZE, "
        "ASCEND_DEVICE_ID, DEVICE_ID and, with a rank table, RANK_TABLE_FILE in its environment, and writes to a log of "
        "its own; what the first of them says is shown as well. Options stand before the script, those of the script "
        "behind it. Exit code: 0 when all ranks ended so, else that of the rank which failed first, 128 + N when signal "
        "N ended it or the command, 124 when the time was up, 126 when a rank could not be started, 2 on wrong usage.",
    )
    who = made.add_mutually_exclusive_group()
    who.add_argument("--ranks", type=_positive, metavar="N", help="this many ranks, all on this host")
    who.add_argument(
        "--ranktable", metavar="FILE", help="the ranks that this file names for this host; by default RANK_TABLE_FILE"
    )
    made.add_argument(
        "--server-index",
        type=_not_negative,
        metavar="K",
        help="which server of the rank table this host is, from 0; by default it is found by its address",
    )
    made.add_argument(
        "--table-timeout",
        type=_seconds,
        default=WAIT_SECONDS,
        metavar="SECONDS",
        help=f"how long to wait for a rank table whose status is 'initializing'; by default {WAIT_SECONDS:g}",
    )
    made.add_argument(
        "--devices", type=_devices, metavar="I,J,...", help="with --ranks: the device of each rank; by default 0 to N-1"
    )
    made.add_argument(
        "--log-dir",
        metavar="DIR",
        help="folder for the logs, rank_0.log and so on, which are appended to; by default npu_shim_logs/JOB_ID",
    )
    made.add_argument("--job-id", metavar="ID", help="name of the job, by default JOB_ID or a new one")
    made.add_argument("--bind-cores", action="store_true", help="give each rank processors of its own")
    made.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="end the job when it has not ended by then")
    made.add_argument(
        "--max-restarts",
        type=_not_negative,
        default=0,
        metavar="N",
        help="when a rank fails, start all "
        "again, at most so often; a script that restores its last checkpoint goes on from there",
    )
    made.add_argument("--dry-run", action="store_true", help="print what would be started, as lines for a shell")
    made.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    made.add_argument("script", nargs=argparse.REMAINDER, help="the script and its arguments")
    return made


def _command(args: argparse.Namespace) -> list[str]:
    if args.module:
        return [sys.executable, "-m", *args.module]
    if not args.script:
        raise ValueError("what shall be run? Give a script, or -m and a module, behind the options.")
    if not os.path.exists(args.script[0]):
        raise ValueError(f"{args.script[0]!r} does not exist: give the path of a script, or -m and a module.")
    return [sys.executable, *args.script]


def _who(args: argparse.Namespace, log_dir: str) -> _Who:
    if args.ranks is not None:
        if args.server_index is not None:
            raise ValueError("--server-index goes with --ranktable: with --ranks all ranks are on this host.")
        seats = seats_of_one_host(args.ranks, args.devices)
        if args.ranks > 1 and _device.look().is_npu:
            return _Who(seats, args.ranks, os.path.join(log_dir, "rank_table.json"), table_of_this_host(seats))
        return _Who(seats, args.ranks)
    path = args.ranktable or os.environ.get("RANK_TABLE_FILE", "").strip()
    if not path:
        raise ValueError(
            "how many ranks? Give --ranks N for this host alone, or --ranktable FILE "
            "(npu-shim ranktable make writes one)."
        )
    if args.devices is not None:
        raise ValueError("--devices goes with --ranks: a rank table names the devices itself.")
    table = completed_table(path, 0 if args.dry_run else args.table_timeout, _say)
    pod_name = os.environ.get("POD_NAME", "").strip()
    return _Who(seats_of_server(table, args.server_index, path, pod_name), table.size, path)


def _positive(text: str) -> int:
    value = _not_negative(text)
    if value == 0:
        raise argparse.ArgumentTypeError("'0' is not allowed: it must be at least 1")
    return value


def _not_negative(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: it must be an integer of at least 0")
    return int(text)


def _devices(text: str) -> list[int]:
    return [_not_negative(part) for part in text.split(",")]


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed: it must be a number of seconds above 0")
    return value
