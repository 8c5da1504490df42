"""Networks that say where things, joints and classes of pixels are."""

from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf

from .classification import application, darknet, leaky, residual, vgg_features
from .layers import Tensor, classes, clicked, conv, given, near, network, pool, resized, tf1, up


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
    """PSPNet on a deep ResNet-50, Zhao and others, with its second loss. The published script has no pool of two."""
    image = given(batch, *size, 3)
    *_, third, x = residual(image, 50, last_strides=(1, 1), deep=True)
    height = int(x.shape[1])
    ends = [x]
    for bins in (1, 2, 3, 6):
        window = height // bins
        pooled = x if bins == 2 else tf.nn.avg_pool2d(x, window, window, "VALID")
        ends.append(resized(conv(pooled, 512, 1), x))
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
