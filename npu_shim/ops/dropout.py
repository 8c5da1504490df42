"""Dropout with the vendor's arguments: ``keep_prob`` is the probability to KEEP an element."""

from __future__ import annotations

import numbers
from typing import Any

from npu_shim import _device, _tf, _tf_gradients, _tf_graph, _xla
from npu_shim.ops import counter_rng

tf = _tf.tf
_where = tf.compat.v2.where
_EVEN = 32  # threads share a multiple of it evenly
LEAST_ELEMENTS = 40_000  # from which on they are compiled: fewer take less time than the launch
# Where only the run knows the size
_LEAST_HASHED = 1 << 14  # below, TensorFlow's random numbers cost less than the launch of a compiled function
_LEAST_KEYED = 1 << 20  # below, what the elements are multiplied with is kept: few MB, and one launch instead of two


def dropout(x: Any, keep_prob: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None) -> Any:
    """Keeps each element with probability keep_prob, scaled by 1 / keep_prob; the rest becomes zero.

        y[i] = x[i] / keep_prob   with probability keep_prob, else 0
        dx[i] = dy[i] / keep_prob where x[i] was kept, else 0

    On the card it is the vendor's op. On the CPU a large tensor's mask is a hash
    of each element's place and of a key that is drawn anew each time, made in
    one compiled function with the product, and made again for the gradient; a
    smaller tensor, or one with a noise_shape, takes ``tf.nn.dropout``. Where
    the graph does not know the size, the run chooses: the same random numbers
    as ``tf.nn.dropout`` below 2^14 elements, the hash from there, made again
    for the gradient only from 2^20 elements on. The same seeds
    give the same masks in every run, process and rank; without a seed each
    rank has masks of its own. An infinite x that is dropped is 0, but NaN in
    small tensors of TensorFlow 1.15 and 2.6, whose tf.nn.dropout multiplies, and
    wherever the graph does not know the size, or TensorFlow 2.19 and later a size
    that is no multiple of 32. With
    ``NPU_SHIM_KERNELS=plain`` all take ``tf.nn.dropout`` and drop what the
    script dropped before it was migrated. The card's random numbers differ.

    Args:
        x: float tensor of any shape (float16 or float32 on the card).
        keep_prob: a number in (0, 1], or a scalar float tensor.
        noise_shape: int32 vector, broadcast to x's shape: which elements share their fate.
        seed: int, the op's seed; with tf.compat.v1.set_random_seed it makes runs repeat.
        name: of the op.
    Returns:
        A tensor with x's shape and type; x itself when keep_prob is the number 1.
    Raises:
        RuntimeError: executing eagerly.
        ValueError: x is no float tensor, keep_prob is a number outside (0, 1] or a
            tensor that is no scalar.
    """
    if tf.executing_eagerly():
        raise RuntimeError(
            "npu_ops.dropout works in graph mode: call tf.compat.v1.disable_eager_execution() at the start of the "
            "script, or call it inside a tf.function."
        )
    if isinstance(keep_prob, numbers.Real) and not 0 < float(keep_prob) <= 1:
        raise ValueError(
            f"keep_prob={keep_prob!r} is not allowed: it is the probability to keep an element, a number greater "
            "than 0 and at most 1. For a dropout rate write keep_prob=1 - rate."
        )
    x = tf.convert_to_tensor(x, name="x")
    if not x.dtype.is_floating:
        raise ValueError(f"x={x!r} is {x.dtype.name}, but must be a float tensor: write tf.cast(x, tf.float32).")
    if isinstance(keep_prob, numbers.Real) and keep_prob == 1:
        return x
    if _device.device().is_npu:
        return _device.vendor("npu_bridge.estimator.npu_ops").dropout(x, keep_prob, noise_shape, seed, name)
    if noise_shape is not None or _is_small(x) or not _xla.usable():
        return _tf.v1.nn.dropout(x, rate=1 - _scalar(keep_prob, x.dtype), noise_shape=noise_shape, seed=seed, name=name)
    with tf.name_scope(name or "dropout"):
        return _hashed(x, keep_prob, seed)


def _is_small(x: Any) -> bool:
    count = x.shape.num_elements()
    return count is not None and not LEAST_ELEMENTS <= count <= _xla.MOST_ELEMENTS


def _hashed(x: Any, keep_prob: Any, seed: int | None) -> Any:
    """Dropout of a tensor that is large, or is found to be small only when it is there."""
    keep = tf.convert_to_tensor(_scalar(keep_prob, tf.float64), tf.float64)
    if x.shape.num_elements() is None and _tf_graph.in_plain_graph():
        return _chosen(x, keep, seed)
    key = counter_rng.new_key(seed)
    return _tf_gradients.with_gradient(_applied(x, key, keep), [x, key, keep], "NpuShimDropout")


@tf.RegisterGradient("NpuShimDropout")
@_tf_gradients.gradient_of
def _gradient(x: Any, key: Any, keep: Any, dy: Any) -> list[Any]:
    """The same mask and scale."""
    dy.set_shape(x.shape)
    return [_tf_gradients.with_gradient(_applied(dy, key, keep), [dy, key, keep], "NpuShimDropout"), None, None]


def _applied(x: Any, key: Any, keep: Any) -> Any:
    """The mask of a key, which is as good as the mask itself, times x and the scale.

    In functions, which may be compiled as a whole, and then with all their
    branches: in TensorFlow 2.6 these must give tensors of the same shapes.
    """

    def small() -> Any:
        kept = tf.random.stateless_uniform(tf.shape(x), key) < tf.cast(keep, tf.float32)
        return _times(x, tf.cast(kept, _wide(x)) * _scale(x, keep))

    return _xla.by_size(x, small, lambda: _by_key(x, key, keep), _LEAST_HASHED)


