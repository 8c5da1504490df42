"""The vendor's helper and experimental functions: the library of operators, shapes, images and constants from files."""

from __future__ import annotations

import ctypes
from typing import Sequence

from npu_shim import __version__
from npu_shim._tensorflow.tf_api import tf
from npu_shim._tensorflow.types import DType, Tensor
from npu_shim.distributed import ranks
from npu_shim.ops.unary_ops import Operators, npu_unary_ops

version = __version__
# TensorFlow's numbers of types, as malloc_shared_memory takes them
DT_FLOAT, DT_HALF, DT_DOUBLE = (dtype.as_datatype_enum for dtype in (tf.float32, tf.float16, tf.float64))
DT_INT32, DT_INT64, DT_UINT64 = (dtype.as_datatype_enum for dtype in (tf.int32, tf.int64, tf.uint64))


def get_gen_ops() -> Operators:
    """Return the library of operators, as npu_unary_ops."""
    return npu_unary_ops


def getshape(x: Tensor, name: str | None = None) -> Tensor:
    """Return the shape of a tensor as an int32 vector."""
    return tf.shape(tf.convert_to_tensor(x), name=name)


def get_shape(x: Sequence[Tensor] | Tensor, name: str | None = None) -> Tensor:
    """Return the shapes of tensors, one after the other, as an int32 vector."""
    tensors = x if isinstance(x, (list, tuple)) else [x]
    return tf.concat([tf.shape(tensor) for tensor in tensors], 0, name=name or "get_shape")


def decode_image(
    contents: Tensor,
    channels: int = 0,
    dtype: DType = tf.uint8,
    expand_animations: bool = True,
    name: str | None = None,
) -> Tensor:
    """Return the pixels of an encoded image: a BMP, GIF, JPEG or PNG.

    Args:
        contents: scalar string, the bytes of the file.
        channels: 0 for those of the image, 1, 3 or 4.
        dtype: tf.uint8, tf.uint16 or tf.float32.
        expand_animations: True for [frames, height, width, channels] of a GIF, False for its first frame.
        name: name of the ops.
    """
    return tf.io.decode_image(contents, channels, dtype, name=name, expand_animations=expand_animations)


def file_constant(
    shape: Sequence[int],
    dtype: DType,
    file_path: str | None = None,
    file_id: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Return a constant whose bytes are in a file, in the byte order of this machine.

    Args:
        shape: its shape.
        dtype: its type.
        file_path: the file.
        file_id: the name of a file that a converted model brings; not supported.
        name: name of the ops.
    Returns:
        A tensor of that shape and type.
    Raises:
        ValueError: file_path is missing. When it runs, TensorFlow reports a file that is missing or has another size.
    """
    if not file_path:
        raise ValueError(f"file_constant: file_path={file_path!r} and file_id={file_id!r}. Give file_path.")
    with tf.name_scope(name or "file_constant"):
        return tf.reshape(tf.io.decode_raw(tf.io.read_file(file_path), dtype), list(shape))


def c_str(string: str) -> ctypes.c_char_p:
    """Return a text as a C string."""
    return ctypes.c_char_p(string.encode("utf-8"))


def get_actual_rank_size(group: str = "hccl_world_group") -> int:
    """Return the number of ranks of a group."""
    return ranks.get_rank_size(group)


def get_user_rank_size() -> int:
    """Return the number of ranks of the job."""
    return ranks.get_rank_size()


def get_user_rank_id() -> int:
    """Return the rank of this process."""
    return ranks.get_rank_id()
