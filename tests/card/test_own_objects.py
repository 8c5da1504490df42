"""On a card, npu_shim's own objects give TensorFlow what the vendor's give it, and add checks and corrections."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest
import tensorflow as tf
from test_vendor_objects import GRAPH_MODE
from vendor_code import CALLS, CODE

import npu_shim
from npu_shim._tensorflow import tf_api
from npu_shim.distributed import hccl_ops
from npu_shim.npu_init import (
    NPUBroadcastGlobalVariablesCallback,
    NPUBroadcastGlobalVariablesHook,
    NPUEstimator,
    NPURunConfig,
    ProfilingConfig,
    experimental_options,
    init_resource,
    npu_callbacks_append,
    npu_config_proto,
    npu_hooks_append,
    npu_ops,
    npu_run_config_init,
    shutdown_resource,
)
from npu_shim.ops.keras_dropout import dropout_call

v1 = tf_api.v1


def vendors(module: str) -> Any:
    """Import a module of the vendor's package."""
    return importlib.import_module(f"{GRAPH_MODE}.{module}")


def test_a_name_of_a_later_package_is_found(monkeypatch) -> None:
    monkeypatch.setattr(vendors("estimator.npu_ops"), "of_a_later_package", 3, raising=False)
    assert npu_ops.of_a_later_package == 3 and "of_a_later_package" in dir(npu_ops)
    monkeypatch.delattr(npu_ops, "of_a_later_package")


def test_hooks_and_callbacks_are_the_vendors() -> None:
    assert isinstance(npu_hooks_append()[0], NPUBroadcastGlobalVariablesHook)
    assert isinstance(npu_callbacks_append()[0], NPUBroadcastGlobalVariablesCallback)


def test_collectives_that_npu_shim_calls_are_the_vendors() -> None:
    with tf.Graph().as_default():
        assert hccl_ops.allreduce(tf.constant([2.0]), "sum").op.type == "HcomAllReduce"


def test_start_ops_are_in_the_default_graph() -> None:
    with tf.Graph().as_default() as graph:
        session, stop = init_resource()
        shutdown_resource(session, stop)
        assert session.graph is graph and [op.type for op in graph.get_operations()] == ["NPUInit", "NPUShutdown"]
    assert ("npu_rank_size", 1) in [tuple(c.arguments.values()) for c in CALLS if c.path.endswith("util.set_value")]


def test_a_session_config_is_the_vendors() -> None:
    given = v1.ConfigProto(log_device_placement=True)
    rewrite = npu_config_proto(given).graph_options.rewrite_options
    assert (rewrite.remapping, rewrite.memory_optimization, len(rewrite.custom_optimizers)) == (2, 2, 1)
    given.graph_options.rewrite_options.custom_optimizers.add(name="NpuOptimizer")
    made = npu_config_proto(given)
    rewrite = made.graph_options.rewrite_options
    assert (rewrite.remapping, rewrite.memory_optimization, made.log_device_placement) == (2, 0, False)
    assert not rewrite.custom_optimizers[0].parameter_map and given.log_device_placement
    assert "remapping" not in experimental_options


def test_keras_dropout_is_the_vendors() -> None:
    if tf_api.has_keras_sessions():
        with tf.Graph().as_default():
            layer = tf.compat.v1.keras.layers.Dropout(0.5)
            assert dropout_call(layer, tf.zeros([2, 2]), training=True).op.type == "DropOutDoMask"


def test_the_vendors_package_gets_a_job_id() -> None:
    assert npu_ops.initialize_system is vendors("estimator.npu_ops").initialize_system
    assert os.environ["JOB_ID"] == "local"


