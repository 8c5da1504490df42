"""Training steps with npu_shim and without: NPUEstimator, sessions and Keras, with one step per run.

    python benchmarks/steps.py            prints a table; takes one to two minutes
    python benchmarks/steps.py --write    and puts it into benchmarks/RESULTS.md and results.json

All of them train the same model on the same data in one process, in turns of a few steps, and have to come to the same
weights. Each baseline trains twice, which shows how much of a ratio is chance, and everything is built three times,
because two sessions of one graph need not be equally fast. The limit is a callable of the same train op, which is made
once by Session.make_callable.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import sys
from typing import Any, Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
os.environ.update(NPU_SHIM_FALLBACK="silent", TF_CPP_MIN_LOG_LEVEL="3")

from benchmarks import models, results, turns  # noqa: E402

BASELINES = {
    "NPUEstimator": "Estimator",
    "install()": "Session",
    "npu_config_proto": "Session",
    "set_keras_session_npu_config": "Keras",
}
AGAIN = ", again"
LIMIT = "callable"
STEPS = {"mlp": 100, "cnn": 10}  # of a turn


def measure(model: str, steps: int, rounds: int, times: int) -> list[dict[str, Any]]:
    """The rows of one model, of so many rounds each time that the sides are built."""
    import tensorflow as tf

    found: dict[str, list[float]] = {}
    for _ in range(times):
        trainings, weights = sides(model)
        for name, seconds in turns.measure(trainings, {name: steps for name in trainings}, rounds).items():
            found.setdefault(name, []).extend(seconds)
        expected = {base: weights[base]() for base in ("Session", "Keras") if base in weights}
        for name in trainings:
            base = "Keras" if "eras" in name else "Session"  # Keras begins with other weights
            turns.compare(f"{name}, the {model}", expected[base], weights[name]())
    return [
        {
            "TensorFlow": tf.__version__,
            "model": model,
            "what": name,
            "baseline": base,
            "baseline_s": statistics.median(found[base]),
            "seconds": statistics.median(found[name]),
            "ratio": turns.ratio(found[base], found[name]),
            "again": turns.ratio(found[base], found[base + AGAIN]),
            "limit_s": statistics.median(found[LIMIT]),
            "limit_ratio": turns.ratio(found[LIMIT], found[name]),
        }
        for name, base in BASELINES.items()
        if name in found
    ]


def sides(model: str) -> tuple[dict[str, turns.Train], dict[str, Callable[[], Any]]]:
    """Everything that trains a model, by name, and what gives its weights at the end."""
    import npu_shim
    from npu_shim import npu_init

    npu_shim.uninstall()  # which the star import has done
    v1 = npu_init.tf.compat.v1
    trainings: dict[str, turns.Train] = {}
    weights: dict[str, Callable[[], Any]] = {}
    if hasattr(v1, "estimator"):
        for name, make in (
            ("Estimator", turns.plain_estimator),
            ("NPUEstimator", turns.npu_estimator),
            ("Estimator" + AGAIN, turns.plain_estimator),
        ):
            made = make(model)
            trainings[name], weights[name] = made, made.weights
    sessions = {name: models.in_session(model, v1.Session) for name in ("Session", LIMIT, "Session" + AGAIN)}
    npu_shim.install()
    sessions["npu_config_proto"] = models.in_session(model, lambda: v1.Session(config=npu_init.npu_config_proto()))
    sessions["install()"] = models.in_session(model, v1.Session)
    npu_shim.uninstall()
    for name, (session, op) in sessions.items():
        trainings[name] = turns.callable_steps(session, op) if name == LIMIT else turns.run_steps(session, op)
        weights[name] = lambda session=session: models.weights_in(session)
    if hasattr(npu_init.backend, "set_session"):

        def plain() -> None:
            npu_init.backend.set_session(v1.Session())

        for name, start in (
            ("Keras", plain),
            ("set_keras_session_npu_config", npu_init.set_keras_session_npu_config),
            ("Keras" + AGAIN, plain),
        ):
            keras = models.KerasModel(model, start)
            trainings[name], weights[name] = keras, keras.weights
    return trainings, weights


def table(rows: list[dict[str, Any]]) -> str:
    """Microseconds of a step."""
    return results.markdown(
        (
            "TensorFlow",
            "model",
            "what",
            "baseline",
            "baseline, us",
            "ours, us",
            "ratio",
            "baseline, again",
            "callable, us",
            "ratio",
        ),
        [
            (
                row["TensorFlow"],
                row["model"],
                row["what"],
                row["baseline"],
                "%.0f" % (row["baseline_s"] * 1e6),
                "%.0f" % (row["seconds"] * 1e6),
                "{:.2f}".format(row["ratio"]),
                "{:.2f}".format(row["again"]) if "again" in row else "-",
                "%.0f" % (row["limit_s"] * 1e6),
                "{:.2f}".format(row["limit_ratio"]),
            )
            for row in rows
        ],
    )


def main(argv: list[str]) -> int:
    """Measures, and says or writes what it found."""

    def measured(quick: bool) -> list[dict[str, Any]]:
        turns.quiet()
        return [
            row
            for model in models.names()
            for row in (measure(model, 2, 1, 1) if quick else measure(model, STEPS[model], 15, 3))
        ]

    return results.run("steps", __doc__ or "", argv, "a few steps: to see that it works", measured, table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
