"""The gain of several training steps in one run (iterations_per_loop) on the CPU, for a small model.

    python benchmarks/loops.py            prints a table; takes about a minute
    python benchmarks/loops.py --write    and puts it into benchmarks/RESULTS.md and results.json

The model is an MLP of two layers with batches of 32 from tf.data, and Adam. All sides train it in one process, in turns
of a thousand steps, and have to come to the same weights. The limit of what single steps can do is a callable of the
train op, made once by Session.make_callable.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import sys
from typing import Any, Callable, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
os.environ.update(NPU_SHIM_FALLBACK="silent", TF_CPP_MIN_LOG_LEVEL="3")

from benchmarks import models, results, turns  # noqa: E402

MODEL = "mlp"
AGAINST = ("Estimator", "Session.run", "callable")
Side = Tuple[turns.Train, Callable[[], Any]]  # trains; gives the weights at the end


def sides(iterations: list[int]) -> dict[tuple[str, int], Side]:
    """By name and steps per run: everything that trains the model."""
    import npu_shim
    from npu_shim import npu_init

    npu_shim.uninstall()  # which the star import has done
    v1 = npu_init.tf.compat.v1
    made: dict[tuple[str, int], Side] = {}
    if hasattr(v1, "estimator"):
        plain = turns.plain_estimator(MODEL)
        made["Estimator", 1] = plain, plain.weights
        for number in iterations:
            ours = turns.npu_estimator(MODEL, number)
            made["NPUEstimator", number] = ours, ours.weights
    for name, steps in (("Session.run", turns.run_steps), ("callable", turns.callable_steps)):
        session, op = models.in_session(MODEL, v1.Session)
        made[name, 1] = steps(session, op), lambda session=session: models.weights_in(session)
    for number in iterations:
        session, op = models.in_session(
            MODEL, lambda: v1.Session(config=npu_shim.session_config(iterations_per_loop=number))
        )
        op = npu_init.util.set_iteration_per_loop(session, op, number)
        made["set_iteration_per_loop", number] = (
            turns.run_steps(session, op, number),
            lambda session=session: models.weights_in(session),
        )
    return made


def measure(iterations: list[int], steps: int, rounds: int) -> list[dict[str, Any]]:
    """The rows: a way to train, its steps per run, seconds of a step, and how many times as fast as others it is."""
    import tensorflow as tf

    made = sides(iterations)
    found = turns.measure({key: train for key, (train, _) in made.items()}, {key: steps for key in made}, rounds)
    expected = made["Session.run", 1][1]()
    for key, (_, weights) in made.items():
        turns.compare("{} with {}".format(*key), expected, weights())
    return [
        dict(
            {
                "TensorFlow": tf.__version__,
                "what": name,
                "steps_per_run": number,
                "seconds": statistics.median(found[name, number]),
            },
            **{other: turns.ratio(found[other, 1], found[name, number]) for other in AGAINST if (other, 1) in found},
        )
        for name, number in made
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """Microseconds of a step, and ratios."""
    return results.markdown(
        ("TensorFlow", "what", "steps per run", "a step, us") + tuple("times as fast as " + other for other in AGAINST),
        [
            [row["TensorFlow"], row["what"], f"{row['steps_per_run']:.0f}", f"{row['seconds'] * 1e6:.0f}"]
            + [f"{row[other]:.2f}" if other in row else "-" for other in AGAINST]
            for row in rows
        ],
    )


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""

    def measured(quick: bool) -> list[dict[str, Any]]:
        turns.quiet()
        return measure([5, 10], 20, 2) if quick else measure([10, 100, 1000], 1000, 9)

    return results.run("loops", __doc__ or "", argv, "a few steps: to see that it works", measured, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
