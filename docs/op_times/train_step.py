"""A training step of one of the networks whose published throughputs throughputs.tsv has, for `npu-shim assess`.

``npu-shim assess train_step.py -- "resnet 50" --batch 32 --size 224x224`` stops before the step. A network is a
function of a batch, sizes of its input and words such as a depth, which returns its loss. The sizes are those of the
examples.
"""

from __future__ import annotations

import argparse
from typing import Any, Callable, Sequence

import numpy as np
import tensorflow as tf
from networks import NETWORKS

import npu_shim

tf1 = tf.compat.v1
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
