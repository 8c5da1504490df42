"""Names of the vendor's util, npu_plugin and tf_adapter: shares of gradients, values of the process, options, addresses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from npu_shim import tf_adapter
from npu_shim.estimator.npu import npu_optimizer, npu_plugin, util


class Item:
    def __init__(self, size: int) -> None:
        self.size, self.root_rank_id = size, -1


@pytest.mark.parametrize(
    "sizes, ranks, shares",
    [
        ([4, 4, 4, 4], 2, [0, 0, 1, 1]),
        ([1, 1, 1, 9], 2, [0, 0, 0, 1]),  # the last one counts for no fair part
        ([9, 1, 1, 1], 3, [0, 1, 2, 2]),
        ([3, 5, 2], 3, [0, 1, 2]),
        ([3, 5, 2], 1, [0, 0, 0]),
        ([3, 5, 2], 0, [-1, -1, -1]),
        ([5, 3, 4, 3, 5], 2, [0, 0, 0, 1, 1]),
        ([50, 5, 0], 2, [0, 1, 1]),
    ],
)
def test_ranks_share_neighboring_gradients_by_size(sizes: list[int], ranks: int, shares: list[int]) -> None:
    items: Any = [Item(size) for size in sizes]
    assert util.fair_division(items, ranks) is items
    assert [item.root_rank_id for item in items] == shares
    with pytest.raises(ValueError, match=f"number={len(sizes) + 1} is not allowed: it must be from 0 to the number"):
        util.fair_division(items, len(sizes) + 1)


def test_the_rank_of_a_gradient_and_of_its_variable() -> None:
    with tf.Graph().as_default():
        weights = [tf.compat.v1.get_variable(f"w{i}", [size], tf.float32) for i, size in enumerate([6, 2, 2, 2])]
        other = tf.compat.v1.get_variable("other", [], tf.float32)
        gradients = tf.gradients(tf.add_n([tf.reduce_sum(w * w) for w in weights]), weights)
        util.add_grads_and_vars([*zip(gradients, weights), (None, other)], 2)
        items = util.get_all_grad_item()
        assert [(item.size, item.root_rank_id) for item in items] == [(24, 0), (8, 1), (8, 1), (8, 1)]
        assert [util.get_gid_by_grad(each) for each in gradients] == [0, 1, 1, 1]
        assert [util.get_gid_by_weight(each) for each in [*weights, other]] == [0, 1, 1, 1, -1]
        assert util.GradDivisionItem(tf.constant(1.0), other).size == 0


def test_values_of_the_process() -> None:
    util.global_dict_init()
    util.set_value("rate", 0.5)
    assert util.get_value("rate") == 0.5 and util.get_value("other") is None and util.get_value("other", 3) == 3
    util.global_dict_init()
    assert util.get_value("rate", "none") == "none"


def test_a_loop_variable_is_zero_and_made_once() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = util.create_or_get_var("loop_cond")
        assert util.create_or_get_var("loop_cond") is variable and variable.dtype.base_dtype == tf.int64
        session.run(variable.initializer)
        assert session.run(variable) == 0


def test_loop_variables_are_exported_with_the_graph() -> None:
    util.register_func("own_variable")
    util.register_func("own_variable")
    with tf.Graph().as_default():
        variable = tf.compat.v1.get_variable("v", [], tf.int64, use_resource=True)
        tf.compat.v1.add_to_collection("npu_runconfig_own_variable", variable)
        meta = tf.compat.v1.train.export_meta_graph()
    with tf.Graph().as_default():
        tf.compat.v1.train.import_meta_graph(meta)
        (again,) = tf.compat.v1.get_collection("npu_runconfig_own_variable")
        assert again.op.name == "v" and again.dtype == tf.int64


def test_options_are_written_unless_they_are_none() -> None:
    options: dict[str, str] = {}
    for name in ("op_compiler_cache_mode", "op_compiler_cache_dir", "debug_dir"):
        getattr(npu_plugin, f"init_{name}")(options, None)
    assert options == {}
    npu_plugin.init_op_compiler_cache_mode(options, "enable")
    npu_plugin.init_op_compiler_cache_dir(options, "/cache")
    npu_plugin.init_debug_dir(options, "/debug")
    assert options == {
        "ge.op_compiler_cache_mode": "enable", "ge.op_compiler_cache_dir": "/cache", "ge.debugDir": "/debug"
    }  # fmt: skip


def test_the_functions_below_npu_plugin() -> None:
    error, address, size = tf_adapter.MallocSharedMem("adapter_rows", [2, 3], tf_adapter.DT_FLOAT)
    assert (error, size) == (0, 24) and (address, size) == npu_plugin.malloc_shared_memory("adapter_rows", [2, 3], 1)
    with tf.Graph().as_default():
        tf.compat.v1.get_variable("adapter_variable", [4], tf.float32)
        assert tf_adapter.GetVarAddrAndSize("adapter_variable")[::2] == [0, 16]
    assert tf_adapter.GetDeviceSatMode() == 1
    tf_adapter.SetDeviceSatMode(1)
    with pytest.raises(ValueError, match=r"set_device_sat_mode\(0\) is not possible on the CPU"):
        tf_adapter.SetDeviceSatMode(0)
    with pytest.raises(ValueError, match="level='L9' is not allowed"):
        tf_adapter.ProfilerStart("L9", "", "")
    with pytest.raises(ValueError, match="mem_size='big' is not allowed"):
        tf_adapter.InitRdmaPool("big")
    assert [tf_adapter.RegistRdmaRemoteAddr([]), tf_adapter.RdmaInitAndRegister([], 8)] == [0, 0]


def test_reduce_on_one_process() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        assert session.run(npu_optimizer.reduce(tf.constant([3.0]), 0)).tolist() == [3.0]
        rows = npu_optimizer.reduce(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([4])), 0)
        assert session.run(rows.indices).tolist() == [4] and np.all(session.run(rows.values) == 1)
        with pytest.raises(ValueError, match="root_rank"):
            npu_optimizer.reduce(tf.constant([3.0]), 1)