def test_a_sharded_saver_that_fails_writes_in_two_runs(monkeypatch, tmp_path) -> None:
    npu_shim.install()
    with tf.Graph().as_default():
        variable = v1.get_variable("v", [2], initializer=v1.ones_initializer())
        saver = v1.train.Saver(sharded=True)
        with v1.Session() as session:
            session.run(variable.initializer)
            made, run = [], session.run

            def passes(fetches: Any, *args: Any, **kwargs: Any) -> Any:
                made.append(fetches)
                if fetches == saver.saver_def.save_tensor_name:
                    raise tf.errors.FailedPreconditionError(None, None, "uninitialized value v")
                return run(fetches, *args, **kwargs)

            monkeypatch.setattr(session, "run", passes)
            path = saver.save(session, str(tmp_path / "model"), global_step=7)
            assert len(made) == 3  # it fails, and two runs
            saver.save(session, str(tmp_path / "model"), global_step=8)
            assert len(made) == 5
            monkeypatch.setattr(session, "run", run)
            session.run(variable.assign([3.0, 4.0]))
            saver.restore(session, path)
            assert list(session.run(variable)) == [1.0, 1.0]
    ends = (".data-00000-of-00001", ".index", ".meta")
    wanted = ["checkpoint"] + [f"model-{step}{end}" for step in (7, 8) for end in ends]
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(wanted)


@pytest.fixture
def configs(monkeypatch) -> None:
    """Let the vendor's configs keep their arguments. Without tf.estimator, there are no run configs."""
    if tf_api.estimator_namespace() is None:
        with pytest.raises(RuntimeError, match="NPURunConfig needs tf.estimator"):
            NPURunConfig()
    for name in ("NPURunConfig", "ProfilingConfig"):
        monkeypatch.setitem(
            CODE,
            f"estimator.npu.npu_config.{name}.__init__",
            lambda self, **given: vars(self).update({f"_{key}": value for key, value in given.items()}),
        )


def test_a_run_config_is_the_vendors_with_checks(configs) -> None:
    if tf_api.estimator_namespace() is None:
        return
    theirs = vendors("estimator.npu.npu_config")
    profiling = ProfilingConfig(enable_profiling=True, profiling_options='{"output":"/tmp"}')
    config = NPURunConfig(iterations_per_loop=10, profiling_config=profiling, insert_op_file="a.cfg")
    assert isinstance(config, theirs.NPURunConfig) and isinstance(profiling, theirs.ProfilingConfig)
    assert config._profiling_config._enable_profiling and config._insert_op_file == b"a.cfg"
    assert config.replace(iterations_per_loop=20)._iterations_per_loop == 20
    with pytest.raises(ValueError, match="iterations_per_loop"):
        NPURunConfig(iterations_per_loop=0)
    assert npu_run_config_init().session_config.graph_options.rewrite_options.meta_optimizer_iterations == 0


def test_an_estimator_is_the_vendors_with_one_entry(monkeypatch, configs, tmp_path) -> None:
    if tf_api.estimator_namespace() is None:
        return

    def init(self: Any, *, model_fn: Any, model_dir: str, config: Any, **_: Any) -> None:
        rewrite = config.session_config.graph_options.rewrite_options
        rewrite.optimizers.append("GradFusionOptimizer")
        entry = rewrite.custom_optimizers.add(name="NpuOptimizer")
        entry.parameter_map["of_a_later_package"].i = 3
        entry.parameter_map["enable_compress_weight"].b = False
        tf_api.estimator_namespace().Estimator.__init__(self, model_fn, model_dir, config)  # type: ignore[union-attr]

    monkeypatch.setitem(CODE, "estimator.npu.npu_estimator.NPUEstimator.__init__", init)
    session = v1.ConfigProto()
    entry = session.graph_options.rewrite_options.custom_optimizers.add(name="NpuOptimizer")
    entry.parameter_map["graph_run_mode"].i = 0
    entry.parameter_map["of_no_package"].i = 4
    before = session.SerializeToString()
    config = NPURunConfig(session_config=session, precision_mode="allow_mix_precision", compress_weight_conf="c.cfg")
    job = NPUEstimator(lambda features, labels, mode: None, str(tmp_path), config, eval_batches="drop")
    assert isinstance(job, vendors("estimator.npu.npu_estimator").NPUEstimator)
    rewrite = job._session_config.graph_options.rewrite_options
    assert list(rewrite.optimizers) == ["GradFusionOptimizer"] and len(rewrite.custom_optimizers) == 1
    options = rewrite.custom_optimizers[0].parameter_map
    assert options["precision_mode"].s == b"allow_mix_precision"  # an argument
    assert options["graph_run_mode"].i == 0  # of the entry, not the default 1
    assert options["of_no_package"].i == 4  # of the entry, though no option has the name
    assert options["of_a_later_package"].i == 3 and "enable_compress_weight" not in options
    assert session.SerializeToString() == before
