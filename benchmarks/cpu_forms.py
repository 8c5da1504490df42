"""Models with channels first, groups or dilation on the CPU, against the forms that a person would write for it.

    python benchmarks/cpu_forms.py [--write] [--quick]

Gives, for each block, forward and backward: milliseconds of processor time of both forms, and their ratio. The form by
hand of channels first is channels last, that of groups a split, and that of a dilation tf.nn.atrous_conv2d; all of them
in one session.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import time
from typing import Any, Callable

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks import results, turns  # noqa: E402

_ROUNDS, _STEPS = 20, 3
_BATCH, _SIZE, _CHANNELS, _GROUPS = 16, 32, 64, 4


def residual(x: Any, one: Any, two: Any, scale: Any, name: str) -> Any:
    """Return a residual block: convolution, batch norm, ReLU, twice; then a pool."""
    import tensorflow as tf

    v1, pair = tf.compat.v1, [1, 1, 2, 2] if name == "NCHW" else [1, 2, 2, 1]
    y = tf.nn.conv2d(x, one, [1, 1, 1, 1], "SAME", data_format=name)
    y = tf.nn.relu(v1.nn.fused_batch_norm(y, scale, scale, data_format=name)[0])
    y = tf.nn.conv2d(y, two, [1, 1, 1, 1], "SAME", data_format=name)
    y = tf.nn.relu(x + v1.nn.fused_batch_norm(y, scale, scale, data_format=name)[0])
    return v1.nn.max_pool(y, pair, pair, "SAME", data_format=name)


def blocks() -> dict[str, tuple[list[list[int]], Callable[..., Any], Callable[..., Any]]]:
    """Return the shapes of the inputs, the block, and the block by hand with channels last, by name."""
    import tensorflow as tf

    first, last = [_BATCH, _CHANNELS, _SIZE, _SIZE], [_BATCH, _SIZE, _SIZE, _CHANNELS]
    square = [3, 3, _CHANNELS, _CHANNELS]

    def split(x: Any, w: Any) -> Any:
        parts = zip(tf.split(x, _GROUPS, -1), tf.split(w, _GROUPS, -1))
        return tf.concat([tf.nn.conv2d(each, of, [1, 1, 1, 1], "SAME") for each, of in parts], -1)

    return {
        "residual block, NCHW": (
            [first, square, square, [_CHANNELS]],
            lambda *each: residual(*each, "NCHW"),
            lambda x, *rest: residual(tf.reshape(x, last), *rest, "NHWC"),
        ),
        "groups": (
            [last, [3, 3, _CHANNELS // _GROUPS, _CHANNELS]],
            lambda x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"),
            split,
        ),
        "dilation": (
            [last, square],
            lambda x, w: tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", dilations=[1, 2, 2, 1]),
            lambda x, w: tf.nn.atrous_conv2d(x, w, 2, "SAME"),
        ),
    }


def measure(rounds: int) -> list[dict[str, Any]]:
    """Return a row for each block."""
    import tensorflow as tf

    from npu_shim.ops.cpu_kernels import forms

    turns.quiet()
    forms.use_cpu_forms()
    v1 = tf.compat.v1
    rows = []
    for name, (shapes, ours, by_hand) in blocks().items():
        random = np.random.RandomState(1)
        with tf.Graph().as_default(), v1.Session() as session:
            values = [
                v1.get_variable(f"v{i}", initializer=random.uniform(-1, 1, shape).astype(np.float32), use_resource=True)
                for i, shape in enumerate(shapes)
            ]
            steps = {
                side: [tf.reduce_sum(each) for each in tf.gradients(tf.nn.l2_loss(function(*values)), values)]
                for side, function in (("ours", ours), ("by hand", by_hand))
            }
            session.run(v1.global_variables_initializer())

            def run(step: Any, session: Any = session) -> Callable[[int], None]:
                return lambda number: [session.run(step) for _ in range(number)] and None

            sides = {side: run(step) for side, step in steps.items()}
            found = turns.measure(sides, dict.fromkeys(sides, _STEPS), rounds, clock=time.process_time)
        rows.append(
            {
                "TensorFlow": tf.__version__,
                "block": name,
                "ours_s": statistics.median(found["ours"]),
                "by_hand_s": statistics.median(found["by hand"]),
                "ratio": turns.ratio(found["ours"], found["by hand"]),
            }
        )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return milliseconds of processor time of a step."""
    return results.markdown(
        ("TensorFlow", "block", "by hand, CPU ms", "ours, CPU ms", "ratio"),
        [
            (
                row["TensorFlow"],
                row["block"],
                "{:.1f}".format(row["by_hand_s"] * 1000),
                "{:.1f}".format(row["ours_s"] * 1000),
                "{:.2f}".format(row["ratio"]),
            )
            for row in rows
        ],
    )


def main(argv: list[str]) -> int:
    """Measure each block."""
    quick = "a few steps: to see that it works"
    return results.run(
        "cpu_forms", __doc__ or "", argv, quick, lambda is_quick: measure(1 if is_quick else _ROUNDS), table
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
