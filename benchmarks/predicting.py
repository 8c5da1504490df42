"""Seconds of the prediction of a step with 20,000 nodes, as a multiple of the capture of its graph.

    python benchmarks/predicting.py            prints a table; takes about a minute
    python benchmarks/predicting.py --write    and puts it into benchmarks/RESULTS.md and results.json

The graph is a network of dense layers with Adam. The baseline makes the flat list of its nodes with their shapes, as
``npu-shim assess`` does with and without a prediction. It predicts without garbage collection, as here. Times are
processor seconds.
"""

from __future__ import annotations

import argparse
import gc
import pathlib
import sys
import time
from typing import Any, Callable

import results

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))

from npu_shim._tensorflow.tf_api import tf, v1  # noqa: E402
from npu_shim.rehearsal.assess.flat import Flat, flatten  # noqa: E402
from npu_shim.rehearsal.assess.operators import built_in_lists  # noqa: E402
from npu_shim.rehearsal.predict.configuration_edit import SESSION  # noqa: E402
from npu_shim.rehearsal.predict.of_graph import Step  # noqa: E402
from npu_shim.rehearsal.predict.op_times import processor  # noqa: E402
from npu_shim.rehearsal.predict.plan import predict_training  # noqa: E402

_BATCH, _WIDTH = 32, 64


def captured(layers: int) -> Flat:
    """Return the nodes of a training step."""
    with tf.Graph().as_default() as graph:
        rows = tf.data.Dataset.from_tensors(tf.zeros([_WIDTH])).repeat().batch(_BATCH, drop_remainder=True)
        hidden = v1.data.make_one_shot_iterator(rows).get_next()
        for layer in range(layers):
            hidden = tf.nn.relu(tf.matmul(hidden, v1.get_variable(f"kernel_{layer}", [_WIDTH, _WIDTH])))
        train = v1.train.AdamOptimizer().minimize(tf.reduce_mean(hidden**2))
        return flatten(graph, [train], {})


def seconds_of(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a function, and the processor seconds that it takes."""
    begin = time.process_time()
    return function(), time.process_time() - begin


def measure(layers: int) -> list[dict[str, Any]]:
    """Return the processor seconds of the capture, of the ops alone, and of the whole prediction."""
    flat, of_capture = seconds_of(lambda: captured(layers))
    step = Step(flat, [], {}, built_in_lists(), {}, processor("Ascend910B3"), "", SESSION)
    parts = {"capture": of_capture}
    gc.disable()
    parts["ops and their times"] = seconds_of(step.seconds)[1]
    parts["prediction for 64 ranks"] = seconds_of(lambda: predict_training(step, None, 64))[1]
    return [{"part": part, "nodes": len(flat.nodes), "cpu_s": took} for part, took in parts.items()]


def table(rows: list[dict[str, Any]]) -> str:
    """Return the figures as Markdown."""
    floor = rows[0]["cpu_s"]
    return results.markdown(
        ("part", "nodes", "CPU seconds", "CPU time / capture"),
        [(row["part"], f"{row['nodes']:,}", f"{row['cpu_s']:.1f}", f"{row['cpu_s'] / floor:.2f}") for row in rows],
    )


def main(argv: list[str]) -> int:
    """Measure, and print or keep the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="a small graph: to see that it works")
    args = parser.parse_args(argv)
    made = measure(20 if args.quick else 1500)
    results.report("predicting", table(made), made, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
