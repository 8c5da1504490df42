"""The CPU time that ``npu-shim run --progress`` and ``--tensorboard`` add to a very small training step.

    python benchmarks/progress.py            prints a table; takes about four minutes
    python benchmarks/progress.py --write    and puts it into benchmarks/RESULTS.md and results.json

Each form trains in processes of its own, in turns. The model has four weights, so the step is as short as TensorFlow
allows; the microseconds that are added do not grow with the model. The figure is the CPU time of the process, threads
included, of its fastest window of steps after the first 2,000; the first 1,000 write each of their values.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import results  # noqa: E402

_SCRIPT = """
import os, sys, time
os.environ["TF_NUM_INTRAOP_THREADS"] = os.environ["TF_NUM_INTEROP_THREADS"] = "1"
import numpy as np
import tensorflow as tf

kind, steps, windows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
x = np.ones([8, 4], "f4")
if kind == "session":
    v1 = tf.compat.v1
    v1.disable_v2_behavior()
    fed, w = v1.placeholder("float32", [8, 4]), v1.get_variable("w", [4, 1])
    loss = tf.reduce_mean((tf.matmul(fed, w) - 1) ** 2)
    update = v1.train.GradientDescentOptimizer(0.01).minimize(loss, v1.train.get_or_create_global_step())
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    train = lambda count: [session.run(update, {fed: x}) for _ in range(count)]
elif kind == "function":
    w, optimizer, data = tf.Variable(tf.ones([4, 1])), tf.keras.optimizers.SGD(0.01), tf.constant(x)
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w - 1) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss
    train = lambda count: [step(data) for _ in range(count)]
else:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile("sgd", "mse")
    train = lambda count: model.fit(np.tile(x, [count, 1]), np.ones([8 * count, 1], "f4"), batch_size=8, verbose=0)
train(2000)
best = float("inf")
for _ in range(windows):
    begin = time.process_time()
    train(steps)
    best = min(best, (time.process_time() - begin) / steps)
print("seconds", best)
"""
FORMS = {"plain": [], "progress": ["--progress"], "both": ["--progress", "--tensorboard", "events"]}


def seconds(kind: str, form: str, steps: int, windows: int) -> float:
    """Return the CPU time of a step.

    Args:
        kind: ``session``, ``function`` or ``fit``.
        form: a name of FORMS.
        steps: number of steps of a window.
        windows: number of windows, of which the fastest counts.
    """
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "script.py").write_text(_SCRIPT)
        arguments = ["run", "--no-shape-watch", *FORMS[form], "script.py", kind, str(steps), str(windows)]
        done = subprocess.run(
            [sys.executable, "-m", "npu_shim", *arguments],
            cwd=folder,
            env=dict(
                os.environ,
                PYTHONPATH=f"{ROOT}{os.pathsep}{ROOT / 'tools'}",
                NPU_SHIM_FALLBACK="silent",
                TF_CPP_MIN_LOG_LEVEL="3",
                CUDA_VISIBLE_DEVICES="",
            ),
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    return float(done.stdout.split()[-1])


def table(rows: list[dict[str, Any]]) -> str:
    """Microseconds of a step, and how many times as long it takes."""
    head = ["TensorFlow", "step", "µs", "with --progress, µs", "ratio", "with both, µs", "ratio"]
    lines = [
        [
            row["TensorFlow"],
            row["step"],
            f"{row['plain_s'] * 1e6:.0f}",
            *(
                text
                for form in ("progress", "both")
                for text in (f"{row[form + '_s'] * 1e6:.0f}", f"{row[form + '_s'] / row['plain_s']:.2f}")
            ),
        ]
        for row in rows
    ]
    return results.markdown(head, lines)


def measure(quick: bool) -> list[dict[str, Any]]:
    """The rows of this TensorFlow."""
    import tensorflow as tf

    kinds = ["session", "fit"] if tf.__version__.startswith("1.") else ["session", "function", "fit"]
    steps, windows, rounds = (50, 1, 1) if quick else (500, 10, 2)
    rows: list[dict[str, Any]] = []
    for kind in kinds[:1] if quick else kinds:
        best = {form: float("inf") for form in FORMS}
        for _ in range(rounds):
            for form in FORMS:
                best[form] = min(best[form], seconds(kind, form, steps, windows))
        rows.append({"TensorFlow": tf.__version__, "step": kind, **{f"{form}_s": best[form] for form in FORMS}})
    return rows


if __name__ == "__main__":
    sys.exit(results.run("progress", __doc__ or "", sys.argv[1:], "sessions once, with few steps", measure, table))
