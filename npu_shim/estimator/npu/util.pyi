"""The vendor's npu_bridge.estimator.npu.util. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.config.graph_execution import set_graph_exec_config
from npu_shim.estimator.checks import (
    check_aoe_mode, check_bool_type, check_nonnegative_integer, check_not_none, check_path, check_positive_integer,
    check_profiling_options, convert_bool_to_int, format_string, get_ranksize,
)
from npu_shim.ops.node_attributes import (
    keep_tensors_dtypes, npu_compile, set_op_input_tensor_multi_dims, set_op_tensor_max_range, set_op_tensor_max_size,
    variable_initializer_in_host,
)
from npu_shim.optimizer.gradient_shares import (
    GradDivisionItem, add_grads_and_vars, fair_division, get_all_grad_item, get_gid_by_grad, get_gid_by_weight,
    get_value, global_dict_init, set_value,
)
from npu_shim.optimizer.iterations_per_loop import IterationPerLoop, set_iteration_per_loop
from npu_shim.optimizer.loop_variables import create_or_get_var, register_func

__all__ = [
    "GradDivisionItem", "IterationPerLoop", "add_grads_and_vars", "check_aoe_mode", "check_bool_type",
    "check_nonnegative_integer", "check_not_none", "check_path", "check_positive_integer", "check_profiling_options",
    "convert_bool_to_int", "create_or_get_var", "fair_division", "format_string", "get_all_grad_item",
    "get_gid_by_grad", "get_gid_by_weight", "get_ranksize", "get_value", "global_dict_init", "keep_tensors_dtypes",
    "npu_compile", "register_func", "set_graph_exec_config", "set_iteration_per_loop", "set_op_input_tensor_multi_dims",
    "set_op_tensor_max_range", "set_op_tensor_max_size", "set_value", "variable_initializer_in_host",
]
