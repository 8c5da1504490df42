"""Scopes of devices that name a GPU, by a name that only the run knows."""

from __future__ import annotations

from typing import Iterator

import pytest
import tensorflow as tf
from tensorflow.python.eager import context as eager_context

import npu_shim
from npu_shim.npu_device import npu_device
from npu_shim.ops.cpu_kernels import forms

v1 = tf.compat.v1
CPU, NPU = "/device:CPU:0", "/device:NPU:0"


@pytest.fixture(autouse=True)
def closed_after() -> Iterator[None]:
    yield
    npu_device.close()
    npu_shim.uninstall()


IN_GRAPHS = [
    ("/gpu:0", CPU),
    ("/GPU:1", CPU),
    ("gpu:3", CPU),
    ("GPU", CPU),
    ("/device:GPU:*", CPU),
    ("/job:worker/task:1/gpu:2", "/job:worker/task:1" + CPU),
    ("/job:worker/replica:0/task:1/device:GPU:3", "/job:worker/replica:0/task:1" + CPU),
    ("/job:gpu/task:0/cpu:1", "/job:gpu/task:0/device:CPU:1"),
    ("/cpu:0", CPU),
    ("/job:ps", "/job:ps"),
    (None, ""),
    (tf.DeviceSpec(job="worker", device_type="GPU", device_index=1), "/job:worker" + CPU),
    (tf.DeviceSpec(job="worker"), "/job:worker"),
    (lambda op: "/gpu:1" if op.type == "Const" else "/cpu:1", CPU),
    (v1.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/gpu:0"), "/job:worker" + CPU),
]


def place(device: object) -> str:
    with tf.device(device) if not callable(device) else v1.device(device):
        return str(tf.constant(1.0).op.device)


@pytest.mark.parametrize("device,expected", IN_GRAPHS)
def test_a_graph_gets_the_cpu_in_place_of_a_gpu(device: object, expected: str) -> None:
    with tf.Graph().as_default():
        before = place(device)
        npu_shim.install()
        assert place(device) == expected
        if "gpu" not in before.lower():
            assert before == expected
        npu_shim.uninstall()
        assert place(device) == before


def test_a_method_of_a_graph_and_a_graph_without_soft_placement() -> None:
    npu_shim.install()
    graph = tf.Graph()
    with graph.as_default(), graph.device("/gpu:1"), graph.device("/job:localhost"):
        total = tf.constant(1.0) + 2.0
    assert total.op.device == "/job:localhost" + CPU
    with v1.Session(graph=graph, config=v1.ConfigProto(allow_soft_placement=False)) as sess:
        assert sess.run(total) == 3.0


def test_a_scope_of_the_cpu_inside_that_of_a_gpu() -> None:
    npu_shim.install()
    with tf.Graph().as_default(), tf.device("/gpu:0"):
        assert place("/cpu:1") == "/device:CPU:1"
        assert place(None) == ""
        assert tf.constant(1.0).op.device == CPU


def test_an_error_of_tensorflow_stays() -> None:
    npu_shim.install()
    with tf.Graph().as_default(), pytest.raises(ValueError, match="gpux"):
        place("/gpux:0")


def test_a_tf1_name_scope_of_towers_shares_one_device() -> None:
    npu_shim.install()
    with tf.Graph().as_default():
        assert {place(f"/gpu:{number}") for number in range(4)} == {CPU}


def test_a_script_that_is_not_migrated_runs_without_the_gpu_that_it_names() -> None:
    forms.use_cpu_forms()  # as observe and verify do for the original
    with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto(allow_soft_placement=False)) as sess:
        with tf.device("/gpu:0"):
            total = tf.constant(1.0) + 2.0
        assert sess.run(total) == 3.0


def test_a_script_that_is_not_migrated_keeps_the_gpus_of_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.config.experimental, "list_physical_devices", lambda kind: [kind])
    forms.use_cpu_forms()
    with tf.Graph().as_default():
        assert place("/gpu:1") == "/device:GPU:1"
        npu_shim.install()
        assert place("/gpu:1") == CPU


def entered(device: object) -> str:
    """Return the device of eager ops in a scope."""
    with tf.device(device):
        assert (tf.constant(1.0) + 1.0).numpy() == 2.0
        return str(eager_context.context().device_name)


def traced(device: object) -> str:
    """Return the device of an op in a function."""

    @tf.function
    def function(x: object) -> object:
        with tf.device(device):
            return tf.add(x, 1.0, name="placed")

    assert function(tf.constant(1.0)).numpy() == 2.0
    graph = function.get_concrete_function(tf.constant(1.0)).graph
    return next(str(op.device) for op in graph.get_operations() if op.type in ("Add", "AddV2"))


@pytest.mark.parametrize("device", ["/gpu:0", "GPU", "/device:GPU:1", "/job:localhost/gpu:0"])
def test_eager_code_and_functions_get_the_npu_once_it_is_open(device: str) -> None:
    if not tf.executing_eagerly():  # TensorFlow 1.15
        npu_device.open().as_default()
        with tf.Graph().as_default():
            assert place(device).endswith(CPU)
        return
    npu_device.open().as_default()
    assert entered(device).endswith(NPU) and traced(device).endswith(NPU)
    assert entered("/cpu:0").endswith(CPU) and traced("/cpu:0").endswith(CPU)
    with tf.Graph().as_default():
        assert place(device).endswith(CPU)
    npu_shim.uninstall()
    assert "NPU" not in entered("/gpu:0")


def test_eager_code_keeps_its_devices_where_no_device_is_open() -> None:
    npu_shim.install()
    if tf.executing_eagerly():
        assert traced("/gpu:1") == "/device:GPU:1"
