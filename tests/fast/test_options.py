"""The table of NPU options, and the checks of its rows."""

from __future__ import annotations

import re
import warnings

import pytest

from npu_shim.options.check import checked_session_options
from npu_shim.options.option import REQUIRED
from npu_shim.options.table import ARGUMENT_ORDER, KEYS, TABLE, constructor_signature, options_by_argument

GIVEN = [pytest.param(row, id=row.name) for row in KEYS.values()]


def example(row):
    """A value the row allows."""
    if row.allowed.values:
        return row.allowed.values[-1]
    if row.type is int:
        return next(n for n in (1, 0, -1) if row.allowed.accepts(n))
    quoted = re.findall(r"'([^']+)'", row.allowed.text)
    return next(t for t in quoted + ["a"] if row.allowed.accepts(t))


# what a row needs next to it beyond its own requires
COMPANIONS = {
    "modify_mixlist": dict(precision_mode="allow_mix_precision"),
    "compile_hybrid_mode": dict(dynamic_node_type=1, input_shape="a:-1", dynamic_dims="1;2"),
    "in_out_pair": dict(mix_compile_mode=True),
    "in_out_pair_flag": dict(mix_compile_mode=True),
}


def valid(row):
    """Options that go together, among them the row's."""
    options = {row.name: example(row), **{other: example(KEYS[other]) for other in row.requires}}
    return {**options, **COMPANIONS.get(row.name, {})}


def test_no_two_rows_set_the_same():
    """A path of TF 2, a key, and an argument of a config class belong to one row."""
    for names in (
        [row.name for row in TABLE],
        [row.tf2_path for row in TABLE if row.tf2_path],
        [(row.holder, row.arg) for row in TABLE if row.arg],
    ):
        assert len(names) == len(set(names)) > 50


@pytest.mark.parametrize("row", GIVEN)
class TestEveryRow:
    def test_is_whole(self, row):
        assert row.field in ("b", "i", "s") and row.doc.endswith(".") and row.allowed.text
        assert row.cpu in ("numeric", "execution", "side_output", "distributed", "perf_only")
        for other in row.excludes + row.requires:
            assert other in KEYS and other != row.name
        for default in (row.session, row.estimator):
            if default is not None and default is not REQUIRED:
                assert isinstance(default, row.type) and row.allowed.accepts(default)

    def test_an_allowed_value_is_accepted_with_a_warning_if_deprecated(self, row):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert checked_session_options(valid(row))[row.name] == example(row)
        texts = [str(w.message) for w in told if f"option {row.name} is" in str(w.message)]
        assert texts == ([f"NPU option {row.name} is deprecated: {row.deprecated}"] if row.deprecated else [])

    def test_refuses_another_type_and_says_what_it_takes(self, row):
        with warnings.catch_warnings(), pytest.raises(TypeError) as told:
            warnings.simplefilter("ignore")
            checked_session_options({row.name: 3.5})
        assert str(told.value).startswith(f"{row.name}=3.5 is not allowed: it must be a")
        assert row.allowed.text in str(told.value)

    def test_finds_its_name_when_misspelt(self, row):
        with pytest.raises(ValueError, match=f"Unknown NPU option '{row.name}_'.*Did you mean .*{row.name}"):
            checked_session_options({row.name + "_": 1})


TOGETHER = [
    (
        dict(precision_mode="force_fp16", precision_mode_v2="fp16"),
        "precision_mode='force_fp16' and precision_mode_v2='fp16' exclude",
    ),
    (dict(enable_dump=True), "enable_dump=True needs dump_path, which is not given. Add dump_path"),
    (dict(local_rank_id=1), "local_rank_id=1 needs local_device_list"),
    (dict(optypelist_for_implmode="Pooling"), "needs op_select_implmode"),
    (dict(mix_compile_mode=True, iterations_per_loop=2), "exclude each other, because a loop on the device"),
    (
        dict(dynamic_graph_execute_mode="lazy_recompile", iterations_per_loop=2),
        "lazy_recompile' and iterations_per_loop",
    ),
    (dict(modify_mixlist="/m.json", precision_mode="force_fp16"), "modify_mixlist needs mixed precision"),
    (dict(in_out_pair="[]", mix_compile_mode=False), "in_out_pair needs mix_compile_mode=True"),
    (dict(variable_placement="Host"), "variable_placement='Host' needs mix_compile_mode=True"),
    (
        dict(experimental_accelerate_train_mode="fast|step|0.9", precision_mode="allow_mix_precision"),
        "experimental_accelerate_train_mode chooses the precision itself",
    ),
    (dict(stream_sync_timeout=60000, hccl_timeout=600), "stream_sync_timeout is in milliseconds"),
    (
        dict(input_shape="mask:-1;data:8,-1", dynamic_dims="1,2;3,4", dynamic_node_type=1),
        "must be in the order of their names",
    ),
    (dict(input_shape="data:8,-1", dynamic_dims="1", dynamic_node_type=1), "dynamic_dims needs two profiles or more"),
    (
        dict(input_shape="data:8,-1;mask:-1", dynamic_dims="1,2;3", dynamic_node_type=1),
        "each with a size for each -1 of input_shape",
    ),
    (dict(compile_dynamic_mode=True, dynamic_input=True), "compile_dynamic_mode=True and dynamic_input=True exclude"),
]


