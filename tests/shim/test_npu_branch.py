"""On the NPU, calls go to the vendor's package: checked with a fake package that records its calls."""

from __future__ import annotations

import sys
import types

import pytest
import tensorflow as tf

import npu_shim
from npu_shim import _device, npu_init as npu
from npu_shim.estimator import npu_ops
from npu_shim.estimator.npu import npu_plugin, util
from npu_shim.estimator.npu.npu_optimizer import npu_allreduce, npu_distributed_optimizer_wrapper
from npu_shim.estimator.npu_unary_ops import npu_unary_ops
from npu_shim.hccl import hccl_ops
from npu_shim.ops.context_managers import Profiler, ScopedGraphManager


class Notes:
    """Notes every call of any function of any name."""

    def __init__(self, calls, path):
        self._calls, self._path = calls, path

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Notes(self._calls, f"{self._path}.{name}")

    def __call__(self, *args, **kwargs):
        self._calls.append((self._path, args, kwargs))
        return self


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """Return what the vendor's package was asked for while a card is there."""
    made = []
    package = types.ModuleType("npu_bridge")
    monkeypatch.setitem(sys.modules, "npu_bridge", package)
    for name in ("manage.api", "split.api"):
        monkeypatch.setitem(sys.modules, "hccl." + name, Notes(made, "hccl." + name))
    monkeypatch.setitem(sys.modules, "hccl", types.ModuleType("hccl"))
    for name in (
        "estimator.npu_ops",
        "estimator.npu.npu_hook",
        "estimator.npu.npu_loss_scale_manager",
        "estimator.npu.npu_loss_scale_optimizer",
        "estimator.npu_unary_ops",
        "hccl.hccl_ops",
        "estimator.npu.npu_optimizer",
        "estimator.npu.npu_plugin",
        "estimator.npu.npu_callbacks",
        "estimator.npu.util",
        "profiler.profiler",
        "scoped_graph_manager.scoped_graph_manager",
    ):
        monkeypatch.setitem(sys.modules, "npu_bridge." + name, Notes(made, name))
    (tmp_path / "davinci3").touch()
    monkeypatch.setattr(_device, "DEVICE_FILES", str(tmp_path / "davinci[0-9]*"))
    monkeypatch.setenv("RANK_SIZE", "2")
    monkeypatch.setenv("RANK_ID", "1")
    return made


X = 2.0  # stands for any tensor or optimizer
CASES = {
    "dropout": (lambda: npu_ops.dropout(X, 0.5, seed=3), "estimator.npu_ops.dropout", (0.5, None, 3, None)),
    "gelu": (lambda: npu_unary_ops.gelu(X), "estimator.npu_unary_ops.npu_unary_ops.gelu", ()),
    "initialize_system": (lambda: npu_ops.initialize_system("i"), "estimator.npu_ops.initialize_system", None),
    "shutdown_system": (lambda: npu_ops.shutdown_system("i"), "estimator.npu_ops.shutdown_system", None),
    "allreduce": (lambda: hccl_ops.allreduce(X, "sum"), "hccl.hccl_ops.allreduce", ("sum", 1, -1, "hccl_world_group")),
    "allgather": (lambda: hccl_ops.allgather(X, 2), "hccl.hccl_ops.allgather", (2, "hccl_world_group", 0, -1)),
    "broadcast": (lambda: hccl_ops.broadcast([X], 1), "hccl.hccl_ops.broadcast", (1, 2, 0, "hccl_world_group")),
    "reduce": (lambda: hccl_ops.reduce(X, "max", 1), "hccl.hccl_ops.reduce", ("max", 1, 0, -1, "hccl_world_group")),
    "reduce_scatter": (
        lambda: hccl_ops.reduce_scatter(X, "sum", 2),
        "hccl.hccl_ops.reduce_scatter",
        ("sum", 2, "hccl_world_group", 0, -1),
    ),
    "npu_allreduce": (
        lambda: npu_allreduce(X),
        "estimator.npu.npu_optimizer.npu_allreduce",
        ("mean", 1, -1, "hccl_world_group"),
    ),
    "wrapper": (
        lambda: npu_distributed_optimizer_wrapper(3),
        "estimator.npu.npu_optimizer.npu_distributed_optimizer_wrapper",
        (),
    ),
    "iterations": (
        lambda: util.set_iteration_per_loop(None, tf.no_op(), 10),
        "estimator.npu.util.set_iteration_per_loop",
        None,
    ),
    "resource": (lambda: npu_plugin.npu_resource_shutdown(), "estimator.npu.npu_plugin.npu_resource_shutdown", None),
    "loss scale manager": (
        lambda: npu.FixedLossScaleManager(8),
        "estimator.npu.npu_loss_scale_manager.FixedLossScaleManager",
        (),
    ),
    "loss scale optimizer": (
        lambda: npu.NPULossScaleOptimizer(X, 5, is_distributed=True),
        "estimator.npu.npu_loss_scale_optimizer.NPULossScaleOptimizer",
        (5,),
    ),
    "distributed optimizer": (
        lambda: npu.NPUDistributedOptimizer(X),
        "estimator.npu.npu_optimizer.NPUDistributedOptimizer",
        (),
    ),
    "NPUOptimizer": (lambda: npu.NPUOptimizer(X), "estimator.npu.npu_optimizer.NPUOptimizer", ()),
    "Keras optimizer": (
        lambda: npu.npu_keras_optimizer(X),
        "estimator.npu.npu_optimizer.KerasDistributeOptimizer",
        ("NpuKerasOptimizer",),
    ),
    "broadcast hook": (lambda: npu.npu_hooks_append(), "estimator.npu.npu_hook.NPUBroadcastGlobalVariablesHook", (1,)),
    "broadcast callback": (
        lambda: npu.npu_callbacks_append(),
        "estimator.npu.npu_callbacks.NPUBroadcastGlobalVariablesCallback",
        (),
    ),
    "local rank": (lambda: npu.get_local_rank_id(), "hccl.manage.api.get_local_rank_id", ()),
    "rank of a group": (lambda: npu.get_rank_id("g"), "hccl.manage.api.get_rank_id", ()),
    "create_group": (lambda: npu.create_group("g", 2, [0, 1]), "hccl.manage.api.create_group", (2, [0, 1])),
    "split": (lambda: npu.set_split_strategy_by_idx([1]), "hccl.split.api.set_split_strategy_by_idx", ()),
    "profiler": (lambda: Profiler().start(), "profiler.profiler.Profiler.start", None),
    "graph manager": (
        lambda: ScopedGraphManager().stop(),
        "scoped_graph_manager.scoped_graph_manager.ScopedGraphManager.stop",
        None,
    ),
}


