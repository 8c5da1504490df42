"""Networks that make, restore and count images, and one of video."""

from __future__ import annotations

from typing import Any, Sequence

import tensorflow as tf

from .classification import leaky
from .layers import (
    Active,
    Tensor,
    classes,
    conv,
    decided,
    dense,
    flat,
    given,
    near,
    network,
    normed,
    pool,
    tf1,
    up,
    weights,
)


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
