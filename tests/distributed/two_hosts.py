"""Two hosts on one machine: network namespaces with a pair of veth devices between them.

    unshare --user --map-root-user --net python two_hosts.py JOB.json

JOB has the ``commands`` of both hosts, the file of each one's ``outputs``, and the
path ``cut``: the link goes down when a file appears there. The exit codes and the
seconds from then on are written to ``result``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

ADDRESSES = ["10.77.0.1", "10.77.0.2"]


def main(job: dict[str, Any]) -> None:
    """Runs a job."""
    other = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    try:
        while os.readlink(f"/proc/{other.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        enter = ["nsenter", f"--net=/proc/{other.pid}/ns/net"]
        _ip([], f"link add here type veth peer name there netns {other.pid}")
        for host, device, address in ([], "here", ADDRESSES[0]), (enter, "there", ADDRESSES[1]):
            _ip(host, f"address add {address}/24 dev {device}")
            _ip(host, f"link set {device} up")
            _ip(host, "link set lo up")
        _run(job, [[], enter])
    finally:
        other.kill()
        other.wait()


def _ip(host: list[str], words: str) -> None:
    subprocess.run([*host, "ip", *words.split()], check=True)


def _run(job: dict[str, Any], hosts: list[list[str]]) -> None:
    started = []
    for host, command, output in zip(hosts, job["commands"], job["outputs"]):
        with open(output, "wb") as stream:
            started.append(subprocess.Popen(host + command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream))
    cut: float | None = None
    while any(process.poll() is None for process in started):
        if cut is None and os.path.exists(job["cut"]):
            _ip(hosts[0], "link set here down")
            cut = time.monotonic()
        time.sleep(0.05)
    seconds = None if cut is None else time.monotonic() - cut
    with open(job["result"], "w") as stream:
        json.dump({"codes": [process.returncode for process in started], "seconds": seconds}, stream)


if __name__ == "__main__":
    with open(sys.argv[1]) as given:
        main(json.load(given))
