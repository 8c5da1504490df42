"""Training steps of the networks whose published throughputs throughputs.tsv has, for `npu-shim assess`.

``npu-shim assess networks.py -- "resnet 50" --batch 32 --size 224x224`` stops before the step. A network is a function
of a batch, sizes of its input and words such as a depth, which returns its loss. The sizes are those of the examples.
"""

from __future__ import annotations

import argparse
from typing import Any, Callable, Sequence

import numpy as np
import tensorflow as tf

import npu_shim
from npu_shim.estimator import npu_ops
from npu_shim.estimator.npu_unary_ops import npu_unary_ops

tf1 = tf.compat.v1
Tensor = Any
Active = Callable[[Tensor], Tensor]
Build = Callable[..., Tensor]
NETWORKS: dict[str, tuple[Build, str]] = {}


def network(optimizer: str = "momentum") -> Callable[[Build], Build]:
    """Register a function as a network that is trained with an optimizer."""

    def register(build: Build) -> Build:
        NETWORKS[build.__name__] = build, optimizer
        return build

    return register


# --- layers ----------------------------------------------------------------------------------------------------------


def given(*shape: int, type: Any = tf.float32) -> Tensor:
    """Return a placeholder."""
    return tf1.placeholder(type, list(shape))


def weights(*shape: int, trainable: bool = True) -> Tensor:
    """Return a new variable; a template of TensorFlow calls for the same ones again."""
    with tf1.variable_scope(None, default_name="layer"):
        return tf1.get_variable("weights", list(shape), initializer=tf1.zeros_initializer(), trainable=trainable)


def normed(x: Tensor, active: Active | None = tf.nn.relu) -> Tensor:
    """Return a batch normalization with its activation."""
    depth = int(x.shape[-1])
    scale, shift = (weights(depth) for _ in range(2))
    means, spreads = (weights(depth, trainable=False) for _ in range(2))
    x, mean, spread, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=shift, mean=tf.constant([]), variance=tf.constant([]), is_training=True
    )
    for kept, now in ((means, mean), (spreads, spread)):
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, tf1.assign_sub(kept, (kept - now) * 0.01))
    return active(x) if active else x


def same(x: Tensor) -> Tensor:
    """Return the tensor."""
    return x


def conv(
    x: Tensor,
    filters: int,
    size: int | tuple[int, int] = 3,
    stride: int = 1,
    active: Active | None = tf.nn.relu,
    norm: bool = True,
    groups: int = 1,
    rate: int = 1,
    padding: str = "SAME",
) -> Tensor:
    """Return a convolution with batch normalization or a bias, and an activation. A rank of 5 makes it a 3D one."""
    spatial = x.shape.rank - 2
    sizes = list(size) if isinstance(size, tuple) else [size] * spatial
    kernel = weights(*sizes, int(x.shape[-1]) // groups, filters)
    x = tf.nn.convolution(x, kernel, strides=[stride] * spatial, padding=padding, dilations=[rate] * spatial)
    if norm:
        return normed(x, active)
    x = tf.nn.bias_add(x, weights(filters))
    return active(x) if active else x


def depthwise(x: Tensor, size: int = 3, stride: int = 1, active: Active | None = tf.nn.relu) -> Tensor:
    """Return a depthwise convolution with batch normalization."""
    return normed(
        tf.nn.depthwise_conv2d(x, weights(size, size, int(x.shape[-1]), 1), [1, stride, stride, 1], "SAME"), active
    )


def up(x: Tensor, filters: int, size: int = 2, stride: int = 2, active: Active = same, norm: bool = True) -> Tensor:
    """Return a transposed convolution."""
    batch, height, width, depth = x.shape.as_list()
    shape = [batch, height * stride, width * stride, filters]
    x = tf.nn.conv2d_transpose(x, weights(size, size, filters, depth), shape, stride, "SAME")
    return normed(x, active) if norm else active(tf.nn.bias_add(x, weights(filters)))


def pool(x: Tensor, size: int = 2, stride: int = 2, padding: str = "SAME") -> Tensor:
    """Return a maximum over windows."""
    return tf.nn.max_pool2d(x, size, stride, padding)


def dense(x: Tensor, units: int, active: Active | None = None) -> Tensor:
    """Return a fully connected layer over the last dimension."""
    depth = int(x.shape[-1])
    flat = tf.nn.bias_add(tf.matmul(tf.reshape(x, [-1, depth]), weights(depth, units)), weights(units))
    flat = active(flat) if active else flat
    return tf.reshape(flat, [*x.shape.as_list()[:-1], units]) if x.shape.rank > 2 else flat


def flat(x: Tensor) -> Tensor:
    """Return the examples as vectors."""
    return tf.reshape(x, [int(x.shape[0]), -1])


def mean(x: Tensor) -> Tensor:
    """Return the mean over the space."""
    return tf.reduce_mean(x, list(range(1, x.shape.rank - 1)))


def resized(x: Tensor, like: Tensor) -> Tensor:
    """Return the images in the height and width of others."""
    return tf1.image.resize_bilinear(x, like.shape.as_list()[1:3])


def classes(x: Tensor, number: int) -> Tensor:
    """Return the loss of a classification by logits, which a dense layer makes from vectors."""
    if int(x.shape[-1]) != number or x.shape.rank == 2:
        x = dense(x, number)
    labels = given(*x.shape.as_list()[:-1], type=tf.int32)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x))


