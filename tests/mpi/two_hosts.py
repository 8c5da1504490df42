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


def main(folder: pathlib.Path, command: list[str]) -> None:
    """Run a command on the first host."""
    other = subprocess.Popen(["unshare", "--net", "--uts", "sh", "-c", "hostname there; exec sleep infinity"])
    try:
        while os.readlink(f"/proc/{other.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        enter = ["nsenter", f"--net=/proc/{other.pid}/ns/net", f"--uts=/proc/{other.pid}/ns/uts"]
        _ip([], f"link add here type veth peer name there netns {other.pid}")
        for host, device, address in ([], "here", ADDRESSES[0]), (enter, "there", ADDRESSES[1]):
            _ip(host, f"address add {address}/24 dev {device}")
            _ip(host, f"link set {device} up")
            _ip(host, "link set lo up")
        hosts = folder / "hosts.json"
        hosts.write_text(json.dumps({ADDRESSES[0]: [], ADDRESSES[1]: enter}))
        agent = f"{sys.executable} {pathlib.Path(__file__).resolve().parent / 'start_there.py'}"
        environ = {**os.environ, "HOSTS": str(hosts), "PRTE_MCA_plm_ssh_agent": agent}
        process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL)
        cut: float | None = None
        while process.poll() is None:
            if cut is None and (folder / "cut").exists():
                _ip([], "link set here down")
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
