"""NPURunConfig: arguments, checks, and the parameter_map of an estimator job."""

from __future__ import annotations

import inspect
import json

import pytest
import tensorflow as tf

from npu_shim.config.nested import (
    CLASSES,
    DumpConfig,
    DynamicInputConfig,
    ExperimentalConfig,
    GraphMemoryOptimizeConfig,
    MemoryConfig,
)
from npu_shim.estimator.npu.npu_config import NPURunConfig


@pytest.fixture(autouse=True)
def only_the_error_without_estimator(has_estimator, request):
    """Without tf.estimator each case asserts that NPURunConfig raises an error that says so."""
    if not has_estimator:
        with pytest.raises(RuntimeError, match="NPURunConfig needs tf.estimator.*last TensorFlow that has it is 2.15"):
            NPURunConfig()


def config_or_none(has_estimator, *args, **kwargs):
    return NPURunConfig(*args, **kwargs) if has_estimator else None


WRONG = [
    (dict(iterations_per_loop=0), ValueError, "iterations_per_loop=0 is not allowed: it must be at least 1"),
    (dict(iterations_per_loop=2.0), TypeError, "iterations_per_loop=2.0 is not allowed: it must be an int"),
    (dict(mix_compile_mode=2), TypeError, "mix_compile_mode=2 is not allowed: it must be a bool"),
    (dict(mix_compile_mode=True, iterations_per_loop=2), ValueError, "mix_compile_mode=True and iterations_per_loop"),
    (dict(jit_compile=True), TypeError, "jit_compile=True is not allowed.*Write jit_compile='true'"),
    (dict(jit_compile=None), TypeError, "jit_compile=None is not allowed"),
    (dict(horovod_mode=None), ValueError, "horovod_mode=None is not allowed: it must be True or False"),
    (dict(graph_run_mode=2), ValueError, "graph_run_mode=2 is not allowed: it must be one of 0, 1"),
    (dict(dump_config={}), ValueError, "dump_config={} is dict, but must be a DumpConfig or None"),
    (dict(dump_config=DumpConfig(True)), ValueError, "enable_dump=True needs dump_path, which is not given"),
    (dict(aoe_mode=2), TypeError, "aoe_mode=2 is not allowed.*Write aoe_mode='2'"),
    (dict(auto_tune_mode="RL,GA"), TypeError, "NPURunConfig has no argument 'auto_tune_mode'. Use aoe_mode"),
    (dict(precison_mode="x"), TypeError, "no argument 'precison_mode'. Did you mean precision_mode"),
    (dict(precision_mode="force_fp16", precision_mode_v2="fp16"), ValueError, "exclude each other"),
    (dict(modify_mixlist="/m.json"), ValueError, "modify_mixlist needs mixed precision"),
    (dict(distribute=3), ValueError, "distribute=3 is not allowed: it must be a ParameterServerStrategy"),
    (dict(session_config=3), TypeError, "session_config=3 is int, but must be a tf.compat.v1.ConfigProto"),
]


@pytest.mark.parametrize("arguments, error, text", WRONG, ids=[w[2] for w in WRONG])
def test_wrong_arguments(has_estimator, arguments, error, text):
    with pytest.raises(error if has_estimator else RuntimeError, match=text if has_estimator else "needs tf.estimator"):
        NPURunConfig(**arguments)


NESTED_WRONG = [
    (lambda: DumpConfig(dump_mode="both"), ValueError, "dump_mode='both' is not allowed: it must be one of 'input'"),
    (lambda: DumpConfig(dump_pth="x"), TypeError, "DumpConfig has no argument 'dump_pth'. Did you mean dump_path"),
    (lambda: DynamicInputConfig("a:1"), TypeError, "DynamicInputConfig: missing a required argument"),
    (lambda: MemoryConfig(static_memory_policy=9), ValueError, "static_memory_policy=9 is not allowed"),
    (lambda: GraphMemoryOptimizeConfig(recompute="yes"), ValueError, "recompute='yes' is not allowed"),
    (lambda: ExperimentalConfig(graph_memory_optimize_config=1), ValueError, "must be a GraphMemoryOptimizeConfig"),
    (lambda: ExperimentalConfig(accelerate_train_mode="fast|step|2"), ValueError, "'fast' or 'fast1'"),
]


