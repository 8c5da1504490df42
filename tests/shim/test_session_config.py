"""session_config and the vendor's functions on top of it."""

from __future__ import annotations

import pytest
import tensorflow as tf

import npu_shim
from npu_shim._tensorflow import tf_api
from npu_shim.config.rewriters import npu_config_proto, npu_graph_options, npu_optimizer_options, npu_run_config_init

ConfigProto = tf.compat.v1.ConfigProto
OFF = tf_api.RewriterConfig.OFF


def entries(config):
    return [c for c in config.graph_options.rewrite_options.custom_optimizers]


def parameters(config):
    (entry,) = [c for c in entries(config) if c.name == "NpuOptimizer"]
    return {k: (v.WhichOneof("value"), getattr(v, v.WhichOneof("value"))) for k, v in entry.parameter_map.items()}


def by_hand():
    """As a script fills it by hand."""
    config = ConfigProto(log_device_placement=True, inter_op_parallelism_threads=3)
    config.gpu_options.allow_growth = True
    own = config.graph_options.rewrite_options.custom_optimizers.add()
    own.name = "MyPass"
    own.parameter_map["depth"].i = 4
    npu = config.graph_options.rewrite_options.custom_optimizers.add()
    npu.name = "NpuOptimizer"
    npu.parameter_map["use_off_line"].b = True
    npu.parameter_map["precision_mode"].s = tf.compat.as_bytes("allow_mix_precision")
    return config


@pytest.mark.parametrize(
    "make", [npu_shim.session_config, npu_config_proto], ids=["session_config", "npu_config_proto"]
)
@pytest.mark.parametrize(
    "given", [lambda: None, ConfigProto, by_hand], ids=["nothing", "an empty config", "one by hand"]
)
class TestEveryConfig:
    def test_gets_what_the_npu_needs(self, make, given):
        config = make(given())
        rewrite = config.graph_options.rewrite_options
        assert [c.name for c in entries(config)].count("NpuOptimizer") == 1
        assert (rewrite.remapping, rewrite.memory_optimization) == (OFF, OFF)
        assert config.allow_soft_placement is True
        assert config.graph_options.optimizer_options.global_jit_level == tf.compat.v1.OptimizerOptions.OFF

    def test_twice_equals_once(self, make, given):
        once = make(given())
        assert make(once) == once

    def test_is_a_copy(self, make, given):
        config = given()
        before = None if config is None else config.SerializeToString(deterministic=True)
        make(config)
        assert before is None or config.SerializeToString(deterministic=True) == before

    def test_runs_in_a_session(self, make, given):
        with tf.Graph().as_default(), tf.compat.v1.Session(config=make(given())) as sess:
            assert sess.run(tf.constant(2) * 3) == 6


def test_values_of_the_user_are_kept():
    config = npu_shim.session_config(by_hand(), deterministic=1)
    assert config.log_device_placement and config.gpu_options.allow_growth
    assert config.inter_op_parallelism_threads == 3
    assert [c.name for c in entries(config)] == ["MyPass", "NpuOptimizer"]
    assert entries(config)[0].parameter_map["depth"].i == 4
    assert parameters(config) == {
        "use_off_line": ("b", True),
        "precision_mode": ("s", b"allow_mix_precision"),
        "deterministic": ("i", 1),
    }


def test_an_option_overrides_the_entry_and_none_counts_as_not_given():
    config = npu_shim.session_config(by_hand(), precision_mode="force_fp32", modify_mixlist=None)
    assert parameters(config)["precision_mode"] == ("s", b"force_fp32")
    assert "modify_mixlist" not in parameters(config)


def test_two_npu_entries_are_merged_and_the_last_value_wins():
    config = by_hand()
    later = config.graph_options.rewrite_options.custom_optimizers.add(name="NpuOptimizer")
    later.parameter_map["use_off_line"].b = False
    result = npu_shim.session_config(config)
    assert [c.name for c in entries(result)] == ["MyPass", "NpuOptimizer"]
    assert parameters(result)["use_off_line"] == ("b", False)
    assert parameters(result)["precision_mode"] == ("s", b"allow_mix_precision")


