"""The hosts of an allocation of Slurm or MPI, and the files of their devices, gathered by one process per host."""

from __future__ import annotations

import base64
import binascii
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import Mapping, Sequence

from npu_shim._host.mpirun import expand_slurm_counts
from npu_shim.distributed.ranktable.generate import Host
from npu_shim.distributed.ranktable.model import count_text

_MARK = "npu-shim-host"
_TIMEOUT_S = 120.0
_BRACKETS = re.compile(r"^(?P<before>[^\[\]]*)\[(?P<inside>[0-9,-]+)\](?P<after>.*)$")


def slurm_hosts(environ: Mapping[str, str]) -> tuple[Host, ...]:
    """Return the hosts of a Slurm allocation, each with as many devices as it has tasks.

    Without a number of tasks (``sbatch -n``), the devices are those of the file of each host.

    Raises:
        ValueError: there is no allocation, or its variables contradict each other.
    """
    nodes = environ.get("SLURM_JOB_NODELIST", "").strip()
    if not nodes:
        raise ValueError(
            "--slurm needs an allocation, but SLURM_JOB_NODELIST is not set. Run the command in a batch script, or "
            "after salloc."
        )
    names = expand_nodes(nodes)
    if not environ.get("SLURM_NTASKS", "").strip():
        return tuple(Host(name, None) for name in names)
    tasks = environ.get("SLURM_TASKS_PER_NODE", "").strip()
    try:
        counts = expand_slurm_counts(tasks)
    except ValueError:
        counts = ()
    if len(counts) != len(names):
        raise ValueError(f"SLURM_TASKS_PER_NODE={tasks!r} does not have the tasks of SLURM_JOB_NODELIST={nodes!r}.")
    return tuple(Host(name, tuple(range(count))) for name, count in zip(names, counts))


def read_hosts_and_their_files(hosts: Sequence[Host], path: str, starter: str) -> tuple[Sequence[Host], dict[str, str]]:
    """Read a file on each host.

    Args:
        hosts: the hosts; with mpirun, none for those of its allocation.
        path: of the file.
        starter: ``srun`` or ``mpirun``, which runs one process on each host.
    Returns:
        (hosts, texts): texts has those hosts on which the file exists.
    Raises:
        ValueError: the starter is missing, fails, or does not reach each host once.
    """
    script = print_host_file_command(path)
    if starter == "srun":
        command = srun_command(len(hosts), script)
    else:
        mpirun = find_mpirun()
        command = mpirun_command(mpirun, [host.name for host in hosts], command_output([mpirun, "--version"]), script)
    answers = parse_host_files(command_output(command))
    hosts = hosts or [Host(name, None) for name in answers]
    if len(answers) != len(hosts):
        raise ValueError(
            f"{count_text(len(answers), 'host')} answered ({', '.join(answers)}), but {len(hosts)} are named "
            f"({', '.join(host.name for host in hosts)}). Name each host once."
        )
    by_name = all(host.name in answers for host in hosts)  # else by number: a host may have other names
    texts = {host.name: answers[host.name] if by_name else text for host, text in zip(hosts, answers.values())}
    return hosts, {name: text for name, text in texts.items() if text}


def expand_nodes(text: str) -> tuple[str, ...]:
    """Return the nodes of a list as Slurm writes it: ``n[01-03,7],login`` for n01, n02, n03, n7, login.

    Raises:
        ValueError: it is no such list.
    """
    nodes: list[str] = []
    for part in re.split(r",(?![^\[]*\])", text):
        nodes += _expand_node_pattern(part.strip(), text)
    return tuple(nodes)


def srun_command(hosts: int, script: Sequence[str]) -> list[str]:
    """Return the command that runs a script once on each host of a Slurm allocation."""
    return ["srun", f"--nodes={hosts}", f"--ntasks={hosts}", "--ntasks-per-node=1", *script]


def find_mpirun() -> str:
    """Return the path of mpirun: beside this Python, or else on PATH.

    Raises:
        ValueError: there is none.
    """
    beside_python = os.path.join(os.path.dirname(sys.executable), "mpirun")
    path = beside_python if os.access(beside_python, os.X_OK) else shutil.which("mpirun")
    if path is None:
        raise ValueError(
            "there is no mpirun, which starts processes on several hosts. Install it on each host with pip install "
            "'npu_shim[mpi]', or add the folder of Open MPI or MPICH to PATH."
        )
    return path


