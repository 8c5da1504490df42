"""Loss scaling on an NPU in graph mode of TensorFlow 2: the step depends on the overflow flag, here a placeholder."""

from __future__ import annotations

import types
from typing import Any

import pytest
import tensorflow as tf

from npu_shim import npu_init as npu
from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api

v1 = tf.compat.v1


class Card:
    """The vendor's modules: the flag is a placeholder, and the ranks' sum is the flag times their number."""

    def __init__(self, inf_nan: bool, ranks: int) -> None:
        self.inf_nan, self.ranks, self.made = inf_nan, ranks, []

    def __call__(self, module: str) -> Any:
        return {
            "npu_plugin": types.SimpleNamespace(is_inf_nan_enabled=lambda: self.inf_nan),
            "helper": types.SimpleNamespace(get_gen_ops=lambda: self),
            "hccl_ops": self,
        }[module.rpartition(".")[2]]

    def npu_get_float_status_v2(self) -> Any:
        self.made.append("get")
        self.flag = v1.placeholder_with_default([0, 0], [2])
        return tf.identity(self.flag)

    def npu_clear_float_status_v2(self) -> Any:
        self.made.append("clear")
        return tf.no_op()

    def allreduce(self, tensor: Any, reduction: str, fusion: int) -> Any:
        self.made.append(reduction)
        return tensor * self.ranks if reduction == "sum" else tensor


@pytest.mark.parametrize("is_distributed", [False, True])
@pytest.mark.parametrize("inf_nan", [False, True])
def test_the_flag_decides_where_overflows_saturate(inf_nan: bool, is_distributed: bool, monkeypatch: Any) -> None:
    card = Card(inf_nan, 2)
    monkeypatch.setattr(host_device, "find_vendor_module", card)
    monkeypatch.setattr(host_device, "import_vendor_module", card)
    monkeypatch.setenv("RANK_SIZE", "2")
    monkeypatch.setenv("RANK_ID", "0")
    with tf.Graph().as_default(), tf_api.v1.Session() as session:
        w = v1.get_variable("w", [], tf.float32, v1.ones_initializer())
        manager = npu.ExponentialUpdateLossScaleManager(8.0, 100, 1, decr_ratio=0.5)
        optimizer = npu.NPULossScaleOptimizer(v1.train.GradientDescentOptimizer(0.25), manager, is_distributed)
        step = optimizer.minimize(w * w)
        session.run(v1.global_variables_initializer())
        finite = "overflow_status_reduce_all:0"
        assert session.run([step, finite])[1]
        assert session.run([w, manager.get_loss_scale()]) == [0.5, 8.0]
        if not inf_nan:
            assert not session.run([step, finite], {card.flag: [0, 3]})[1]
            assert session.run([w, manager.get_loss_scale()]) == [0.5, 4.0]
    flag = [] if inf_nan else ["get", "clear"]
    assert card.made == flag + (["min" if inf_nan else "sum"] if is_distributed else [])
