"""The training step of ranks that --bind-cores binds to processors, and of ranks that share all of them.

    python benchmarks/bind_cores.py            prints a table; takes about eight minutes
    python benchmarks/bind_cores.py --write    and puts it into benchmarks/RESULTS.md and results.json

A rehearsal on the CPU: each rank gets an even share. Bound ranks and others (new processes, the baseline) in turns.
The time is that of rank 0 for the steps of a small convolutional network with averaged gradients, after the first ten.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any, Sequence

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks import results  # noqa: E402

MODES = {"shared": ("--no-preload",), "bound": ("--bind-cores",)}
SCRIPT = """
import os, sys, time
import numpy as np
import tensorflow as tf
from npu_shim.npu_init import NPUDistributedOptimizer, npu_config_proto
v1 = tf.compat.v1
v1.disable_eager_execution()
images = np.random.RandomState(int(os.environ["RANK_ID"])).rand(32, 28, 28, 1).astype("f4")
filters, weights = v1.get_variable("filters", [3, 3, 1, 16]), v1.get_variable("weights", [28 * 28 * 16, 10])
hidden = tf.nn.relu(tf.nn.conv2d(tf.constant(images), filters, strides=[1, 1, 1, 1], padding="SAME"))
loss = tf.reduce_mean(tf.square(tf.matmul(tf.reshape(hidden, [32, -1]), weights)))
train = NPUDistributedOptimizer(v1.train.AdamOptimizer(0.001)).minimize(loss)
steps = int(sys.argv[1])
with v1.Session(config=npu_config_proto()) as session:
    session.run(v1.global_variables_initializer())
    for step in range(10 + steps):
        begin = time.time() if step == 10 else begin if step else 0
        session.run(train)
if os.environ["RANK_ID"] == "0":
    with open("seconds", "w") as file:
        file.write(str((time.time() - begin) / steps))
"""


def job(ranks: int, options: Sequence[str], steps: int) -> float:
    """Seconds of a step."""
    root = str(results.RESULTS.parent.parent)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "train.py").write_text(SCRIPT)
        subprocess.run(
            [sys.executable, "-m", "npu_shim", "launch", "--ranks", str(ranks), *options, "train.py", str(steps)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([root, root + "/tools"]), "TF_CPP_MIN_LOG_LEVEL": "3"},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return float(pathlib.Path(folder, "seconds").read_text())


def measure(numbers: Sequence[int], rounds: int, steps: int) -> list[dict[str, Any]]:
    """One row for each number of ranks, with the medians of both modes."""
    import tensorflow as tf

    rows = []
    for ranks in numbers:
        found: dict[str, list[float]] = {mode: [] for mode in MODES}
        for _ in range(rounds):
            for mode, options in MODES.items():
                found[mode].append(job(ranks, options, steps))
        medians = {f"{mode}_s": statistics.median(each) for mode, each in found.items()}
        rows.append({"TensorFlow": tf.__version__, "ranks": ranks, **medians})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Milliseconds of a step, and the ratio of both modes."""
    return results.markdown(
        ("TensorFlow", "ranks", "all processors", "bound", "ratio"),
        [
            [
                row["TensorFlow"],
                str(row["ranks"]),
                f"{row['shared_s'] * 1e3:.2f} ms",
                f"{row['bound_s'] * 1e3:.2f} ms",
                f"{row['bound_s'] / row['shared_s']:.2f}",
            ]
            for row in rows
        ],
    )


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""

    def measured(quick: bool) -> list[dict[str, Any]]:
        return measure((2,), 1, 5) if quick else measure((2, 4), 5, 200)

    return results.run("bind_cores", __doc__ or "", argv, "two ranks, once", measured, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
