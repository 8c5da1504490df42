"""Several trainings that take turns in one process, so that what else the machine does meets all of them alike.

An Estimator trains in a thread of its own, which waits inside a hook while others have their turn: its session stays
open, and nobody trains at the same time.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
import warnings
from typing import Any, Callable, Hashable, TypeVar

import numpy as np

from benchmarks import models

Train = Callable[[int], Any]  # makes so many steps
Name = TypeVar("Name", bound=Hashable)

_RUN_CONFIG = dict(tf_random_seed=1, save_summary_steps=100, log_step_count_steps=100, save_checkpoints_steps=10**9)


def measure(
    sides: dict[Name, Train],
    steps: dict[Name, int],
    rounds: int,
    warm_up: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Name, list[float]]:
    """Seconds of one step, by side, in each round.

    Every side makes its steps once in each round; the order turns around from round to round. time.process_time counts
    the processor time of all threads, which other programs change less.
    """
    found: dict[Name, list[float]] = {name: [] for name in sides}
    for number in range(warm_up + rounds):
        order = list(sides) if number % 2 else list(reversed(list(sides)))
        for name in order:
            begin = clock()
            sides[name](steps[name])
            found[name].append((clock() - begin) / steps[name])
    return {name: seconds[warm_up:] for name, seconds in found.items()}


def ratio(base: list[float], ours: list[float]) -> float:
    """Return how many times as fast as the baseline it is: the median of the rounds' own ratios."""
    return statistics.median(one / other for one, other in zip(base, ours))


def compare(name: str, expected: dict[str, Any], got: dict[str, Any]) -> None:
    """Raises AssertionError if two sides have not come to the same weights."""
    assert sorted(expected) == sorted(got), f"{name} has the weights {sorted(got)}, not {sorted(expected)}"
    for key in expected:
        np.testing.assert_array_equal(got[key], expected[key], err_msg=f"{name}: {key}")


def quiet() -> None:
    """Graph mode, no warnings, and no log lines of TensorFlow."""
    import tensorflow as tf

    warnings.simplefilter("ignore")
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)


def run_steps(session: Any, op: Any) -> Train:
    """Training by session.run, as scripts write it."""

    def train(steps: int) -> None:
        for _ in range(steps):
            session.run(op)

    return train


def callable_steps(session: Any, op: Any) -> Train:
    """Training by what Session.make_callable gives: no Python but the call itself."""
    call = session.make_callable(op)

    def train(steps: int) -> None:
        for _ in range(steps):
            call()

    return train


def plain_estimator(model: str) -> EstimatorTraining:
    """The training of a tf.estimator.Estimator."""
    from tensorflow.compat.v1 import estimator as api

    def make(folder: str) -> Any:
        return api.Estimator(_model_fn, config=api.RunConfig(model_dir=folder, **_RUN_CONFIG), params={"model": model})

    return EstimatorTraining(make, lambda: models.dataset(model))


def npu_estimator(model: str) -> EstimatorTraining:
    """The training of an NPUEstimator."""
    from npu_shim.npu_init import NPUEstimator, NPURunConfig

    def make(folder: str) -> Any:
        config = NPURunConfig(model_dir=folder, **_RUN_CONFIG)
        return NPUEstimator(_model_fn, config=config, params={"model": model})

    return EstimatorTraining(make, lambda: models.dataset(model))


def _model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    from tensorflow.compat.v1 import estimator as api

    loss = models.loss(params["model"], features, labels)
    return api.EstimatorSpec(mode, loss=loss, train_op=models.train_op(loss))


class EstimatorTraining:
    """The training of an Estimator, as a function that makes steps.

    Args:
        make: of a model_dir, the Estimator.
        input_fn: as for Estimator.train.
    """

    def __init__(self, make: Callable[[str], Any], input_fn: Callable[[], Any]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._estimator = make(self._folder.name)
        self._input_fn = input_fn
        self._turn, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._left, self._stop = 0, False
        self._error: BaseException = RuntimeError("training has ended")
        self._thread = threading.Thread(target=self._train, daemon=True)
        self._thread.start()

    def __call__(self, steps: int) -> None:
        """Makes steps."""
        self._left = steps
        self._turn.release()
        self._done.acquire()
        if not self._thread.is_alive() or self._left:
            raise self._error

    def weights(self) -> dict[str, Any]:
        """Ends training; the trainable variables and the global step, by name."""
        self._stop = True
        self._turn.release()
        self._thread.join()
        names = [name for name in self._estimator.get_variable_names() if "Adam" not in name and "beta" not in name]
        found = {name: self._estimator.get_variable_value(name) for name in names}
        self._folder.cleanup()
        return found

    def _train(self) -> None:
        import tensorflow as tf

        training = self

        class Turn(tf.compat.v1.train.SessionRunHook):
            """Waits for the turn when the steps of the last one are made."""

            def after_run(self, run_context: Any, run_values: Any) -> None:
                training._left -= 1
                if training._left:
                    return
                training._done.release()
                training._turn.acquire()
                if training._stop:
                    run_context.request_stop()

        self._turn.acquire()
        try:
            self._estimator.train(self._input_fn, hooks=[Turn()])
        except BaseException as error:
            self._error = error
            self._left = -1
            self._done.release()
