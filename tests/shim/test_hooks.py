"""The hooks, callbacks, ranks and collectives that the star import names, on one process."""

from __future__ import annotations

import os

import numpy as np
import pytest
import tensorflow as tf
from npu_shim.hccl import hccl_ops

from npu_shim import npu_init as npu
from npu_shim.estimator.npu import util

v1 = tf.compat.v1


def run(hooks, steps=4):
    """Runs a counter x = 1, 2, 3 ... under hooks."""
    with tf.Graph().as_default():
        step = v1.train.get_or_create_global_step()
        x = tf.identity(step.assign_add(1), name="x")
        with v1.train.MonitoredSession(hooks=hooks()) as sess:
            for _ in range(steps):
                sess.run(x)


@pytest.mark.parametrize(
    "every, calls",
    [(2, [[1, 2], [3, 4]]), (3, [[1, 2, 3], [4]]), (0, [[1, 2, 3, 4]])],
    ids=["every 2 steps", "every 3 steps and the rest", "once at the end"],
)
@pytest.mark.parametrize("tensors", [{"x": "x:0"}, ["x:0"]], ids=["by tag", "by name"])
def test_output_tensor_hook(every, calls, tensors):
    got = []
    run(lambda: [npu.NPUOutputTensorHook(tensors, output_fn=got.append, output_every_n_steps=every)])
    assert [[int(list(one.values())[0]) for one in call] for call in got] == calls
    assert list(got[0][0]) == (["x"] if isinstance(tensors, dict) else ["x:0"])


def test_tell_me_step_or_loss_hook(monkeypatch):
    for name in ("STEP_NOW", "TOTAL_STEP", "LOSS_NOW", "TARGET_LOSS"):
        monkeypatch.setenv(name, "before")
    run(lambda: [npu.TellMeStepOrLossHook(step="x:0", total_step=100)])
    assert [os.environ[n] for n in ("STEP_NOW", "TOTAL_STEP", "LOSS_NOW")] == ["4", "100", "before"]


def test_set_iterations_hook_loads_the_loop_variables():
    with tf.Graph().as_default():
        hook = npu.SetIterationsVarHook(10)
        with v1.train.SingularMonitoredSession(hooks=[hook]) as sess:
            names = ("iterations_per_loop", "loop_cond", "zero", "one")
            variables = {v.op.name: v for v in v1.local_variables()}
            got = [int(sess.raw_session().run(variables["npu_runconfig/" + n])) for n in names]
    assert got == [9, 0, 0, 1]


def test_checkpoint_hook_saves(tmp_path, log):
    run(lambda: [npu.NPUCheckpointSaverHook(str(tmp_path), save_steps=2)])
    assert v1.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-4")
    assert len([m for m in log() if "global step" in m]) == 4


def test_empty_and_broadcast_hooks_do_nothing_on_one_process():
    run(lambda: [npu.NpuEmptyHook(), npu.NPUBroadcastGlobalVariablesHook(0, 0)])


@pytest.mark.parametrize(
    "append, kind",
    [
        (npu.npu_hooks_append, npu.NPUBroadcastGlobalVariablesHook),
        (npu.npu_callbacks_append, npu.NPUBroadcastGlobalVariablesCallback),
    ],
    ids=["hooks", "callbacks"],
)
def test_appending_copies_lists_and_tuples(append, kind):
    mine = [object()]
    got = append(mine)
    assert got[:1] == mine and isinstance(got[1], kind) and len(mine) == 1
    assert append(tuple(mine))[:1] == mine and len(append()) == len(append(None)) == 1
    with pytest.raises(TypeError, match="must be a list or tuple"):
        append(mine[0])


def test_ranks_of_one_process():
    assert (npu.get_rank_size(), npu.get_rank_id(), npu.get_local_rank_size(), npu.get_local_rank_id()) == (1, 0, 1, 0)
    assert (
        npu.get_npu_rank_size(),
        npu.get_npu_rank_id(),
        npu.get_npu_local_rank_size(),
        npu.get_npu_local_rank_id(),
    ) == (1, 0, 1, 0)
    assert npu.get_world_rank_from_group_rank("hccl_world_group", 0) == 0
    assert npu.get_group_rank_from_world_rank(0, "hccl_world_group") == 0
    npu.create_group("g", 1, [0])
    assert npu.get_rank_size("g") == 1
    npu.destroy_group("g")
    npu.set_split_strategy_by_idx([3, 8])
    npu.set_split_strategy_by_size([60, 40])


