"""The vendor's interface for TensorFlow 2, on one process."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import types
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
import npu_shim.npu_device as npu
from npu_shim._tensorflow import tf_api
from npu_shim._vendor_paths.table import IN_GRAPH_MODE
from npu_shim.config.session import session_option
from npu_shim.npu_device import npu_device as device, settings
from npu_shim.npu_device.compat.utils import SessionConfigBuilder
from npu_shim.npu_device.distribute import keras_models, npu_callbacks, rank_callbacks, weight_update_grouping
from npu_shim.npu_device.state import STATE
from npu_shim.npu_device.train import npu_convert, replacement
from npu_shim.npu_device.utils import file_deduplication, npu_wrapper, scope

VERSION = tuple(map(int, tf.__version__.split(".")[:2]))
PUBLIC = {
    "": "open npu_compat_function gen_npu_ops global_options set_npu_loop_size npu_run_context set_device_sat_mode "
    "is_inf_nan_enabled keep_dtype_scope npu_recompute_scope distribute train ops compat configs",
    ".distribute": "all_reduce broadcast npu_distributed_keras_optimizer_wrapper shard_and_rebatch_dataset "
    "grouping_gradients_apply grouping_broadcast",
    ".train.optimizer": "NpuLossScaleOptimizer",
    ".ops": "gelu",
    ".compat": "enable_v1 v1",
    ".compat.v1": "SessionConfigBuilder",
    ".configs": "run_context_options experimental",
}


@pytest.fixture(autouse=True)
def closed_before_and_after() -> Any:
    _close()
    yield
    _close()


def _close() -> None:
    device.close()
    STATE.options, STATE.sat_mode = None, 1


@pytest.mark.parametrize("module", PUBLIC)
def test_namespaces(module: str) -> None:
    found = importlib.import_module("npu_shim.npu_device" + module)
    assert set(PUBLIC[module].split()) <= set(found.__all__)
    assert all(getattr(found, name) is not None for name in found.__all__)


def test_a_process_has_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_DEVICE_ID", "3")
    handle = npu.open()
    assert npu.open() is handle and npu.open(3) is handle and handle.device_id == 3
    assert npu.global_npu_ctx() is None
    assert handle.as_default() is handle and npu.global_npu_ctx() is handle
    assert (handle.workers_num, handle.worker_id, handle.is_cluster_worker()) == (1, 0, False)
    with pytest.raises(RuntimeError, match=r"npu\.open\(4\): device 3 is open"):
        npu.open(4)
    npu.close()
    assert npu.global_npu_ctx() is None and npu.open(4).device_id == 4
    assert npu.open() is npu.open(4).as_default() is npu.open()


def test_a_strategy_needs_an_open_device_and_eager_code() -> None:
    with pytest.raises(RuntimeError, match=r"NPUStrategy needs an open device.*npu\.open\(\)\.as_default\(\)"):
        npu.distribute.NPUStrategy()
    npu.open().as_default()
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="in graph mode use npu_strategy.NPUStrategy"):
        npu.distribute.NPUStrategy()


@pytest.mark.parametrize(
    ("variables", "kind", "text"),
    [
        ({"RANK_SIZE": "2", "CM_WORKER_SIZE": "2"}, ValueError, "RANK_SIZE=2 and CM_WORKER_SIZE=2"),
        (
            {"RANK_SIZE": "2", "CM_CHIEF_IP": "10.0.0.1", "RANK_TABLE_FILE": "t.json"},
            RuntimeError,
            "CM_CHIEF_IP='10.0.0.1' and RANK_TABLE_FILE='t.json'",
        ),
        ({"CM_WORKER_SIZE": "2", "CM_CHIEF_IP": "10.0.0.1"}, RuntimeError, "needs CM_CHIEF_PORT"),
        ({"RANK_SIZE": "2", "RANK_TABLE_FILE": "t.json"}, RuntimeError, "needs RANK_ID"),
    ],
)
def test_contradictions_of_a_job(
    variables: dict[str, str], kind: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(kind) as raised:
        npu.open()
    assert text in str(raised.value)


def test_the_number_of_ranks_has_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK_SIZE", "2")
    assert device.get_ranksize() == "2"
    monkeypatch.setenv("CM_WORKER_SIZE", "2")
    with pytest.raises(ValueError, match="RANK_SIZE=2 and CM_WORKER_SIZE=2"):
        device.get_ranksize()


def test_a_job_with_a_master_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CM_CHIEF_PORT", "6000")
    monkeypatch.setenv("CM_CHIEF_DEVICE", "0")
    options: dict[str, Any] = {}
    device.set_cm_chief_worksize_env(options, "10.0.0.1", 8)
    assert options["_distribute.cm_chief_ip"] == "10.0.0.1" and options["_distribute.cm_worker_size"] == "8"
    monkeypatch.setenv("RANK_ID", "5")
    device.set_rank_table_file_env(options, "t.json")
    assert options["_distribute.rank_table"] == "t.json" and options["_distribute.rank_id"] == "5"


def test_the_fallback_of_a_host_without_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPU_SHIM_FALLBACK", "error")
    with pytest.raises(RuntimeError, match="There is no NPU here"):
        npu.open()


def test_settings_of_the_device(caplog: pytest.LogCaptureFixture) -> None:
    assert npu.is_inf_nan_enabled()
    npu.set_device_sat_mode(2)
    assert not npu.is_inf_nan_enabled()
    npu.set_device_sat_mode(1)
    npu.set_device_sat_mode(7)
    assert npu.is_inf_nan_enabled()
    npu.set_npu_loop_size(10)
    npu.set_npu_loop_size(0)
    with pytest.raises(TypeError, match="loop_size='1'"):
        npu.set_npu_loop_size("1")
    device.stupid_repeat("word", 2)
    with device.watch_op_register():
        assert npu.gen_npu_ops.__name__.endswith("gen_npu_ops")


def test_run_context() -> None:
    options = npu.configs.run_context_options()
    options.experimental.graph_memory_optimize_config.recompute = "manual"
    with npu.npu_run_context(options):
        assert STATE.run_options is options
    with npu.npu_run_context():
        assert STATE.run_options is not None
    assert STATE.run_options is None
    with pytest.raises(ValueError, match="run_context_options"):
        with npu.npu_run_context({}):
            pass


def test_global_options_are_one_object() -> None:
    assert npu.global_options() is npu.global_options()
    with pytest.warns(UserWarning, match="aoe_config.aoe_mode"):
        npu.global_options().auto_tune_mode = "RL,GA"


def test_session_config_builder() -> None:
    given = tf.compat.v1.ConfigProto()
    builder = SessionConfigBuilder(given)
    builder.parameter_map["precision_mode"].s = b"allow_mix_precision"
    assert builder.session_config is given
    (entry,) = given.graph_options.rewrite_options.custom_optimizers
    assert entry.name == "NpuOptimizer" and entry.parameter_map["precision_mode"].s == b"allow_mix_precision"
    assert given.graph_options.rewrite_options.remapping == 2
    assert npu.compat.v1.SessionConfigBuilder().session_config.allow_soft_placement


def test_the_star_import_of_graph_mode() -> None:
    namespace: dict[str, Any] = {}
    exec("from npu_shim.npu_device.compat.v1.npu_init import *", namespace)
    assert {"NPURunConfig", "npu_config_proto", "npu_ops", "hccl_ops"} <= set(namespace)


@pytest.mark.parametrize(
    ("version", "is_one"),
    [
        ("2.6.2", True),
        ("2.6.*", True),
        ("*", True),
        ("2.6.1~2.6.5", True),
        ("2.6.", False),
        ("*.6", False),
        ("a", False),
    ],
)
def test_versions_are_written_in_five_forms(version: str, is_one: bool) -> None:
    assert npu_convert.check_version_format(version) == is_one


def test_a_function_is_replaced_for_some_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacement, "_ranges", [])
    monkeypatch.setattr(tf, "__version__", "2.6.5")
    assert not npu_convert.judge_version_support(["2.6.9~2.6.1"])
    assert not npu_convert.judge_version_support(["1.15.0", "2.5.*"])
    assert npu_convert.judge_version_support(["2.6.2~2.6.999"])
    mode = "eager" if tf.executing_eagerly() else "graph"
    new = npu_convert.dropout_convert(lambda: "new", version=["2.6.5"], mode=[mode])(lambda: "old")
    assert new() == "old"
    npu.open().as_default()
    assert new() == "new"
    assert npu_convert.api_func_convert(lambda: "new", version=["2.6.5"], mode=[])(lambda: "old")() == "old"
    with pytest.raises(TypeError, match="wrapfunc=None"):
        npu_convert.api_func_convert(None)


def test_dumped_graphs(tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in ("ge_1.txt", "a"), ("ge_2.txt", "a"), ("ge_3.pbtxt", "b"), ("other.txt", "a"):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "argv", ["dedup", "-d", str(tmp_path)])
    file_deduplication.main()
    assert sorted(os.listdir(tmp_path)) == ["ge_1.txt", "ge_3.pbtxt", "other.txt"]
    assert "ge_2.txt" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["npu_gradients_scope", "npu_recompute_scope", "npu_optimizer_scope"])
def test_scopes_mark_ops(name: str) -> None:
    attribute = {
        "npu_gradients_scope": "_backward",
        "npu_recompute_scope": "_recompute",
        "npu_optimizer_scope": "_optimizer",
    }
    with tf.Graph().as_default(), getattr(scope, name)():
        assert tf.constant(1).op.get_attr(attribute[name]) is True


def test_ranks_share_variables_by_their_bytes() -> None:
    with tf.Graph().as_default():
        made = [tf.compat.v1.get_variable(f"v{n}", [size]) for n, size in enumerate((10, 10, 10, 30, 60))]
        groups = weight_update_grouping.GroupingVars([*made[:2], None, *made[2:]], 2)
        assert [groups.get_gid_by_var(v) for v in made] == [0, 0, 0, 0, 1]
        groups = weight_update_grouping.GroupingVars(made, 5)
        assert [groups.get_gid_by_var(v) for v in made] == [0, 1, 2, 3, 4]
        assert groups.get_gid_by_var(tf.compat.v1.get_variable("other", [1])) == -1
        with pytest.raises(ValueError, match="rank_size=6 is not allowed for 5 variables"):
            weight_update_grouping.GroupingVars(made, 6)


def test_one_process_communicates_with_nobody() -> None:
    npu.open().as_default()
    values = [tf.constant(1.0), None]
    assert npu.distribute.all_reduce(values) is values
    with pytest.raises(ValueError, match="reduction"):
        npu.distribute.all_reduce(values, "average")
    assert npu.distribute.shard_and_rebatch_dataset("dataset", 32) == ("dataset", 32)
    assert npu.distribute.grouping_broadcast(values) is values
    assert npu.distribute.broadcast(values) is None
    assert npu.distribute.grouping_gradients_apply(lambda pairs, name: (pairs, name), [(1, 2)], name="n") == (
        [(1, 2)],
        "n",
    )
    assert npu_callbacks.broadcast_keras_model("no model") == "no model"
    assert npu_callbacks.npu_broadcast_scope_wrapper("no strategy") == "no strategy"


@pytest.mark.parametrize("module", IN_GRAPH_MODE)
def test_modules_of_graph_mode_have_the_vendors_paths(module: str) -> None:
    home, second = f"npu_shim.{module}", f"npu_shim.npu_device.compat.v1.{module}"
    if home.endswith(".npu_convert_dropout") and not tf_api.has_keras_sessions():
        with pytest.raises(RuntimeError, match="needs graph-mode Keras"):
            importlib.import_module(second)
        return
    found, first = (importlib.import_module(name) for name in (second, home))
    assert found is first and first.__name__ == first.__spec__.name == home


@pytest.mark.parametrize("module", ["estimator.hooks", "hccl.manage", "no_such_module"])
def test_other_modules_are_not_in_graph_mode(module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=module.rpartition(".")[2]):
        importlib.import_module(f"npu_shim.npu_device.compat.v1.{module}")


class OptionValue:
    """An option as the vendor's package has it."""

    def __init__(self, default: Any, given: Any) -> None:
        self.default, self.__value = default, given

    @property
    def value(self) -> str | None:
        return None if self.__value is None else {True: "1", False: "0"}.get(self.__value, str(self.__value))


