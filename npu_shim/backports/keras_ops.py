"""Functions of keras.ops, which Keras 3 has, written with those of TensorFlow.

They take tensors, arrays, numbers and the symbolic tensors of Keras. Their arguments have the names of Keras 3: ``x``
for the tensor, ``axis`` for an axis or a sequence of axes (None for all), ``keepdims``. Integers become ``floatx``
where a function computes real numbers. Two tensors of different types get the type of the real one. A function that is
not in the table is an AttributeError. Source: the pages of keras.ops on keras.io, and NumPy's of the same name.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Function, Tensor, Unknown, Value

_Function = Function
_nn, _math, _np = tf.nn, tf.math, tf.experimental.numpy
_REAL = "ceil cos erf exp floor log log1p rsqrt sigmoid sin softplus sqrt tanh"
_OF_TWO = "add equal greater greater_equal less less_equal maximum minimum multiply not_equal subtract"


def _as_tensor(x: Unknown) -> Tensor:
    """Return a tensor as it is, and other values as one: real numbers with floatx, integers with int32."""
    if hasattr(x, "dtype"):
        return tf.convert_to_tensor(x) if isinstance(x, (np.ndarray, np.generic)) else x
    tensor = tf.convert_to_tensor(x)
    has_type = any(hasattr(number, "dtype") for number in tf.nest.flatten(x))
    return tf.cast(tensor, _floatx()) if tensor.dtype.is_floating and not has_type else tensor


def _floatx() -> str:
    return tf.keras.backend.floatx()


def _as_real_tensor(x: Unknown) -> Tensor:
    """Return a tensor of real numbers."""
    x = _as_tensor(x)
    dtype = tf.as_dtype(x.dtype)
    return tf.cast(x, _floatx()) if dtype.is_integer or dtype.is_bool else x


def _as_number_tensor(x: Unknown) -> Tensor:
    """Return a tensor of numbers: truth values as int32."""
    x = _as_tensor(x)
    return tf.cast(x, tf.int32) if tf.as_dtype(x.dtype).is_bool else x


def _as_bool_tensor(x: Unknown) -> Tensor:
    """Return a tensor of truth values."""
    return tf.cast(x, tf.bool)


def _as_pair_of_one_type(x1: Unknown, x2: Unknown) -> tuple[Tensor, Tensor]:
    """Return two values of one type; a number that is no tensor has that of the other."""
    have = [hasattr(x, "dtype") for x in (x1, x2)]
    if not any(have):
        x1 = _as_tensor(x1)
        have[0] = True
    if all(have):
        types = [tf.as_dtype(x.dtype) for x in (x1, x2)]
        if types[0] != types[1]:
            both = max(types, key=lambda dtype: (dtype.is_complex, dtype.is_floating, not dtype.is_bool, dtype.size))
            x1, x2 = tf.cast(x1, both), tf.cast(x2, both)
        return x1, x2
    known, number = (x1, x2) if have[0] else (x2, x1)
    dtype = tf.as_dtype(known.dtype)
    if dtype.is_integer and any(isinstance(part, float) for part in tf.nest.flatten(number)):
        dtype = tf.as_dtype(_floatx())
        known = tf.cast(known, dtype)
    number = tf.cast(number, dtype)
    return (known, number) if have[0] else (number, known)


def _binary_op(function: _Function) -> _Function:
    return lambda x1, x2: function(*_as_pair_of_one_type(x1, x2))


def _binary_real_op(function: _Function) -> _Function:
    return lambda x1, x2: function(*_as_pair_of_one_type(_as_real_tensor(x1), _as_real_tensor(x2)))


def _unary_op(function: _Function, as_type: _Function = _as_real_tensor) -> _Function:
    return lambda x: function(as_type(x))


def _ops_with_tensorflow_arguments(owner: Unknown, names: str) -> dict[str, _Function]:
    """Return functions whose arguments after the tensor are those of TensorFlow's."""

    def taking_all(function: _Function) -> _Function:
        return lambda x, *args, **kwargs: function(_as_tensor(x), *args, **kwargs)

    return {name: taking_all(getattr(owner, name)) for name in names.split()}


