"""Options of ExperimentalConfig, in the order of its arguments."""

from __future__ import annotations

from npu_shim.options.domain import any_text, matching, one_of, path
from npu_shim.options.option import ALWAYS, HELD, NEVER, Fields, Option, argument, flag, text

_HELD: Fields = dict(holder="ExperimentalConfig", write=HELD)

ROWS = (
    text(
        "experimental_logical_device_cluster_deploy_mode",
        "Spread models over logical devices, or use one.",
        one_of("LB", "SINGLE"),
        "LB",
        argument="logical_device_cluster_deploy_mode",
        holder="ExperimentalConfig",
        write=ALWAYS,
        tf2="experimental.logical_device_deploy_config.logical_device_cluster_deploy_mode",
    ),
    text(
        "experimental_logical_device_id",
        "The logical device of SINGLE.",
        any_text("a text like '[0:0]'"),
        argument="logical_device_id",
        **_HELD,
        tf2="experimental.logical_device_deploy_config.logical_device_id",
    ),
    text(
        "experimental_model_deploy_mode",
        "How a model is deployed.",
        any_text("a mode name"),
        argument="model_deploy_mode",
        **_HELD,
        tf2="experimental.model_deploy_config.model_deploy_mode",
    ),
    text(
        "experimental_model_deploy_devicelist",
        "Where a model is deployed.",
        any_text("a text like '[0:0]'"),
        argument="model_deploy_devicelist",
        **_HELD,
        tf2="experimental.model_deploy_config.model_deploy_devicelist",
    ),
    argument(
        "graph_memory_optimize_config",
        "A GraphMemoryOptimizeConfig.",
        holder="ExperimentalConfig",
        holds="GraphMemoryOptimizeConfig",
    ),
    flag(
        "enable_graph_parallel",
        "Split graphs over devices automatically.",
        session=False,
        estimator=None,
        **_HELD,
        tf2="experimental.enable_graph_parallel",
    ),
    text(
        "graph_parallel_option_path",
        "File with the options of that split.",
        path("the name of a file"),
        **_HELD,
        tf2="experimental.graph_parallel_option_path",
    ),
    text("graph_compiler_cache_dir", "Directory of compiled graphs.", path("the name of a directory"), **_HELD),
    text(
        "resource_config_path",
        "File that describes unequal machines.",
        path("the name of a file"),
        **_HELD,
        tf2="experimental.resource_config_path",
    ),
    text(
        "experimental_accelerate_train_mode",
        "Train the first part in lower precision.",
        matching(
            r"^fast1?\|(step(\|0\.[2-9]\d*)?|loss(\|1\.(0[1-9]|[1-4])\d*|\|1\.50*)?)$",
            "'fast' or 'fast1', then '|step' or '|loss', then maybe a ratio, like 'fast|step|0.9'",
        ),
        argument="accelerate_train_mode",
        cpu="numeric",
        **_HELD,
        tf2=None,
        refused=True,
    ),
    Option(
        "recompute",
        "s",
        "Recompute instead of keeping activations.",
        one_of("auto", "manual"),
        holder="GraphMemoryOptimizeConfig",
        write=NEVER,
        tf2="experimental.graph_memory_optimize_config.recompute",
    ),
    text(
        "graph_slice",
        "Slice graphs to save memory.",
        one_of("auto", "manual"),
        holder="GraphMemoryOptimizeConfig",
        write=HELD,
        tf2="experimental.graph_memory_optimize_config.graph_slice",
        tf2_allowed=("auto",),
        refused=True,
    ),
)