WRONG = [
    (dict(config=3), TypeError, r"config=3 is int, but must be a tf.compat.v1.ConfigProto or None"),
    (dict(config={}), TypeError, "Write config=tf.compat.v1.ConfigProto"),
    (dict(precison_mode="force_fp16"), ValueError, "Unknown NPU option 'precison_mode'.*Did you mean precision_mode"),
    (dict(precision_mode="fp16"), ValueError, "precision_mode='fp16' is not allowed: it must be one of"),
    (dict(precision_mode=1), TypeError, "precision_mode=1 is not allowed: it must be a str"),
    (dict(precision_mode="force_fp16", precision_mode_v2="fp16"), ValueError, "exclude each other"),
]


@pytest.mark.parametrize("arguments, error, text", WRONG, ids=[w[2] for w in WRONG])
def test_wrong_arguments(arguments, error, text):
    with pytest.raises(error, match=text):
        npu_shim.session_config(**arguments)


def test_an_option_that_contradicts_the_entry_is_refused():
    with pytest.raises(ValueError, match="precision_mode.*precision_mode_v2.*exclude each other"):
        npu_shim.session_config(by_hand(), precision_mode_v2="fp16")


def test_mistakes_in_a_handwritten_entry_are_reported():
    config = ConfigProto()
    npu = config.graph_options.rewrite_options.custom_optimizers.add(name="NpuOptimizer")
    npu.parameter_map["sfusion_switch_file"].s = b"x"
    npu.parameter_map["hcom_parallel"].i = 1
    with pytest.warns(UserWarning) as told:
        result = npu_shim.session_config(config)
    texts = " ".join(str(w.message) for w in told)
    assert "'sfusion_switch_file'] is not an NPU option and has no effect. Did you mean fusion_switch_file?" in texts
    assert "'hcom_parallel'] is set in field i, but the NPU reads field b" in texts
    assert set(parameters(result)) == {"sfusion_switch_file", "hcom_parallel"}


@pytest.mark.parametrize(
    "make, kind",
    [(npu_graph_options, "GraphOptions"), (npu_optimizer_options, "OptimizerOptions")],
    ids=["npu_graph_options", "npu_optimizer_options"],
)
def test_options_get_xla_off_in_a_copy(make, kind):
    kind = getattr(tf.compat.v1, kind)
    given = kind()
    inner = given.optimizer_options if hasattr(given, "optimizer_options") else given
    inner.global_jit_level = tf.compat.v1.OptimizerOptions.ON_1
    result = make(given)
    made = result.optimizer_options if hasattr(result, "optimizer_options") else result
    assert made.global_jit_level == tf.compat.v1.OptimizerOptions.OFF
    assert inner.global_jit_level == tf.compat.v1.OptimizerOptions.ON_1
    assert isinstance(make(), kind)
    with pytest.raises(TypeError, match=f"must be a tf.compat.v1.{kind.__name__} or None"):
        make("x")


def test_run_config_keeps_everything_but_the_session(has_estimator):
    if not has_estimator:
        with pytest.raises(RuntimeError, match="npu_run_config_init needs tf.estimator.*2.15"):
            npu_run_config_init()
        return
    plain = tf.estimator.RunConfig(model_dir="m", tf_random_seed=7, save_summary_steps=3)
    result = npu_run_config_init(run_config=plain)
    assert type(result) is type(plain) and plain.session_config is None
    assert (result.model_dir, result.tf_random_seed, result.save_summary_steps) == ("m", 7, 3)
    assert [c.name for c in entries(result.session_config)] == ["NpuOptimizer"]
    assert npu_run_config_init(result).session_config == result.session_config
    with pytest.raises(TypeError, match="must be a tf.estimator.RunConfig or None"):
        npu_run_config_init(ConfigProto())


def test_graph_passes_that_the_npu_needs_are_reported_if_a_script_turns_them_off():
    config = ConfigProto()
    config.graph_options.rewrite_options.constant_folding = OFF
    config.graph_options.rewrite_options.disable_model_pruning = True
    with pytest.warns(UserWarning, match="defaults of rewrite_options.constant_folding, disable_model_pruning"):
        result = npu_config_proto(config)
    assert result.graph_options.rewrite_options.constant_folding == OFF  # as the script wants it
