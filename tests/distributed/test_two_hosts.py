"""A job on two hosts, each with a launcher of its own: in network namespaces where those can be made, else on two loopback addresses."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.distributed.addresses import free_base_port
from tests.distributed import two_hosts
from tests.distributed.test_training import SCRIPTS, environment, launch_command, launched

UNSHARE = ["unshare", "--user", "--map-root-user", "--net"]


def namespaces() -> bool:
    """Return True if this user may create network namespaces."""
    return (
        shutil.which("ip") is not None
        and subprocess.run(
            UNSHARE + ["ip", "link", "add", "here", "type", "veth", "peer", "name", "there"], stderr=subprocess.DEVNULL
        ).returncode
        == 0
    )


APART = namespaces()
FAULTS = ["kill", "cut"] if APART else ["kill"]


class Job:
    """A script on two hosts with as many ranks on each."""

    def __init__(self, folder: pathlib.Path, ranks_each: int, *command: str) -> None:
        folder.mkdir()
        self._folder, self._cut, self._result = folder, folder / "cut", folder / "result.json"
        hosts = two_hosts.ADDRESSES if APART else ["127.0.0.1", "127.0.0.2"]
        table = folder / "table.json"
        table.write_text(
            json.dumps(
                {
                    "version": "1.0",
                    "status": "completed",
                    "server_count": "2",
                    "server_list": [
                        {
                            "server_id": host,
                            "device": [
                                {"device_id": str(i), "device_ip": f"10.1.{k}.{i}", "rank_id": str(ranks_each * k + i)}
                                for i in range(ranks_each)
                            ],
                        }
                        for k, host in enumerate(hosts)
                    ],
                }
            )
        )
        self.outputs = [folder / f"output_{k}" for k in range(2)]
        commands = [
            launch_command(
                "--ranktable",
                str(table),
                "--server-index",
                str(k),
                "--log-dir",
                str(folder / f"logs_{k}"),
                "--timeout",
                "200",
                *command,
            )
            for k in range(2)
        ]
        env = {**environment(), "NPU_SHIM_COLLECTIVE_TIMEOUT": "15"}
        if APART:
            job = folder / "job.json"
            job.write_text(
                json.dumps(
                    {
                        "commands": commands,
                        "outputs": list(map(str, self.outputs)),
                        "cut": str(self._cut),
                        "result": str(self._result),
                    }
                )
            )
            self._processes = [subprocess.Popen(UNSHARE + [sys.executable, two_hosts.__file__, str(job)], env=env)]
        else:
            env["HCCL_IF_BASE_PORT"] = str(free_base_port(2 * ranks_each))
            self._processes = [
                subprocess.Popen(
                    command, env=env, stdin=subprocess.DEVNULL, stdout=output.open("wb"), stderr=subprocess.STDOUT
                )
                for command, output in zip(commands, self.outputs)
            ]

    def cut(self) -> None:
        """Takes the link between the hosts down."""
        self._cut.touch()

    def kill(self, rank: int) -> None:
        """Kills a rank of the second host."""
        mark = f"RANK_ID={rank}".encode(), f"RANK_TABLE_FILE={self._folder / 'table.json'}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if all(each in variables for each in mark):
                os.kill(int(pid), signal.SIGKILL)

    def end(self) -> list[int]:
        """Waits for both launchers; their exit codes."""
        for process in self._processes:
            process.wait(240)
        if APART:
            return list(json.loads(self._result.read_text())["codes"])
        return [process.returncode for process in self._processes]

    @property
    def said(self) -> str:
        """Return the output of both launchers and of all ranks."""
        paths = self.outputs + sorted(self._folder.glob("logs_*/*.log"))
        return "\n".join(path.read_text(errors="replace") for path in paths)

    @property
    def seconds_after_cut(self) -> float:
        """Return the seconds for which it went on without the link."""
        return float(json.loads(self._result.read_text())["seconds"])


def test_ranks_of_two_hosts_train_as_one_process(tmp_path: pathlib.Path) -> None:
    ways = ["wrapper", "by_hand"]
    launched(1, str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways, folder=tmp_path)
    job = Job(tmp_path / "job", 2, str(SCRIPTS / "data_parallel.py"), str(tmp_path), *ways)
    assert job.end() == [0, 0], job.said[-4000:]
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


@pytest.mark.parametrize("fault", FAULTS)
def test_a_job_that_loses_a_host_ends_and_goes_on_from_its_checkpoint(
    fault: str, tmp_path: pathlib.Path, repo_root: pathlib.Path
) -> None:
    command = [
        str(repo_root / "samples" / "digits_horovod" / "expected_npu.py"),
        "--steps=240",
        "--log_every=20",
        f"--model_dir={tmp_path / 'model'}",
    ]
    job = Job(tmp_path / "first", 1, *command)
    give_up = time.monotonic() + 150
    while not (tmp_path / "model" / "model.ckpt-100.index").exists():
        assert time.monotonic() < give_up, job.said[-4000:]
        time.sleep(0.01)
    if fault == "cut":
        job.cut()
    else:
        job.kill(1)
    assert all(job.end()), job.said[-4000:]
    if fault == "cut":
        assert job.seconds_after_cut < 100
        assert "does not answer at 10.77.0." in job.said, job.said[-4000:]
    else:
        assert "rank 1 was ended by SIGKILL" in job.said and "died" in job.said, job.said[-4000:]
    assert last_step(tmp_path / "model") < 240
    again = Job(tmp_path / "again", 1, *command)
    assert again.end() == [0, 0], again.said[-4000:]
    assert last_step(tmp_path / "model") == 240


def last_step(folder: pathlib.Path) -> int:
    """The global step of the last checkpoint."""
    return int(tf.train.load_checkpoint(str(folder)).get_tensor("global_step"))