def _reduction_op(function: _Function, as_type: _Function = _as_real_tensor) -> _Function:
    return lambda x, axis=None, keepdims=False: function(as_type(x), axis, keepdims)


def _shape(x: Unknown) -> tuple[Value, ...]:
    """Return the sizes of a tensor: numbers, and scalar tensors where they are not static."""
    x = _as_tensor(x)
    sizes = tf.TensorShape(x.shape).as_list()
    if None not in sizes:
        return tuple(sizes)
    dynamic = tf.shape(x)
    return tuple(dynamic[place] if size is None else size for place, size in enumerate(sizes))


def _arg_extreme_op(function: _Function) -> _Function:
    def index_of(x: Unknown, axis: int | None = None, keepdims: bool = False) -> Tensor:
        x = _as_number_tensor(x)
        if axis is None:
            index = function(tf.reshape(x, [-1]), 0, output_type=tf.int32)
            return tf.reshape(index, [1] * len(x.shape)) if keepdims else index
        index = function(x, axis, output_type=tf.int32)
        return tf.expand_dims(index, axis) if keepdims else index

    return index_of


def _arange(start: Unknown, stop: Unknown = None, step: Unknown = None, dtype: DType | None = None) -> Tensor:
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    if dtype is None:
        is_real = any(
            isinstance(x, float) or hasattr(x, "dtype") and tf.as_dtype(x.dtype).is_floating
            for x in (start, stop, step)
        )
        dtype = _floatx() if is_real else "int32"
    return tf.range(start, stop, step, dtype)


def _clip(x: Unknown, x_min: Unknown, x_max: Unknown) -> Tensor:
    return OPS["minimum"](OPS["maximum"](x, x_min), x_max)


def _full(shape: Unknown, fill_value: Unknown, dtype: DType | None = None) -> Tensor:
    return tf.broadcast_to(tf.cast(fill_value, dtype or _floatx()), shape)


def _is_channels_first(data_format: str | None) -> bool:
    return (data_format or tf.keras.backend.image_data_format()) == "channels_first"


def _resize(
    images: Unknown,
    size: tuple[int, int],
    interpolation: str = "bilinear",
    antialias: bool = False,
    data_format: str | None = None,
) -> Tensor:
    images = _as_tensor(images)
    first = _is_channels_first(data_format)
    rank = len(images.shape)
    last = [*range(rank - 3), rank - 2, rank - 1, rank - 3]
    resized = tf.image.resize(tf.transpose(images, last) if first else images, size, interpolation, antialias=antialias)
    resized = tf.transpose(resized, [*range(rank - 3), rank - 1, rank - 3, rank - 2]) if first else resized
    return tf.cast(resized, images.dtype)


def _convert_to_tensor(
    x: Unknown, dtype: DType | None = None, sparse: bool | None = None, ragged: bool | None = None
) -> Tensor:
    if sparse is False and isinstance(x, tf.SparseTensor):
        x = tf.sparse.to_dense(x)
    elif ragged is False and isinstance(x, tf.RaggedTensor):
        x = x.to_tensor()
    return tf.cast(_as_tensor(x), dtype) if dtype else _as_tensor(x)


def _extract_patches(
    images: Unknown,
    size: Unknown,
    strides: Unknown = None,
    dilation_rate: int = 1,
    padding: str = "valid",
) -> Tensor:
    size = (size, size) if isinstance(size, int) else tuple(size)
    strides = size if strides is None else (strides, strides) if isinstance(strides, int) else tuple(strides)
    rates = [1, dilation_rate, dilation_rate, 1]
    images = _as_tensor(images)
    batch = images[None] if len(images.shape) == 3 else images
    patches = tf.image.extract_patches(batch, [1, *size, 1], [1, *strides, 1], rates, padding.upper())
    return patches[0] if len(images.shape) == 3 else patches


