"""The vendor's module paths under our root, so that a port by hand is a change of one word.

``npu_bridge.estimator.npu.npu_config`` becomes ``npu_shim.estimator.npu.npu_config``
and so on. The table says where each name lives; the modules are tiny files made
from it, because editors, type checkers and zip files understand files. A name's
home is loaded when the name is first used::

    python -m npu_shim._vendor_paths          # writes them
    python -m npu_shim._vendor_paths --check  # exits 1 when they are not current
"""

from __future__ import annotations

import os
import sys
import textwrap
from typing import Mapping, Sequence

from npu_shim._first_use import NOT_YET
from npu_shim.ops.not_yet import SIGNATURES

# vendor module below the root -> (our module, names) ..., where our module "not_yet:x" is ops/not_yet.py's table x
TABLE: dict[str, Sequence[tuple[str, str]]] = {
    "estimator.npu": (),
    "estimator.npu.keras_to_npu": (("estimator.keras_to_npu", "model_to_npu_estimator"),),
    "estimator.npu.npu_callbacks": (
        ("training.callbacks", "NPUBroadcastGlobalVariablesCallback"),
        ("not_yet:npu_callbacks", ""),
    ),
    "estimator.npu.npu_config": (
        ("_install", "decorator_tf_session"),
        (
            "config.nested",
            "DumpConfig DynamicInputConfig ExperimentalConfig GraphMemoryOptimizeConfig MemoryConfig ProfilingConfig",
        ),
        ("config.run_config", "NPURunConfig"),
        ("ops.scopes", "NpuExecutePlacement"),
    ),
    "estimator.npu.npu_convert_dropout": (("ops.convert_dropout", "dropout_call switch_keras_dropout"),),
    "estimator.npu.npu_dynamic_rnn": (("not_yet:npu_dynamic_rnn", ""),),
    "estimator.npu.npu_estimator": (
        ("estimator.npu_estimator", "NPUEstimator"),
        ("estimator.spec", "NPUEstimatorSpec"),
    ),
    "estimator.npu.npu_hook": (
        (
            "estimator.hooks",
            "NPUBroadcastGlobalVariablesHook NPUCheckpointSaverHook NPUOutputTensorHook "
            "SetIterationsVarHook TellMeStepOrLossHook",
        ),
        ("estimator.outfeed_hooks", "NPUInfeedOutfeedSessionHook NPULogOutfeedSessionHook NPUShutDownHook"),
        ("not_yet:npu_hook", ""),
    ),
    "estimator.npu.npu_loss_scale_manager": (
        ("optimizer.loss_scale_manager", "ExponentialUpdateLossScaleManager FixedLossScaleManager"),
    ),
    "estimator.npu.npu_loss_scale_optimizer": (("optimizer.loss_scale_optimizer", "NPULossScaleOptimizer"),),
    "estimator.npu.npu_optimizer": (
        ("optimizer.distributed", "NPUDistributedOptimizer allreduce npu_allreduce npu_distributed_optimizer_wrapper"),
        ("optimizer.keras", "KerasDistributeOptimizer"),
        ("optimizer.npu_optimizer", "NPUOptimizer"),
        ("not_yet:npu_optimizer", ""),
    ),
    "estimator.npu.npu_plugin": (
        (
            "config.plugin",
            "check_graph_run_mode init_rdma_pool is_inf_nan_enabled npu_close npu_resource_init "
            "npu_resource_shutdown rdma_remote_init rdma_remote_register set_device_sat_mode",
        ),
        ("not_yet:npu_plugin", ""),
    ),
    "estimator.npu.npu_rnn": (("ops.rnn", "npu_dynamic_rnn"),),
    "estimator.npu.npu_scope": (
        (
            "ops.scopes",
            "disable_autofuse keep_dtype_scope limit_core_num_scope npu_graph_slice_scope "
            "npu_mem_type_scope npu_optimizer_scope npu_qos_label_scope npu_recompute_scope npu_stage_scope "
            "npu_variable_scope npu_weight_prefetch_scope op_specified_engine_scope "
            "subgraph_multi_dims_scope without_npu_compile_scope",
        ),
    ),
    "estimator.npu.npu_strategy": (("training.strategy", "NPUStrategy"),),
    "estimator.npu.util": (
        (
            "estimator.checks",
            "check_aoe_mode check_bool_type check_nonnegative_integer check_not_none check_path "
            "check_positive_integer check_profiling_options convert_bool_to_int format_string "
            "get_ranksize",
        ),
        (
            "ops.marks",
            "keep_tensors_dtypes npu_compile set_graph_exec_config set_op_input_tensor_multi_dims "
            "set_op_tensor_max_range set_op_tensor_max_size variable_initializer_in_host",
        ),
        ("optimizer.iterations", "IterationPerLoop set_iteration_per_loop"),
        ("optimizer.loop_variables", "create_or_get_var"),
        ("not_yet:util", ""),
    ),
    "estimator.npu_aicore_ops": (("not_yet:npu_aicore_ops", ""),),
    "estimator.npu_ops": (
        ("ops.dropout", "dropout"),
        ("ops.outfeed", "outfeed_dequeue_op outfeed_enqueue_op"),
        ("ops.system", "NPUInit NPUShutdown initialize_system shutdown_system"),
        ("not_yet:npu_ops", ""),
    ),
    "estimator.npu_unary_ops": (("ops.gelu", "gelu"), ("ops.generated", "npu_unary_ops")),
    "hccl": (),
    "hccl.hccl_ops": (
        (
            "distributed.hccl_ops",
            "all_to_all_v all_to_all_v_c allgather allreduce broadcast gather_all_to_all_v receive "
            "reduce reduce_scatter remote_read remote_ref_read remote_scatter_write remote_write "
            "send",
        ),
    ),
    "hccl.manage": (),
    "hccl.manage.api": (
        (
            "distributed.ranks",
            "create_group destroy_group get_group_rank_from_world_rank get_local_rank_id "
            "get_local_rank_size get_rank_id get_rank_size get_world_rank_from_group_rank",
        ),
    ),
    "hccl.split": (),
    "hccl.split.api": (("distributed.ranks", "set_split_strategy_by_idx set_split_strategy_by_size"),),
    "npu_cpu": (),
    "npu_cpu.npu_cpu_ops": (("not_yet:npu_cpu_ops", ""),),
    "profiler": (),
    "profiler.profiler": (("ops.host_contexts", "Profiler"),),
    "scoped_graph_manager": (),
    "scoped_graph_manager.scoped_graph_manager": (("ops.host_contexts", "ScopedGraphManager"),),
    "tbe": (),
    "tbe.npu_cube_ops": (("not_yet:npu_cube_ops", ""),),
    "tbe.npu_vector_ops": (("not_yet:npu_vector_ops", ""),),
}
ON_IMPORT = {"estimator.npu.npu_convert_dropout": "switch_keras_dropout()"}  # what the vendor's import does too
_ROOT = os.path.dirname(os.path.abspath(__file__))


