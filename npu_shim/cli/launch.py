"""Start a script on several ranks, one process each, on NPUs or on the CPU.

If a rank fails, the command prints its traceback, ends the other ranks, and exits
with its exit code. No process is left running, even if the command is killed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import sys
import time

from npu_shim._host import host_device, host_env, whole_file
from npu_shim._host.process_settings import encode_settings
from npu_shim.cli import RANKS, _independent, _profiled, _progress, parser_of, print_output
from npu_shim.cli._lines import QUIET, line_printer, print_error
from npu_shim.cli._paths import check_output_folder, check_script
from npu_shim.cli._values import (
    MOST_RANKS,
    MOST_RANKS_OF_JOB,
    add_options,
    add_script_arguments,
    integer_parser,
    parse_positive,
)
from npu_shim.distributed.ranktable import hostfile
from npu_shim.distributed.ranktable.generate import parse_hosts
from npu_shim.distributed.ranktable.reader import read_table_text
from npu_shim.launching import cores, job_ranks, modelarts
from npu_shim.launching.across_hosts import mpirun_process
from npu_shim.launching.follow import ALL, FIRST
from npu_shim.launching.host_memory import memory_warning
from npu_shim.launching.job import TIMED_OUT, Job
from npu_shim.launching.plan import RankProcess, rank_processes, share_threads
from npu_shim.launching.preload import preload_environment
from npu_shim.launching.progress.display import Display
from npu_shim.launching.table_wait import TABLE_TIMEOUT_S, TableTimeout, wait_for_table
from npu_shim.rehearsal.progress import watched_rank
from npu_shim.rehearsal.progress.watching import Watching

GROUP = RANKS
EXAMPLE = "npu-shim launch --ranks 4 train.py --batch_size 64"

_COMMAND = "npu-shim launch"
_report = line_printer(_COMMAND)
_OPTIONS = f"""
--log-dir DIR  folder for the logs rank_0.log and so on (server_0_rank_0.log with --rehearse), which grow with each
    run; by default npu_shim_logs/JOB_ID
--output  the ranks whose output is shown: the first, or all, each line with the number of its rank
{QUIET}
--job-id ID  name of the job; by default JOB_ID or a new name
--no-preload  start each rank as a new Python; by default, ranks on the CPU are forked from a process that has imported
    TensorFlow
--timeout SECONDS  end the job after this time
--max-restarts N  restart all ranks after a failure, at most N times; a script that restores its last checkpoint
    continues from there
--dry-run  print the commands as shell lines, and start nothing

ranks, hosts and devices:
--ranks -np N  number of ranks, all on this host unless -H names others
-H --hosts HOST:SLOTS,...  as in horovodrun: the hosts of the ranks, which fill the slots of a host before those of the
    next one. mpirun starts the ranks of several hosts
--hostfile -hostfile FILE  the same from a file with lines such as 'host1 slots=8'
--ranktable FILE  start the ranks of this host in this rank table, without NPUs those of all its hosts through mpirun;
    by default RANK_TABLE_FILE
--server-index K  index of this host in the rank table, from 0; by default found by its address
--rehearse  start the ranks of all servers of the rank table, or of all hosts of -H, on this host without NPUs
--table-timeout SECONDS  how long to wait while the status of the rank table is 'initializing'; by default
    {TABLE_TIMEOUT_S:g}
