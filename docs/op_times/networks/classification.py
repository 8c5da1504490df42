"""Networks that classify images."""

from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf

from .layers import Tensor, classes, conv, dense, depthwise, flat, given, mean, network, normed, pool, tf1, weights


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
    x: Tensor, depth: int, kind: str = "", groups: int = 1, last_strides: tuple[int, int] = (2, 2), deep: bool = False
) -> list[Tensor]:
    """Return the outputs of the four groups of blocks of a ResNet. Groups of stride 1 after the second are dilated.

    A deep one begins with three small filters in place of a large one.
    """
    x = pool(conv(conv(conv(x, 64, 3, 2), 64), 128) if deep else conv(x, 64, 7, 2), 3)
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
