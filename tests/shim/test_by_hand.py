"""Session configs that scripts fill by hand: published ones work, and mistakes are reported with the session."""

from __future__ import annotations

import warnings

import pytest
import tensorflow as tf

import npu_shim
from npu_shim import npu_init as npu

v1 = tf.compat.v1

# As scripts that were ported by hand set them together.
TOGETHER = {
    "a profile": {"profiling_mode": ("b", True), "profiling_options": ("s", b'{"output":"/tmp/p","task_trace":"on"}')},
    "a dump": {
        "enable_dump": ("b", True),
        "dump_path": ("s", b"/tmp/dump"),
        "dump_step": ("s", b"0|5|10-12"),
        "dump_mode": ("s", b"all"),
    },
    "an overflow dump": {
        "enable_dump_debug": ("b", True),
        "dump_path": ("s", b"/tmp/dump"),
        "dump_debug_mode": ("s", b"all"),
    },
    "a mixlist": {"precision_mode": ("s", b"allow_mix_precision"), "modify_mixlist": ("s", b"ops_info.json")},
    "operators": {
        "op_select_implmode": ("s", b"high_precision"),
        "optypelist_for_implmode": ("s", b"Pooling,SoftmaxV2"),
    },
}
DEPRECATED = {"op_select_implmode", "optypelist_for_implmode"}


def by_hand(values):
    config = v1.ConfigProto()
    custom = config.graph_options.rewrite_options.custom_optimizers.add()
    custom.name = "NpuOptimizer"
    for name, (field, value) in values.items():
        setattr(custom.parameter_map[name], field, value)
    config.graph_options.rewrite_options.remapping = npu.RewriterConfig.OFF
    return config


def told(call):
    """The warnings of a call, as (class name, text)."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    return [(one.category.__name__, str(one.message)) for one in seen if "parameter_map[" in str(one.message)]


def session(config):
    npu_shim.install()
    with tf.Graph().as_default(), v1.Session(config=config) as sess:
        assert sess.run(tf.constant(2) + 1) == 3
        return sess._config


WAYS = {
    "session_config": npu_shim.session_config,
    "a session": session,
    "npu_config_proto": lambda config: npu.npu_config_proto(config_proto=config),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("values", TOGETHER.values(), ids=list(TOGETHER))
def test_published_configs_are_accepted(way, values):
    made = []
    seen = told(lambda: made.append(WAYS[way](by_hand({"use_off_line": ("b", True), **values}))))
    assert {(kind, text.split("'")[1]) for kind, text in seen} == {
        ("DeprecationWarning", name) for name in values if name in DEPRECATED
    }
    (entry,) = made[0].graph_options.rewrite_options.custom_optimizers
    for name, (field, value) in values.items():
        assert getattr(entry.parameter_map[name], field) == value


SLIPS = [  # of published scripts, and what each is meant to be
    ("sfusion_switch_file", "s", b"x", "fusion_switch_file"),
    ("autotune_tune_mode", "s", b"x", "auto_tune_mode"),
    ("allow_mix_compile", "b", True, "mix_compile_mode"),
    ("sump_mode", "s", b"all", "dump_mode"),
    ("precison_mode", "s", b"force_fp16", "precision_mode"),
    ("use_offline", "b", True, "use_off_line"),
]


@pytest.mark.parametrize("name, field, value, meant", SLIPS, ids=[s[0] for s in SLIPS])
def test_a_misspelt_name_is_reported_with_the_closest_name(name, field, value, meant):
    ((kind, text),) = told(lambda: npu_shim.session_config(by_hand({name: (field, value)})))
    assert (
        kind == "UserWarning"
        and f"parameter_map['{name}'] is not an NPU option and has no effect" in text
        and meant in text
    )


WARNED = {
    "a lost value": (
        {"op_debug_level": ("s", b"1")},
        "is set in field s, but the NPU reads field i. Write "
        r"parameter_map['op_debug_level'].i = ... (one of 0, 1, 2, 3, 4)",
    ),
    "an unchecked value": ({"deterministic": ("i", 3)}, "deterministic'].i=3 is not allowed: it must be one of 0, 1."),
    "one without what it is for": (
        {"dynamic_inputs_shape_range": ("s", b"getnext:[1]")},
        "has no effect without dynamic_input",
    ),
    "a clamped value": ({"input_fusion_size": ("i", -1)}, "it must be from 0 to 33554432 bytes"),
}


@pytest.mark.parametrize("name", WARNED)
def test_a_value_that_the_npu_does_not_check_is_a_warning(name):
    values, text = WARNED[name]
    seen = [one for one in told(lambda: session(by_hand(values))) if one[0] != "DeprecationWarning"]
    assert [kind for kind, _ in seen] == ["UserWarning"] and text in seen[0][1]


REFUSED = {
    "a wrong field": (
        {"precision_mode": ("b", True)},
        "'precision_mode'. is set in field b, but the NPU reads field s.*Write parameter_map.'precision_mode'..s = ",
    ),
    "another wrong field": ({"jit_compile": ("b", False)}, "'jit_compile'. is set in field b"),
    "an unknown value": (
        {"precision_mode": ("s", b"allow_mix")},
        "precision_mode'..s='allow_mix' is not allowed: it must be one of .*Did you mean allow_mix_precision",
    ),
    "a number out of range": (
        {"graph_run_mode": ("i", 2)},
        "graph_run_mode'..i=2 is not allowed: it must be one of 0, 1",
    ),
    "two that exclude each other": (
        {"precision_mode": ("s", b"force_fp16"), "precision_mode_v2": ("s", b"fp16")},
        "precision_mode.*precision_mode_v2",
    ),
    "one without its other": ({"enable_dump": ("b", True)}, "enable_dump=True needs dump_path"),
    "a loop and mixed computing": (
        {"mix_compile_mode": ("b", True), "iterations_per_loop": ("i", 10)},
        "mix_compile_mode=True and iterations_per_loop greater than 1 exclude",
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_the_npu_refuses_is_an_error(way, name):
    values, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        WAYS[way](by_hand(values))


@pytest.mark.parametrize(
    "make",
    [
        lambda config: v1.InteractiveSession(config=config),
        lambda config: v1.train.MonitoredTrainingSession(config=config),
        lambda config: v1.Session("", None, config),
    ],
    ids=["InteractiveSession", "MonitoredTrainingSession", "by position"],
)
def test_every_kind_of_session_is_checked(make):
    npu_shim.install()
    with tf.Graph().as_default():
        v1.train.get_or_create_global_step()
        with pytest.raises(ValueError, match="precision_mode'..s='bogus' is not allowed"):
            make(by_hand({"precision_mode": ("s", b"bogus")}))


def test_an_estimators_session_is_checked(has_estimator):
    if not has_estimator:
        return
    with pytest.raises(ValueError, match="precision_mode'..s='bogus' is not allowed"):
        npu.NPUEstimator(
            lambda features, labels, mode: None,
            config=npu.NPURunConfig(session_config=by_hand({"precision_mode": ("s", b"bogus")})),
        )
