"""Options for tuning, fusion and compilation caches."""

from __future__ import annotations

from npu_shim.options.domain import any_text, matching, one_of, path
from npu_shim.options.option import ALWAYS, WITH_AOE, flag, number, text

ROWS = (
    text(
        "aoe_mode",
        "What automatic tuning tunes: subgraphs (1), operators (2), gradient splits (4).",
        one_of("1", "2", "4"),
        excludes=("input_shape", "dynamic_dims"),
        tf2="aoe_config.aoe_mode",
        products="Atlas A2, A3, training products; 1: training products only",
        refused=True,
    ),
    text(
        "work_path",
        "Where tuning works.",
        path("the name of a directory"),
        session="./",
        estimator=None,
        write=WITH_AOE,
        cpu="side_output",
        tf2="aoe_config.work_path",
    ),
    text(
        "aoe_config_file",
        "File that narrows tuning to some operators.",
        path("the name of a .json file"),
        tf2="aoe_config.aoe_config_file",
    ),
    text(
        "distribute_config",
        "File that describes the machines for tuning.",
        path("the name of a file"),
        write=WITH_AOE,
        tf2=None,
    ),
    text(
        "auto_tune_mode",
        "The tuning of older releases.",
        any_text("'RL,GA', 'RL' or 'GA'"),
        argument=None,
        deprecated="Use aoe_mode.",
        tf2=None,
        replacement="aoe_mode",
    ),
    text("fusion_switch_file", "File that turns single fusion passes on or off.", path("the name of a .json file")),
    text(
        "buffer_optimize",
        "Use the L2 buffer, or not.",
        one_of("l2_optimize", "off_optimize"),
        "l2_optimize",
        tf2=None,
        refused=True,
    ),
    text("enable_scope_fusion_passes", "Scope fusion passes to turn on.", any_text("pass names separated by commas")),
    flag(
        "variable_format_optimize",
        "Keep variables in the layout the card likes.",
        session=None,
        estimator=None,
        deprecated="Leave it out; the compiler decides.",
    ),
    number(
        "topo_sorting_mode",
        "Order in which operators are laid out: breadth (0) or depth first (1).",
        one_of(0, 1),
        tf2_allowed=(0, 1, None),
    ),
    text(
        "insert_op_file",
        "File that adds image preprocessing to the graph's input.",
        path("the name of a file"),
        tf2=None,
    ),
    text(
        "auto_multistream_parallel_mode",
        "Spread operators over several streams.",
        matching(
            r"^(cv|(LoadBalance|MainStream):([1-9]|[1-5]\d|6[0-4]))$",
            "'cv', 'LoadBalance:n' or 'MainStream:n' with n from 1 to 64",
        ),
    ),
    text("oo_level", "How hard graphs are optimised.", one_of("O0", "O1", "O2", "O3"), "O3"),
    text("optimization_switch", "Turn single passes on or off.", any_text("a text like 'pass:on;other:off'")),
    flag("oo_constant_folding", "Fold constants.", True),
    text(
        "op_compiler_cache_mode",
        "Reuse compiled operators from disk.",
        one_of("enable", "force", "disable"),
        tf2_default="enable",
    ),
    text("op_compiler_cache_dir", "Directory of compiled operators.", path("the name of a directory")),
    text(
        "aicore_num",
        "Cores to compile for.",
        matching(r"^\d*\|\d*$", "a text like '24|48' (cube|vector)"),
        products="Atlas A2, A3",
    ),
    flag(
        "enable_compress_weight",
        "Compress all weights.",
        False,
        write=ALWAYS,
        excludes=("compress_weight_conf",),
        tf2=None,
    ),
    text(
        "compress_weight_conf",
        "File that lists the nodes whose weights are compressed.",
        path("the name of a file"),
        excludes=("enable_compress_weight",),
        tf2=None,
    ),
    text(
        "stream_max_parallel_num",
        "Operators at the same time, per engine.",
        any_text("a text like 'DNN_VM_AICPU:10,AIcoreEngine:1'"),
    ),
)
