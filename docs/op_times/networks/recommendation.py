"""Networks that predict clicks and ratings."""

from __future__ import annotations

from typing import Sequence

import tensorflow as tf

from .layers import Tensor, clicked, dense, flat, given, network, rows, weights


def fields(batch: int, number: int, vocabulary: int, width: int) -> tuple[Tensor, Tensor]:
    """Return the embeddings and the weights of the fields of examples, each times its value."""
    ids, values = given(batch, number, type=tf.int32), given(batch, number)
    wide = rows(weights(vocabulary, 1), ids) * values[:, :, None]
    return rows(weights(vocabulary, width), ids) * values[:, :, None], tf.reduce_sum(wide, [1, 2])


def layered(x: Tensor, units: Sequence[int]) -> Tensor:
    """Return fully connected layers and one logit."""
    for number in units:
        x = dense(x, number, tf.nn.relu)
    return dense(x, 1)[:, 0]


@network("adam")
def deepfm(batch: int, size: Sequence[int], vocabulary: str = "184965", width: str = "80") -> Tensor:
    """DeepFM, Guo and others 2017."""
    x, wide = fields(batch, size[0], int(vocabulary), int(width))
    pairs = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(x, 1)) - tf.reduce_sum(tf.square(x), 1), 1)
    return clicked(wide + pairs + layered(flat(x), (1024, 512, 256, 128)))


@network("adam")
def wide_deep(batch: int, size: Sequence[int], vocabulary: str = "200000", width: str = "80") -> Tensor:
    """Wide & Deep, Cheng and others 2016."""
    x, wide = fields(batch, size[0], int(vocabulary), int(width))
    return clicked(wide + layered(flat(x), (1024, 512, 256, 128)))


@network("adam")
def ncf(batch: int, size: Sequence[int]) -> Tensor:
    """Neural collaborative filtering on MovieLens-1M, of 2017."""
    users, items = given(batch, type=tf.int32), given(batch, type=tf.int32)
    product = rows(weights(6040, 16), users) * rows(weights(3706, 16), items)
    x = tf.concat([rows(weights(6040, 32), users), rows(weights(3706, 32), items)], 1)
    for units in (64, 32, 16):
        x = dense(x, units, tf.nn.relu)
    return clicked(dense(tf.concat([product, x], 1), 1)[:, 0])
