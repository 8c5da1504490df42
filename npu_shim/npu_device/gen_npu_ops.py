"""The NPU's operators: ``npu.gen_npu_ops``.

On the CPU those that published models call are computed in TensorFlow's ops; the others raise NotInThisRelease. Where
the vendor's package for TensorFlow 2 serves a card, each name is its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from npu_shim import _device
from npu_shim._lazy_names import NotInThisRelease
from npu_shim._tf import tf
from npu_shim.ops import dropout_masks, gru, lstm, optimizer_updates
from npu_shim.ops.gelu import gelu as _tanh_gelu
from npu_shim.options.near import closest

if TYPE_CHECKING:
    from npu_shim._types import Tensor

# Operators of the vendor's library that are not computed here.
_MISSING = """
adp_get_next ascend_anti_quant ascend_dequant ascend_quant ascend_weight_quant basic_lstm_cell_c_state_grad
basic_lstm_cell_input_grad basic_lstm_cell_weight_grad batch_dilate_polys batch_enqueue cache_add
cache_all_index_to_local cache_remote_index_to_local decode_image_v3 deformable_offsets deformable_offsets_grad
deinit_embedding_hashmap_v2 dense_image_warp dense_image_warp_grad dequeue device_queue_dataset dp_group_dataset dpop
dynamic_augru_grad dynamic_get_next_v2 dynamic_gru_v2_grad dynamic_rnn_grad embedding_hash_table_apply_adam_w
embedding_hash_table_evict embedding_hash_table_export embedding_hash_table_import
embedding_hash_table_lookup_or_insert embedding_hashmap_export embedding_hashmap_file_size embedding_hashmap_import
embedding_hashmap_size embedding_local_index embedding_rank_id fast_gelu_v2 file_constant fused_layer_norm_grad ge_op
gelu_grad geop_dataset get_next get_next_from_queue get_shape host_queue_dataset init_embedding_hash_table
init_embedding_hashmap_v2 k_means_centroids k_means_centroids_v2 lars load_and_execute_om log_time_stamp lru_cache
lru_cache_v2 non_zero non_zero_with_value non_zero_with_value_shape non_zero_with_value_shape_v2
npu_alloc_float_status npu_clear_float_status npu_clear_float_status_v2 npu_get_float_status npu_get_float_status_v2
npu_init npu_onnx_graph_op npu_shutdown ocr_detection_post_handle ocr_detection_pre_handle ocr_find_contours
ocr_identify_pre_handle ocr_recognition_pre_handle outfeed_dequeue_op outfeed_enqueue_op p_relu_grad prod_env_mat_a
prod_force_se_a prod_virial_se_a queue_data queue_dataset random_choice_with_mask resize_and_clip_polys resize_v2
scatter_elements scatter_elements_v2 stateless_dropout stateless_random_choice_with_mask table_to_resource_v2
tabulate_fusion tabulate_fusion_grad tabulate_fusion_se_a tabulate_fusion_se_a_grad warp_affine_v2
""".split()


def fast_gelu(features: Tensor, name: str | None = None) -> Tensor:
    """Return x / (1 + exp(-1.702 x)), the fast approximation of gelu.

    Args:
        features: x, a float tensor of any shape.
        name: name of the ops.
    Returns:
        A tensor with x's shape and type.
    Source:
        Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)", arXiv:1606.08415.
    """
    x = tf.convert_to_tensor(features)
    with tf.name_scope(name or "fast_gelu"):
        return x * tf.sigmoid(_FAST * x)


def fast_gelu_grad(gradients: Tensor, features: Tensor, name: str | None = None) -> Tensor:
    """Return the gradient of fast_gelu: dy (s + 1.702 x s (1 - s)) with s = 1 / (1 + exp(-1.702 x)).

    Args:
        gradients: dy, of the shape of x.
        features: x, a float tensor of any shape.
        name: name of the ops.
    """
    x = tf.convert_to_tensor(features)
    with tf.name_scope(name or "fast_gelu_grad"):
        s = tf.sigmoid(_FAST * x)
        return gradients * (s + _FAST * x * s * (1 - s))


_FAST = 1.702


def gelu(features: Tensor, name: str | None = None) -> Tensor:
    """Return gelu in its tanh form. See npu_unary_ops.gelu."""
    return _tanh_gelu(features, name)


def p_relu(x: Tensor, weight: Tensor, name: str | None = None) -> Tensor:
    """Return x where it is positive, else weight x.

    Args:
        x: [batch, channels, ...].
        weight: [1] or [channels].
        name: name of the ops.
    """
    x, weight = tf.convert_to_tensor(x), tf.convert_to_tensor(weight)
    with tf.name_scope(name or "p_relu"):
        if x.shape.rank and x.shape.rank > 2 and weight.shape.num_elements() != 1:
            weight = tf.reshape(weight, [-1] + [1] * (x.shape.rank - 2))
        return tf.maximum(x, 0) + weight * tf.minimum(x, 0)


def centralization(x: Tensor, axes: list[int], name: str | None = None) -> Tensor:
    """Return x minus its mean over the axes."""
    x = tf.convert_to_tensor(x)
    with tf.name_scope(name or "centralization"):
        return x - tf.reduce_mean(x, axes, keepdims=True)


def fused_layer_norm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    begin_norm_axis: int = 0,
    begin_params_axis: int = 0,
    epsilon: float = 1e-7,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize x over the axes from begin_norm_axis: y = (x - mean) / sqrt(variance + epsilon) gamma + beta.

    Args:
        x: float16 or float32 tensor.
        gamma: of the shape of x from begin_params_axis.
        beta: likewise.
        begin_norm_axis: the first axis of the statistics.
        begin_params_axis: the first axis of gamma and beta.
        epsilon: added to the variance.
        name: name of the ops.
    Returns:
        y, mean and variance; the statistics have size 1 in their axes.
    """
    x = tf.convert_to_tensor(x)
    with tf.name_scope(name or "fused_layer_norm"):
        mean, variance = tf.nn.moments(x, list(range(x.shape.rank))[begin_norm_axis:], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, epsilon), mean, variance


