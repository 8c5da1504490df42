"""Every row of the table writes its key into its field, in every mode that accepts it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import npu_shim
from npu_shim.config import nested
from npu_shim.npu_init import NPUEstimator, NPURunConfig
from npu_shim.options.option import REQUIRED
from npu_shim.options.table import KEYS, options_by_argument

# A value for each domain that is no list of values.
TEXTS = {
    "dump_step": "0|5|10-12",
    "graph_memory_max_size": "31 * 1024",
    "variable_memory_max_size": "1024",
    "input_shape": "data:1,-1;label:-1",
    "dynamic_dims": "1,2;3,4",
    "aicore_num": "24|48",
    "auto_multistream_parallel_mode": "LoadBalance:8",
    "local_device_list": "0,1",
    "auto_tune_mode": "RL,GA",
    "experimental_accelerate_train_mode": "fast|step|0.9",
}
TOGETHER = {
    "variable_placement": {"mix_compile_mode": True},
    "modify_mixlist": {"precision_mode": "allow_mix_precision"},
    "in_out_pair": {"mix_compile_mode": True},
    "in_out_pair_flag": {"mix_compile_mode": True},
    "compile_hybrid_mode": {"dynamic_node_type": 1},
    "profiling_options": {"profiling_mode": True},
    "work_path": {"aoe_mode": "2"},
    "distribute_config": {"aoe_mode": "2"},
}


def values_of(row):
    """The values to try: all of a list, both bounds and one between, or a text."""
    if row.allowed.values:
        return list(row.allowed.values)
    if row.field == "i":
        return [n for n in (-1, 0, 1, 7, 2147483647) if row.allowed.accepts(n)]
    return [TEXTS.get(row.name, "some_text")]


def companions(name, seen=()):
    """Return the other options that an option needs."""
    found = dict(TOGETHER.get(name, {}))
    for other in KEYS[name].requires:
        if other not in seen:
            found.setdefault(other, values_of(KEYS[other])[-1])
            found.update({k: v for k, v in companions(other, (*seen, name)).items() if k not in found and k != name})
    if name == "compile_hybrid_mode":
        found.update(input_shape=TEXTS["input_shape"], dynamic_dims=TEXTS["dynamic_dims"])
    return found


def cases():
    return [pytest.param(KEYS[name], value, id=f"{name}={value!r}") for name in KEYS for value in values_of(KEYS[name])]


def entry(config):
    (found,) = config.graph_options.rewrite_options.custom_optimizers
    assert found.name == "NpuOptimizer"
    return found


def written(row, value, config):
    attr = entry(config).parameter_map[row.name]
    assert attr.WhichOneof("value") == row.field
    assert getattr(attr, row.field) == (value.encode() if isinstance(value, str) else value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row, value", cases())
def test_in_a_session(row, value):
    options = {**companions(row.name), row.name: value}
    config = npu_shim.session_config(**options)
    written(row, value, config)
    assert set(entry(config).parameter_map) == set(options)
    assert npu_shim.session_config(config) == config
    if row.field == "i":
        assert npu_shim.session_config(**{**options, row.name: np.int64(value)}) == config
    if row.field == "s":
        assert npu_shim.session_config(**{**options, row.name: value.encode()}) == config
    if row.field == "b":
        assert npu_shim.session_config(**{**options, row.name: np.bool_(value)}) == config


def run_config(options):
    """An NPURunConfig, the options in the config classes that hold them; None where one has no argument."""
    held = {}
    for name, value in options.items():
        row = KEYS[name]
        if row.arg is None:
            return None
        held.setdefault(row.holder, {})[row.arg] = value
    arguments = held.pop(None, {})
    if "GraphMemoryOptimizeConfig" in held:
        inner = nested.GraphMemoryOptimizeConfig(**held.pop("GraphMemoryOptimizeConfig"))
        held.setdefault("ExperimentalConfig", {})["graph_memory_optimize_config"] = inner
    for holder, values in held.items():
        for name, row in options_by_argument(holder).items():
            if row.estimator is REQUIRED:
                values.setdefault(name, 0 if row.field == "i" else TEXTS[row.name])
        argument = next(name for name, row in options_by_argument(None).items() if row.holds == holder)
        arguments[argument] = getattr(nested, holder)(**values)
    return NPURunConfig(**arguments)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row, value", cases())
def test_in_an_estimator(has_estimator, row, value):
    if not has_estimator:
        with pytest.raises(RuntimeError, match="NPURunConfig needs tf.estimator"):
            NPURunConfig()
        return
    config = run_config({**companions(row.name), row.name: value})
    assert (config is None) == (
        "estimator" not in row.modes or any("estimator" not in KEYS[name].modes for name in companions(row.name))
    )
    if config is not None:
        made = NPUEstimator(lambda features, labels, mode: None, config=config).config.session_config
        written(row, value, made)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", KEYS.values(), ids=lambda row: row.name)
def test_a_session_runs_with_the_option(row):
    config = npu_shim.session_config(**{**companions(row.name), row.name: values_of(row)[0]})
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as sess:
        assert sess.run(tf.constant(2) * 3) == 6
