"""install() has TensorFlow keep the memory of tensors on the CPU: when, once, and with which effect."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import npu_shim
from npu_shim._host import allocator, host_device

pytestmark = pytest.mark.nightly

ALLOCATOR = allocator.ALLOCATOR

# Adds numbers of 40 MB, ten times, and says how many pages the system has made for that. oneDNN would bring an
# allocator of its own.
ADDS = """
import resource
import tensorflow.compat.v1 as tf
import npu_shim
tf.disable_v2_behavior()
npu_shim.install()
x = tf.get_variable("x", [10 << 20], initializer=tf.ones_initializer(), use_resource=True)
y = tf.sqrt(x.read_value() + 3.0)[-1:]
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    def run():
        return [float(session.run(y)[0]) for _ in range(10)]
    run()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    values = run()
    right = all(abs(value - 2.0) < 1e-6 for value in values)  # the last bit of tf.sqrt depends on the processor
    print(right, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in (ALLOCATOR, allocator.LIMIT, "NPU_SHIM_MEMORY"):
        monkeypatch.delenv(name, raising=False)


def test_install_sets_it_and_uninstall_resets_it():
    before = dict(os.environ)
    npu_shim.install()
    assert os.environ[ALLOCATOR] == "true"
    installed = dict(os.environ)
    npu_shim.install()
    assert dict(os.environ) == installed
    npu_shim.uninstall()
    assert dict(os.environ) == before


def test_settings_of_the_user_are_neither_changed_nor_reset(monkeypatch):
    monkeypatch.setenv(ALLOCATOR, "false")
    npu_shim.install()
    assert os.environ[ALLOCATOR] == "false"
    npu_shim.uninstall()
    assert os.environ[ALLOCATOR] == "false"
    monkeypatch.delenv(ALLOCATOR)
    npu_shim.install()
    monkeypatch.setenv(ALLOCATOR, "1")
    npu_shim.uninstall()
    assert os.environ[ALLOCATOR] == "1"


def test_nothing_is_set_with_the_switch_off(monkeypatch):
    monkeypatch.setenv("NPU_SHIM_MEMORY", "returned")
    npu_shim.install()
    assert ALLOCATOR not in os.environ


def test_nothing_is_set_on_a_host_with_a_card(monkeypatch):
    monkeypatch.setattr(host_device, "require_device", lambda: host_device.Device("npu", "a test says so"))
    npu_shim.install()
    assert ALLOCATOR not in os.environ


@pytest.mark.parametrize("memory, fewest, most", [("kept", 0, 50), ("returned", 150, 10**9)], ids=["kept", "returned"])
def test_the_memory_of_pages_is_kept_or_returned(repo_root, memory, fewest, most):
    """Each 40 MB are 10,240 pages, or 20 where the system makes them of 2 MB."""
    environ = {
        **os.environ,
        "PYTHONPATH": str(repo_root),
        "NPU_SHIM_MEMORY": memory,
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "GLIBC_TUNABLES": "",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run([sys.executable, "-c", ADDS], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    right, pages = done.stdout.split()[-2:]
    assert right == "True" and fewest <= int(pages) <= most