def test_ranks_of_several_processes_are_those_of_the_launcher(monkeypatch):
    monkeypatch.setenv("RANK_SIZE", "4")
    monkeypatch.setenv("RANK_ID", "2")
    assert (npu.get_rank_size(), npu.get_rank_id(), npu.get_npu_rank_id(), util.get_ranksize()) == (4, 2, 2, "4")
    assert (npu.get_npu_local_rank_size(), npu.get_npu_local_rank_id()) == (4, 2)


def test_resources_start_and_stop():
    sess, stop = npu.init_resource()
    (entry,) = sess._config.graph_options.rewrite_options.custom_optimizers
    assert entry.name == "NpuOptimizer"
    npu.shutdown_resource(sess, stop)
    npu.close_session(sess)


COLLECTIVES = {
    "allreduce": lambda x: hccl_ops.allreduce(x, "sum"),
    "allgather": lambda x: hccl_ops.allgather(x, 1),
    "broadcast": lambda x: hccl_ops.broadcast([x], 0)[0],
    "reduce": lambda x: hccl_ops.reduce(x, "max", 0),
    "reduce_scatter": lambda x: hccl_ops.reduce_scatter(x, "prod", 1),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_collective_of_one_rank_is_exact(name):
    with tf.Graph().as_default(), v1.Session() as sess:
        x = tf.constant([[1.0, 2.0]])
        y = COLLECTIVES[name](x)
        np.testing.assert_array_equal(sess.run(y), [[1.0, 2.0]])


def test_the_gradient_of_allreduce_is_that_of_identity():
    with tf.Graph().as_default(), v1.Session() as sess:
        x = tf.constant([1.0, 2.0])
        assert list(sess.run(tf.gradients(hccl_ops.allreduce(x * x, "sum"), x)[0])) == [2.0, 4.0]


def test_a_strategy_of_one_replica():
    from npu_shim.estimator.npu import npu_strategy

    assert npu_strategy.NPUStrategy().num_replicas_in_sync == 1
    with pytest.raises(ValueError, match="device='/gpu:0' is not allowed"):
        npu_strategy.NPUStrategy("/gpu:0")


def test_one_iteration_per_loop_returns_the_op():
    with tf.Graph().as_default(), v1.Session() as sess:
        op = tf.no_op()
        assert util.set_iteration_per_loop(sess, op) is op
        with pytest.raises(ValueError, match="must be a tf.Operation: for several, tf.group"):
            util.set_iteration_per_loop(sess, [op])


WRONG = [
    (lambda: npu.NPUOutputTensorHook([]), ValueError, r"tensors=\[\] is not allowed"),
    (lambda: npu.NPUOutputTensorHook(["x"], output_every_n_steps=-1), ValueError, "output_every_n_steps=-1"),
    (lambda: npu.SetIterationsVarHook(), TypeError, "iterations_per_loop=None is not allowed"),
    (lambda: npu.SetIterationsVarHook(0), ValueError, "iterations_per_loop=0 is not allowed"),
    (lambda: npu.TellMeStepOrLossHook(total_step=3), ValueError, "needs step .with total_step. or loss"),
    (lambda: npu.create_group("g", 2, [0]), ValueError, "rank_num=2 and rank_ids"),
    (lambda: npu.create_group("hccl_world_group", 1, [0]), ValueError, "other than hccl_world_group"),
    (lambda: npu.create_group("g", 1, [1]), ValueError, "this job has the ranks 0 to 0"),
    (lambda: npu.set_split_strategy_by_idx([3, 2]), ValueError, "1 to 8 increasing indices"),
    (lambda: npu.set_split_strategy_by_size([50, 40]), ValueError, "sum to 100"),
    (lambda: hccl_ops.allreduce(1.0, "mean"), ValueError, "reduction='mean' is not allowed"),
    (lambda: hccl_ops.allreduce(1.0, "sum", fusion=2), ValueError, "fusion_id=-1 is not allowed with fusion=2"),
    (lambda: hccl_ops.broadcast(tf.constant(1), 0), TypeError, r"is not allowed. Pass a list: \[tensor\]"),
    (lambda: hccl_ops.broadcast([1], 1), ValueError, "root_rank=1 is not allowed"),
    (lambda: hccl_ops.allgather(1.0, 2), ValueError, "rank_size=2 is not allowed"),
]


@pytest.mark.parametrize("call, error, text", WRONG, ids=[w[2] for w in WRONG])
def test_wrong_arguments(call, error, text):
    with tf.Graph().as_default(), pytest.raises(error, match=text):
        call()


def test_profiler_and_graph_manager_are_contexts(log):
    with npu.profiler.Profiler(level="L1"), npu.scoped_graph_manager.ScopedGraphManager():
        assert True
    assert log() == ["npu_shim: there is no NPU here, so Profiler records nothing."]
    with pytest.raises(ValueError, match="level='L9' is not allowed"):
        npu.profiler.Profiler(level="L9")
