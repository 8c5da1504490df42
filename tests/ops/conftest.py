"""Every op test builds its own graph, on the CPU, and hears nothing of the fallback."""

from __future__ import annotations

import os

import pytest
import tensorflow as tf


@pytest.fixture(autouse=True)
def one_quiet_process(monkeypatch):
    for name in ("RANK_ID", "RANK_SIZE", "RANK_TABLE_FILE", "CM_CHIEF_IP", "CM_WORKER_SIZE", "TF_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    if "NPU_SHIM_FALLBACK" not in os.environ:  # on a card these tests are run with =error
        monkeypatch.setenv("NPU_SHIM_FALLBACK", "silent")


@pytest.fixture
def run():
    """run(build) builds in a new graph and returns the values of what build returns."""

    def run_it(build, feed=None):
        with tf.Graph().as_default():
            fetches = build()
            with tf.compat.v1.Session() as sess:
                sess.run(tf.compat.v1.global_variables_initializer())
                return sess.run(fetches, feed or {})

    return run_it