def _chosen(x: Any, keep: Any, seed: int | None) -> Any:
    """Dropout in a graph that does not know the size, with what the gradient needs: the factors or the key.

    A small tensor draws TensorFlow's numbers.
    """
    count = tf.size(x, out_type=tf.int64)
    is_keyed = count >= _LEAST_KEYED

    def with_factors(factors: Any) -> Any:
        return _times(x, factors), factors

    def small() -> Any:
        known = _tf.static_value(keep)
        rate = tf.cast(1.0 - keep, tf.float32) if known is None else tf.constant(1.0 - known, tf.float32)
        kept = tf.random.uniform(tf.shape(x), seed=seed) >= rate
        return with_factors(tf.cast(kept, _wide(x)) * _scale(x, keep))

    def hashed() -> Any:
        key = counter_rng.new_key(seed)

        def keyed() -> Any:
            return _applied(x, key, keep), tf.bitcast(key, _wide(x))  # one tensor for either saves a choice

        return tuple(_xla.chosen(is_keyed, keyed, lambda: with_factors(_factors(x, key, keep))))

    y, mask = _xla.chosen(count >= _LEAST_HASHED, hashed, small)
    y.set_shape(x.shape)
    return _tf_gradients.with_gradient(y, [x, mask, is_keyed, keep], "NpuShimChosenDropout")


@tf.RegisterGradient("NpuShimChosenDropout")
@_tf_gradients.gradient_of
def _chosen_gradient(x: Any, mask: Any, is_keyed: Any, keep: Any, dy: Any) -> list[Any]:
    """By the factors or the key that the mask is."""

    def keyed() -> Any:
        key = tf.bitcast(mask, tf.int32)
        key.set_shape([2])
        return _applied(dy, key, keep)

    dx = _xla.chosen(is_keyed, keyed, lambda: _times(dy, mask))
    dx.set_shape(x.shape)
    return [_tf_gradients.with_gradient(dx, [dy, mask, is_keyed, keep], "NpuShimChosenDropout"), None, None, None]


def _by_key(x: Any, key: Any, keep: Any) -> Any:
    """Of a large tensor."""
    count = x.shape.num_elements()
    if count is not None and not (count % _EVEN and _tf.UNEVEN_IS_SLOW):
        return _COMPILED(x, key, _most(keep), _scale(x, keep), tf.constant(-1))
    # The product takes the place of the factors; to bring x to a size that is compiled would be one more copy of it
    return _times(x, _factors(x, key, keep))


def _factors(x: Any, key: Any, keep: Any) -> Any:
    """What x, which is large, is multiplied with: 0 or the scale."""
    return _xla.counted(_COMPILED_FACTORS, x, key, _most(keep), _scale(x, keep))


def _most(keep: Any) -> Any:
    """An element stays when its int32 of random bits is at most this: all of them when keep is 1."""
    return tf.cast(tf.clip_by_value(tf.round(keep * 2.0**32) - (2.0**31 + 1), -(2.0**31), 2.0**31 - 1), tf.int32)


def _times(x: Any, factors: Any) -> Any:
    return tf.cast(tf.cast(x, factors.dtype) * factors, x.dtype)


def _scale(x: Any, keep: Any) -> Any:
    known = _tf.static_value(keep)
    return tf.cast(1.0 / keep, _wide(x)) if known is None else tf.constant(1.0 / known, _wide(x))


def _wide(x: Any) -> Any:
    """The type to compute in: half types are rounded once."""
    return tf.float64 if x.dtype == tf.float64 else tf.float32


def npu_shim_dropout(x: Any, key: Any, most: Any, scale: Any, ones: Any) -> Any:
    """Dropout by a key, to be compiled; the name is that of the graph's function.

    ones is a word of ones, as an argument that the compiler knows nothing of:
    bits of the product are kept or cleared by it. A choice between product and
    zero becomes a load and product under a mask on processors with AVX-512,
    which takes twice as long as all the rest.
    """
    kept = tf.reshape(counter_rng.bits(key, tf.size(x)) <= most, tf.shape(x))
    y = tf.cast(x, scale.dtype) * scale
    word = tf.int64 if y.dtype == tf.float64 else tf.int32
    mask = _where(kept, tf.cast(ones, word), tf.constant(0, word))
    return tf.cast(tf.bitcast(tf.bitwise.bitwise_and(tf.bitcast(y, word), mask), y.dtype), x.dtype)


def npu_shim_dropout_factors(count: Any, key: Any, most: Any, scale: Any) -> Any:
    """What dropout multiplies so many elements with, 0 or the scale; to be compiled, too."""
    return _where(counter_rng.bits(key, count) <= most, scale, tf.zeros_like(scale))


_COMPILED = _xla.Compiled(npu_shim_dropout)
_COMPILED_FACTORS = _xla.Compiled(npu_shim_dropout_factors, counts=True)


def _scalar(keep_prob: Any, dtype: Any) -> Any:
    if isinstance(keep_prob, numbers.Real):
        return float(keep_prob)
    keep_prob = tf.convert_to_tensor(keep_prob, name="keep_prob")
    if not keep_prob.shape.is_compatible_with([]):
        raise ValueError(f"keep_prob={keep_prob!r} has shape {keep_prob.shape}, but must be a scalar.")
    return tf.cast(keep_prob, dtype)
