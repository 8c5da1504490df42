"""Graph passes that are off on the NPU: every config turns them off, and on the CPU they are as the script sets them."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim._host import host_device
from npu_shim._tensorflow import tf_api
from npu_shim.config import graph_passes
from npu_shim.config.rewriters import npu_config_proto, npu_run_config_init

v1 = tf.compat.v1
Rewriter = tf_api.RewriterConfig
MANUAL = Rewriter.OFF  # the number that the NPU reads; the name is TensorFlow's


def config_with(remapping=0, memory_optimization=0, npu=False):
    config = v1.ConfigProto(log_device_placement=False)
    rewrite = config.graph_options.rewrite_options
    rewrite.remapping, rewrite.memory_optimization = remapping, memory_optimization
    if npu:
        rewrite.custom_optimizers.add(name="NpuOptimizer").parameter_map["use_off_line"].b = True
    return config


def passes(config):
    rewrite = config.graph_options.rewrite_options
    return rewrite.remapping, rewrite.memory_optimization


BY_SCRIPT = {  # what a script sets, and so what TensorFlow gets
    "nothing": dict(),
    "remapping off": dict(remapping=Rewriter.OFF),
    "remapping on": dict(remapping=Rewriter.ON),
    "both off": dict(remapping=Rewriter.OFF, memory_optimization=Rewriter.NO_MEM_OPT),
    "by hand": dict(remapping=Rewriter.OFF, npu=True),
    "both by hand": dict(remapping=Rewriter.OFF, memory_optimization=MANUAL, npu=True),
}
MADE = {
    "as it is": lambda config: config,
    "npu_config_proto": npu_config_proto,
    "twice": lambda config: npu_config_proto(npu_config_proto(config)),
    "copied": lambda config: copy.deepcopy(npu_config_proto(config)),
    "sent": lambda config: v1.ConfigProto.FromString(npu_config_proto(config).SerializeToString()),
}


@pytest.fixture
def given(monkeypatch):
    """The configs that TensorFlow gets."""
    npu_shim.uninstall()  # which other tests have installed when they were imported
    found = []
    original = v1.Session.__init__

    def seen(self, target="", graph=None, config=None):
        found.append(config)
        original(self, target, graph, config)

    monkeypatch.setattr(v1.Session, "__init__", seen)
    npu_shim.install()
    yield found
    npu_shim.uninstall()


@pytest.mark.parametrize(
    "made, said",
    [
        (made, said)
        for made in MADE
        for said in BY_SCRIPT
        if made == "as it is" or said in ("remapping on", "both by hand")
    ],
)
def test_a_session_reports_switches_off_and_runs_with_the_settings_of_the_script(given, said, made):
    config = config_with(**BY_SCRIPT[said])
    with tf.Graph().as_default(), v1.Session(config=MADE[made](config)) as sess:
        assert sess.run(tf.constant(1) + 2) == 3
    assert passes(sess._config) == (Rewriter.OFF, Rewriter.OFF)
    assert [passes(one) for one in given] == [passes(config)]


@pytest.mark.parametrize("said", BY_SCRIPT)
def test_a_config_switched_off_twice_records_only_the_settings_of_the_script(said):
    config = npu_config_proto(config_with(**BY_SCRIPT[said]))
    assert passes(config) == (Rewriter.OFF, Rewriter.OFF) and npu_config_proto(config) == config
    recorded = {
        name: value.i
        for custom in config.graph_options.rewrite_options.custom_optimizers
        for name, value in custom.parameter_map.items()
        if name.startswith("npu_shim")
    }
    wanted = dict(
        zip(("npu_shim_cpu_remapping", "npu_shim_cpu_memory_optimization"), passes(config_with(**BY_SCRIPT[said])))
    )
    assert recorded == ({} if said == "nothing" else wanted)
    rewrite = config.graph_options.rewrite_options
    before = rewrite.SerializeToString()
    rewrite.DiscardUnknownFields()
    assert rewrite.SerializeToString() == before, "no unknown field"


def test_the_last_values_of_a_script_count(given):
    config = npu_config_proto(config_with(remapping=Rewriter.OFF))
    config.graph_options.rewrite_options.remapping = Rewriter.ON
    config.graph_options.rewrite_options.memory_optimization = 0
    for wanted in ((Rewriter.ON, 0), (0, 0)):
        config.graph_options.rewrite_options.remapping = wanted[0]
        config.graph_options.rewrite_options.memory_optimization = wanted[1]
        config = npu_config_proto(config)
        v1.Session(graph=tf.Graph(), config=config).close()
        assert passes(given[-1]) == wanted


def test_on_the_npu_they_are_off_and_nothing_is_recorded(monkeypatch):
    monkeypatch.setattr(host_device, "device", lambda: host_device.Device("npu", "of a test"))
    config = npu_config_proto(config_with(remapping=Rewriter.ON))
    assert graph_passes.config_for_this_device(config) is config
    assert "npu_shim" not in str(config)


@pytest.mark.parametrize("said", BY_SCRIPT)
def test_an_estimator_config_switches_off_and_its_sessions_run_with_the_settings_of_the_script(
    has_estimator, linear_model_fn, tmp_path, given, said
):
    if not has_estimator:
        return
    from npu_shim.npu_init import NPUEstimator, NPURunConfig

    config = config_with(**BY_SCRIPT[said])
    plain = tf.estimator.RunConfig(model_dir=str(tmp_path), session_config=config)
    direct = NPURunConfig(model_dir=str(tmp_path), session_config=config)
    for run_config in (direct, npu_run_config_init(run_config=plain)):
        made = NPUEstimator(linear_model_fn(tf.estimator.EstimatorSpec), config=run_config)
        assert passes(made.config.session_config) == (Rewriter.OFF, Rewriter.OFF)
        v1.Session(graph=tf.Graph(), config=made._session_config).close()
        assert passes(given[-1]) == passes(config)


def test_a_migrated_model_computes_the_same_bits_as_the_original():
    random = np.random.RandomState(0)
    images, kernel, bias = (random.randn(*shape).astype(np.float32) for shape in ((8, 9, 9, 3), (3, 3, 3, 16), (16,)))
    weights, second = (random.randn(*shape).astype(np.float32) for shape in ((9 * 9 * 16, 33), (33,)))

    def trained():
        with tf.Graph().as_default(), v1.Session() as sess:
            variables = [
                v1.get_variable(f"v{place}", initializer=value)
                for place, value in enumerate((kernel, bias, weights, second))
            ]
            x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, variables[0], [1, 1, 1, 1], "SAME"), variables[1]))
            y = tf.nn.relu(tf.nn.bias_add(tf.matmul(tf.reshape(x, [8, -1]), variables[2]), variables[3]))
            step = v1.train.MomentumOptimizer(1e-4, 0.9).minimize(tf.reduce_mean(tf.square(y - 1.0)))
            sess.run(v1.global_variables_initializer())
            for _ in range(5):
                sess.run(step)
            return sess.run(variables)

    npu_shim.uninstall()
    expected = trained()
    npu_shim.install()
    for one, other in zip(expected, trained()):
        np.testing.assert_array_equal(one, other)
