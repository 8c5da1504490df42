"""A private cluster of Slurm on this machine: one controller, two node daemons, munge.

It needs Debian's packages slurmctld, slurmd, slurm-client and munge, and root, as the daemons start jobs of users.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
from typing import Callable

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel", "scontrol")
CONF = """\
ClusterName=test
SlurmctldHost={host}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
StateSaveLocation={folder}/state
SlurmdPidFile={folder}/slurmd_%n.pid
SlurmdLogFile={folder}/slurmd_%n.log
SlurmdSpoolDir={folder}/spool_%n
TmpFS={folder}/tmp_%n
SlurmdParameters=config_overrides
SlurmdTimeout=20
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port_1} CPUs=4
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={port_2} CPUs=4
PartitionName=all Nodes=ALL Default=YES State=UP
"""


class Slurm:
    """The cluster, with what it writes in a folder.

    Args:
        folder: for configuration, sockets and logs; it may exist.

    Raises:
        RuntimeError: a program is missing, or this user is not root.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        missing = [name for name in PROGRAMS if shutil.which(name, path=self._path()) is None]
        if missing or os.getuid() != 0:
            raise RuntimeError(
                f"The tests of Slurm need {', '.join(missing) or 'root'}. Install Debian's packages slurmctld, slurmd, "
                "slurm-client and munge, and run the tests as root."
            )
        self._folder = folder
        for name in ("state", "tmp_n1", "tmp_n2"):
            (folder / name).mkdir(parents=True)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        port, port_1, port_2 = free_ports(3)
        (folder / "slurm.conf").write_text(
            CONF.format(folder=folder, host=socket.gethostname(), port=port, port_1=port_1, port_2=port_2)
        )
        self.environ = {**os.environ, "PATH": self._path(), "SLURM_CONF": str(folder / "slurm.conf")}
        for name in [name for name in self.environ if name.startswith(("SLURM_", "SBATCH_")) and name != "SLURM_CONF"]:
            del self.environ[name]

    def start(self) -> None:
        """Start the daemons, and wait until the nodes are idle."""
        folder = self._folder
        self.run(
            "munged",
            "--force",
            f"--key-file={folder}/munge.key",
            f"--socket={folder}/munge.sock",
            f"--pid-file={folder}/munged.pid",
            f"--log-file={folder}/munged.log",
            f"--seed-file={folder}/munge.seed",
        )
        self.run("slurmctld", "-c")
        for node in ("n1", "n2"):
            self.start_node(node)
        self.wait(lambda: self.run("sinfo", "-h", "-o", "%T").strip() == "idle", 30, "the nodes are not idle")

    @staticmethod
    def _path() -> str:
        return f"{os.environ['PATH']}:/usr/sbin:/sbin"

    def run(self, *command: str) -> str:
        """Run a command of Slurm; return its output."""
        done = subprocess.run(command, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}"
        return done.stdout

    def start_node(self, node: str) -> None:
        """Start the daemon of a node."""
        self.run("slurmd", "-N", node)

    def kill_node(self, node: str, job: int) -> None:
        """Kill all processes of a node that runs a job, as when the machine goes off."""
        steps = [pid for pid, _ in processes() if f"slurmstepd: [{job}.".encode() in command_line(pid)]
        daemon = int((self._folder / f"slurmd_{node}.pid").read_text())
        for pid in [daemon, *steps, *of_job(job)]:  # in this order, so that no daemon reports the end of the others
            os.kill(pid, signal.SIGKILL)

    def submit(self, *command: str) -> int:
        """Submit a batch script; return the number of the job."""
        return int(self.run("sbatch", "--parsable", *command))

    def state(self, job: int) -> str:
        """Return the state of a job: PENDING, RUNNING, COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL ..."""
        found = re.search(r"JobState=(\S+)", self.run("scontrol", "show", "job", str(job)))
        assert found
        return found.group(1)

    def end(self, job: int, seconds: float = 480.0) -> str:
        """Wait for the end of a job; return its state."""
        self.wait(
            lambda: self.state(job) not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED"),
            seconds,
            f"job {job} does not end",
        )
        return self.state(job)

    @staticmethod
    def wait(condition: Callable[[], bool], seconds: float, message: str) -> None:
        """Wait until a condition is true."""
        give_up = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < give_up, message
            time.sleep(0.2)

    def close(self) -> None:
        """End the daemons and what they have started."""
        for pid, variables in processes():
            line = command_line(pid)
            if f"SLURM_CONF={self._folder}/slurm.conf".encode() in variables or str(self._folder).encode() in line:
                if line.split(b"\0")[0].rpartition(b"/")[2].startswith((b"slurm", b"munged")):
                    os.kill(pid, signal.SIGTERM)


def free_ports(count: int) -> list[int]:
    """Return ports of this host that are free now."""
    with contextlib.ExitStack() as probes:
        made = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in made:
            probe.bind(("", 0))
        return [probe.getsockname()[1] for probe in made]


def processes() -> list[tuple[int, list[bytes]]]:
    """Return the processes of this machine with their variables."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.append((int(pid), pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")))
        except OSError:
            continue  # it has ended
    return found


def command_line(pid: int) -> bytes:
    """Return the command of a process; empty if it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def of_job(job: int) -> list[int]:
    """Return the processes of a job."""
    return [pid for pid, variables in processes() if f"SLURM_JOB_ID={job}".encode() in variables]
