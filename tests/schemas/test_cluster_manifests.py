"""The manifests of samples/cluster are valid, and their containers start the ranks of their pod."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

CLUSTER = pathlib.Path(__file__).resolve().parents[2] / "samples" / "cluster"
VOLCANO_JOB = json.loads(pathlib.Path(__file__).with_name("volcano_job.json").read_text())
KUBERNETES = ("1.25", "1.30")
TABLE = "/user/serverid/devindex/config/hccl.json"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((CLUSTER / name).read_text()))


def pod_template(document: dict[str, Any]) -> dict[str, Any]:
    """Return the pod of a job."""
    spec = document["spec"]
    template = spec["tasks"][0]["template"] if "tasks" in spec else spec["template"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": template.get("metadata", {}), "spec": template["spec"]}


def shown(document: dict[str, Any], folder: pathlib.Path, table: dict[str, Any] | None = None) -> str:
    """Run the command of a container with ``npu-shim launch --dry-run``; return its output."""
    (folder / "npu-shim").write_text(
        f'#!/bin/sh\nverb=$1; shift; exec "{sys.executable}" -m npu_shim "$verb" --dry-run "$@"\n'
    )
    (folder / "npu-shim").chmod(0o755)
    (folder / "train.py").write_text("")
    (folder / "set_env.sh").write_text("")
    (folder / "hccl.json").write_text(json.dumps(table))
    container = pod_template(document)["spec"]["containers"][0]
    words = [
        word.replace(TABLE, str(folder / "hccl.json"))
        .replace("/workspace/", f"{folder}/")
        .replace("/checkpoints/", f"{folder}/")
        .replace("/usr/local/Ascend/ascend-toolkit/", f"{folder}/")
        for word in container["command"] + container["args"]
    ]
    environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "NPU_SHIM_FALLBACK": "silent"}
    done = subprocess.run(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_manifests_are_valid(version: str) -> None:
    for document in documents("volcano_job.yaml") + documents("cpu_job.yaml"):
        if document["apiVersion"].startswith("batch.volcano.sh"):
            jsonschema.validate(document, VOLCANO_JOB)
            document = pod_template(document)
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("field, value", [("minAvailble", 2), ("minAvailable", "2"), ("tasks", []), ("kind", "Jobs")])
def test_a_wrong_field_of_the_job_of_volcano_is_found(field: str, value: Any) -> None:
    (_, job) = documents("volcano_job.yaml")
    (job if field == "kind" else job["spec"])[field] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(job, VOLCANO_JOB)


def test_the_job_of_volcano_is_consistent() -> None:
    config_map, job = documents("volcano_job.yaml")
    spec = job["spec"]
    pod = pod_template(job)
    assert config_map["metadata"]["name"] == f"rings-config-{job['metadata']['name']}"
    labels = [part["metadata"]["labels"]["ring-controller.atlas"] for part in (config_map, job, pod)]
    assert len(set(labels)) == 1
    assert spec["minAvailable"] == sum(task["replicas"] for task in spec["tasks"])
    container = pod["spec"]["containers"][0]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["spec"]["volumes"]
    }
    assert TABLE.rpartition("/")[0] in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_the_pod_starts_its_own_ranks(tmp_path: pathlib.Path) -> None:
    servers = [
        {
            "server_id": f"10.8.8.{k}",
            "host_ip": f"10.8.8.{k}",
            "container_ip": pod,
            "hardware_type": "",
            "device": [
                {"device_id": str(i), "device_ip": f"10.9.{k}.{i}", "rank_id": str(8 * k + i)} for i in range(8)
            ],
        }
        for k, pod in enumerate(["10.244.0.8", "127.0.0.1"])
    ]
    table = {"status": "completed", "server_list": servers, "server_count": "2", "version": "1.0"}
    text = shown(documents("volcano_job.yaml")[1], tmp_path, table)
    for rank in range(8, 16):
        assert f"RANK_ID={rank} " in text
    assert "RANK_SIZE=16 " in text and "RANK_ID=7 " not in text


def test_the_rehearsal_starts_four_ranks(tmp_path: pathlib.Path) -> None:
    text = shown(documents("cpu_job.yaml")[0], tmp_path)
    assert text.count("RANK_SIZE=4 ") == 4