def _linspace(
    start: Unknown, stop: Unknown, num: int = 50, endpoint: bool = True, dtype: DType | None = None
) -> Tensor:
    points = tf.linspace(_as_real_tensor(start), _as_real_tensor(stop), num if endpoint else num + 1)
    points = points if endpoint else points[:-1]
    return tf.cast(points, dtype) if dtype else points


def _norm(x: Unknown, ord: Unknown = None, axis: Unknown = None, keepdims: bool = False) -> Tensor:
    return tf.norm(_as_real_tensor(x), "euclidean" if ord is None else ord, axis, keepdims)


def _one_hot(x: Unknown, num_classes: int, axis: int = -1, dtype: DType | None = None) -> Tensor:
    x = _as_tensor(x)
    return tf.one_hot(
        x if x.dtype in (tf.int32, tf.int64) else tf.cast(x, tf.int32), num_classes, axis=axis, dtype=dtype or _floatx()
    )


def _pad(x: Unknown, pad_width: Unknown, mode: str = "constant", constant_values: Unknown = None) -> Tensor:
    x = _as_tensor(x)
    rank = len(x.shape)
    if isinstance(pad_width, int):
        pad_width = [(pad_width, pad_width)] * rank
    elif isinstance(pad_width[0], int):
        pad_width = [tuple(pad_width)] * rank
    return tf.pad(x, list(pad_width) * (rank if len(pad_width) == 1 else 1), mode.upper(), constant_values or 0)


def _roll(x: Unknown, shift: Unknown, axis: Unknown = None) -> Tensor:
    x = _as_tensor(x)
    if axis is None:
        return tf.reshape(tf.roll(tf.reshape(x, [-1]), shift, 0), _shape(x))
    return tf.roll(x, shift, axis)


def _split(x: Unknown, indices_or_sections: int | list[int], axis: int = 0) -> list[Tensor]:
    x = _as_tensor(x)
    if isinstance(indices_or_sections, int):
        return tf.split(x, indices_or_sections, axis)
    ends = [*indices_or_sections, _shape(x)[axis]]
    return tf.split(x, [end - start for start, end in zip([0, *ends], ends)], axis)


def _take(x: Unknown, indices: Unknown, axis: int | None = None) -> Tensor:
    x = tf.reshape(_as_tensor(x), [-1]) if axis is None else _as_tensor(x)
    return tf.gather(x, indices, axis=axis or 0)


def _take_along_axis(x: Unknown, indices: Unknown, axis: int) -> Tensor:
    x, indices = _np.swapaxes(_as_tensor(x), axis, -1), _np.swapaxes(_as_tensor(indices), axis, -1)
    return _np.swapaxes(tf.gather(x, indices, batch_dims=len(x.shape) - 1), axis, -1)


def _where(condition: Unknown, x1: Unknown = None, x2: Unknown = None) -> Unknown:
    condition = tf.cast(condition, tf.bool)
    if x1 is None and x2 is None:
        return tuple(tf.unstack(tf.cast(tf.where(condition), tf.int32), num=len(condition.shape), axis=-1))
    return tf.where(condition, *_as_pair_of_one_type(x1, x2))


def _real_and_imaginary_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    return _math.real(x), _math.imag(x)


def _with_keras_loss_signature(function: _Function) -> _Function:
    return lambda target, output, from_logits=False, axis=-1: function(
        target, output, from_logits=from_logits, axis=axis
    )


