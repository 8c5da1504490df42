"""One step of k-means: samples are assigned to the nearest centroid, and summed.

    d[i, j] = |y_j|^2 - 2 x_i y_j  (+ |x_i|^2),   k[i] = argmin_j d[i, j]

Source: Lloyd, "Least squares quantization in PCM", 1982.
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.ops.graph_mode import only_in_graphs


def step(
    x: Tensor,
    y: Tensor,
    sum_square_y: Tensor,
    sum_square_x: Tensor | None,
    use_actual_distance: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sums and numbers of samples of each centroid, and the sum of the smallest distances.

    Args:
        x: [samples, features], float32.
        y: [centroids, features], float32.
        sum_square_y: |y_j|^2, of as many elements as there are centroids.
        sum_square_x: |x_i|^2, of as many elements as there are samples; None to leave it out of the distances.
        use_actual_distance: has no effect.
        name: name of the ops.
    Returns:
        segment_sum, [centroids, features]; segment_count, [centroids, 1]; kmean_total_sum, [1].
    """
    with tf.name_scope(name or "k_means_centroids"):
        x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
        distances = tf.reshape(sum_square_y, [1, -1]) - 2 * tf.matmul(x, y, transpose_b=True)
        if sum_square_x is not None:
            distances += tf.reshape(sum_square_x, [-1, 1])
        nearest, number = tf.argmin(distances, 1), tf.shape(y)[0]
        counts = tf.math.unsorted_segment_sum(tf.ones_like(x[:, :1]), nearest, number)
        return (
            tf.math.unsorted_segment_sum(x, nearest, number),
            counts,
            tf.reshape(tf.reduce_sum(tf.reduce_min(distances, 1)), [1]),
        )


def k_means_centroids_v2(
    x: Tensor, y: Tensor, sum_square_y: Tensor, use_actual_distance: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Do one step of k-means without |x_i|^2 in the distances. Arguments and results as for step.

    Args:
        use_actual_distance: has no effect.
    """
    return step(x, y, sum_square_y, None, name=name)


k_means_centroids = only_in_graphs("npu_ops.k_means_centroids")(step)