lars_v2 = optimizer_updates.lars_v2
adam_apply_one_assign = optimizer_updates.adam_apply_one_assign
adam_apply_one_with_decay_assign = optimizer_updates.adam_apply_one_with_decay_assign
lamb_apply_optimizer_assign = optimizer_updates.lamb_apply_optimizer_assign
lamb_apply_weight_assign = optimizer_updates.lamb_apply_weight_assign
drop_out_gen_mask = dropout_masks.drop_out_gen_mask
drop_out_gen_mask_v3 = dropout_masks.drop_out_gen_mask_v3
drop_out_gen_mask_v4 = dropout_masks.drop_out_gen_mask_v4
drop_out_do_mask = dropout_masks.drop_out_do_mask
drop_out_do_mask_v3 = dropout_masks.drop_out_do_mask_v3
basic_lstm_cell = lstm.basic_lstm_cell
dynamic_rnn = lstm.dynamic_rnn
dynamic_rnn_v2 = lstm.dynamic_rnn_v2
dynamic_gru_v2 = gru.dynamic_gru_v2
dynamic_augru = gru.dynamic_augru


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in _MISSING:
        names = _MISSING + [each for each in globals() if not each.startswith("_")]
        raise AttributeError(f"npu.gen_npu_ops has no operator {name!r}.{closest(name, names)}")

    def missing(*args: object, **kwargs: object) -> None:
        raise NotInThisRelease(
            f"npu.gen_npu_ops.{name} is not part of this release of npu_shim. Write it in TensorFlow's own ops, or run "
            "it on an NPU with the vendor's package."
        )

    return missing


_device.serve_vendor(__name__, "npu_device.npu_device", "gen_npu_ops")
