"""On a card: the sessions that are open when Python ends, and device scopes that name a GPU."""

from __future__ import annotations

import threading

import tensorflow as tf

import npu_shim
from npu_shim._tensorflow import tf_api
from npu_shim.config import open_sessions

v1 = tf_api.v1


def test_open_sessions_are_closed_also_while_threads_run() -> None:
    npu_shim.install()
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, daemon=True)
    thread.start()
    with tf.Graph().as_default():
        session = v1.Session()
        assert session.run(tf.constant(3)) == 3
        open_sessions._close_all()
        assert session._closed
    ended.set()
    thread.join()


def test_a_graph_gets_the_cpu_in_place_of_a_gpu() -> None:
    npu_shim.install()
    with tf.Graph().as_default(), v1.device("/gpu:1"):
        assert tf.constant(3).op.device == "/device:CPU:0"
