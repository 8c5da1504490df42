"""Networks of words, and the transformer of patches of images."""

from __future__ import annotations

from typing import Sequence

import tensorflow as tf

from npu_shim.estimator import npu_ops
from npu_shim.estimator.npu_unary_ops import npu_unary_ops

from .layers import Tensor, classes, conv, dense, given, network, rows, weights


def layer_norm(x: Tensor) -> Tensor:
    """Return a layer normalization of the last dimension."""
    centre, spread = tf.nn.moments(x, [-1], keepdims=True)
    shift, scale = (weights(int(x.shape[-1])) for _ in range(2))
    return tf.nn.batch_normalization(x, centre, spread, shift, scale, 1e-12)


def attention(x: Tensor, heads: int, memory: Tensor | None = None, mask: bool = True) -> Tensor:
    """Return the attention of several heads with its projection, and with a dropout of its shares."""
    batch, length, width = x.shape.as_list()
    memory = x if memory is None else memory

    def split(y: Tensor) -> Tensor:
        y = dense(y, width)
        return tf.transpose(tf.reshape(y, [batch, y.shape[1], heads, width // heads]), [0, 2, 1, 3])

    scores = tf.matmul(split(x), split(memory), transpose_b=True) * (width // heads) ** -0.5
    scores = scores + given(batch, 1, length, int(memory.shape[1])) if mask else scores
    read = tf.matmul(npu_ops.dropout(tf.nn.softmax(scores), 0.9), split(memory))
    return dense(tf.reshape(tf.transpose(read, [0, 2, 1, 3]), [batch, length, width]), width)


def encoded(x: Tensor, layers: int, heads: int, inner: int, memory: Tensor | None = None, mask: bool = True) -> Tensor:
    """Return the layers of an encoder, or with a memory those of a decoder."""
    for _ in range(layers):
        x = layer_norm(x + npu_ops.dropout(attention(x, heads, mask=mask), 0.9))
        if memory is not None:
            x = layer_norm(x + npu_ops.dropout(attention(x, heads, memory), 0.9))
        inside = dense(dense(x, inner, npu_unary_ops.gelu if memory is None else tf.nn.relu), int(x.shape[-1]))
        x = layer_norm(x + npu_ops.dropout(inside, 0.9))
    return x


def embedded(batch: int, length: int, vocabulary: int, width: int) -> tuple[Tensor, Tensor]:
    """Return embeddings of words with their places, and the table."""
    table = weights(vocabulary, width)
    return tf.gather(table, given(batch, length, type=tf.int32)) + weights(length, width), table


@network("adam")
def bert(
    batch: int,
    size: Sequence[int],
    layers: str = "12",
    width: str = "768",
    masked: str = "20",
    vocabulary: str = "21128",
) -> Tensor:
    """Pretraining of BERT, Devlin and others 2018, with masked words and the next sentence."""
    length, wide, words = size[0], int(width), int(masked)
    x, table = embedded(batch, length, int(vocabulary), wide)
    x = npu_ops.dropout(layer_norm(x + tf.gather(weights(2, wide), given(batch, length, type=tf.int32))), 0.9)
    x = encoded(x, int(layers), wide // 64, wide * 4)
    places = given(batch * words, type=tf.int32)
    taken = layer_norm(dense(tf.gather(tf.reshape(x, [-1, wide]), places), wide, npu_unary_ops.gelu))
    logits = tf.nn.bias_add(tf.matmul(taken, table, transpose_b=True), weights(int(table.shape[0])))
    return classes(tf.expand_dims(logits, 0), int(table.shape[0])) + classes(dense(x[:, 0], wide, tf.tanh), 2)


@network("adam")
def transformer(batch: int, size: Sequence[int], width: str = "1024", vocabulary: str = "36560") -> Tensor:
    """The transformer for translation, Vaswani and others 2017, with both sentences of one length."""
    wide, words = int(width), int(vocabulary)
    x, table = embedded(batch, size[0], words, wide)
    memory = encoded(x, 6, wide // 64, wide * 4)
    y = tf.gather(table, given(batch, size[0], type=tf.int32)) + weights(size[0], wide)
    y = encoded(y, 6, wide // 64, wide * 4, memory)
    logits = tf.matmul(tf.reshape(y, [-1, wide]), table, transpose_b=True)
    return classes(tf.expand_dims(logits, 0), words)


@network("adam")
def vit(batch: int, size: Sequence[int], patch: str = "16", width: str = "768", layers: str = "12") -> Tensor:
    """The vision transformer, Dosovitskiy and others 2020."""
    x = conv(given(batch, *size, 3), int(width), int(patch), int(patch), None, False, padding="VALID")
    x = tf.reshape(x, [batch, -1, int(width)])
    x = tf.concat([tf.tile(weights(1, 1, int(width)), [batch, 1, 1]), x], 1)
    x = encoded(x + weights(int(x.shape[1]), int(width)), int(layers), int(width) // 64, int(width) * 4, mask=False)
    return classes(x[:, 0], 1000)


@network("adam")
def textcnn(batch: int, size: Sequence[int], width: str, vocabulary: str = "20000") -> Tensor:
    """A convolution over words with windows of 3, 4 and 5, Kim 2014."""
    x = tf.expand_dims(rows(weights(int(vocabulary), int(width)), given(batch, size[0], type=tf.int32)), -1)
    ends = [conv(x, 96, (window, int(width)), norm=False, padding="VALID") for window in (3, 4, 5)]
    return classes(tf.concat([tf.reduce_max(end, [1, 2]) for end in ends], 1), 2)


@network("adam")
def fasttext(batch: int, size: Sequence[int], vocabulary: str, number: str) -> Tensor:
    """The mean of embeddings of 16, Joulin and others 2016."""
    x = rows(weights(int(vocabulary), 16), given(batch, size[0], type=tf.int32))
    return classes(tf.reduce_sum(x, 1) / given(batch, 1), int(number))


@network("adam")
def char_cnn(batch: int, size: Sequence[int]) -> Tensor:
    """A convolution over characters as a zoo has it: embeddings of 64, 1024 filters of 5."""
    x = tf.gather(weights(5000, 64), given(batch, size[0], type=tf.int32))
    x = conv(tf.expand_dims(x, 1), 1024, (1, 5), norm=False, active=None, padding="VALID")
    x = npu_ops.dropout(dense(tf.reduce_max(x, [1, 2]), 1024), 0.5)
    return classes(tf.nn.relu(x), 14)