def run_as_root_options() -> list[str]:
    """Return the option without which mpirun of Open MPI refuses to run as root; none for other users."""
    return ["--allow-run-as-root"] if os.geteuid() == 0 else []


def mpirun_command(mpirun: str, names: Sequence[str], version: str, script: Sequence[str]) -> list[str]:
    """Return the command that runs a script once on each host with Open MPI, MPICH or Intel MPI.

    Args:
        mpirun: its path.
        names: of the hosts; with Open MPI, none for those of its allocation.
        version: what ``mpirun --version`` prints.
        script: the command of each host.
    Raises:
        ValueError: mpirun is another one, or needs the hosts.
    """
    if "Open MPI" in version or "OpenRTE" in version:
        hosts = ["--host", ",".join(names)] if names else []
        return [mpirun, *hosts, "--map-by", "ppr:1:node", *run_as_root_options(), *script]
    if "HYDRA" not in version and "Intel(R) MPI" not in version:
        first = (version.strip().splitlines() or ["nothing"])[0]
        raise ValueError(
            f"{mpirun} --version prints {first!r}, but --mpi knows Open MPI, MPICH and Intel MPI. Pass each host's "
            "file instead: --hccn HOST=FILE."
        )
    if not names:
        raise ValueError("--mpi needs --hosts or --hostfile with MPICH and Intel MPI. Name the hosts.")
    return [mpirun, "-hosts", ",".join(names), "-ppn", "1", "-n", str(len(names)), *script]


def print_host_file_command(path: str) -> list[str]:
    """Return the command that prints the number and name of its host, and a file in base 64, in one line."""
    line = (
        f'printf "{_MARK} %s %s %s\\n" "${{OMPI_COMM_WORLD_RANK:-${{PMI_RANK:-$SLURM_PROCID}}}}" '
        f'"${{SLURMD_NODENAME:-$(hostname)}}" "$(base64 -w0 < {shlex.quote(path)} 2>/dev/null)"'
    )
    return ["sh", "-c", line]


def command_output(command: Sequence[str]) -> str:
    """Return the output of a command.

    Raises:
        ValueError: it does not exist, fails, or does not end in time.
    """
    shown = command[0]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise ValueError(f"{shown} does not exist on this host. Add its folder to PATH, or use --hosts.") from None
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"{shown} did not end within {_TIMEOUT_S:g} s. Run it yourself: {_command_text(command)}."
        ) from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        raise ValueError(
            f"{shown} failed with code {done.returncode}: {lines[0]}. Run it yourself: {_command_text(command)}."
        )
    return done.stdout.decode("utf-8", "replace")


def parse_host_files(printed: str) -> dict[str, str]:
    """Return the text of the file of each host in the order of their numbers, empty where it does not exist.

    Args:
        printed: of the processes of print_host_file_command().
    Raises:
        ValueError: it has no host, or a damaged line.
    """
    answers: list[tuple[int, str, str]] = []
    for line in printed.splitlines():
        if _MARK not in line:
            continue
        fields = line[line.index(_MARK) :].split(" ")
        try:
            answers.append((int(fields[1]), fields[2], base64.b64decode(fields[3], validate=True).decode("utf-8")))
        except (IndexError, ValueError, binascii.Error):
            raise ValueError(f"a host printed {line[:60]!r}, which is damaged. Run the command again.") from None
    if not answers:
        raise ValueError("no host printed its name. Run the command again, or pass each host's file.")
    return {name: text for _, name, text in sorted(answers)}


def _expand_node_pattern(part: str, text: str) -> list[str]:
    match = _BRACKETS.match(part)
    if match is None:
        if not part or "[" in part or "]" in part:
            raise ValueError(f"SLURM_JOB_NODELIST={text!r} is no list of nodes, such as node[01-04,7].")
        return [part]
    nodes: list[str] = []
    for one in match.group("inside").split(","):
        first, _, last = one.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            raise ValueError(f"SLURM_JOB_NODELIST={text!r} is no list of nodes, such as node[01-04,7].")
        for number in range(int(first), int(last or first) + 1):
            for rest in _expand_node_pattern(match.group("after"), text) if match.group("after") else [""]:
                nodes.append(f"{match.group('before')}{number:0{len(first)}d}{rest}")
    return nodes


def _command_text(command: Sequence[str]) -> str:
    return " ".join(map(shlex.quote, command))