--devices I,J,...  the device of each rank, with --ranks; by default 0 to N-1
--bind-cores  bind each rank to processors and memory near its device, by npu-smi or the PCI bus, else to even shares
"""
_PYTHON = re.compile(r"^(.*/)?python[0-9.]*$")  # the command of horovodrun and mpirun begins with it


def main(arguments: list[str]) -> int:
    """Start the ranks of this host and wait for them.

    Args:
        arguments: options, the script or ``-m`` and the module, and the arguments of the script.
    Returns:
        The result of Job.run(); 2 for wrong usage.
    """
    args = _parser().parse_args(arguments)
    device = modelarts.device_of_other_launcher(host_env.process_environ())
    if device:
        _report(f"ModelArts has started this command for device {device}, too; the one for device 0 starts all ranks")
        return 0
    try:
        _profiled.check(args)
        check_output_folder("--tensorboard", args.tensorboard)
        command = _command_of_rank(args)
        given = args.job_id or _environment_variable("JOB_ID")
        job_id = given or f"launch-{int(time.time())}-{os.getpid()}"
        host_env.read_environment({"JOB_ID": job_id})
        log_dir = args.log_dir or os.path.join("npu_shim_logs", job_id)
        check_output_folder("--log-dir", log_dir)
        assignment = _ranks_of_job(args, log_dir)
        if not given and len(assignment.slots) < assignment.world_size:
            job_id = _job_of_table(assignment)
        available = sorted(os.sched_getaffinity(0))
        if assignment.hosts and args.progress:
            raise ValueError("--progress needs all ranks on this host: mpirun starts those of several. Leave it out.")
        devices = [slot.device for slot in assignment.slots]
        shares = cores.share_processors(available, devices) if args.bind_cores else None
        threads = (
            None if host_device.detect_without_import().is_npu else share_threads(available, len(assignment.slots))
        )
    except ValueError as error:
        return print_error(_COMMAND, str(error))
    except TableTimeout as error:
        _report(f"error: {error}")
        return TIMED_OUT
    environ = {**host_env.process_environ()}
    if args.max_restarts:
        environ["NPU_SHIM_COMMITS"] = os.path.join(os.path.abspath(log_dir), "commits")
    if assignment.hosts:
        try:
            table = str(assignment.table)
            plan = [
                mpirun_process(assignment.hosts, command, job_id, log_dir, table, environ, args.bind_cores, args.output)
            ]
        except ValueError as error:
            return print_error(_COMMAND, str(error))
    else:
        plan = rank_processes(
            assignment.slots, assignment.world_size, command, job_id, log_dir, assignment.table, shares, threads=threads
        )
    if args.dry_run:
        lines = [process.shell_command() for process in plan]
        if assignment.text is not None:
            lines.insert(0, f"printf %s {shlex.quote(assignment.text)} > {shlex.quote(str(assignment.table))}")
        return print_output("\n".join(lines))
    return _run_job(plan, args, log_dir, assignment, environ)


def _job_of_table(assignment: job_ranks.JobRanks) -> str:
    """Return a job id that is the same on all hosts with the same rank table."""
    text = assignment.text if assignment.text is not None else read_table_text(str(assignment.table))
    return "table-" + hashlib.blake2b(text.encode("utf-8"), digest_size=8).hexdigest()


def _run_job(
    plan: list[RankProcess],
    args: argparse.Namespace,
    log_dir: str,
    assignment: job_ranks.JobRanks,
    environ: dict[str, str],
) -> int:
    os.makedirs(log_dir, exist_ok=True)
    if assignment.text is not None:
        whole_file.write_atomically(assignment.text, str(assignment.table))
    warnings = [None if assignment.hosts else memory_warning(len(plan))]
    if plan[0].rank == 0:
        warnings.append(_independent.independence_warning(_script_and_arguments(args), assignment.world_size))
    for warning in filter(None, warnings):
        _report(warning)
    note = line_printer(_COMMAND, args.quiet)
    shown = "all ranks" if args.output == ALL else f"rank {plan[0].rank}"
    note(
        f"job {plan[0].environment['JOB_ID']}: {_ranks_here_text(plan, assignment)}, logs in {log_dir}; showing {shown}"
    )
    begin = time.monotonic()
    preload = None if args.no_preload else preload_environment(_script_and_arguments(args), plan, environ, note)
    display = Display("npu-shim launch") if args.progress else None
    code = Job(
        plan,
        _report,
        sys.stdout.buffer,
        environ,
        timeout=args.timeout,
        max_restarts=args.max_restarts,
        display=display,
        preload=preload,
        shown_ranks=args.output,
    ).run()
    if not code:
        note(f"all {len(assignment.slots)} ranks finished after {time.monotonic() - begin:.0f} s")
    return code


def _ranks_here_text(plan: list[RankProcess], assignment: job_ranks.JobRanks) -> str:
    """Return the ranks that this command starts, for the first line of a job."""
    if assignment.hosts:
        return f"{assignment.world_size} ranks on {len(assignment.hosts)} hosts"
    if len(plan) < assignment.world_size:
        return f"ranks {plan[0].rank} to {plan[-1].rank} of {assignment.world_size}"
    servers = {slot.server for slot in assignment.slots} - {None}
    if not servers:
        return f"{len(plan)} ranks"
    return f"rehearsal of {len(plan)} ranks of {len(servers)} server{'s' if len(servers) > 1 else ''} on this host"


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(
        "launch",
        "Start one process per rank and wait for them. Each rank gets JOB_ID, RANK_ID, RANK_SIZE, ASCEND_DEVICE_ID, "
        "DEVICE_ID and, with a rank table, RANK_TABLE_FILE in its environment, and writes its own log. The terminal "
        "shows the output of the first rank. Options of this command come before the script, options of the script "
        "after it. Exit codes: 0 if all ranks exit with 0; otherwise the code of the first rank that failed; 128 + N "
        "if signal N ended that rank or this command; 124 after a timeout; 126 if a rank cannot start; 2 for wrong "
        "usage.",
        usage="%(prog)s (--ranks N | -H HOSTS | --ranktable FILE) [options] (script.py | -m module) ...",
    )
    add_options(
        parser,
        _OPTIONS,
        ranks={"type": integer_parser(1, MOST_RANKS_OF_JOB)},
        server_index={"type": integer_parser(0)},
        table_timeout={"type": _parse_seconds, "default": TABLE_TIMEOUT_S},
        devices={"type": _parse_devices},
        output={"choices": (FIRST, ALL), "default": FIRST},
        timeout={"type": _parse_seconds},
        max_restarts={"type": integer_parser(0), "default": 0},
    )
    _progress.add_arguments(parser)
    _profiled.add_arguments(parser)
    add_script_arguments(parser)
    return parser


def _command_of_rank(args: argparse.Namespace) -> list[str]:
    python = [sys.executable, "-m", "npu_shim", "run", "--alias"] if host_env.is_alias_wanted() else [sys.executable]
    if args.progress or args.tensorboard or args.profile:
        folder = os.path.abspath(args.tensorboard) if args.tensorboard else None
        profiling = _profiled.profile_settings(args)
        watching = Watching(folder, profiling.start if profiling is not None else None)
        python = [sys.executable, "-m", watched_rank.__name__, encode_settings(watching)]
    return [*python, *_script_and_arguments(args)]


def _script_and_arguments(args: argparse.Namespace) -> list[str]:
    """Return the script, or -m and the module, with its arguments."""
    if args.module:
        return ["-m", *args.module]
    if args.script and _PYTHON.match(args.script[0]):
        return _script_and_arguments(_strip_python(args))
    if not args.script:
        raise ValueError("no script is given. Pass a script, or -m and a module, after the options.")
    check_script(args.script[0])
    return list(args.script)


def _strip_python(args: argparse.Namespace) -> argparse.Namespace:
    """Return the arguments without ``python`` and ``-u`` before the script or -m; ranks run this Python, unbuffered."""
    rest = args.script[1:]
    while rest[:1] == ["-u"]:
        rest = rest[1:]
    if rest[:1] == ["-m"]:
        return argparse.Namespace(**{**vars(args), "module": rest[1:], "script": []})
    return argparse.Namespace(**{**vars(args), "script": rest})


def _ranks_of_job(args: argparse.Namespace, log_dir: str) -> job_ranks.JobRanks:
    options = {"-H": args.hosts, "--hostfile": args.hostfile, "--ranktable": args.ranktable}
    given = [name for name, value in options.items() if value is not None]
    if args.ranks is not None and args.ranktable is not None:
        given = ["--ranks", "--ranktable"]
    if len(given) > 1:
        raise ValueError(f"{given[0]} and {given[1]} are both given, but one of them describes the job. Keep one.")
    if args.rehearse and args.server_index is not None:
        raise ValueError("--rehearse starts the ranks of all servers, and --server-index those of one. Keep one.")
    if args.hosts is not None or args.hostfile is not None:
        if args.devices is not None:
            raise ValueError("--devices needs --ranks alone. Name the devices of a host as HOST:FIRST-LAST.")
        hosts = (
            parse_hosts(args.hosts)
            if args.hosts is not None
            else hostfile.parse_hostfile(read_table_text(args.hostfile), args.hostfile)
        )
        filled = hostfile.fill_hosts(hosts, args.ranks)
        if args.rehearse:
            return job_ranks.ranks_of_hosts_in_rehearsal(filled, log_dir)
        return job_ranks.ranks_of_hosts(filled, args.server_index, log_dir)
    if args.ranks is not None:
        if args.rehearse:
            raise ValueError("--rehearse needs --ranktable or -H: with --ranks all ranks are on this host.")
        if args.server_index is not None:
            raise ValueError("--server-index needs --ranktable: with --ranks all ranks are on this host.")
        if args.ranks > MOST_RANKS:
            raise ValueError(f"--ranks {args.ranks} is not allowed: this host starts at most {MOST_RANKS} ranks.")
        return job_ranks.ranks_here(args.ranks, args.devices, log_dir)
    path = args.ranktable or modelarts.rank_table_path(host_env.process_environ())
    if not path:
        raise ValueError(
            "the number of ranks is unknown. Pass --ranks N for this host alone, or --ranktable FILE "
            "(npu-shim ranktable make creates one)."
        )
    if args.devices is not None:
        raise ValueError("--devices needs --ranks: a rank table has its own devices.")
    table = wait_for_table(path, 0 if args.dry_run else args.table_timeout, _report)
    if args.rehearse:
        return job_ranks.ranks_in_rehearsal(table, path)
    return job_ranks.ranks_in_table(table, path, args.server_index, modelarts.pod_name(host_env.process_environ()))


def _environment_variable(name: str) -> str:
    """Return an environment variable without surrounding spaces; an empty string if it is not set."""
    return host_env.process_environ().get(name, "").strip()


def _parse_devices(text: str) -> list[int]:
    return [integer_parser(0)(part) for part in text.split(",")]


def _parse_seconds(text: str) -> float:
    return parse_positive(text, "a number of seconds above 0")
