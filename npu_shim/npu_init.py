"""The star import: ``from npu_shim.npu_init import *``.

It exports every name of the vendor's ``npu_bridge.npu_init``, and installs: every
new Session carries the NPU config, as users of that import expect.
``npu_shim.uninstall()`` removes it.
"""

from __future__ import annotations

import os

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from npu_shim._tensorflow import tf_api
from npu_shim._tensorflow.tf_api import session_run_hook
from npu_shim._tensorflow.tf_session import session_module as session
from npu_shim.config.install import decorator_tf_session, install
from npu_shim.config.keras_session import close_session, npu_clear_session, set_keras_session_npu_config
from npu_shim.config.resource import (
    get_npu_local_rank_id,
    get_npu_local_rank_size,
    get_npu_rank_id,
    get_npu_rank_size,
    init_resource,
    shutdown_resource,
)
from npu_shim.config.rewriters import npu_config_proto, npu_graph_options, npu_optimizer_options, npu_run_config_init
from npu_shim.estimator import npu_ops
from npu_shim.estimator.hooks import NpuEmptyHook
from npu_shim.estimator.npu import keras_to_npu, npu_plugin, npu_rnn, npu_scope, npu_strategy, util
from npu_shim.estimator.npu.npu_callbacks import NPUBroadcastGlobalVariablesCallback
from npu_shim.estimator.npu.npu_config import (
    DumpConfig,
    DynamicInputConfig,
    MemoryConfig,
    NPURunConfig,
    ProfilingConfig,
)
from npu_shim.estimator.npu.npu_estimator import NPUEstimator, NPUEstimatorSpec
from npu_shim.estimator.npu.npu_hook import (
    NPUBroadcastGlobalVariablesHook,
    NPUCheckpointSaverHook,
    NPUOutputTensorHook,
    SetIterationsVarHook,
    TellMeStepOrLossHook,
)
from npu_shim.estimator.npu.npu_loss_scale_manager import ExponentialUpdateLossScaleManager, FixedLossScaleManager
from npu_shim.estimator.npu.npu_loss_scale_optimizer import NPULossScaleOptimizer
from npu_shim.estimator.npu.npu_optimizer import (
    KerasDistributeOptimizer,
    NPUDistributedOptimizer,
    NPUOptimizer,
    npu_allreduce,
    npu_distributed_optimizer_wrapper,
)
from npu_shim.estimator.npu_unary_ops import npu_unary_ops
from npu_shim.hccl import hccl_ops
from npu_shim.hccl.manage.api import (
    create_group,
    destroy_group,
    get_group_rank_from_world_rank,
    get_local_rank_id,
    get_local_rank_size,
    get_rank_id,
    get_rank_size,
    get_world_rank_from_group_rank,
)
from npu_shim.hccl.split.api import set_split_strategy_by_idx, set_split_strategy_by_size
from npu_shim.npu_cpu import npu_cpu_ops
from npu_shim.optimizer.distributed import npu_tf_optimizer
from npu_shim.optimizer.keras import npu_keras_optimizer
from npu_shim.profiler import profiler
from npu_shim.scoped_graph_manager import scoped_graph_manager
from npu_shim.training.callbacks import npu_callbacks_append, npu_hooks_append

backend = tf_api.keras_backend()

# Graph passes for the NPU, for tf.config.optimizer.set_experimental_options(experimental_options)
experimental_options = {
    "disable_model_pruning": False,
    "function_optimization": RewriterConfig.ON,
    "constant_folding": RewriterConfig.ON,
    "shape_optimization": RewriterConfig.ON,
    "arithmetic_optimization": RewriterConfig.ON,
    "loop_optimization": RewriterConfig.ON,
    "dependency_optimization": RewriterConfig.ON,
    "layout_optimizer": RewriterConfig.ON,
}

install()

__all__ = [
    "DumpConfig",
    "DynamicInputConfig",
    "ExponentialUpdateLossScaleManager",
    "FixedLossScaleManager",
    "KerasDistributeOptimizer",
    "MemoryConfig",
    "NPUBroadcastGlobalVariablesCallback",
    "NPUBroadcastGlobalVariablesHook",
    "NPUCheckpointSaverHook",
    "NPUDistributedOptimizer",
    "NPUEstimator",
    "NPUEstimatorSpec",
    "NPULossScaleOptimizer",
    "NPUOptimizer",
    "NPUOutputTensorHook",
    "NPURunConfig",
    "NpuEmptyHook",
    "ProfilingConfig",
    "RewriterConfig",
    "SetIterationsVarHook",
    "TellMeStepOrLossHook",
    "backend",
    "close_session",
    "config_pb2",
    "create_group",
    "decorator_tf_session",
    "destroy_group",
    "experimental_options",
    "get_group_rank_from_world_rank",
    "get_local_rank_id",
    "get_local_rank_size",
    "get_npu_local_rank_id",
    "get_npu_local_rank_size",
    "get_npu_rank_id",
    "get_npu_rank_size",
    "get_rank_id",
    "get_rank_size",
    "get_world_rank_from_group_rank",
    "hccl_ops",
    "init_resource",
    "keras_to_npu",
    "npu_allreduce",
    "npu_callbacks_append",
    "npu_clear_session",
    "npu_config_proto",
    "npu_cpu_ops",
    "npu_distributed_optimizer_wrapper",
    "npu_graph_options",
    "npu_hooks_append",
    "npu_keras_optimizer",
    "npu_ops",
    "npu_optimizer_options",
    "npu_plugin",
    "npu_rnn",
    "npu_run_config_init",
    "npu_scope",
    "npu_strategy",
    "npu_tf_optimizer",
    "npu_unary_ops",
    "os",
    "profiler",
    "rewriter_config_pb2",
    "scoped_graph_manager",
    "session",
    "session_run_hook",
    "set_keras_session_npu_config",
    "set_split_strategy_by_idx",
    "set_split_strategy_by_size",
    "shutdown_resource",
    "tf",
    "util",
]
