"""NPUEstimator writes the same bytes into the NpuOptimizer entry as the vendor's class.

The goldens are calls of NPURunConfig run through the vendor's package on TensorFlow 1.15.5. Where this
package decides otherwise, the decision and its reason stand here.
"""

from __future__ import annotations

import json
import os
import re

import pytest

from npu_shim import npu_init as npu
from npu_shim.estimator.npu import npu_config

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, os.pardir, "data", "parameter_map_goldens.json"), encoding="utf-8") as _file:
    CALLS = json.load(_file)
DEFAULT = CALLS[0]["map"]
NESTED = {
    "profiling_config": "ProfilingConfig",
    "dump_config": "DumpConfig",
    "memory_config": "MemoryConfig",
    "dynamic_input_config": "DynamicInputConfig",
    "experimental_config": "ExperimentalConfig",
}

_DOCUMENTED = (
    "the documentation lists the allowed values; the vendor's Python hands on any, which the card refuses or misreads"
)
_BOOL = "the key is a bool; the vendor's Python takes any number for True"
_TEXT = "the key is a text; the vendor's Python writes any value as one"
_TOGETHER = "the documentation says that the two options belong together; alone it has no effect or stops the card"
_APART = "the documentation says that the two options exclude each other"

# Refused here, taken by the vendor's Python: the option that the error names, and why.
STRICTER = {
    _DOCUMENTED: """ac_parallel_enable aicore_num aoe_mode auto_multistream_parallel_mode buffer_optimize deterministic
        dynamic_graph_execute_mode enable_exception_dump enable_small_channel export_compile_stat
        graph_max_parallel_model_num graph_memory_max_size hccl_timeout jit_compile local_device_list local_rank_id
        oo_level op_compiler_cache_mode op_debug_level op_select_implmode op_wait_timeout precision_mode
        precision_mode_v2 quant_dumpable shape_generalization_mode topo_sorting_mode variable_memory_max_size
        variable_placement""",
    _BOOL: """all_tensor_not_empty compile_dynamic_mode dynamic_input enable_compress_weight enable_data_pre_proc
        enable_reduce_precision external_weight frozen_variable hcom_multi_mode hcom_parallel input_batch_cpy
        is_tailing_optimization oo_constant_folding variable_format_optimize""",
    _TEXT: "distribute_config variable_memory_max_size work_path",
    _TOGETHER: """compile_hybrid_mode dynamic_inputs_shape_range enable_dump_debug local_device_list local_rank_id
        modify_mixlist optypelist_for_implmode variable_placement""",
    _APART: "enable_dump",
}
KINDS = {
    _DOCUMENTED: r"must be (?!a bool|a str)",
    _BOOL: "must be a bool",
    _TEXT: "must be a str",
    _TOGETHER: r"\bneeds\b",
    _APART: "exclude each other",
}

# Taken by both, and written otherwise: the keys that differ, and why.
OTHERWISE = {
    ("insert_op_file",): "the vendor's Python raises TypeError for every text; here it is written as the card reads it",
    ("enable_compress_weight",): "compress_weight_conf and enable_compress_weight together stop the card even when the "
    "latter has its default; here the default is left out",
}


def configured(kwargs):
    made = {
        name: getattr(npu_config, NESTED[name])(**value) if isinstance(value, dict) else value
        for name, value in kwargs.items()
    }
    config = npu.NPUEstimator(
        lambda features, labels, mode: None, config=npu.NPURunConfig(**made)
    ).config.session_config
    (entry,) = config.graph_options.rewrite_options.custom_optimizers
    assert entry.name == "NpuOptimizer"
    return {key: [attr.WhichOneof("value"), plain(attr)] for key, attr in entry.parameter_map.items()}


def plain(attr):
    value = getattr(attr, attr.WhichOneof("value"))
    return value.decode("utf-8") if isinstance(value, bytes) else value


def expected(call):
    found = {**DEFAULT, **call["map"]}
    for key in call.get("without", ()):
        del found[key]
    return found


def reason(message):
    """The reason for a refusal by its text; a KeyError for one that is not listed."""
    name = re.match(r"\w+", message).group()
    for why, names in STRICTER.items():
        if name in names.split() and re.search(KINDS[why], message):
            return why, name
    raise KeyError(message)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.twice
def test_every_golden_call(has_estimator):
    if not has_estimator:
        with pytest.raises(RuntimeError, match="NPURunConfig needs tf.estimator"):
            npu.NPURunConfig()
        return
    used, equal, refused = set(), 0, 0
    for call in CALLS:
        try:
            got = configured(call["kwargs"])
        except (TypeError, ValueError) as error:
            if "error" not in call:
                used.add(reason(str(error)))
            refused += 1
            continue
        if "error" in call:
            assert ("insert_op_file",) in OTHERWISE and "insert_op_file" in call["kwargs"], call
            used.add("insert_op_file")
            assert got["insert_op_file"] == ["s", call["kwargs"]["insert_op_file"]]
            continue
        want = expected(call)
        differs = tuple(sorted(key for key in set(got) | set(want) if got.get(key) != want.get(key)))
        assert not differs or differs in OTHERWISE, (call, {k: (got.get(k), want.get(k)) for k in differs})
        used.update(differs)
        equal += not differs
    listed = {(why, name) for why, names in STRICTER.items() for name in names.split()}
    assert listed | {key for keys in OTHERWISE for key in keys} == used  # nothing is listed that never happens
    assert equal + refused > 0.9 * len(CALLS)


@pytest.mark.parametrize("value, written", [(1, True), (0, False), (True, True)])
def test_zero_and_one_are_bools(has_estimator, value, written):
    if has_estimator:
        assert configured({"hcom_parallel": value})["hcom_parallel"] == ["b", written]
