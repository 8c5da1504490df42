"""The compressed embedding net of a Deep Potential: quintic polynomials from a table, times the environment matrix.

    descriptor[i, c, k] = sum over j of em[i, j, c] g_k(em_x[i, j])

g_k is a polynomial of degree 5 in each interval of a table, and a straight line outside the table. Source: Lu et al.,
"DP Compress", arXiv:2107.02103, and the operator TabulateFusionSeA of DeePMD-kit. Its gradients are those of the
formula, also of second order.
"""

from __future__ import annotations

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import Tensor
from npu_shim.ops import gradient_of


def tabulate_fusion_se_a(
    table: Tensor, table_info: Tensor, em_x: Tensor, em: Tensor, last_layer_size: int = 128, name: str | None = None
) -> Tensor:
    """Return the descriptors of atoms.

    Args:
        table: [intervals, 6 last_layer_size], float16, float32 or float64: a0 to a5 of g_0, then of g_1 and so on. g_k
            is the sum of an d^n, where d is the distance from the start of the interval.
        table_info: [6]: where the table begins; where its fine intervals end; where it ends; the sizes of the fine and
            of the coarse intervals; a number without effect.
        em_x: [atoms neighbors, 1] or [atoms, neighbors], the arguments of g.
        em: [atoms, neighbors, 4], the environment matrix.
        last_layer_size: the number of functions g_k.
        name: name of the ops.
    Returns:
        [atoms, 4, last_layer_size], of em's type.
    """
    with tf.name_scope(name or "tabulate_fusion_se_a"):
        em = tf.convert_to_tensor(em)
        dtype = tf.float32 if em.dtype == tf.float16 else em.dtype  # float16 does not have all numbers of intervals
        table, info, matrix = (tf.cast(tensor, dtype) for tensor in (table, table_info, em))
        x = tf.reshape(tf.cast(em_x, dtype), tf.shape(em)[:2])
        begin, middle, end, fine, coarse, _ = tf.unstack(info, 6)
        inside = tf.clip_by_value(x, begin, end)
        first = tf.stop_gradient(tf.round((middle - begin) / fine))  # the number of fine intervals
        last = tf.cast(tf.shape(table)[0] - 1, dtype)
        in_fine = inside < middle
        place = tf.minimum(
            _where(in_fine, _integer_part((inside - begin) / fine), first + _integer_part((inside - middle) / coarse)),
            last,
        )
        start = _where(in_fine, begin + place * fine, middle + (place - first) * coarse)
        d = tf.expand_dims(inside - start, -1)
        rows = tf.gather(tf.reshape(table, [-1, last_layer_size, 6]), tf.cast(place, tf.int32))
        a0, a1, a2, a3, a4, a5 = tf.unstack(rows, 6, axis=-1)
        slope = a1 + d * (2 * a2 + d * (3 * a3 + d * (4 * a4 + d * 5 * a5)))
        g = a0 + d * (a1 + d * (a2 + d * (a3 + d * (a4 + d * a5)))) + slope * tf.expand_dims(x - inside, -1)
        descriptor = tf.cast(tf.einsum("ijc,ijk->ick", matrix, g), em.dtype)
        descriptor.set_shape([em.shape[0], 4, last_layer_size])
        return descriptor


def tabulate_fusion(
    table: Tensor, table_info: Tensor, em_x: Tensor, em: Tensor, last_layer_size: int = 128, name: str | None = None
) -> Tensor:
    """Return the descriptors of atoms. It is tabulate_fusion_se_a under its older name."""
    return tabulate_fusion_se_a(table, table_info, em_x, em, last_layer_size, name or "tabulate_fusion")


def tabulate_fusion_se_a_grad(
    table: Tensor, table_info: Tensor, em_x: Tensor, em: Tensor, dy: Tensor, descriptor: Tensor,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradients of em_x and em, of their shapes.

    Args:
        dy: [atoms, 4, last_layer_size], the gradient of the descriptor.
        descriptor: the result of tabulate_fusion_se_a; it is not used.
        others: as for tabulate_fusion_se_a.
    """
    with tf.name_scope(name or "tabulate_fusion_se_a_grad"):
        size = tf.convert_to_tensor(table).shape.as_list()[-1] // 6

        def forward(x: Tensor, matrix: Tensor) -> Tensor:
            return tabulate_fusion_se_a(table, table_info, x, matrix, size)

        of_x, of_matrix = gradient_of.gradients_of(forward, [em_x, em], dy)
        return of_x, of_matrix


def tabulate_fusion_grad(
    table: Tensor, table_info: Tensor, em_x: Tensor, em: Tensor, dy: Tensor, descriptor: Tensor,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradients of em_x and em. It is tabulate_fusion_se_a_grad under its older name."""
    return tabulate_fusion_se_a_grad(table, table_info, em_x, em, dy, descriptor, name or "tabulate_fusion_grad")


def tabulatefusionseagrad(
    table: Tensor, table_info: Tensor, em_x: Tensor, em: Tensor, dy_dem_x: Tensor, dy_dem: Tensor,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradients of em_x and em.

    Args:
        dy_dem_x: the gradient of the descriptor, in spite of its name.
        dy_dem: the descriptor, in spite of its name; it is not used.
        others: as for tabulate_fusion_se_a.
    """
    return tabulate_fusion_se_a_grad(table, table_info, em_x, em, dy_dem_x, dy_dem, name)


def tabulatefusiongrad(
    table: Tensor, table_info: Tensor, em_x: Tensor, em: Tensor, dy_dem_x: Tensor, dy_dem: Tensor,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradients of em_x and em. Arguments as for tabulatefusionseagrad."""
    return tabulate_fusion_grad(table, table_info, em_x, em, dy_dem_x, dy_dem, name)


tabulatefusionsea, tabulatefusion = tabulate_fusion_se_a, tabulate_fusion
_where = tf.compat.v2.where


def _integer_part(number: Tensor) -> Tensor:
    """Return the integer part of a number that is not negative. It has no gradient."""
    return tf.stop_gradient(tf.floor(number))
