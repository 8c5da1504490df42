"""The rate of an input pipeline: of sessions and of eager iterators, None without one or for one that fails."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from npu_shim._tensorflow import tf_api
from npu_shim.rehearsal.assess import input_rate

tf, v1 = tf_api.tf, tf_api.v1
SECONDS = 0.02  # of a batch
OF_VERSION_2 = [False] + [True] * (tf.__version__ >= "2")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure for a part of a second."""
    monkeypatch.setattr(input_rate, "_SECONDS", 0.5)


def slow(row: Any) -> Any:
    """Return a row after some time."""
    time.sleep(SECONDS)
    return row


def broken(row: Any) -> Any:
    """Raise an error."""
    raise KeyError("no such row")


def rate_of(function: Any, rows: int, eager: bool) -> float | None:
    """Return the rate of a dataset of a session, or of an eager iterator that has read one batch."""

    def make() -> Any:
        numbers = tf.data.Dataset.from_tensor_slices(np.zeros([rows, 3], np.float32))
        return numbers.map(lambda row: v1.py_func(function, [row], tf.float32))

    if eager:
        iterator = iter(make())
        rate = input_rate.rate_of_iterators([iterator])
        assert function is broken or len(list(iterator)) == rows, "the iterator of the script has lost rows"
        return rate
    with tf.Graph().as_default(), v1.Session() as session:
        total = tf.reduce_sum(v1.data.make_one_shot_iterator(make()).get_next())
        return input_rate.rate_of_session(session, [total.op], None, v1.Session.run)


@pytest.mark.parametrize("eager", OF_VERSION_2)
@pytest.mark.parametrize("rows", [8, 1000])
def test_the_rate_is_that_of_the_slowest_part(rows: int, eager: bool) -> None:
    rate = rate_of(slow, rows, eager)
    assert rate is not None and 0.2 / SECONDS < rate <= 1 / SECONDS


@pytest.mark.parametrize("eager", OF_VERSION_2)
def test_a_pipeline_that_fails_has_no_rate(eager: bool) -> None:
    assert rate_of(broken, 5, eager) is None and rate_of(slow, 1, eager) is None


def test_a_pipeline_that_waits_for_the_script_has_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_rate, "_MOST_SECONDS", 0.5)
    given = threading.Event()
    assert input_rate._rate(given.wait) is None
    given.set()


def test_a_step_that_is_fed_by_hand_has_no_rate() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        total = tf.reduce_sum(v1.placeholder(tf.float32, [3]))
        assert input_rate.rate_of_session(session, [total.op], {}, v1.Session.run) is None
    assert input_rate.rate_of_iterators([]) is None and input_rate.rate_of_iterators([object()]) is None
