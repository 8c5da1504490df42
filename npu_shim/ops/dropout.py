"""Dropout with the vendor's arguments: ``keep_prob`` is the probability to KEEP an element."""

from __future__ import annotations

import numbers
from typing import Tuple

from npu_shim._tensorflow import tf_api, tf_gradients, tf_graph
from npu_shim._tensorflow.types import DType, Tensor, TensorShape
from npu_shim.ops import counter_rng, xla

TwoTensors = Tuple[Tensor, Tensor]

tf = tf_api.tf
_where = tf.compat.v2.where
_EVEN = 32  # threads share a multiple of it evenly
LEAST_ELEMENTS = 40_000  # compiled from this size; smaller tensors take less time than the launch
# For dynamic shapes:
_LEAST_HASHED = 1 << 14  # below, TensorFlow's random numbers cost less than the launch of a compiled function
_LEAST_KEYED = 1 << 20  # below, the factors are kept for the gradient: few MB, and one launch instead of two


def dropout(
    x: Tensor, keep_prob: float | Tensor, noise_shape: TensorShape | None = None, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Keep each element with probability keep_prob, scaled by 1 / keep_prob; others become zero.

        y[i] = x[i] / keep_prob   with probability keep_prob, else 0
        dx[i] = dy[i] / keep_prob where x[i] was kept, else 0

    On the NPU it is the vendor's op, with other random numbers. On the CPU:

    * Large tensors of static shape: the mask is a hash of each element's
      position and a random key. One compiled function computes mask and product;
      the gradient computes the mask again.
    * Small tensors, and those with a noise_shape: ``tf.nn.dropout``.
    * Dynamic shapes: chosen at run time. Below 2^14 elements, the random numbers
      of ``tf.nn.dropout``; from there the hash. The gradient computes the mask
      again from 2^20 elements. In a graph of more than 1000 ops: ``tf.nn.dropout``.

    The same seeds give the same masks in every run, process and rank. Without a
    seed each rank has different masks. A dropped infinite x becomes 0. It
    becomes NaN in small tensors of TensorFlow 1.15 and 2.6, whose tf.nn.dropout
    multiplies; in dynamic shapes; and from TensorFlow 2.19 in sizes that are not
    a multiple of 32. With ``NPU_SHIM_KERNELS=plain`` all tensors use
    ``tf.nn.dropout``, and masks are those of the script before its migration.

    Args:
        x: float tensor of any shape (float16 or float32 on the NPU).
        keep_prob: a number in (0, 1], or a scalar float tensor.
        noise_shape: int32 vector, the shape of the mask before it is broadcast to x's shape.
        seed: int, the op's seed; with tf.compat.v1.set_random_seed runs are reproducible.
        name: name of the op.
    Returns:
        A tensor with x's shape and type; x itself if keep_prob is the number 1.
    Raises:
        RuntimeError: in eager mode.
        ValueError: if x is not a float tensor, or keep_prob is a number outside
            (0, 1] or not a scalar.
    Source:
        Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from
        Overfitting", JMLR 15, 2014.
    """
    if tf.executing_eagerly():
        raise RuntimeError(
            "npu_ops.dropout works in graph mode: call tf.compat.v1.disable_eager_execution() at the start of the "
            "script, or call it inside a tf.function."
        )
    x = checked_input(x, keep_prob)
    if isinstance(keep_prob, numbers.Real) and keep_prob == 1:
        return x
    if (
        noise_shape is not None
        or _is_too_small_or_large_to_hash(x)
        or xla.should_not_compile(x)
        or not xla.is_xla_usable()
    ):
        return tf_api.v1.nn.dropout(
            x, rate=1 - _as_scalar(keep_prob, x.dtype), noise_shape=noise_shape, seed=seed, name=name
        )
    with tf.name_scope(name or "dropout"):
        return _hashed_dropout_of(x, keep_prob, seed)


def checked_input(x: Tensor, keep_prob: float | Tensor) -> Tensor:
    """Return the input of a dropout as a tensor.

    Raises:
        ValueError: it is not a float tensor, or keep_prob is a number outside (0, 1].
    """
    if isinstance(keep_prob, numbers.Real) and not 0 < float(keep_prob) <= 1:
        raise ValueError(
            f"keep_prob={keep_prob!r} is not allowed: it is the probability to keep an element, a number greater "
            "than 0 and at most 1. For a dropout rate write keep_prob=1 - rate."
        )
    x = tf.convert_to_tensor(x, name="x")
    if not x.dtype.is_floating:
        raise ValueError(f"x={x!r} is {x.dtype.name}, but must be a float tensor: write tf.cast(x, tf.float32).")
    return x


def _is_too_small_or_large_to_hash(x: Tensor) -> bool:
    count = x.shape.num_elements()
    return count is not None and not LEAST_ELEMENTS <= count <= xla.MOST_ELEMENTS


def _hashed_dropout_of(x: Tensor, keep_prob: float | Tensor, seed: int | None) -> Tensor:
    """Return the dropout of a large tensor, or of one whose size is known at run time only."""
    keep = tf.convert_to_tensor(_as_scalar(keep_prob, tf.float64), tf.float64)
    if x.shape.num_elements() is None and tf_graph.is_in_plain_graph():
        return _dropout_of_dynamic_shape(x, keep, seed)
    key = counter_rng.new_random_key(seed)
    return tf_gradients.with_registered_gradient(_apply_hashed_dropout(x, key, keep), [x, key, keep], "NpuShimDropout")


@tf.RegisterGradient("NpuShimDropout")
@tf_gradients.make_registrable_gradient
def _hashed_dropout_gradient(x: Tensor, key: Tensor, keep: Tensor, dy: Tensor) -> list[Tensor | None]:
    """Return dy with the same mask and scale."""
    dy.set_shape(x.shape)
    return [
        tf_gradients.with_registered_gradient(_apply_hashed_dropout(dy, key, keep), [dy, key, keep], "NpuShimDropout"),
        None,
        None,
    ]


def _apply_hashed_dropout(x: Tensor, key: Tensor, keep: Tensor) -> Tensor:
    """Return x times the mask of a key and the scale.

    It is also called in functions, which may be compiled as a whole with all
    branches. In TensorFlow 2.6 the branches must return tensors of the same
    shape.
    """

    def small() -> Tensor:
        kept = tf.random.stateless_uniform(tf.shape(x), key) < tf.cast(keep, tf.float32)
        return _multiply_by_factors(x, tf.cast(kept, _compute_dtype(x)) * _scale_of_kept(x, keep))

    return xla.cond_by_size(x, small, lambda: _hashed_dropout(x, key, keep), _LEAST_HASHED)


def _dropout_of_dynamic_shape(x: Tensor, keep: Tensor, seed: int | None) -> Tensor:
    """Return the dropout of a dynamic shape. Its gradient gets the factors or the key.

    A small tensor uses TensorFlow's random numbers.
    """
    count = tf.size(x, out_type=tf.int64)
    is_keyed = count >= _LEAST_KEYED

    def with_factors(factors: Tensor) -> TwoTensors:
        return _multiply_by_factors(x, factors), factors

    def small() -> TwoTensors:
        known = tf_api.static_value(keep)
        rate = tf.cast(1.0 - keep, tf.float32) if known is None else tf.constant(1.0 - known, tf.float32)
        kept = tf.random.uniform(tf.shape(x), seed=seed) >= rate
        return with_factors(tf.cast(kept, _compute_dtype(x)) * _scale_of_kept(x, keep))

    def hashed() -> TwoTensors:
        key = counter_rng.new_random_key(seed)

        def keyed() -> TwoTensors:
            return _apply_hashed_dropout(x, key, keep), tf.bitcast(
                key, _compute_dtype(x)
            )  # as one tensor, like the factors

        return tuple(xla.cond_on_large(is_keyed, keyed, lambda: with_factors(_dropout_factors(x, key, keep))))

    y, mask = xla.cond_on_large(count >= _LEAST_HASHED, hashed, small)
    y.set_shape(x.shape)
    return tf_gradients.with_registered_gradient(y, [x, mask, is_keyed, keep], "NpuShimChosenDropout")


@tf.RegisterGradient("NpuShimChosenDropout")
@tf_gradients.make_registrable_gradient
def _gradient_by_factors_or_key(
    x: Tensor, mask: Tensor, is_keyed: Tensor, keep: Tensor, dy: Tensor
) -> list[Tensor | None]:
    """Return dy with the mask, which is the factors or the key."""

    def keyed() -> Tensor:
        key = tf.bitcast(mask, tf.int32)
        key.set_shape([2])
        return _apply_hashed_dropout(dy, key, keep)

    dx = xla.cond_on_large(is_keyed, keyed, lambda: _multiply_by_factors(dy, mask))
    dx.set_shape(x.shape)
    return [
        tf_gradients.with_registered_gradient(dx, [dy, mask, is_keyed, keep], "NpuShimChosenDropout"),
        None,
        None,
        None,
    ]


def _hashed_dropout(x: Tensor, key: Tensor, keep: Tensor) -> Tensor:
    """Return the dropout of a large tensor."""
    count = x.shape.num_elements()
    if count is not None and not (count % _EVEN and tf_api.UNEVEN_IS_SLOW):
        return _COMPILED(x, key, _largest_kept_word(keep), _scale_of_kept(x, keep), tf.constant(-1))
    # The product reuses the memory of the factors; padding x to a compiled size would copy it once more
    return _multiply_by_factors(x, _dropout_factors(x, key, keep))


def _dropout_factors(x: Tensor, key: Tensor, keep: Tensor) -> Tensor:
    """Return the factors of a large x: 0 or the scale."""
    return xla.generate_like(_COMPILED_FACTORS, x, key, _largest_kept_word(keep), _scale_of_kept(x, keep))


def _largest_kept_word(keep: Tensor) -> Tensor:
    """Return the int32 up to which random bits keep an element; the largest int32 if keep is 1."""
    return tf.cast(tf.clip_by_value(tf.round(keep * 2.0**32) - (2.0**31 + 1), -(2.0**31), 2.0**31 - 1), tf.int32)


def _multiply_by_factors(x: Tensor, factors: Tensor) -> Tensor:
    return tf.cast(tf.cast(x, factors.dtype) * factors, x.dtype)


def _scale_of_kept(x: Tensor, keep: Tensor) -> Tensor:
    known = tf_api.static_value(keep)
    return tf.cast(1.0 / keep, _compute_dtype(x)) if known is None else tf.constant(1.0 / known, _compute_dtype(x))


def _compute_dtype(x: Tensor) -> DType:
    """Return the dtype of the computation; half types are rounded once."""
    return tf.float64 if x.dtype == tf.float64 else tf.float32


def npu_shim_dropout(x: Tensor, key: Tensor, largest_kept: Tensor, scale: Tensor, word_of_ones: Tensor) -> Tensor:
    """Return the dropout by a key. It is compiled; its name is that of the graph's function.

    ``word_of_ones`` is passed as an argument so that the compiler does
    not know its value. It keeps or clears the bits of the product. A select
    between product and zero would become a masked load and product on
    processors with AVX-512, which takes twice as long as all the rest.
    """
    kept = tf.reshape(counter_rng.random_int32(key, tf.size(x)) <= largest_kept, tf.shape(x))
    y = tf.cast(x, scale.dtype) * scale
    word = tf.int64 if y.dtype == tf.float64 else tf.int32
    mask = _where(kept, tf.cast(word_of_ones, word), tf.constant(0, word))
    return tf.cast(tf.bitcast(tf.bitwise.bitwise_and(tf.bitcast(y, word), mask), y.dtype), x.dtype)


def npu_shim_dropout_factors(count: Tensor, key: Tensor, largest_kept: Tensor, scale: Tensor) -> Tensor:
    """Return the dropout factors of ``count`` elements, 0 or the scale. It is compiled, too."""
    return _where(counter_rng.random_int32(key, count) <= largest_kept, scale, tf.zeros_like(scale))


_COMPILED = xla.Compiled(npu_shim_dropout)
_COMPILED_FACTORS = xla.Compiled(npu_shim_dropout_factors, counts=True)


def _as_scalar(keep_prob: float | Tensor, dtype: DType) -> float | Tensor:
    if isinstance(keep_prob, numbers.Real):
        return float(keep_prob)
    keep_prob = tf.convert_to_tensor(keep_prob, name="keep_prob")
    if not keep_prob.shape.is_compatible_with([]):
        raise ValueError(f"keep_prob={keep_prob!r} has shape {keep_prob.shape}, but must be a scalar.")
    return tf.cast(keep_prob, dtype)
