"""The vendor's npu_bridge.estimator.npu_ops. Generated from npu_shim/_vendor_paths/modules.json; do not edit."""

from npu_shim.ops.dropout import dropout
from npu_shim.ops.gradient_functions import (
    basic_lstm_cell_grad, dynamic_augru_grad, dynamic_gru_v2_grad, dynamic_rnn_grad, dynamic_rnn_v2_grad,
)
from npu_shim.ops.graph_operators import adam_apply_one_assign, adam_apply_one_with_decay_assign, basic_lstm_cell
from npu_shim.ops.k_means_centroids import k_means_centroids
from npu_shim.ops.lars import LARS, LARSV2
from npu_shim._host.lazy_names import missing as channel_get_next, missing as npu_onnx_graph_op
from npu_shim.ops.outfeed import outfeed_dequeue_op, outfeed_enqueue_op, stop_outfeed_dequeue_op
from npu_shim.ops.scatter_elements import scatter_elements
from npu_shim.ops.system import NPUInit, NPUShutdown, initialize_system, shutdown_system

__all__ = [
    "LARS", "LARSV2", "NPUInit", "NPUShutdown", "adam_apply_one_assign", "adam_apply_one_with_decay_assign",
    "basic_lstm_cell", "basic_lstm_cell_grad", "channel_get_next", "dropout", "dynamic_augru_grad",
    "dynamic_gru_v2_grad", "dynamic_rnn_grad", "dynamic_rnn_v2_grad", "initialize_system", "k_means_centroids",
    "npu_onnx_graph_op", "outfeed_dequeue_op", "outfeed_enqueue_op", "scatter_elements", "shutdown_system",
    "stop_outfeed_dequeue_op",
]
