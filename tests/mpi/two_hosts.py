"""Two hosts on one machine: network namespaces with names of their own and a pair of veth devices between them.

    unshare --user --map-root-user --net python two_hosts.py FOLDER COMMAND ...

runs a command on the first host, and mpirun in it starts processes on the second one by start_there.py. The link goes
down when a file FOLDER/cut appears. FOLDER/result.json has the exit code, and the seconds from then on.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

ADDRESSES = ["10.77.0.1", "10.77.0.2"]
DEVICE = "eth7"  # on both hosts
OWN_DEVICES = "mount -t sysfs sysfs /sys && "  # UCX of MPICH reads them there
HERE = pathlib.Path(__file__).resolve().parent


def main(folder: pathlib.Path, command: list[str]) -> None:
    """Run a command on the first host."""
    there = f"{OWN_DEVICES} hostname there && echo ready && exec sleep infinity"
    other = subprocess.Popen(
        ["unshare", "--net", "--mount", "--uts", "sh", "-c", there], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None and other.stdout.readline() == "ready\n"
        enter = ["nsenter", f"--target={other.pid}", "--net", "--mount", "--uts"]
        _ip([], f"link add {DEVICE} type veth peer name {DEVICE} netns {other.pid}")
        for host, address in ([], ADDRESSES[0]), (enter, ADDRESSES[1]):
            _ip(host, f"address add {address}/24 dev {DEVICE}")
            _ip(host, f"link set {DEVICE} up")
            _ip(host, "link set lo up")
        hosts = folder / "hosts.json"
        hosts.write_text(json.dumps({ADDRESSES[0]: [], ADDRESSES[1]: enter}))
        agent = folder / "start_there"
        agent.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "start_there.py"} "$@"\n')
        agent.chmod(0o755)
        variables = ("PRTE_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent", "HYDRA_LAUNCHER_EXEC")  # Open MPI 5, 4; MPICH
        agents = dict.fromkeys(variables, str(agent))
        # MPICH finds that both hosts are one machine; it must not use its memory.
        network = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": DEVICE}
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", f'{OWN_DEVICES} exec "$@"', "sh", *command],
            env={**os.environ, "START_THERE_HOSTS": str(hosts), **agents, **network},
            stdin=subprocess.DEVNULL,
        )
        cut: float | None = None
        while process.poll() is None:
            if cut is None and (folder / "cut").exists():
                _ip([], f"link set {DEVICE} down")
                cut = time.monotonic()
            time.sleep(0.05)
        seconds = None if cut is None else time.monotonic() - cut
        (folder / "result.json").write_text(json.dumps({"code": process.returncode, "seconds": seconds}))
    finally:
        other.kill()
        other.wait()


def _ip(host: list[str], words: str) -> None:
    subprocess.run([*host, "ip", *words.split()], check=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2:])