@pytest.mark.parametrize("call, path, arguments", CASES.values(), ids=CASES)
def test_goes_to_the_vendor(calls, call, path, arguments):
    with tf.Graph().as_default():
        call()
    got, args, _ = calls[-1]
    assert got == path
    if arguments is not None:
        assert args[1:] == arguments


def test_ranks_of_the_world_are_known_before_hccl_starts(calls):
    assert (npu.get_rank_size(), npu.get_rank_id()) == (2, 1) and calls == []


def test_ranks_numbered_by_the_npus_come_from_hccl(calls, monkeypatch):
    monkeypatch.delenv("RANK_SIZE")
    for name, value in (("IP", "10.0.0.1"), ("PORT", "6000"), ("DEVICE", "0")):
        monkeypatch.setenv("CM_CHIEF_" + name, value)
    monkeypatch.setenv("CM_WORKER_SIZE", "16")
    monkeypatch.setenv("CM_WORKER_IP", "10.0.0.2")
    assert npu.get_rank_size() == 16 and calls == []
    npu.get_rank_id()
    assert [path for path, _, _ in calls] == ["hccl.manage.api.get_rank_id"]


def test_an_estimator_loops_on_the_npu(calls, has_estimator, monkeypatch, tmp_path):
    monkeypatch.setenv("RANK_SIZE", "1")
    monkeypatch.setenv("RANK_ID", "0")
    if not has_estimator:
        with pytest.raises(RuntimeError, match="NPURunConfig needs tf.estimator"):
            npu.NPURunConfig(iterations_per_loop=10)
        return
    step = []

    def model_fn(features, labels, mode):
        step.append(tf.compat.v1.train.get_or_create_global_step().assign_add(1))
        return npu.NPUEstimatorSpec(mode, loss=tf.reduce_mean(features), train_op=step[0])

    # the vendor's loop, played by an op that makes one step
    monkeypatch.setattr(
        Notes,
        "__call__",
        lambda self, *args, **kwargs: (
            calls.append((self._path, args, kwargs)),
            args[0] if "create_iteration" in self._path else self,
        )[1],
    )
    job = npu.NPUEstimator(model_fn, str(tmp_path), npu.NPURunConfig(iterations_per_loop=10))
    job.train(lambda: tf.data.Dataset.from_tensors([1.0]).repeat(), steps=2)
    made = {path.rpartition(".")[2]: args for path, args, _ in calls if "IterationPerLoop" in path}
    assert made["load_iteration_per_loop_var"][1] == 10 and "create_iteration_per_loop_var" in made


def test_install_loads_the_vendors_op_library_without_a_warning(calls, recwarn):
    assert npu_shim.device().kind == "npu"
    npu_shim.install()
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]


def test_checks_run_before_the_vendors_code(calls):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="keep_prob=2 is not allowed"):
        npu_ops.dropout(X, 2)
    assert calls == []
