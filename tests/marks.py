"""Marks that depend on the version of TensorFlow."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import tensorflow as tf

from tests.distributed import forks

# Of tests of sessions and Estimators: by day with TensorFlow 1.15 only.
OF_VERSION_1: list[Any] = [pytest.mark.nightly] * (tf.__version__ >= "2")

# Of tests of whole scripts, each of which imports TensorFlow where forks are not safe: there by night only.
IN_FORKS: list[Any] = [pytest.mark.nightly] * (not forks.is_safe())


def in_forks(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test function with IN_FORKS."""
    for mark in IN_FORKS:
        test = mark(test)
    return test


def of_version_1(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test function with OF_VERSION_1."""
    for mark in OF_VERSION_1:
        test = mark(test)
    return test
