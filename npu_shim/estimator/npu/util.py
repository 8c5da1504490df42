"""The vendor's npu_bridge.estimator.npu.util. Made by npu_shim/_vendor_paths.py; change its table, not this file."""
from __future__ import annotations

from npu_shim.estimator.checks import check_aoe_mode
from npu_shim.estimator.checks import check_bool_type
from npu_shim.estimator.checks import check_nonnegative_integer
from npu_shim.estimator.checks import check_not_none
from npu_shim.estimator.checks import check_path
from npu_shim.estimator.checks import check_positive_integer
from npu_shim.estimator.checks import check_profiling_options
from npu_shim.estimator.checks import convert_bool_to_int
from npu_shim.estimator.checks import format_string
from npu_shim.estimator.checks import get_ranksize
from npu_shim.ops.marks import keep_tensors_dtypes
from npu_shim.ops.marks import npu_compile
from npu_shim.ops.marks import set_graph_exec_config
from npu_shim.ops.marks import set_op_input_tensor_multi_dims
from npu_shim.ops.marks import set_op_tensor_max_range
from npu_shim.ops.marks import set_op_tensor_max_size
from npu_shim.ops.marks import variable_initializer_in_host
from npu_shim.ops.not_yet import functions as _functions
from npu_shim.optimizer.iterations import IterationPerLoop
from npu_shim.optimizer.iterations import set_iteration_per_loop
from npu_shim.optimizer.loop_variables import create_or_get_var

__all__ = [
    "IterationPerLoop",
    "check_aoe_mode",
    "check_bool_type",
    "check_nonnegative_integer",
    "check_not_none",
    "check_path",
    "check_positive_integer",
    "check_profiling_options",
    "convert_bool_to_int",
    "create_or_get_var",
    "format_string",
    "get_ranksize",
    "keep_tensors_dtypes",
    "npu_compile",
    "set_graph_exec_config",
    "set_iteration_per_loop",
    "set_op_input_tensor_multi_dims",
    "set_op_tensor_max_range",
    "set_op_tensor_max_size",
    "variable_initializer_in_host",
]
globals().update(_functions("util"))
__all__ += list(_functions("util"))