def near(x: Tensor) -> Tensor:
    """Return the mean square of the distance to an example."""
    return tf.reduce_mean(tf.math.squared_difference(x, given(*x.shape.as_list())))


def decided(x: Tensor, real: bool) -> Tensor:
    """Return the loss of a discriminator."""
    labels = tf.ones_like(x) if real else tf.zeros_like(x)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=x))


# --- image classification --------------------------------------------------------------------------------------------


def squeezed(x: Tensor, ratio: int = 16) -> Tensor:
    """Return the channels weighted by what a squeeze and excitation makes of them."""
    depth = int(x.shape[-1])
    scale = dense(dense(mean(x), depth // ratio, tf.nn.relu), depth, tf.nn.sigmoid)
    return x * scale[:, None, None, :]


def split_by(x: Tensor, width: int, stride: int, scales: int = 4) -> Tensor:
    """Return the hierarchy of convolutions of Res2Net."""
    parts = tf.split(x, scales, -1)
    done: list[Tensor] = []
    for number, part in enumerate(parts[:-1]):
        taken = part if not number or stride > 1 else part + done[-1]
        done.append(conv(taken, width // scales, 3, stride))
    last = parts[-1] if stride == 1 else tf.nn.avg_pool2d(parts[-1], 3, stride, "SAME")
    return tf.concat([*done, last], -1)


def selected(x: Tensor, width: int, stride: int) -> Tensor:
    """Return the selection among two kernels of SKNet."""
    paths = [conv(x, width, 3, stride, groups=32), conv(x, width, 3, stride, groups=32, rate=2 if stride == 1 else 1)]
    short = dense(mean(paths[0] + paths[1]), max(width // 16, 32), tf.nn.relu)
    shares = tf.nn.softmax(tf.stack([dense(short, width) for _ in paths]), 0)
    return tf.add_n([path * shares[number][:, None, None, :] for number, path in enumerate(paths)])


WIDER = {"res2": 1.625, "sk": 2}
BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def residual(
    x: Tensor, depth: int, kind: str = "", groups: int = 1, last_strides: tuple[int, int] = (2, 2)
) -> list[Tensor]:
    """Return the outputs of the four groups of blocks of a ResNet. Groups of stride 1 after the second are dilated."""
    x = pool(conv(x, 64, 7, 2), 3)
    outputs, rate = [], 1
    for stage, blocks in enumerate(BLOCKS[depth]):
        width = int(64 * 2**stage * WIDER.get(kind, 2 if groups == 32 else 1))
        out = 64 * 2**stage * (4 if depth > 34 else 1)
        first = (1, 2, *last_strides)[stage]
        rate *= 2 if stage > 1 and first == 1 else 1
        for block in range(blocks):
            stride = first if block == 0 else 1
            short = x if block else conv(x, out, 1, stride, None)
            if depth <= 34:
                x = conv(conv(x, out, 3, stride), out, 3, 1, None)
            else:
                x = conv(x, width, 1)
                if kind == "res2":
                    x = split_by(x, width, stride)
                elif kind == "sk":
                    x = selected(x, width, stride)
                else:
                    x = conv(x, width, 3, stride, groups=groups, rate=rate)
                x = conv(x, out, 1, 1, None)
            if kind in ("se", "bam"):
                x = squeezed(x)
            x = tf.nn.relu(x + short)
        outputs.append(x)
    return outputs


@network()
def resnet(batch: int, size: Sequence[int], depth: str, kind: str = "", number: str = "1000") -> Tensor:
    """ResNet of 2015; "se", "res2", "sk" and "bam" are its successors of these names."""
    return classes(mean(residual(given(batch, *size, 3), int(depth), kind)[-1]), int(number))


@network()
def resnext(batch: int, size: Sequence[int], depth: str) -> Tensor:
    """ResNeXt with 32 groups of 4, Xie and others 2016."""
    return classes(mean(residual(given(batch, *size, 3), int(depth), groups=32)[-1]), 1000)


@network()
def wide_resnet(batch: int, size: Sequence[int], depth: str, wide: str) -> Tensor:
    """Wide ResNet for small images, Zagoruyko and Komodakis 2016."""
    x = conv(given(batch, *size, 3), 16)
    for stage in range(3):
        for block in range((int(depth) - 4) // 6):
            out, stride = 16 * 2**stage * int(wide), 2 if stage and not block else 1
            short = x if block else conv(x, out, 1, stride, None, norm=False)
            x = normed(x)
            x = conv(conv(x, out, 3, stride), out, 3, norm=False, active=None) + short
    return classes(mean(normed(x)), 10)


@network()
def se_resnext_small(batch: int, size: Sequence[int]) -> Tensor:
    """SE-ResNeXt for small images as a zoo has it: 3 groups of 3 blocks of 8 paths of 64 channels."""
    x = conv(given(batch, *size, 3), 64)
    for stage in range(3):
        for block in range(3):
            out, stride = 64 * 2**stage, 2 if stage and not block else 1
            paths = [conv(conv(x, 64, 1), 64, 3, stride) for _ in range(8)]
            y = squeezed(conv(tf.concat(paths, -1), out, 1, 1, None), 4)
            if stride == 2 or int(x.shape[-1]) != out:
                x = tf.nn.avg_pool2d(x, 2, 2, "SAME") if stride == 2 else x
                x = tf.pad(x, [[0, 0]] * 3 + [[0, out - int(x.shape[-1])]])
            x = tf.nn.relu(x + y)
    return classes(mean(x), 10)


VGG = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def vgg_features(x: Tensor, depth: int, norm: bool = False) -> list[Tensor]:
    """Return the outputs of the groups of convolutions of VGG."""
    outputs = []
    for stage, number in enumerate(VGG[depth]):
        x = pool(x) if stage else x
        for _ in range(number):
            x = conv(x, min(64 * 2**stage, 512), norm=norm)
        outputs.append(x)
    return outputs


@network()
def vgg(batch: int, size: Sequence[int], depth: str, norm: str = "", number: str = "1000") -> Tensor:
    """VGG, Simonyan and Zisserman 2014, with batch normalization by the word "bn"."""
    x = flat(pool(vgg_features(given(batch, *size, 3), int(depth), norm == "bn")[-1]))
    return classes(dense(dense(x, 4096, tf.nn.relu), 4096, tf.nn.relu), int(number))


@network()
def alexnet(batch: int, size: Sequence[int], number: str = "1000") -> Tensor:
    """AlexNet, Krizhevsky and others 2012."""
    x = conv(given(batch, *size, 3), 96, 11, 4, norm=False, padding="VALID")
    x = conv(pool(x, 3, 2, "VALID"), 256, 5, norm=False)
    x = conv(conv(conv(pool(x, 3, 2, "VALID"), 384, norm=False), 384, norm=False), 256, norm=False)
    x = flat(pool(x, 3, 2, "VALID"))
    return classes(dense(dense(x, 4096, tf.nn.relu), 4096, tf.nn.relu), int(number))


@network()
def lenet(batch: int, size: Sequence[int]) -> Tensor:
    """LeNet-5, LeCun and others 1998."""
    x = pool(conv(given(batch, *size, 1), 6, 5, norm=False, padding="VALID"))
    x = flat(pool(conv(x, 16, 5, norm=False, padding="VALID")))
    return classes(dense(dense(x, 120, tf.nn.relu), 84, tf.nn.relu), 10)


@network()
def squeezenet(batch: int, size: Sequence[int], kind: str = "", number: str = "1000") -> Tensor:
    """SqueezeNet 1.0, Iandola and others 2016; "residual" with bypasses, "1.1" the later one."""
    small = kind == "1.1"
    x = conv(given(batch, *size, 3), 64 if small else 96, 3 if small else 7, 2, norm=False)
    pools = (0, 2, 4) if small else (0, 3, 7)
    for fire in range(8):
        x = pool(x, 3) if fire in pools else x
        width = 16 * (1 + fire // 2)
        y = conv(x, width, 1, norm=False)
        y = tf.concat([conv(y, width * 4, 1, norm=False), conv(y, width * 4, 3, norm=False)], -1)
        x = x + y if kind == "residual" and fire % 2 else y
    return classes(mean(conv(x, int(number), 1, norm=False)), int(number))


Branch = Sequence[Any]


def branches(x: Tensor, *paths: Branch, stride: int = 1) -> Tensor:
    """Return the concatenated ends of paths of convolutions.

    A path has pairs of filters and size; "avg" and "max" are pools, and a tuple at its end is several ends. A stride
    is that of the last layer of each path that is no 1x1 convolution.
    """
    ends = []
    for path in paths:
        y = x
        for number, layer in enumerate(path):
            step = stride if number == len(path) - 1 else 1
            if layer == "avg":
                y = tf.nn.avg_pool2d(y, 3, step, "SAME")
            elif layer == "max":
                y = pool(y, 3, step)
            elif isinstance(layer[0], tuple):
                y = tf.concat([conv(y, *end) for end in layer], -1)
            else:
                y = conv(y, *layer, stride=step)
        ends.append(y)
    return tf.concat(ends, -1)


@network()
def googlenet(batch: int, size: Sequence[int], number: str = "1000") -> Tensor:
    """GoogLeNet with batch normalization, Szegedy and others 2014."""
    x = pool(conv(given(batch, *size, 3), 64, 7, 2), 3)
    x = pool(conv(conv(x, 64, 1), 192), 3)
    rows = "64 96 128 16 32 32/128 128 192 32 96 64/p/192 96 208 16 48 64/160 112 224 24 64 64/128 128 256 24 64 64/"
    rows += "112 144 288 32 64 64/256 160 320 32 128 128/p/256 160 320 32 128 128/384 192 384 48 128 128"
    for row in rows.split("/"):
        if row == "p":
            x = pool(x, 3)
            continue
        a, b, c, d, e, f = (int(word) for word in row.split())
        x = branches(x, [(a, 1)], [(b, 1), (c, 3)], [(d, 1), (e, 3)], ["max", (f, 1)])
    return classes(mean(x), int(number))


@network()
def inception_v4(batch: int, size: Sequence[int]) -> Tensor:
    """Inception v4, Szegedy and others 2016."""
    x = conv(conv(conv(given(batch, *size, 3), 32, 3, 2), 32), 64)
    x = branches(x, ["max"], [(96, 3)], stride=2)
    x = branches(x, [(64, 1), (96, 3)], [(64, 1), (64, (7, 1)), (64, (1, 7)), (96, 3)])
    x = branches(x, ["max"], [(192, 3)], stride=2)
    for _ in range(4):
        x = branches(x, ["avg", (96, 1)], [(96, 1)], [(64, 1), (96, 3)], [(64, 1), (96, 3), (96, 3)])
    x = branches(x, ["max"], [(384, 3)], [(192, 1), (224, 3), (256, 3)], stride=2)
    sevens = [(192, 1), (192, (1, 7)), (224, (7, 1)), (224, (1, 7)), (256, (7, 1))]
    for _ in range(7):
        x = branches(x, ["avg", (128, 1)], [(384, 1)], [(192, 1), (224, (1, 7)), (256, (7, 1))], sevens)
    x = branches(x, ["max"], [(192, 1), (192, 3)], [(256, 1), (256, (1, 7)), (320, (7, 1)), (320, 3)], stride=2)
    ends = ((256, (1, 3)), (256, (3, 1)))
    for _ in range(3):
        long = [(384, 1), (448, (1, 3)), (512, (3, 1)), ends]
        x = branches(x, ["avg", (256, 1)], [(256, 1)], [(384, 1), ends], long)
    return classes(mean(x), 1000)


def application(x: Tensor, name: str, **more: Any) -> Any:
    """Return a model of tf.keras.applications without its last layers."""
    inputs = tf.keras.Input(tensor=x)
    model = getattr(tf.keras.applications, name)(include_top=False, weights=None, input_tensor=inputs, **more)
    for update in model.updates:
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, update)
    return model


@network()
def keras(batch: int, size: Sequence[int], name: str, number: str = "1000") -> Tensor:
    """A network of tf.keras.applications without its preprocessing."""
    x = given(batch, *size, 3)
    more: dict[str, Any] = (
        {"include_preprocessing": False} if name.startswith(("MobileNetV3", "EfficientNetV2")) else {}
    )
    return classes(mean(application(x, name, **more).outputs[0]), int(number))


def darknet(x: Tensor, partial: bool = False) -> list[Tensor]:
    """Return the outputs of the last three groups of Darknet-53, or of its cross stage partial form."""
    active = mish if partial else leaky
    x = conv(x, 32, active=active)
    outputs = []
    for stage, blocks in enumerate((1, 2, 8, 8, 4)):
        x = conv(x, 64 * 2**stage, 3, 2, active)
        depth = 64 * 2**stage // (2 if partial and stage else 1)
        side = conv(x, depth, 1, active=active) if partial else x
        y = conv(x, depth, 1, active=active) if partial else x
        for _ in range(blocks):
            y = y + conv(conv(y, depth if partial and stage else depth // 2, 1, active=active), depth, active=active)
        if partial:
            y = conv(tf.concat([conv(y, depth, 1, active=active), side], -1), 64 * 2**stage, 1, active=active)
        x = y
        outputs.append(x)
    return outputs[2:]


def leaky(x: Tensor) -> Tensor:
    """Return a leaky ReLU."""
    return tf.nn.leaky_relu(x, 0.1)


def mish(x: Tensor) -> Tensor:
    """Return the activation of Misra 2019."""
    return x * tf.tanh(tf.nn.softplus(x))


@network()
def cspdarknet(batch: int, size: Sequence[int], number: str = "1000") -> Tensor:
    """CSPDarknet-53, Wang and others 2019."""
    return classes(mean(darknet(given(batch, *size, 3), True)[-1]), int(number))


@network()
def tiny_darknet(batch: int, size: Sequence[int]) -> Tensor:
    """Tiny Darknet, Redmon."""
    x = conv(given(batch, *size, 3), 16, active=leaky)
    x = conv(pool(x), 32, active=leaky)
    for width in (16, 32, 64):
        x = pool(x)
        for _ in range(2):
            x = conv(conv(x, width, 1, active=leaky), width * 8, active=leaky)
    return classes(mean(conv(conv(x, 128, 1, active=leaky), 1000, 1, active=leaky)), 1000)


@network()
def mobilefacenet(batch: int, size: Sequence[int]) -> Tensor:
    """MobileFaceNet, Chen and others 2018, with a softmax over 10,575 faces."""
    x = depthwise(conv(given(batch, *size, 3), 64, 3, 2))
    for wide, out, blocks, stride in ((2, 64, 5, 2), (4, 128, 1, 2), (2, 128, 6, 1), (4, 128, 1, 2), (2, 128, 2, 1)):
        for block in range(blocks):
            y = conv(x, int(x.shape[-1]) * wide, 1)
            y = conv(depthwise(y, 3, 1 if block else stride), out, 1, 1, None)
            x = y + x if x.shape == y.shape else y
    x = conv(x, 512, 1)
    x = normed(tf.nn.depthwise_conv2d(x, weights(7, 7, 512, 1), [1, 1, 1, 1], "VALID"), None)
    return classes(dense(flat(x), 128), 10575)


# --- transformers ----------------------------------------------------------------------------------------------------


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


# --- text ------------------------------------------------------------------------------------------------------------


@network("adam")
def textcnn(batch: int, size: Sequence[int], width: str, vocabulary: str = "20000") -> Tensor:
    """A convolution over words with windows of 3, 4 and 5, Kim 2014."""
    x = tf.expand_dims(tf.gather(weights(int(vocabulary), int(width)), given(batch, size[0], type=tf.int32)), -1)
    ends = [conv(x, 96, (window, int(width)), norm=False, padding="VALID") for window in (3, 4, 5)]
    return classes(tf.concat([tf.reduce_max(end, [1, 2]) for end in ends], 1), 2)


@network("adam")
def fasttext(batch: int, size: Sequence[int], vocabulary: str, number: str) -> Tensor:
    """The mean of embeddings of 16, Joulin and others 2016."""
    x = tf.gather(weights(int(vocabulary), 16), given(batch, size[0], type=tf.int32))
    return classes(tf.reduce_sum(x, 1) / given(batch, 1), int(number))


@network("adam")
def char_cnn(batch: int, size: Sequence[int]) -> Tensor:
    """A convolution over characters as a zoo has it: embeddings of 64, 1024 filters of 5."""
    x = tf.gather(weights(5000, 64), given(batch, size[0], type=tf.int32))
    x = conv(tf.expand_dims(x, 1), 1024, (1, 5), norm=False, active=None, padding="VALID")
    x = npu_ops.dropout(dense(tf.reduce_max(x, [1, 2]), 1024), 0.5)
    return classes(tf.nn.relu(x), 14)


# --- recommendation --------------------------------------------------------------------------------------------------


def fields(batch: int, number: int, vocabulary: int, width: int) -> tuple[Tensor, Tensor]:
    """Return the embeddings and the weights of the fields of examples, each times its value."""
    ids, values = given(batch, number, type=tf.int32), given(batch, number)
    wide = tf.gather(weights(vocabulary, 1), ids) * values[:, :, None]
    return tf.gather(weights(vocabulary, width), ids) * values[:, :, None], tf.reduce_sum(wide, [1, 2])


def clicked(logits: Tensor) -> Tensor:
    """Return the loss of a prediction of clicks."""
    labels = given(*logits.shape.as_list())
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


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
    product = tf.gather(weights(6040, 16), users) * tf.gather(weights(3706, 16), items)
    x = tf.concat([tf.gather(weights(6040, 32), users), tf.gather(weights(3706, 32), items)], 1)
    for units in (64, 32, 16):
        x = dense(x, units, tf.nn.relu)
    return clicked(dense(tf.concat([product, x], 1), 1)[:, 0])


# --- detection, pose and segmentation --------------------------------------------------------------------------------


def grid_loss(x: Tensor) -> Tensor:
    """Return a loss of boxes, objects and classes of a grid of YOLO."""
    x = tf.reshape(x, [*x.shape.as_list()[:3], 3, 85])
    truth, mask = given(*x.shape.as_list()), given(*x.shape.as_list()[:-1], 1)
    places = tf.math.squared_difference(tf.sigmoid(x[..., :2]), truth[..., :2]) * mask
    sizes = tf.math.squared_difference(x[..., 2:4], truth[..., 2:4]) * mask
    kinds = tf.nn.sigmoid_cross_entropy_with_logits(labels=truth[..., 4:], logits=x[..., 4:])
    return tf.reduce_sum(places) + tf.reduce_sum(sizes) + tf.reduce_sum(kinds)


@network()
def yolov3(batch: int, size: Sequence[int], backbone: str = "darknet") -> Tensor:
    """YOLOv3, Redmon and Farhadi 2018, on Darknet-53 or "resnet"."""
    x = given(batch, *size, 3)
    outputs = darknet(x) if backbone == "darknet" else residual(x, 18)[1:]
    loss: Any = 0.0
    y: Tensor = None
    for output, width in zip(reversed(outputs), (512, 256, 128)):
        if y is not None:
            y = conv(y, width, 1, active=leaky)
            y = tf.concat([tf1.image.resize_nearest_neighbor(y, output.shape.as_list()[1:3]), output], -1)
        y = output if y is None else y
        for _ in range(2):
            y = conv(conv(y, width, 1, active=leaky), width * 2, active=leaky)
        y = conv(y, width, 1, active=leaky)
        loss += grid_loss(conv(conv(y, width * 2, active=leaky), 255, 1, active=None, norm=False))
    return loss


@network()
def yolov3_tiny(batch: int, size: Sequence[int]) -> Tensor:
    """Tiny YOLOv3, Redmon."""
    x, taken = given(batch, *size, 3), None
    for width in (16, 32, 64, 128, 256, 512):
        x = conv(x, width, active=leaky)
        taken = x if width == 256 else taken
        x = pool(x, 2, 1 if width == 512 else 2)
    x = conv(conv(x, 1024, active=leaky), 256, 1, active=leaky)
    y = tf1.image.resize_nearest_neighbor(conv(x, 128, 1, active=leaky), taken.shape.as_list()[1:3])
    ends = [conv(x, 512, active=leaky), conv(tf.concat([y, taken], -1), 256, active=leaky)]
    return tf.add_n([grid_loss(conv(end, 255, 1, active=None, norm=False)) for end in ends])


@network("adam")
def pose(batch: int, size: Sequence[int]) -> Tensor:
    """Simple baseline of poses, Xiao and others 2018: ResNet-50 and three transposed convolutions."""
    x = residual(given(batch, *size, 3), 50)[-1]
    for _ in range(3):
        x = up(x, 256, 4, active=tf.nn.relu)
    return near(conv(x, 17, 1, active=None, norm=False))


@network()
def openpose(batch: int, size: Sequence[int]) -> Tensor:
    """OpenPose, Cao and others 2017: ten layers of VGG-19 and six stages of two branches."""
    x = given(batch, *size, 3)
    for stage, (width, layers) in enumerate(((64, 2), (128, 2), (256, 4), (512, 2))):
        x = pool(x) if stage else x
        for _ in range(layers):
            x = conv(x, width, norm=False)
    base = x = conv(conv(x, 256, norm=False), 128, norm=False)
    losses = []
    for stage in range(6):
        ends = []
        for outputs in (38, 19):
            y = x
            for _ in range(5 if stage else 3):
                y = conv(y, 128, 7 if stage else 3, norm=False)
            y = conv(conv(y, 128 if stage else 512, 1, norm=False), outputs, 1, active=None, norm=False)
            losses.append(near(y))
            ends.append(y)
        x = tf.concat([*ends, base], -1)
    return tf.add_n(losses)


@network("adam")
def unet(
    batch: int, size: Sequence[int], base: str = "64", channels: str = "1", out: str = "2", padding: str = "SAME"
) -> Tensor:
    """U-Net, Ronneberger and others 2015, with transposed convolutions on the way up."""
    x = given(batch, *size, int(channels))
    skips: list[Tensor] = []
    for level in (0, 1, 2, 3, 4, 3, 2, 1, 0):
        is_down = len(skips) <= level
        if is_down:
            x = pool(x) if level else x
        else:
            x = up(x, int(base) * 2**level, norm=False)
            edge = (int(skips[level].shape[1]) - int(x.shape[1])) // 2
            height, width = x.shape.as_list()[1:3]
            x = tf.concat([skips[level][:, edge : edge + height, edge : edge + width], x], -1)
        for _ in range(2):
            x = conv(x, int(base) * 2**level, norm=False, padding=padding)
        skips += [x] if is_down else []
    x = conv(x, int(out), 1, active=None, norm=False)
    return classes(x, 2) if out == "2" else tf.reduce_mean(tf.abs(x - given(*x.shape.as_list())))


@network()
def deeplab(batch: int, size: Sequence[int], stride: str = "16") -> Tensor:
    """DeepLab v3 on ResNet-101, Chen and others 2017."""
    image = given(batch, *size, 3)
    x = residual(image, 101, last_strides=(2, 1) if stride == "16" else (1, 1))[-1]
    whole = conv(tf.reduce_mean(x, [1, 2], keepdims=True), 256, 1)
    ends = [conv(x, 256, 1), resized(whole, x)]
    ends += [conv(x, 256, rate=rate * 16 // int(stride)) for rate in (6, 12, 18)]
    x = conv(conv(tf.concat(ends, -1), 256, 1), 21, 1, active=None, norm=False)
    return classes(resized(x, image), 21)


@network()
def pspnet(batch: int, size: Sequence[int], number: str = "21") -> Tensor:
    """PSPNet on ResNet-50, Zhao and others 2016, with its second loss."""
    image = given(batch, *size, 3)
    *_, third, x = residual(image, 50, last_strides=(1, 1))
    height = int(x.shape[1])
    ends = [x]
    for bins in (1, 2, 3, 6):
        window = height // bins
        ends.append(resized(conv(tf.nn.avg_pool2d(x, window, window, "VALID"), 512, 1), x))
    x = conv(conv(tf.concat(ends, -1), 512), int(number), 1, active=None, norm=False)
    y = conv(conv(third, 256), int(number), 1, active=None, norm=False)
    return classes(resized(x, image), int(number)) + 0.4 * classes(resized(y, image), int(number))


@network()
def fcn(batch: int, size: Sequence[int]) -> Tensor:
    """FCN-8s on VGG-16, Long and others 2014."""
    image = given(batch, *size, 3)
    outputs = vgg_features(image, 16)
    x = conv(conv(pool(outputs[4]), 4096, 7, norm=False), 4096, 1, norm=False)
    x = up(conv(x, 21, 1, active=None, norm=False), 21, 4, norm=False)
    x = up(x + conv(pool(outputs[3]), 21, 1, active=None, norm=False), 21, 4, norm=False)
    x = up(x + conv(pool(outputs[2]), 21, 1, active=None, norm=False), 21, 16, 8, norm=False)
    return classes(x, 21)


@network("adam")
def hed(batch: int, size: Sequence[int]) -> Tensor:
    """Nested edges on VGG-16, Xie and Tu 2015."""
    image = given(batch, *size, 3)
    sides = [conv(x, 1, 1, active=None, norm=False) for x in vgg_features(image, 16)]
    ends = [resized(side, image) for side in sides]
    ends.append(conv(tf.concat(ends, -1), 1, 1, active=None, norm=False))
    return tf.add_n([clicked(end) for end in ends])


@network("adam")
def densedepth(batch: int, size: Sequence[int]) -> Tensor:
    """Depth by DenseNet-169 and a decoder, Alhashim and Wonka 2018."""
    x = given(batch, *size, 3)
    model = application(x, "DenseNet169")
    names = ("pool3_pool", "pool2_pool", "pool1", "conv1/relu")
    y = conv(model.outputs[0], 1664, 1, norm=False, active=None)
    for number, name in enumerate(names):
        skip = model.get_layer(name).output
        y = tf.concat([resized(y, skip), skip], -1)
        for _ in range(2):
            y = conv(y, 832 // 2**number, norm=False, active=leaky)
    y = conv(y, 1, active=None, norm=False)
    truth = given(*y.shape.as_list())
    edges = [tf.image.image_gradients(image) for image in (y, truth)]
    steps = tf.reduce_mean(tf.abs(edges[0][0] - edges[1][0]) + tf.abs(edges[0][1] - edges[1][1]))
    like = tf.reduce_mean(tf.image.ssim(truth, y, 100.0))
    return tf.reduce_mean(tf.abs(y - truth)) + steps + 1 - like


# --- images, video and sound -----------------------------------------------------------------------------------------


def instance(x: Tensor, active: Active | None = tf.nn.relu) -> Tensor:
    """Return an instance normalization."""
    centre, spread = tf.nn.moments(x, [1, 2], keepdims=True)
    x = (x - centre) * tf.math.rsqrt(spread + 1e-5) * weights(int(x.shape[-1])) + weights(int(x.shape[-1]))
    return active(x) if active else x


def painted(x: Tensor) -> Tensor:
    """Return what the generator of CycleGAN with nine blocks makes of images."""
    x = instance(conv(x, 64, 7, active=None, norm=False))
    for width in (128, 256):
        x = instance(conv(x, width, 3, 2, None, False))
    for _ in range(9):
        y = instance(conv(x, 256, active=None, norm=False))
        x = x + instance(conv(y, 256, active=None, norm=False), None)
    for width in (128, 64):
        x = instance(up(x, width, 3, norm=False))
    return conv(x, 3, 7, active=tf.tanh, norm=False)


def judged(x: Tensor, normal: Active = instance) -> Tensor:
    """Return the patches of a discriminator."""
    x = conv(x, 64, 4, 2, tf.nn.leaky_relu, False)
    for width, stride in ((128, 2), (256, 2), (512, 1)):
        x = tf.nn.leaky_relu(normal(conv(x, width, 4, stride, None, False), None))
    return conv(x, 1, 4, active=None, norm=False)


@network("adam")
def cyclegan(batch: int, size: Sequence[int]) -> Tensor:
    """CycleGAN, Zhu and others 2017. Both generators and discriminators are trained by one step."""
    loss: Any = 0.0
    real = [given(batch, *size, 3) for _ in range(2)]
    paint = [tf1.make_template(f"paint{side}", painted) for side in range(2)]
    judge = [tf1.make_template(f"judge{side}", judged) for side in range(2)]
    for side, other in ((0, 1), (1, 0)):
        fake = paint[other](real[side])
        loss += tf.reduce_mean(tf.abs(paint[side](fake) - real[side])) + near(judge[other](fake))
        loss += tf.reduce_mean(tf.abs(paint[side](real[side]) - real[side]))
        loss += near(judge[other](tf.stop_gradient(fake))) + near(judge[side](real[side]))
    return loss


@network("adam")
def pix2pix(batch: int, size: Sequence[int]) -> Tensor:
    """pix2pix, Isola and others 2016."""
    image, real = given(batch, *size, 3), given(batch, *size, 3)
    x, skips = image, []
    for level in range(8):
        x = conv(tf.nn.leaky_relu(x) if level else x, min(64 * 2**level, 512), 4, 2, None, 0 < level < 7)
        skips.append(x)
    for level in reversed(range(7)):
        x = up(tf.nn.relu(x), min(64 * 2**level, 512), 4)
        x = tf.concat([x, skips[level]], -1)
    fake = up(tf.nn.relu(x), 3, 4, active=tf.tanh, norm=False)
    pairs = [tf.concat([image, other], -1) for other in (real, tf.stop_gradient(fake), fake)]
    judge = tf1.make_template("judge", judged)
    ends = [judge(pair, normed) for pair in pairs]
    loss = decided(ends[0], True) + decided(ends[1], False) + decided(ends[2], True)
    return loss + 100 * tf.reduce_mean(tf.abs(fake - real))


@network("adam")
def dcgan(batch: int, size: Sequence[int], noise: str = "100") -> Tensor:
    """DCGAN for images of a power of two, Radford and others 2015. The generator is trained once a step."""
    levels = size[0].bit_length() - 4
    x = tf.reshape(dense(given(batch, int(noise)), 16 * 64 * 2**levels), [batch, 4, 4, 64 * 2**levels])
    x = normed(x)
    for level in reversed(range(levels)):
        x = up(x, 64 * 2**level, 4, active=tf.nn.relu)
    fake = up(x, 3, 4, active=tf.tanh, norm=False)

    def decide(y: Tensor) -> Tensor:
        for level in range(levels + 1):
            y = conv(y, 64 * 2**level, 4, 2, tf.nn.leaky_relu, level > 0)
        return dense(flat(y), 1)

    judge = tf1.make_template("judge", decide)
    ends = [judge(given(batch, *size, 3)), judge(tf.stop_gradient(fake)), judge(fake)]
    return decided(ends[0], True) + decided(ends[1], False) + decided(ends[2], True)


@network("adam")
def edsr(batch: int, size: Sequence[int], blocks: str = "16", width: str = "64", scale: str = "2") -> Tensor:
    """EDSR, Lim and others 2017. The sizes are those of the small image."""
    base = x = conv(given(batch, *size, 3), int(width), active=None, norm=False)
    for _ in range(int(blocks)):
        x = x + 0.1 * conv(conv(x, int(width), norm=False), int(width), active=None, norm=False)
    x = base + conv(x, int(width), active=None, norm=False)
    x = tf.nn.depth_to_space(conv(x, int(width) * int(scale) ** 2, active=None, norm=False), int(scale))
    x = conv(x, 3, active=None, norm=False)
    return tf.reduce_mean(tf.abs(x - given(*x.shape.as_list())))


@network("adam")
def noise2noise(batch: int, size: Sequence[int]) -> Tensor:
    """Noise2Noise, Lehtinen and others 2018: a U-Net of 48 and 96 channels."""
    x = given(batch, *size, 3)
    skips = [x]
    y = conv(conv(x, 48, active=leaky, norm=False), 48, active=leaky, norm=False)
    for level in range(5):
        y = pool(y)
        skips += [y] if level < 4 else []
        y = conv(y, 48, active=leaky, norm=False)
    for skip in reversed(skips):
        y = tf.concat([tf1.image.resize_nearest_neighbor(y, skip.shape.as_list()[1:3]), skip], -1)
        wide = 64 if skip is x else 96
        y = conv(conv(y, wide, active=leaky, norm=False), 32 if skip is x else 96, active=leaky, norm=False)
    return near(conv(y, 3, active=None, norm=False))


@network("adam")
def mcnn(batch: int, size: Sequence[int]) -> Tensor:
    """Counting of crowds by three columns, Zhang and others 2016."""
    x = given(batch, *size, 1)
    ends = []
    for width, first, then in ((16, 9, 7), (20, 7, 5), (24, 5, 3)):
        y = pool(conv(x, width, first, norm=False))
        y = pool(conv(y, width * 2, then, norm=False))
        ends.append(conv(conv(y, width, then, norm=False), width // 2, then, norm=False))
    return near(conv(tf.concat(ends, -1), 1, 1, norm=False))


@network()
def c3d(batch: int, size: Sequence[int], number: str = "101") -> Tensor:
    """C3D, Tran and others 2014."""
    x = given(batch, *size, 3)
    for stage, (width, layers) in enumerate(((64, 1), (128, 1), (256, 2), (512, 2), (512, 2))):
        for _ in range(layers):
            x = conv(x, width, norm=False)
        windows = [1, 1 if not stage else 2, 2, 2, 1]
        x = tf.nn.max_pool3d(x, windows, windows, "SAME")
    return classes(dense(dense(flat(x), 4096, tf.nn.relu), 4096, tf.nn.relu), int(number))


# --- the step --------------------------------------------------------------------------------------------------------

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "momentum": lambda: tf1.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf1.train.AdamOptimizer(1e-4),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Build a network and run its step once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", help="a network and its arguments, such as 'resnet 50'")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--size", required=True, help="of an example, such as 224x224")
    parser.add_argument("--precision", default="allow_mix_precision", help="the precision_mode")
    parser.add_argument("--loop", type=int, default=1, help="steps of a call of the session")
    given_arguments = parser.parse_args(arguments)
    name, *words = given_arguments.words.split()
    named = dict(word.split("=") for word in words if "=" in word)
    build, optimizer = NETWORKS[name]
    tf1.disable_v2_behavior()
    tf1.keras.backend.set_learning_phase(1)
    words = [word for word in words if "=" not in word]
    loss = build(given_arguments.batch, [int(part) for part in given_arguments.size.split("x")], *words, **named)
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        step = OPTIMIZERS[optimizer]().minimize(loss)
    feeds = {}
    for node in tf1.get_default_graph().get_operations():
        if node.type == "Placeholder":
            output = node.outputs[0]
            feeds[output] = np.zeros(output.shape.as_list(), output.dtype.as_numpy_dtype)
    options = {"precision_mode": given_arguments.precision, "iterations_per_loop": given_arguments.loop}
    with tf1.Session(config=npu_shim.session_config(**options)) as session:
        session.run(step, feeds)


if __name__ == "__main__":
    main()
