"""System ops, scopes, marks, RNN, and what is not in this release."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from npu_shim.estimator import npu_ops
from npu_shim.estimator.npu import npu_plugin, npu_rnn, npu_scope, util

v1 = tf.compat.v1


def test_starting_and_stopping_are_ops_that_do_nothing(run):
    assert (
        run(
            lambda: [
                npu_ops.initialize_system(),
                npu_ops.shutdown_system(),
                npu_ops.NPUInit("a"),
                npu_ops.NPUShutdown("b"),
            ]
        )
        == [None] * 4
    )


SCOPES = [
    (npu_scope.without_npu_compile_scope, (), "_without_npu_compile", True),
    (npu_scope.keep_dtype_scope, (), "_keep_dtype", 1),
    (npu_scope.npu_stage_scope, (3,), "_stage_level", 3),
    (npu_scope.npu_weight_prefetch_scope, (), "_buffer_pool_size", 536870912),
    (npu_scope.npu_variable_scope, (), "_variable_placement", b"all"),
    (npu_scope.op_specified_engine_scope, ("e", "k"), "_specified_engine_name", b"e"),
    (npu_scope.npu_qos_label_scope, (2,), "_qos_service_label", 2),
    (npu_scope.subgraph_multi_dims_scope, (1,), "_subgraph_multi_dims_index", 1),
    (npu_scope.npu_optimizer_scope, (), "_optimizer", True),
    (npu_scope.npu_mem_type_scope, (), "_output_memory_type", 1),
    (npu_scope.disable_autofuse, (), "_disable_autofuse_scope", True),
    (npu_scope.limit_core_num_scope, ("4", "8"), "_op_vectorcore_num", b"8"),
]


@pytest.mark.parametrize("scope, arguments, attribute, value", SCOPES, ids=[s[0].__name__ for s in SCOPES])
def test_a_scope_marks_ops_inside_and_changes_no_number(run, scope, arguments, attribute, value):
    def build():
        with scope(*arguments):
            inside = tf.constant(2.0) * 3.0
        outside = tf.constant(1.0)
        assert inside.op.get_attr(attribute) == value
        assert attribute not in outside.op.node_def.attr
        return inside

    assert run(build) == 6.0


def test_scopes_that_are_names(run):
    def build():
        with npu_scope.npu_recompute_scope(), npu_scope.npu_graph_slice_scope(2):
            return tf.constant(1.0, name="c")

    with tf.Graph().as_default():
        assert build().op.name == "NpuRecompute/SliceNum-2-NpuGraphSlicing2/c"


WRONG = [
    (lambda: npu_scope.limit_core_num_scope(), "op_vectorore_num='0' is not allowed"),
    (lambda: npu_scope.limit_core_num_scope(op_vectorore_num=8), "op_vectorore_num=8 is not allowed"),
    (lambda: npu_scope.npu_variable_scope("all"), "placement='all' is not allowed"),
    (lambda: npu_scope.npu_graph_slice_scope(0), "slice_num=0 is not allowed"),
    (lambda: util.set_graph_exec_config(3), "fetch=3 is not allowed"),
    (lambda: util.set_graph_exec_config(tf.constant(1), dynamic_graph_execute_mode="x"), "'x' is not allowed"),
    (lambda: util.keep_tensors_dtypes("g", []), "must be a tf.Graph"),
    (lambda: util.check_aoe_mode("3"), "aoe_mode='3' is not allowed: it must be one of '1', '2', '4'"),
    (lambda: npu_plugin.set_device_sat_mode(2), "mode=2 is not allowed"),
    (lambda: npu_plugin.npu_resource_init(enable_profiling=True), "needs profiling_options"),
    (lambda: npu_plugin.npu_resource_init(precision_mode="fp8"), "precision_mode='fp8' is not allowed"),
    (lambda: npu_plugin.init_rdma_pool("1"), "must be an int, in bytes"),
]


@pytest.mark.parametrize("call, text", WRONG, ids=[w[1] for w in WRONG])
def test_wrong_arguments_are_refused(call, text):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=text):
        call()


def test_the_ops_have_the_marks():
    with tf.Graph().as_default() as graph:
        x = tf.constant(1.0, name="x")
        assert util.set_graph_exec_config("x:0", dynamic_input=True) is not None
        util.keep_tensors_dtypes(graph, ["x:0"])
        util.set_op_tensor_max_size(x, 8)
        assert x.op.get_attr("_graph_dynamic_input") is True
        assert x.op.get_attr("_keep_dtype") == 1
        assert x.op.get_attr("_op_max_size") == 8


def test_the_backend_takes_its_options_and_has_nothing_to_start():
    npu_plugin.npu_resource_init(precision_mode="allow_mix_precision")
    npu_plugin.npu_resource_shutdown()
    npu_plugin.npu_close()
    npu_plugin.rdma_remote_init([], 8)
    assert npu_plugin.is_inf_nan_enabled() is True


class AddingCell:
    """The least a cell can be: h = tanh(x + h / 2). Keras 3 has no cells to offer."""

    output_size = state_size = 3

    def __call__(self, inputs, state, scope=None):
        new = tf.tanh(inputs + 0.5 * state)
        return new, new

    def zero_state(self, batch_size, dtype):
        return tf.zeros([batch_size, 3], dtype)


def test_rnn_runs_over_time_first(run):
    """Against the recurrence written out in numpy; the second row ends after two steps."""
    x = np.random.RandomState(0).randn(4, 2, 3)

    def build():
        return npu_rnn.npu_dynamic_rnn(AddingCell(), tf.constant(x), dtype=tf.float64, sequence_length=[4, 2])

    outputs, state = run(build)
    h = np.zeros([2, 3])
    for t in range(4):
        alive = np.array([[True], [t < 2]])
        new = np.tanh(x[t] + 0.5 * h)
        h = np.where(alive, new, h)
        np.testing.assert_allclose(outputs[t], np.where(alive, new, 0), rtol=1e-12)
    np.testing.assert_allclose(state, h, rtol=1e-12)


def test_rnn_over_an_unknown_time_is_refused():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="time, must be static: pad the batches"):
        npu_rnn.npu_dynamic_rnn(AddingCell(), v1.placeholder(tf.float32, [None, 2, 3]), dtype=tf.float32)