# The functions by their names. Those of the first rows have the names of tf.math.
OPS: dict[str, _Function] = {
    **{name: _unary_op(getattr(_math, name)) for name in _REAL.split()},
    **{name: _unary_op(getattr(_math, name), _as_number_tensor) for name in ("abs", "negative", "sign", "square")},
    **{name: _binary_op(getattr(_math, name)) for name in _OF_TWO.split()},
    **{name: _reduction_op(getattr(_math, f"reduce_{name}")) for name in ("logsumexp", "mean", "std")},
    **{
        name: _reduction_op(getattr(_math, f"reduce_{name}"), _as_number_tensor)
        for name in ("max", "min", "prod", "sum")
    },
    **{name: _reduction_op(getattr(_math, f"reduce_{name}"), _as_bool_tensor) for name in ("all", "any")},
    **_ops_with_tensorflow_arguments(
        tf, "broadcast_to expand_dims ones_like repeat size sort squeeze unstack zeros_like"
    ),
    **_ops_with_tensorflow_arguments(_np, "swapaxes tril triu"),
    **_ops_with_tensorflow_arguments(_math, "top_k"),
    # sizes and types
    "array": lambda x, dtype=None: tf.cast(_as_tensor(x), dtype) if dtype else tf.identity(_as_tensor(x)),
    "cast": lambda x, dtype: tf.cast(x, dtype),
    "convert_to_numpy": lambda x: _as_tensor(x).numpy(),
    "convert_to_tensor": _convert_to_tensor,
    "is_tensor": tf.is_tensor,
    "ndim": lambda x: len(_as_tensor(x).shape),
    "shape": _shape,
    "stop_gradient": lambda variable: tf.stop_gradient(variable),
    # new tensors
    "arange": _arange,
    "eye": lambda N, M=None, dtype=None: tf.eye(N, M, dtype=dtype or _floatx()),
    "full": _full,
    "full_like": lambda x, fill_value, dtype=None: _full(
        tf.shape(_as_tensor(x)), fill_value, dtype or _as_tensor(x).dtype
    ),
    "linspace": _linspace,
    "meshgrid": lambda *x, indexing="xy": tf.meshgrid(*map(_as_tensor, x), indexing=indexing),
    "one_hot": _one_hot,
    "ones": lambda shape, dtype=None: tf.ones(shape, dtype or _floatx()),
    "zeros": lambda shape, dtype=None: tf.zeros(shape, dtype or _floatx()),
    # places of numbers
    "argsort": lambda x, axis=-1: tf.argsort(_as_tensor(x), axis, stable=True),
    "concatenate": lambda xs, axis=0: tf.concat(xs, axis),
    "extract_patches": _extract_patches,
    "flip": lambda x, axis=None: tf.reverse(
        _as_tensor(x), range(len(_as_tensor(x).shape)) if axis is None else tf.nest.flatten(axis)
    ),
    "pad": _pad,
    "reshape": lambda x, newshape: tf.reshape(_as_tensor(x), newshape),
    "resize": _resize,
    "roll": _roll,
    "scatter": lambda indices, values, shape: tf.scatter_nd(indices, values, shape),
    "segment_sum": lambda data, segment_ids, num_segments: _math.unsorted_segment_sum(data, segment_ids, num_segments),
    "slice": lambda inputs, start_indices, shape: tf.slice(_as_tensor(inputs), start_indices, shape),
    "split": _split,
    "stack": lambda x, axis=0: tf.stack(x, axis),
    "take": _take,
    "take_along_axis": _take_along_axis,
    "tile": lambda x, repeats: tf.tile(_as_tensor(x), tf.nest.flatten(repeats)),
    "transpose": lambda x, axes=None: tf.transpose(_as_tensor(x), axes),
    "where": _where,
    # each number
    "clip": _clip,
    "isclose": lambda x1, x2: _np.isclose(*_as_pair_of_one_type(_as_tensor(x1), _as_tensor(x2))),
    "isfinite": _unary_op(_math.is_finite),
    "isnan": _unary_op(_math.is_nan),
    "log2": lambda x: _math.log(_as_real_tensor(x)) / np.log(2.0),
    "round": lambda x, decimals=0: tf.round(_as_real_tensor(x) * 10.0**decimals) / 10.0**decimals,
    # two tensors
    "divide": _binary_real_op(tf.divide),
    "divide_no_nan": _binary_real_op(_math.divide_no_nan),
    "logical_and": lambda x1, x2: tf.logical_and(_as_bool_tensor(x1), _as_bool_tensor(x2)),
    "logical_not": lambda x: tf.logical_not(_as_bool_tensor(x)),
    "logical_or": lambda x1, x2: tf.logical_or(_as_bool_tensor(x1), _as_bool_tensor(x2)),
    "mod": _binary_op(_math.floormod),
    "power": _binary_op(tf.pow),
    # products
    "dot": lambda x1, x2: tf.tensordot(*_as_pair_of_one_type(_as_tensor(x1), _as_tensor(x2)), axes=1),
    "einsum": lambda subscripts, *operands: tf.einsum(subscripts, *operands),
    "matmul": lambda x1, x2: tf.matmul(*_as_pair_of_one_type(_as_tensor(x1), _as_tensor(x2))),
    "tensordot": lambda x1, x2, axes=2: tf.tensordot(*_as_pair_of_one_type(_as_tensor(x1), _as_tensor(x2)), axes=axes),
    # along axes
    "argmax": _arg_extreme_op(tf.argmax),
    "argmin": _arg_extreme_op(tf.argmin),
    "cumsum": lambda x, axis=None: tf.cumsum(
        tf.reshape(_as_tensor(x), [-1]) if axis is None else _as_tensor(x), axis or 0
    ),
    "moments": lambda x, axes, keepdims=False: _nn.moments(_as_real_tensor(x), axes, keepdims=keepdims),
    "norm": _norm,
    "normalize": lambda x, axis=-1, order=2: _as_real_tensor(x) / tf.maximum(_norm(x, order, axis, True), 1e-12),
    "var": _reduction_op(_math.reduce_variance),
    # spectra: pairs of real and imaginary parts
    "fft": lambda x: _real_and_imaginary_parts(tf.signal.fft(tf.complex(*map(_as_real_tensor, x)))),
    "fft2": lambda x: _real_and_imaginary_parts(tf.signal.fft2d(tf.complex(*map(_as_real_tensor, x)))),
    # networks
    "binary_crossentropy": lambda target, output, from_logits=False: tf.keras.backend.binary_crossentropy(
        _as_tensor(target), _as_tensor(output), from_logits
    ),
    "categorical_crossentropy": _with_keras_loss_signature(tf.keras.backend.categorical_crossentropy),
    "elu": lambda x, alpha=1.0: tf.keras.activations.elu(_as_real_tensor(x), alpha),
    "gelu": lambda x, approximate=True: _nn.gelu(_as_real_tensor(x), approximate),
    "leaky_relu": lambda x, negative_slope=0.2: _nn.leaky_relu(_as_real_tensor(x), negative_slope),
    "log_softmax": lambda x, axis=-1: _nn.log_softmax(_as_real_tensor(x), axis),
    "relu": _unary_op(_nn.relu),
    "silu": _unary_op(_nn.silu),
    "softmax": lambda x, axis=-1: _nn.softmax(_as_real_tensor(x), axis),
    "sparse_categorical_crossentropy": _with_keras_loss_signature(tf.keras.backend.sparse_categorical_crossentropy),
    # control flow
    "cond": lambda pred, true_fn, false_fn: tf.cond(tf.cast(pred, tf.bool), true_fn, false_fn),
    "vectorized_map": lambda function, elements: tf.vectorized_map(function, elements),
    "while_loop": lambda cond, body, loop_vars, maximum_iterations=None: tf.while_loop(
        cond, body, loop_vars, maximum_iterations=maximum_iterations
    ),
}
# Functions that keras.ops has in its modules only, or there too.
IMAGE = ("extract_patches", "resize")
ops = SimpleNamespace(**{name: function for name, function in OPS.items() if name not in IMAGE})
ops.image = SimpleNamespace(**{name: OPS[name] for name in IMAGE})
ops.nn = ops.numpy = ops
