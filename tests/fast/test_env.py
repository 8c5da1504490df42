"""The environment reader: defaults of one process, and errors that name variable, value and next step."""

from __future__ import annotations

import pytest

from npu_shim._host import host_env

GOOD = [
    ({}, dict(rank_id=0, rank_size=1, device_id=0, job_id="local", fallback=None, rank_table_file=None)),
    ({"RANK_ID": "", "RANK_SIZE": " "}, dict(rank_id=0, rank_size=1)),
    (
        {"RANK_ID": "3", "RANK_SIZE": "8", "RANK_TABLE_FILE": "/t.json", "JOB_ID": "job-1_a"},
        dict(rank_id=3, rank_size=8, rank_table_file="/t.json", job_id="job-1_a"),
    ),
    ({"ASCEND_DEVICE_ID": "2", "DEVICE_ID": "5"}, dict(device_id=2)),
    ({"DEVICE_ID": "5"}, dict(device_id=5)),
    ({"CM_WORKER_SIZE": "4", "RANK_ID": "1"}, dict(rank_id=1, rank_size=4)),
    ({"CM_WORKER_SIZE": "0"}, dict(rank_id=0, rank_size=1)),
    ({"RANK_TABLE_FILE": "/t.json"}, dict(rank_id=None, rank_size=None, pod_name=None)),
    ({"RANK_TABLE_FILE": "/t.json", "RANK_ID": "1"}, dict(rank_id=1, rank_size=None, pod_name=None)),
    (
        {"RANK_TABLE_FILE": "/t.json", "RANK_ID": "8p", "RANK_SIZE": "8"},
        dict(rank_id=None, rank_size=8, pod_name="8p", pod_variable="RANK_ID"),
    ),
    (
        {"RANK_TABLE_FILE": "/t.json", "RANK_ID": "8p", "POD_NAME": "a"},
        dict(rank_id=None, pod_name="a", pod_variable="POD_NAME"),
    ),
    (
        {"CM_CHIEF_IP": "10.0.0.1", "CM_CHIEF_PORT": "6000", "CM_CHIEF_DEVICE": "0", "CM_WORKER_SIZE": "8"},
        dict(rank_id=None, rank_size=8, cm_chief_ip="10.0.0.1"),
    ),
    ({"NPU_SHIM_FALLBACK": "silent"}, dict(fallback="silent", kernels="compiled", memory="kept")),
    ({"NPU_SHIM_KERNELS": "plain"}, dict(kernels="plain")),
    ({"NPU_SHIM_MEMORY": "returned"}, dict(memory="returned")),
    ({"TF_CONFIG": '{"cluster": {}}'}, dict(tf_config='{"cluster": {}}')),
]


@pytest.mark.parametrize("environ, wanted", GOOD, ids=[str(g[0]) for g in GOOD])
def test_reads(environ, wanted):
    got = host_env.read_environment(environ)._asdict()
    assert {name: got[name] for name in wanted} == wanted


BAD = [
    ({"RANK_ID": "x"}, r"RANK_ID='x' is not allowed: it must be an integer of at least 0. Correct it, or unset it"),
    ({"RANK_ID": "-1"}, r"RANK_ID='-1' is not allowed"),
    ({"RANK_ID": "1"}, r"RANK_ID=1 is not allowed with RANK_SIZE=1: ranks are 0 to 0"),
    ({"RANK_ID": "8", "RANK_SIZE": "8"}, r"RANK_ID=8 is not allowed with RANK_SIZE=8: ranks are 0 to 7"),
    ({"RANK_SIZE": "0"}, r"RANK_SIZE='0' is not allowed: it must be an integer of at least 1"),
    ({"RANK_SIZE": "2.5"}, r"RANK_SIZE='2.5' is not allowed"),
    ({"RANK_SIZE": "2"}, r"RANK_SIZE=2 needs RANK_ID, which is not set. Export RANK_ID .*0 to 1"),
    ({"RANK_SIZE": "2", "RANK_ID": "0", "CM_WORKER_SIZE": "2"}, r"RANK_SIZE=2 and CM_WORKER_SIZE=2 are both set"),
    (
        {"RANK_TABLE_FILE": "/t", "CM_CHIEF_IP": "10.0.0.1"},
        r"CM_CHIEF_IP='10.0.0.1' and RANK_TABLE_FILE='/t' are both set",
    ),
    ({"RANK_TABLE_FILE": "/t", "CM_WORKER_SIZE": "2"}, r"RANK_TABLE_FILE='/t' and CM_WORKER_SIZE=2 are both set"),
    ({"RANK_TABLE_FILE": "/t", "RANK_ID": "9", "RANK_SIZE": "8"}, r"RANK_ID=9 is not allowed with RANK_SIZE=8"),
    (
        {"CM_CHIEF_IP": "10.0.0.1", "CM_CHIEF_PORT": "1", "CM_CHIEF_DEVICE": "0", "RANK_SIZE": "2"},
        r"CM_CHIEF_IP='10.0.0.1' and RANK_SIZE=2 are both set.*export CM_WORKER_SIZE=2",
    ),
    ({"CM_CHIEF_IP": "10.0.0.1"}, r"CM_CHIEF_IP='10.0.0.1' needs CM_CHIEF_PORT, which is not set"),
    ({"CM_CHIEF_PORT": "70000"}, r"CM_CHIEF_PORT='70000' is not allowed: it must be an integer from 0 to 65520"),
    ({"JOB_ID": "my job"}, r"JOB_ID='my job' is not allowed: use letters, digits, '-' and '_' only"),
    ({"ASCEND_DEVICE_ID": "-2"}, r"ASCEND_DEVICE_ID='-2' is not allowed"),
    ({"TF_CONFIG": "{cluster"}, r"TF_CONFIG='{cluster' is not allowed: it is not JSON \(.*\). Correct it, or unset it"),
    ({"TF_CONFIG": "[]"}, r"TF_CONFIG='\[\]' is not allowed: it must be a JSON object"),
    (
        {"NPU_SHIM_FALLBACK": "quiet"},
        r"NPU_SHIM_FALLBACK='quiet' is not allowed: it must be one of warn, error, silent",
    ),
    ({"NPU_SHIM_KERNELS": "fast"}, r"NPU_SHIM_KERNELS='fast' is not allowed: it must be one of compiled, plain"),
    (
        {"NPU_SHIM_MEMORY": "all"},
        r"NPU_SHIM_MEMORY='all' is not allowed: it must be one of kept, returned. .* default, kept",
    ),
]


@pytest.mark.parametrize("environ, text", BAD, ids=[str(b[0]) for b in BAD])
def test_refuses(environ, text):
    with pytest.raises(ValueError, match=text):
        host_env.read_environment(environ)


def test_the_record_lists_defaults_and_is_frozen():
    environment = host_env.read_environment({"RANK_SIZE": "1"})
    assert environment.defaulted == ("RANK_ID", "JOB_ID", "ASCEND_DEVICE_ID")
    with pytest.raises(AttributeError):
        environment.rank_id = 5


def test_each_call_reads_the_variables_again(monkeypatch):
    monkeypatch.setenv("JOB_ID", "a")
    assert host_env.read_environment().job_id == "a"
    monkeypatch.setenv("JOB_ID", "b")
    assert host_env.read_environment().job_id == "b"
