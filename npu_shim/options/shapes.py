"""Options for shapes and compilation: static, with profiles, or dynamic."""

from __future__ import annotations

from npu_shim.options.domain import any_text, matching, one_of
from npu_shim.options.option import ALWAYS, HELD_TOGETHER, REQUIRED, Fields, flag, number, text

_PROFILES = dict(holder="DynamicInputConfig", write=HELD_TOGETHER, estimator=REQUIRED, cpu="execution", refused=True)
_REPLACED: Fields = dict(
    deprecated="Leave it out, or use compile_dynamic_mode.",
    cpu="execution",
    tf2=None,
    replacement="compile_dynamic_mode",
)

ROWS = (
    text(
        "input_shape",
        "Shapes of the inputs that change, -1 where a profile fills in.",
        matching(r"^[^:;]+:-?\d+(,-?\d+)*(;[^:;]+:-?\d+(,-?\d+)*)*;?$", "a text like 'data:1,-1;label:-1'"),
        requires=("dynamic_dims", "dynamic_node_type"),
        **_PROFILES,
        tf2="experimental.multi_branches_config.input_shape",
    ),
    text(
        "dynamic_dims",
        "The profiles: for each the numbers that replace every -1.",
        matching(r"^\d+(,\d+)*(;\d+(,\d+)*)*;?$", "a text like '1,2;3,4'"),
        requires=("input_shape", "dynamic_node_type"),
        **_PROFILES,
        tf2="experimental.multi_branches_config.dynamic_dims",
    ),
    number(
        "dynamic_node_type",
        "Whether the changing inputs are datasets (0) or placeholders (1).",
        one_of(0, 1),
        requires=("input_shape", "dynamic_dims"),
        **_PROFILES,
        tf2="experimental.multi_branches_config.dynamic_node_type",
        tf2_allowed=("0",),
    ),
    number(
        "compile_hybrid_mode",
        "1 compiles both the dynamic graph and its profiles.",
        one_of(0, 1),
        **_PROFILES,
        tf2=None,
    ),
    text(
        "ac_parallel_enable", "Let AI CPU and AI Core operators run side by side in dynamic graphs.", one_of("0", "1")
    ),
    flag(
        "compile_dynamic_mode",
        "Compile every shape as unknown.",
        session=False,
        estimator=None,
        excludes=("input_shape", "dynamic_dims", "dynamic_node_type"),
    ),
    flag("all_tensor_not_empty", "Promise that no tensor is empty, which saves checks.", False),
    flag(
        "dynamic_input",
        "Inputs change their shape.",
        session=False,
        estimator=None,
        **_REPLACED,
    ),
    text(
        "dynamic_graph_execute_mode",
        "How graphs with changing inputs run.",
        one_of("lazy_recompile", "dynamic_execute"),
        "dynamic_execute",
        **_REPLACED,
    ),
    text(
        "dynamic_inputs_shape_range",
        "Ranges of the changing inputs, like getnext:[128,3~5,-1].",
        any_text("a text like 'getnext:[128,3~5,-1];data:[]'"),
        requires=("dynamic_input",),
        **_REPLACED,
    ),
    text(
        "shape_generalization_mode",
        "How far a compiled shape is widened for reuse.",
        one_of("STRICT", "FULL", "ADAPTIVE"),
        "STRICT",
        refused=True,
    ),
    text(
        "jit_compile",
        "Compile operators for each shape (true), use binaries (false), or decide (auto).",
        one_of("true", "false", "auto"),
        "auto",
        write=ALWAYS,
        refused=True,
    ),
)
