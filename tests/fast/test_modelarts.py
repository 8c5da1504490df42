"""``npu-shim launch`` with the variables and rank tables of a training job of ModelArts."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

from npu_shim import cli
from npu_shim.launching import modelarts

pytestmark = pytest.mark.once

ON_MODELARTS = {"MA_JOB_DIR": "/home/ma-user/modelarts/user-job-dir", "HOSTNAME": "job-1"}
TABLE = """{"status": "completed", "group_count": "1", "group_list": [{"device_count": "4", "group_name": "worker",
 "instance_count": "2", "instance_list": [
 {"pod_name": "job-0", "server_id": "10.0.0.1", "devices": [{"device_id": "0", "device_ip": "10.0.1.1"},
                                                            {"device_id": "1", "device_ip": "10.0.1.2"}]},
 {"pod_name": "job-1", "server_id": "10.0.0.2", "devices": [{"device_id": "4", "device_ip": "10.0.1.3"},
                                                            {"device_id": "5", "device_ip": "10.0.1.4"}]}]}]}"""


@pytest.fixture
def dry(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """Return a function that prints the plan of a job with these variables, and returns exit code and output."""
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)

    def launch(**variables: str) -> tuple[int, str]:
        for name in ("RANK_ID", "RANK_SIZE", "POD_NAME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        code = cli.main(["launch", "--dry-run", "--job-id", "j", "train.py", "--data_url=obs://b/data"])
        said = capsys.readouterr()
        return code, said.out + said.err

    return launch


def test_a_pod_starts_its_ranks_of_the_table(dry: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "jobstart_hccl.json").write_text(TABLE)
    code, said = dry(RANK_TABLE_FILE=str(tmp_path / "jobstart_hccl.json"), **ON_MODELARTS)
    assert code == 0, said
    assert ["RANK_ID=2" in line for line in said.splitlines()] == [True, False]
    assert said.count("RANK_SIZE=4") == said.count("--data_url=obs://b/data") == 2 and "ASCEND_DEVICE_ID=5" in said


@pytest.mark.parametrize("device, lines", [("0", 2), ("3", 1)])
def test_one_process_of_a_host_starts_the_ranks(device: str, lines: int, dry: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.json").write_text(TABLE)
    rank = dict(RANK_ID="3", RANK_SIZE="4", ASCEND_DEVICE_ID=device, RANK_TABLE_FILE=str(tmp_path / "t.json"))
    code, said = dry(**rank, **ON_MODELARTS)
    assert code == 0 and len(said.splitlines()) == lines
    assert ("for device 3, too; the one for device 0 starts all ranks" in said) == (device == "3")


def test_the_table_of_the_platform_is_found(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "jobstart_hccl.json")
    assert modelarts.rank_table_path(ON_MODELARTS, path) == ""
    pathlib.Path(path).write_text(TABLE)
    assert modelarts.rank_table_path(ON_MODELARTS, path) == path
    assert modelarts.rank_table_path({**ON_MODELARTS, "RANK_TABLE_FILE": "/t.json"}, path) == "/t.json"
    assert modelarts.rank_table_path({"HOSTNAME": "job-1"}, path) == modelarts.pod_name({"HOSTNAME": "job-1"}) == ""


def test_the_boot_script_of_the_samples_copies_trains_and_copies_back(
    tmp_path: pathlib.Path, repo_root: pathlib.Path
) -> None:
    text = (repo_root / "samples" / "cluster" / "modelarts.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)).replace("/cache/", f"{tmp_path}/cache/")
    (tmp_path / "boot.py").write_text(code.replace('"launch",', '"launch", "--ranks", "2",'))
    (tmp_path / "train.py").write_text(
        "import os, sys\ndata, out = (each.split('=')[1] for each in sys.argv[1:])\n"
        "os.makedirs(out, exist_ok=True)\n"
        "open(out + '/' + os.environ['RANK_ID'], 'w').write(open(data + '/x').read() + os.environ['RANK_SIZE'])\n"
    )
    (tmp_path / "obs" / "b" / "data").mkdir(parents=True)
    (tmp_path / "obs" / "b" / "data" / "x").write_text("read ")
    command = [sys.executable, "-m", "npu_shim", "run", "--alias", str(tmp_path / "boot.py")]
    command += ["--data_url=obs://b/data", "--train_url=obs://b/out"]
    env = {**os.environ, "PYTHONPATH": str(repo_root), "NPU_SHIM_OBS": str(tmp_path / "obs")}
    assert subprocess.run(command, env=env, capture_output=True).returncode == 0
    assert [(tmp_path / "obs" / "b" / "out" / rank).read_text() for rank in "01"] == ["read 2", "read 2"]
    env["ASCEND_DEVICE_ID"] = "1"
    (tmp_path / "train.py").unlink()
    assert subprocess.run(command, env=env, capture_output=True).returncode == 0
