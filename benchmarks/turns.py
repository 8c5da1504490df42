"""Several trainings that take turns in one process, so that what else the machine does meets all of them alike."""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Callable, Hashable, TypeVar

Train = Callable[[int], object]  # makes so many steps
Name = TypeVar("Name", bound=Hashable)


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


def quiet() -> None:
    """Graph mode, no warnings, and no log lines of TensorFlow."""
    import tensorflow as tf

    warnings.simplefilter("ignore")
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