@pytest.mark.parametrize("options, text", TOGETHER, ids=[t[1] for t in TOGETHER])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_conflicting_options_are_refused(options, text):
    with pytest.raises(ValueError, match=text):
        checked_session_options(options)


FINE = [
    dict(enable_dump=False, enable_dump_debug=False),
    dict(enable_compress_weight=False, compress_weight_conf="/c"),
    dict(modify_mixlist="/m.json", precision_mode="allow_mix_precision"),
    dict(precision_mode="force_fp16", precision_mode_v2=None),
    dict(compile_dynamic_mode=False, dynamic_node_type=0, input_shape="a:-1", dynamic_dims="1;2"),
    dict(precision_mode=b"force_fp16"),
]


@pytest.mark.parametrize("options", FINE, ids=str)
def test_valid_combinations_are_accepted(options):
    assert set(checked_session_options(options)) == {n for n, v in options.items() if v is not None}


DOMAINS = [
    ("aoe_mode", "3", "one of '1', '2', '4'"),
    ("input_fusion_size", 33554433, "from 0 to 33554432 bytes"),
    ("dump_step", "1|x", "up to 100 steps or ranges"),
    ("experimental_accelerate_train_mode", "fast|step|0.1", "then maybe a ratio"),
    ("auto_multistream_parallel_mode", "LoadBalance:65", "n from 1 to 64"),
    ("local_device_list", "0;1", "card numbers separated by commas"),
    ("session_device_id", -1, "at least 0"),
]


@pytest.mark.parametrize("name, value, text", DOMAINS, ids=[d[0] for d in DOMAINS])
def test_values_outside_the_domain_are_refused(name, value, text):
    with pytest.raises(
        ValueError, match=re.escape(f"{name}={value!r} is not allowed: it must be") + ".*" + re.escape(text)
    ):
        checked_session_options({name: value})


@pytest.mark.parametrize("value", [0, 1, True, False])
def test_zero_and_one_are_bools(value):
    checked = checked_session_options({"use_off_line": value})["use_off_line"]
    assert checked is bool(value)


HINTS = [
    ("aoe_mode", 2, "Write aoe_mode='2'."),
    ("jit_compile", True, "Write jit_compile='true'."),
    ("enable_small_channel", True, "Write enable_small_channel=1."),
]


@pytest.mark.parametrize("name, value, hint", HINTS, ids=[h[2] for h in HINTS])
def test_the_error_for_a_wrong_type_gives_the_right_value(name, value, hint):
    with pytest.raises(TypeError, match=re.escape(hint)):
        checked_session_options({name: value})


def test_a_byte_count_may_be_a_number():
    with pytest.warns(DeprecationWarning, match="graph_memory_max_size is deprecated: It has no effect"):
        assert checked_session_options({"graph_memory_max_size": 1024}) == {"graph_memory_max_size": "1024"}


def test_names_are_unique_and_constructors_have_the_arguments_of_the_rows():
    names = [row.name for row in TABLE]
    assert len(names) == len(set(names)) and len(KEYS) == 108
    assert list(constructor_signature(None).parameters) == list(ARGUMENT_ORDER) and len(ARGUMENT_ORDER) == 88
    assert list(options_by_argument("DumpConfig")) == [
        "enable_dump",
        "dump_path",
        "dump_step",
        "dump_mode",
        "enable_dump_debug",
        "dump_debug_mode",
        "dump_data",
        "dump_layer",
    ]
    assert str(constructor_signature("MemoryConfig")) == (
        "(atomic_clean_policy=0, static_memory_policy=0, memory_optimization_policy=None, variable_use_1g_huge_page=0)"
    )
