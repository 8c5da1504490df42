"""Options for debugging: dumps, profiles, compile statistics."""

from __future__ import annotations

from npu_shim.options.domain import any_text, matching, one_of, path
from npu_shim.options.option import ALWAYS, HELD, WITH_PROFILING, Fields, Option, flag, number, text

_DUMP = dict(holder="DumpConfig", write=HELD, cpu="side_output")
_DUMP_FLAG: Fields = dict(
    default=False, holder="DumpConfig", write=ALWAYS, requires=("dump_path",), cpu="side_output", refused=True
)
_PROFILING_FOR_TF2 = (" " * 45).join(  # with the gaps that the vendor's text has
    [
        r'{"output":".\/","training_trace":"on","task_time":"on",',
        '"hccl":"on","aicpu":"on","aic_metrics":"PipeUtilization",',
        '"msproftx":"off"}',
    ]
)

ROWS = (
    flag("enable_dump", "Dump the tensors of the steps in dump_step.", **_DUMP_FLAG, tf2="dump_config.enable_dump"),
    text("dump_path", "Directory for dumps.", path("the name of a directory"), **_DUMP, tf2="dump_config.dump_path"),
    text(
        "dump_step",
        "Which steps to dump.",
        matching(r"^\d+(-\d+)?(\|\d+(-\d+)?){0,99}$", "up to 100 steps or ranges, like '0|5|10-12'"),
        **_DUMP,
        tf2="dump_config.dump_step",
    ),
    text(
        "dump_mode",
        "Dump what goes into operators, what comes out, or both.",
        one_of("input", "output", "all"),
        "output",
        **_DUMP,
        tf2="dump_config.dump_mode",
    ),
    flag("enable_dump_debug", "Dump where numbers overflow.", **_DUMP_FLAG, tf2="dump_config.enable_dump_debug"),
    text(
        "dump_debug_mode",
        "Which overflows to look for.",
        one_of("aicore_overflow", "atomic_overflow", "all"),
        "all",
        **_DUMP,
        tf2="dump_config.dump_debug_mode",
        products="aicore_overflow and atomic_overflow: Atlas training products",
    ),
    text(
        "dump_data",
        "Dump whole tensors or their statistics.",
        one_of("tensor", "stats"),
        "tensor",
        **_DUMP,
        tf2="dump_config.dump_data",
        refused=True,
    ),
    text(
        "dump_layer",
        "Operators to dump.",
        any_text("operator names separated by spaces"),
        **_DUMP,
        tf2="dump_config.dump_layer",
    ),
    number(
        "enable_exception_dump",
        "Dump on an exception: no (0), all (1), of operators (2).",
        one_of(0, 1, 2),
        2,
        write=ALWAYS,
        cpu="side_output",
        refused=True,
    ),
    text(
        "op_debug_config",
        "File that turns on memory checks and the like.",
        path("the name of a .cfg file"),
        cpu="side_output",
    ),
    text("debug_dir", "Directory for files of operator debugging.", path("the name of a directory"), cpu="side_output"),
    number(
        "export_compile_stat",
        "Export compile statistics: no (0), at the end (1), after each graph (2).",
        one_of(0, 1, 2),
        1,
        cpu="side_output",
        refused=True,
    ),
    number(
        "op_debug_level",
        "Once how much operator compilation writes.",
        one_of(0, 1, 2, 3, 4),
        deprecated="Use op_debug_config.",
        cpu="side_output",
        replacement="op_debug_config",
    ),
    Option(
        "profiling_mode",
        "b",
        "Profile the run.",
        session=False,
        estimator=False,
        argument="enable_profiling",
        holder="ProfilingConfig",
        write=HELD,
        cpu="side_output",
        tf2="profiling_config.enable_profiling",
    ),
    text(
        "profiling_options",
        "What to profile, and where to write it.",
        any_text("a JSON text"),
        holder="ProfilingConfig",
        write=WITH_PROFILING,
        requires=("profiling_mode",),
        cpu="side_output",
        tf2="profiling_config.profiling_options",
        tf2_default=_PROFILING_FOR_TF2,
    ),
)