def test_graph_mode_takes_the_vendors_options_over() -> None:
    vendor = types.SimpleNamespace(
        precision_mode=OptionValue(None, "allow_mix_precision"),
        hcom_parallel=OptionValue(True, False),
        graph_run_mode=OptionValue(1, 1),
        op_precision_mode=OptionValue(None, None),
        dump_config=types.SimpleNamespace(enable_dump=OptionValue(False, True)),
    )
    own = settings.as_own_options(vendor)
    assert own.precision_mode.given == "allow_mix_precision" and own.hcom_parallel.given is False
    assert own.dump_config.enable_dump.given is True and not own.graph_run_mode.is_changed
    assert settings.as_own_options(own) is own


def test_graph_mode_gives_keras_the_npu_session() -> None:
    npu.global_options().precision_mode = "allow_mix_precision"
    with tf.Graph().as_default():
        npu.open().as_default()
        if not tf_api.has_keras_sessions():  # Keras 3
            assert STATE.keras_session is None
            return
        session = tf.compat.v1.keras.backend.get_session()
        assert session_option(session, "precision_mode") == "allow_mix_precision"
        assert session_option(session, "graph_run_mode") is None
    npu.close()
    with pytest.raises(RuntimeError, match="closed"):
        session.run("anything")


if VERSION >= (2, 0):

    def test_the_device_of_scripts() -> None:
        handle = npu.open().as_default()
        for name in "/device:NPU:0", device.NPU + ":0", handle.name():
            with tf.device(name):
                variable = tf.Variable(1.0)
            assert variable.device == handle.name()
        with handle.scope():
            assert (tf.constant(1) + 1).device == handle.name()

        @tf.function
        def step(x: Any) -> Any:
            with tf.device("/device:NPU:0"):
                return variable + x

        assert step(tf.constant(2.0)).numpy() == 3

    def test_functions_are_not_compiled_with_xla() -> None:
        before = tf.function
        npu.open().as_default()
        assert tf.function is device.npu_compat_function

        @tf.function(jit_compile=True)
        def f(x: Any) -> Any:
            return x + 1

        assert f(tf.constant(1)).numpy() == 2 and not f._jit_compile
        assert tf.function(lambda x: x * 2, jit_compile=True)(tf.constant(2)).numpy() == 4
        assert npu.npu_compat_function()(lambda x: x)(tf.constant(2)).numpy() == 2
        npu_shim.uninstall()
        assert tf.function is before

    def test_dropout_of_functions_with_tensorflow_2_6() -> None:
        npu.open().as_default()
        x = tf.ones([100, 100])

        @tf.function
        def f() -> Any:
            return tf.nn.dropout(x, 0.25), tf.nn.dropout(x, 0.5, noise_shape=[100, 1])

        is_replaced = hasattr(tf.nn.dropout, "__wrapped__") and tf.__version__.startswith("2.6")
        assert is_replaced == tf.__version__.startswith("2.6")
        dropped, rows = (made.numpy() for made in f())
        assert set(np.unique(dropped)) == {np.float32(0), np.float32(4 / 3)}
        assert 0.70 < (dropped > 0).mean() < 0.80
        assert set(np.unique(rows.mean(axis=1))) <= {0.0, 2.0}
        assert tf.nn.dropout(x, 0.5).shape == x.shape

    def test_a_dropout_of_rate_0_takes_a_seed_as_without_the_npu(monkeypatch: Any) -> None:
        monkeypatch.setenv("NPU_SHIM_KERNELS", "plain")
        masks = []
        for opened in (False, True):
            if opened:
                npu.open().as_default()
            tf.random.set_seed(3)
            function = tf.function(lambda x: tf.nn.dropout(tf.nn.dropout(x, 0.0), 0.5))
            masks.append(function(tf.ones([64])).numpy())
        np.testing.assert_array_equal(*masks)

    def test_gelu_of_functions_and_of_eager_code() -> None:
        x = np.linspace(-4, 4, 41).astype(np.float32)
        fast = x / (1 + np.exp(-1.702 * x))
        np.testing.assert_allclose(npu.ops.gelu(tf.constant(x)), tf.nn.gelu(x), atol=1e-6)
        np.testing.assert_allclose(tf.function(npu.ops.gelu)(tf.constant(x)), fast, atol=1e-6)
        supported = npu_wrapper.npu_functional_support(npu.gen_npu_ops.fast_gelu)
        np.testing.assert_allclose(supported(tf.constant(x)), fast, atol=1e-6)

    def test_a_model_with_gelu_is_saved_and_loaded(tmp_path: Any) -> None:
        inputs = tf.keras.Input([3])
        outputs = npu.ops.gelu(tf.keras.layers.Dense(2)(inputs))
        model = tf.keras.Model(inputs, outputs)
        x = np.ones([1, 3], np.float32)
        path = str(tmp_path / ("model.keras" if VERSION >= (2, 13) else "model.h5"))
        model.save(path)
        loaded = tf.keras.models.load_model(path)
        np.testing.assert_array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))
        with pytest.raises(ValueError, match="function='npu.ops.other'"):
            npu_wrapper.NpuOpLambda("npu.ops.other")

    def test_a_function_on_the_host() -> None:
        assert device.wrap_cpu_only_api(lambda x: x + 1)(tf.constant(1)).device.endswith("CPU:0")

    def test_callbacks_of_other_ranks_write_nothing(tmp_path: Any) -> None:
        """Without a model, a callback that would save one raises an error."""
        callbacks = tf.keras.callbacks
        backup = getattr(callbacks, "BackupAndRestore", None) or callbacks.experimental.BackupAndRestore
        given = [callbacks.CSVLogger(str(tmp_path / "log")), backup(str(tmp_path / "backup"))]
        assert rank_callbacks.callbacks_for_rank(given, 0)[1:-1] == given
        (restoring,) = rank_callbacks.callbacks_for_rank(given, 1)[1:-1]
        assert restoring is given[1]
        for event in (restoring.on_train_batch_end, restoring.on_epoch_end):
            event(0, {})
        restoring.on_train_end({})

    @pytest.mark.parametrize("takes", ["x, callbacks=None, **kwargs", "x, **kwargs", "*args, **kwargs"])
    def test_the_callbacks_of_a_fit_that_passes_its_arguments_on_are_changed(takes: str) -> None:
        """A subclass may take the arguments of Keras' fit by names or as ``**kwargs``."""
        bound = inspect.signature(eval(f"lambda {takes}: None")).bind_partial([1.0], callbacks=["own"], epochs=2)
        given = keras_models._arguments_passed_to_fit(bound)
        given["callbacks"] = [*given["callbacks"], "agreement"]
        passed = inspect.signature(lambda x, callbacks, epochs: None).bind(*bound.args, **bound.kwargs).arguments
        assert dict(passed) == {"x": [1.0], "callbacks": ["own", "agreement"], "epochs": 2}

    def test_the_step_is_skipped_if_a_gradient_is_not_finite() -> None:
        variable = tf.Variable(1.0)
        optimizer = npu.train.optimizer.NpuLossScaleOptimizer(tf.keras.optimizers.SGD(0.5), initial_scale=2.0)
        assert isinstance(optimizer, npu.train.optimizer.NpuLossScaleOptimizer)
        assert isinstance(optimizer, tf.keras.optimizers.Optimizer)
        assert not optimizer.last_step_finite.numpy()

        @tf.function
        def step(gradient: Any) -> None:
            scale = _scale(optimizer)
            gradient = gradient * scale if VERSION >= (2, 16) else gradient
            optimizer.apply_gradients([(gradient, variable)])

        for gradient, weight, scale, finite in (
            (1.0, 0.5, 2.0, True),
            (float("inf"), 0.5, 1.0, False),
            (float("nan"), 0.5, 1.0, False),  # not less than 1
            (1.0, 0.0, 1.0, True),
        ):
            step(tf.constant(gradient))
            assert variable.numpy() == weight and float(_scale(optimizer)) == scale
            assert optimizer.last_step_finite.numpy() == finite

    def test_a_fixed_loss_scale() -> None:
        variable = tf.Variable(1.0)
        for make in (
            lambda inner: npu.train.optimizer.NpuLossScaleOptimizer(inner, dynamic=False, initial_scale=8.0),
            lambda inner: npu.train.optimizer.NpuExperimentalLossScaleOptimizer(inner, 8),
        ):
            variable.assign(1.0)
            optimizer = make(tf.keras.optimizers.SGD(0.5))
            for gradient, weight in (1.0, 0.5), (float("inf"), 0.5), (1.0, 0.0):
                factor = 8.0 if VERSION >= (2, 16) else 1.0
                optimizer.apply_gradients([(tf.constant(gradient * factor), variable)])
                assert variable.numpy() == weight and float(_scale(optimizer)) == 8.0
        with pytest.raises(ValueError, match="needs initial_scale"):
            npu.train.optimizer.NpuLossScaleOptimizer(tf.keras.optimizers.SGD(0.5), False)
        dynamic = npu.train.optimizer.NpuExperimentalLossScaleOptimizer(tf.keras.optimizers.SGD(0.5), "dynamic")
        dynamic.apply_gradients([(tf.constant(1.0), variable)])
        assert float(_scale(dynamic)) == 2.0**15

    def test_fit_with_loss_scale_equals_keras() -> None:
        def weights(make: Any) -> Any:
            tf.keras.utils.set_random_seed(1) if hasattr(tf.keras.utils, "set_random_seed") else tf.random.set_seed(1)
            model = tf.keras.Sequential([tf.keras.layers.Dense(4, kernel_initializer="ones"), tf.keras.layers.Dense(1)])
            model.compile(make(tf.keras.optimizers.SGD(0.01)), "mse")
            x = np.random.RandomState(0).rand(32, 3).astype(np.float32)
            model.build([None, 3])
            model.layers[1].set_weights([np.ones([4, 1]), np.zeros([1])])
            model.fit(x, x.sum(1, keepdims=True), batch_size=8, epochs=2, shuffle=False, verbose=0)
            return model.get_weights()

        keras = weights(tf.keras.mixed_precision.LossScaleOptimizer)
        ours = weights(npu.train.optimizer.NpuLossScaleOptimizer)
        for one, other in zip(ours, keras):
            np.testing.assert_array_equal(one, other)

    def _scale(optimizer: Any) -> Any:
        """Return the loss scale, which Keras 3 has when the optimizer is built."""
        if hasattr(optimizer, "loss_scale"):
            return optimizer.loss_scale
        return tf.convert_to_tensor(optimizer.dynamic_scale) if optimizer.built else optimizer.initial_scale

else:

    def test_loss_scale_needs_tensorflow_2() -> None:
        with pytest.raises(RuntimeError, match="Use NPULossScaleOptimizer"):
            npu.train.optimizer.NpuLossScaleOptimizer(tf.keras.optimizers.SGD(0.5))


def test_options_set_after_the_device_is_open_are_reported():
    options = npu.global_options()
    options.precision_mode = "allow_mix_precision"
    npu.open().as_default()
    with pytest.warns(UserWarning, match="deterministic=1 is set after npu.open"):
        npu.global_options().deterministic = 1
    with pytest.warns(UserWarning, match="dump_path='/tmp' is set after npu.open"):
        npu.global_options().dump_config.dump_path = "/tmp"
