"""The first run of large training graphs, with npu_shim and without.

    python benchmarks/large_graphs.py            prints a table; takes about 25 minutes
    python benchmarks/large_graphs.py --write    and puts it into benchmarks/RESULTS.md and results.json

The model has the shape of an audio flow model: flows of eight dilated convolution layers with gates, skip connections
and dropout, trained with Adam and a dynamic loss scale. The baseline is plain TensorFlow with its own dropout and loss
scale; npu_shim has npu_config_proto, npu_ops.dropout and NPULossScaleOptimizer. Each first run has its own interpreter,
one of each side in turns. In it TensorFlow optimizes, clusters (MarkForCompilationPass) and places the graph.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
os.environ.update(NPU_SHIM_FALLBACK="silent", TF_CPP_MIN_LOG_LEVEL="3")

from benchmarks import results, turns  # noqa: E402

# Flows, whether the length of the audio is dynamic, and rounds: about 10,000, 50,000 and 200,000 nodes, then 10,000 and
# 50,000 of dynamic shape.
CASES = ((8, False, 3), (37, False, 2), (150, False, 1), (5, True, 3), (28, True, 2))
_CHANNELS, _LENGTH = 8, 16384  # 262,144 elements for each dropout: large enough to be compiled
_SIDES = ("plain", "npu_shim")


def first_run(side: str, flows: int, dynamic: bool) -> tuple[int, float]:
    """Return the number of nodes and the seconds of the first training step, in this process."""
    import numpy as np
    import tensorflow as tf

    turns.quiet()
    v1 = tf.compat.v1
    if side == "npu_shim":
        import npu_shim
        from npu_shim import npu_init

        npu_shim.uninstall()

    def dropout(x: Any) -> Any:
        return v1.nn.dropout(x, rate=0.1) if side == "plain" else npu_init.npu_ops.dropout(x, keep_prob=0.9)

    def convolution(x: Any, name: str, width: int, dilation: int = 1) -> Any:
        kernel = v1.get_variable(name, [width, _CHANNELS, 2 * _CHANNELS])
        return tf.split(tf.nn.convolution(x, kernel, padding="SAME", dilations=[dilation]), 2, axis=2)

    audio = v1.placeholder(tf.float32, [2, None if dynamic else _LENGTH, _CHANNELS])
    x, loss = audio, tf.constant(0.0)
    for flow in range(flows):
        skipped, layer = tf.zeros_like(x), x
        for depth in range(8):
            left, right = convolution(layer, f"gate_{flow}_{depth}", 3, 2**depth)
            residual, skip = convolution(dropout(tf.tanh(left) * tf.sigmoid(right)), f"out_{flow}_{depth}", 1)
            layer, skipped = layer + residual, skipped + skip
        scale = v1.get_variable(f"scale_{flow}", [_CHANNELS])
        x, loss = x * tf.exp(scale) + skipped, loss - tf.reduce_mean(scale)
    loss += tf.reduce_mean(x * x)
    adam = v1.train.AdamOptimizer(1e-3)
    if side == "plain":
        experimental = v1.train.experimental
        wrapper = (
            getattr(experimental, "MixedPrecisionLossScaleOptimizer", None) or v1.mixed_precision.LossScaleOptimizer
        )
        optimizer = wrapper(adam, experimental.DynamicLossScale(2.0**10, 1000))
    else:
        manager = npu_init.ExponentialUpdateLossScaleManager(
            init_loss_scale=2**10, incr_every_n_steps=1000, decr_every_n_nan_or_inf=1, decr_ratio=0.5
        )
        optimizer = npu_init.NPULossScaleOptimizer(adam, manager)
    step = optimizer.minimize(loss)
    nodes = len(v1.get_default_graph().get_operations())
    config = None if side == "plain" else npu_init.npu_config_proto()
    with v1.Session(config=config) as session:
        session.run(v1.global_variables_initializer())
        feed = {audio: np.zeros([2, _LENGTH, _CHANNELS], np.float32)}
        begin = time.perf_counter()
        session.run(step, feed)
        return nodes, time.perf_counter() - begin


def measure(flows: int, dynamic: bool, rounds: int) -> dict[str, Any]:
    """The row of one graph, of so many rounds."""
    import tensorflow as tf

    found: dict[str, list[float]] = {side: [] for side in _SIDES}
    nodes: dict[str, int] = {}
    for number in range(rounds):
        for side in _SIDES if number % 2 else _SIDES[::-1]:
            command = [sys.executable, __file__, "--first-run", side, str(flows), str(int(dynamic))]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            count, seconds = done.stdout.split()[-2:]
            nodes[side] = int(count)
            found[side].append(float(seconds))
    return {
        "TensorFlow": tf.__version__,
        "shape": "dynamic" if dynamic else "static",
        "plain_nodes": nodes["plain"],
        "nodes": nodes["npu_shim"],
        "plain_s": statistics.median(found["plain"]),
        "seconds": statistics.median(found["npu_shim"]),
        "times_plain": 1 / turns.ratio(found["plain"], found["npu_shim"]),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Seconds of the first run, by size of the graph."""
    return results.markdown(
        ("TensorFlow", "shape", "nodes, plain", "nodes, npu_shim", "plain, s", "npu_shim, s", "times plain"),
        [
            (
                row["TensorFlow"],
                row["shape"],
                "{:,}".format(row["plain_nodes"]),
                "{:,}".format(row["nodes"]),
                "{:.1f}".format(row["plain_s"]),
                "{:.1f}".format(row["seconds"]),
                "{:.2f}".format(row["times_plain"]),
            )
            for row in rows
        ],
    )


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""
    if argv[:1] == ["--first-run"]:
        print(*first_run(argv[1], int(argv[2]), bool(int(argv[3]))))
        return 0

    def measured(quick: bool) -> list[dict[str, Any]]:
        return [measure(1, True, 1)] if quick else [measure(*case) for case in CASES]

    return results.run(
        "large_graphs", __doc__ or "", argv, "a graph of one flow: to see that it works", measured, table
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
