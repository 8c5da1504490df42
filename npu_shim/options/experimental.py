"""Options of ExperimentalConfig; the rows stand in the order of its arguments."""
from __future__ import annotations

from typing import Any, Dict

from npu_shim.options.domain import any_text, matching, one_of, path
from npu_shim.options.option import ALWAYS, HELD, NEVER, Option, argument, flag, text

_HELD: Dict[str, Any] = dict(holder="ExperimentalConfig", write=HELD)

ROWS = (
    text("experimental_logical_device_cluster_deploy_mode", "Spread models over logical devices, or use one.",
         one_of("LB", "SINGLE"), "LB", argument="logical_device_cluster_deploy_mode", holder="ExperimentalConfig",
         write=ALWAYS),
    text("experimental_logical_device_id", "The logical device of SINGLE.", any_text("a text like '[0:0]'"),
         argument="logical_device_id", **_HELD),
    text("experimental_model_deploy_mode", "How a model is deployed.", any_text("a mode name"),
         argument="model_deploy_mode", **_HELD),
    text("experimental_model_deploy_devicelist", "Where a model is deployed.", any_text("a text like '[0:0]'"),
         argument="model_deploy_devicelist", **_HELD),
    argument("graph_memory_optimize_config", "A GraphMemoryOptimizeConfig.", holder="ExperimentalConfig",
             holds="GraphMemoryOptimizeConfig"),
    flag("enable_graph_parallel", "Split graphs over devices automatically.", session=False, estimator=None, **_HELD),
    text("graph_parallel_option_path", "File with the options of that split.", path("the name of a file"), **_HELD),
    text("graph_compiler_cache_dir", "Directory of compiled graphs.", path("the name of a directory"), **_HELD),
    text("resource_config_path", "File that describes unequal machines.", path("the name of a file"), **_HELD),
    text("experimental_accelerate_train_mode", "Train the first part in lower precision.",
         matching(r"^fast1?\|(step(\|0\.[2-9]\d*)?|loss(\|1\.(0[1-9]|[1-4])\d*|\|1\.50*)?)$",
                  "'fast' or 'fast1', then '|step' or '|loss', then maybe a ratio, like 'fast|step|0.9'"),
         argument="accelerate_train_mode", cpu="numeric", **_HELD),
    Option("recompute", "s", "Recompute instead of keeping activations.", one_of("auto", "manual"),
           holder="GraphMemoryOptimizeConfig", write=NEVER),
    text("graph_slice", "Slice graphs to save memory.", one_of("auto", "manual"), holder="GraphMemoryOptimizeConfig",
         write=HELD),
)