@pytest.mark.parametrize("call, error, text", NESTED_WRONG, ids=[w[2] for w in NESTED_WRONG])
def test_wrong_arguments_of_the_config_classes(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("name", CLASSES, ids=lambda n: f"{n} shows and compares its arguments")
def test_config_classes_are_values(name):
    cls = CLASSES[name]
    given = ["a:-1", "1;2", 0, 0] if cls is DynamicInputConfig else []
    assert cls(*given) == cls(*given)
    assert repr(cls(*given)).startswith(name + "(") and len(inspect.signature(cls).parameters) >= 2


def test_it_is_a_run_config(has_estimator):
    config = config_or_none(has_estimator, 5, None, "dir", save_checkpoints_secs=60, keep_checkpoint_max=2)
    if config is None:
        assert isinstance(NPURunConfig, type)
        return
    assert isinstance(config, tf.estimator.RunConfig)
    assert (config.iterations_per_loop, config.model_dir) == (5, "dir")
    assert (config.save_checkpoints_secs, config.save_checkpoints_steps) == (60, None)
    assert (config.keep_checkpoint_max, config.save_summary_steps, NPURunConfig().save_checkpoints_steps) == (2, 0, 100)


def test_other_arguments_of_run_config_are_accepted(has_estimator):
    config = config_or_none(has_estimator, protocol="grpc")
    assert config is None or config.protocol == "grpc"


def test_replace_keeps_and_replaces_npu_options(has_estimator):
    config = config_or_none(has_estimator, precision_mode="allow_mix_precision", model_dir="a")
    if config is None:
        return
    moved = config.replace(model_dir="b", iterations_per_loop=3)
    assert (moved.model_dir, moved.precision_mode, moved.iterations_per_loop) == ("b", "allow_mix_precision", 3)
    assert moved.npu_options()["precision_mode"] == "allow_mix_precision"
    assert (config.model_dir, config.iterations_per_loop) == ("a", 1)
    with pytest.raises(ValueError, match="jit_compile='yes' is not allowed"):
        config.replace(jit_compile="yes")


def test_deprecated_arguments_raise_a_warning(has_estimator):
    if not has_estimator:
        return
    with pytest.warns(DeprecationWarning, match="op_select_implmode is deprecated: Use op_precision_mode"):
        NPURunConfig(op_select_implmode="high_precision")


def test_a_cluster_needs_its_strategy(has_estimator, monkeypatch):
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": {"chief": ["a:1"], "ps": ["b:1"]}, "task": {"type": "chief", "index": 0}})
    )
    with pytest.raises(
        ValueError if has_estimator else RuntimeError,
        match="TF_CONFIG names a cluster, but distribute=None" if has_estimator else "tf.estimator",
    ):
        NPURunConfig()


def test_parameter_servers_on_the_cpu_are_an_error_that_explains_data_parallel_training(has_estimator, monkeypatch):
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": {"chief": ["a:1"], "ps": ["b:1"]}, "task": {"type": "chief", "index": 0}})
    )
    if not has_estimator:
        with pytest.raises(RuntimeError, match="needs tf.estimator"):
            NPURunConfig()
        return
    strategy = tf.compat.v1.distribute.experimental.ParameterServerStrategy()
    with pytest.raises(
        ValueError, match="not allowed on the CPU.*unset TF_CONFIG.*NPUStrategy.*npu-shim launch --ranks N"
    ):
        NPURunConfig(distribute=strategy, mix_compile_mode=True, iterations_per_loop=1)
