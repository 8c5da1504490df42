"""The time of a training step on 1, 2, 4 and 8 ranks of one host, against one process with the whole batch.

    python benchmarks/ranks.py            prints a table; takes about three minutes
    python benchmarks/ranks.py --write    and puts it into benchmarks/RESULTS.md and results.json

The model is the CNN of samples/digits_horovod with Adam and clipping. The ranks
share the rows of the batch, so that both sides do the same work on the same
processors; what the ranks need more is the cost of being several. One process
and ranks with the threads that TensorFlow takes run in turns in the same
processes; ranks that share them, as npu-shim launch has it, in a job of their own.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pathlib
import sys
import time
from typing import Any, Callable

import processes
import results

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "samples" / "digits_horovod")]

from npu_shim.launching import plan  # noqa: E402

BATCH = 256
CLIP = 5.0


def work(rank: int, size: int, barrier: Any, steps: int, rounds: int, threads: int | None = None) -> dict[str, float]:
    """One rank: seconds of a step, of one process and of all ranks, in the fastest round.

    With a number of threads of all ranks alone.
    """
    if threads is not None:
        os.environ[plan.OP_THREADS] = str(threads)
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    sample = importlib.import_module("expected_npu")
    sample.FLAGS(["ranks", f"--batch_size={BATCH // size}"])
    sample.hvd.init()
    alone, together = tf.Graph(), tf.Graph()
    with together.as_default():
        (images, labels), _ = sample.load_data()
        loss = tf.losses.sparse_softmax_cross_entropy(labels[rank:BATCH:size], sample.cnn(images[rank:BATCH:size]))
        run_together = runner(tf, tf.Session(config=sample.npu_config_proto()), sample.train_operation(loss))

    def run_alone() -> Any:
        """Do nothing on the other ranks."""

    if rank == 0 and threads is None:
        with alone.as_default():
            loss = tf.losses.sparse_softmax_cross_entropy(labels[:BATCH], sample.cnn(images[:BATCH]))
            optimizer = tf.train.AdamOptimizer(0.001)
            gradients, variables = zip(*optimizer.compute_gradients(loss))
            gradients, _ = tf.clip_by_global_norm(gradients, CLIP)
            run_alone = runner(tf, tf.Session(), optimizer.apply_gradients(list(zip(gradients, variables))))
    found: dict[str, list[float]] = {"alone": [], "together": []}
    for _ in range(rounds):
        for name, run in (("alone", run_alone), ("together", run_together)):
            run()
            barrier.wait()
            begin = time.perf_counter()
            for _ in range(steps):
                run()
            barrier.wait()
            found[name].append((time.perf_counter() - begin) / steps)
    return {name: min(seconds) for name, seconds in found.items()}


def runner(tf: Any, session: Any, op: Any) -> Callable[[], Any]:
    """Return a function that runs an op once, after all variables of its graph have been initialised."""
    session.run(tf.global_variables_initializer())
    return session.make_callable(op)


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="a few steps on two ranks: to see that it works")
    args = parser.parse_args(argv)
    rows = []
    for ranks in (2,) if args.quick else (1, 2, 4, 8):
        much = (2, 1) if args.quick else (30, 7)
        seconds = processes.run_ranks(ranks, work, *much)
        together, threads = seconds["together"], plan.share_threads(sorted(os.sched_getaffinity(0)), ranks)
        if threads is not None:
            together = processes.run_ranks(ranks, work, *much, threads)["together"]
        rows.append(
            {
                "ranks": ranks,
                "rows_of_a_rank": BATCH // ranks,
                "one_process_s": seconds["alone"],
                "all_threads_s": seconds["together"],
                "all_threads_ratio": seconds["together"] / seconds["alone"],
                "ranks_s": together,
                "ratio": together / seconds["alone"],
            }
        )
    table = results.markdown(
        (
            "ranks",
            "rows of each",
            "one process, all rows, ms",
            "the ranks, ms",
            "ratio",
            "with all threads, ms",
            "ratio",
        ),
        [
            (
                f"{row['ranks']:.0f}",
                f"{row['rows_of_a_rank']:.0f}",
                f"{row['one_process_s'] * 1e3:.2f}",
                f"{row['ranks_s'] * 1e3:.2f}",
                "{:.2f}".format(row["ratio"]),
                f"{row['all_threads_s'] * 1e3:.2f}",
                "{:.2f}".format(row["all_threads_ratio"]),
            )
            for row in rows
        ],
    )
    results.report("ranks", table, rows, args.write)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
