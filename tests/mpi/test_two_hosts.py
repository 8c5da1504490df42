"""A job that mpirun starts on two hosts, which are network namespaces of this machine."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import numpy as np

from tests.distributed import mpi_ranks
from tests.mpi import two_hosts

SCRIPTS = pathlib.Path(__file__).resolve().parents[1] / "distributed" / "scripts"
UNSHARE = ["unshare", "--user", "--map-root-user", "--net"]
VARIABLES = (
    "PYTHONPATH",
    "RANK_TABLE_FILE",
    "NPU_SHIM_COLLECTIVES",
    "NPU_SHIM_FALLBACK",
    "TF_CPP_MIN_LOG_LEVEL",
)


class Job:
    """A script on two hosts with as many ranks on each."""

    def __init__(self, folder: pathlib.Path, ranks_each: int, *command: str) -> None:
        folder.mkdir()
        self._folder = folder
        table = folder / "table.json"
        servers = [
            {
                "server_id": host,
                "device": [
                    {"device_id": str(i), "device_ip": f"10.1.{k}.{i}", "rank_id": str(ranks_each * k + i)}
                    for i in range(ranks_each)
                ],
            }
            for k, host in enumerate(two_hosts.ADDRESSES)
        ]
        table.write_text(
            json.dumps({"version": "1.0", "status": "completed", "server_count": "2", "server_list": servers})
        )
        exported = [word for name in VARIABLES for word in ("-x", name)]
        hosts = ",".join(f"{host}:{ranks_each}" for host in two_hosts.ADDRESSES)
        mpirun = mpi_ranks.command(2 * ranks_each, "--host", hosts, *exported)
        with open(folder / "output", "wb") as stream:
            self._process = subprocess.Popen(
                [*UNSHARE, sys.executable, two_hosts.__file__, str(folder), *mpirun, sys.executable, *command],
                env={
                    **mpi_ranks.environment(),
                    "RANK_TABLE_FILE": str(table),
                    "NPU_SHIM_COLLECTIVES": "mpi",
                    "NPU_SHIM_FALLBACK": "silent",
                },
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )

    def end(self) -> int:
        """Wait for mpirun and return its exit code."""
        self._process.wait(240)
        return int((self._folder / "code").read_text())

    @property
    def output(self) -> str:
        """Return what mpirun and the ranks print."""
        return (self._folder / "output").read_text(errors="replace")


def test_ranks_of_two_hosts_train_as_one_process(tmp_path: pathlib.Path) -> None:
    ways = ["wrapper", "by_hand"]
    alone = {**mpi_ranks.environment(), "NPU_SHIM_FALLBACK": "silent"}
    subprocess.run([sys.executable, str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways], env=alone, check=True)
    job = Job(tmp_path / "job", 2, str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways)
    assert job.end() == 0, job.output[-4000:]
    one, *four = [
        json.loads((tmp_path / f"rank_{rank}_of_{size}.json").read_text())
        for rank, size in [(0, 1), (0, 4), (1, 4), (2, 4), (3, 4)]
    ]
    for way in ways:
        for rank in four:
            assert rank[way] == four[0][way]
            np.testing.assert_allclose(rank[way]["losses"], one[way]["losses"], rtol=2e-5)
            for name, value in one[way]["values"].items():
                np.testing.assert_allclose(rank[way]["values"][name], value, rtol=1e-4, atol=1e-5, err_msg=name)