def render(module: str) -> str:
    """The text of a module of the table."""
    lines = [
        f'"""The vendor\'s npu_bridge.{module}. Made by npu_shim/_vendor_paths.py; change its table, not this file."""',
        "from __future__ import annotations",
    ]
    homes = {
        source if _is_not_yet(source) else f"npu_shim.{source}": list(SIGNATURES[source[len(NOT_YET) :]])
        if _is_not_yet(source)
        else names.split()
        for source, names in TABLE[module]
    }
    if module in ON_IMPORT:
        lines += ["", *_imports(homes), "", *_all(homes), "", ON_IMPORT[module]]
    elif homes:
        lines += ["", *_on_first_use(homes), "", *_all(homes)]
    return "\n".join(lines) + "\n"


def _on_first_use(homes: Mapping[str, list[str]]) -> list[str]:
    """The names for type checkers and editors, who read, and for Python, which loads each when it is first used."""
    imports = ["    " + line for line in _imports(homes)]
    later = [f"    {name}: Callable[..., Any]" for home, names in homes.items() if _is_not_yet(home) for name in names]
    lines = [
        "from typing import TYPE_CHECKING" + (", Any, Callable" if later else ""),
        "",
        "from npu_shim._first_use import first_use as _first_use",
        "",
        "if TYPE_CHECKING:",
    ]
    lines += imports + [""] * bool(imports and later) + later
    lines += ["else:", "    __getattr__, __dir__ = _first_use(__name__, {"]
    for home, names in homes.items():
        texts = [f'"{text}"' for text in textwrap.wrap(" ".join(names), 100)]
        if len(texts) == 1:
            lines.append(f'        "{home}": {texts[0]},')
        else:
            texts = [text[:-1] + ' "' for text in texts[:-1]] + texts[-1:]
            lines += [f'        "{home}": (', *["            " + text for text in texts], "        ),"]
    return lines + ["    })"]


def _imports(homes: Mapping[str, list[str]]) -> list[str]:
    return sorted(
        f"from {home} import {name}" for home, names in homes.items() if not _is_not_yet(home) for name in names
    )


def _all(homes: Mapping[str, list[str]]) -> list[str]:
    return ["__all__ = [", *[f'    "{name}",' for name in sorted(sum(homes.values(), []))], "]"]


def _is_not_yet(source: str) -> bool:
    return source.startswith(NOT_YET)


def path_of(module: str) -> str:
    """The file of a module: a package where the table has modules below it."""
    is_package = any(other.startswith(module + ".") for other in TABLE)
    parts = module.split(".") + (["__init__"] if is_package else [])
    return os.path.join(_ROOT, *parts) + ".py"


def stale() -> list[str]:
    """The files that are not as the table has them."""
    found = []
    for module in TABLE:
        path = path_of(module)
        text = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
        if text != render(module):
            found.append(path)
    return found


def main(arguments: Sequence[str]) -> int:
    """Writes the files, or with --check says which are not current."""
    paths = stale()
    if "--check" in arguments:
        for path in paths:
            print(f"not current: {path}; run python -m npu_shim._vendor_paths", file=sys.stderr)
        return 1 if paths else 0
    for module in TABLE:
        path = path_of(module)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(render(module))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
