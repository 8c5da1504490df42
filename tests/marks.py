"""Marks that depend on the version of TensorFlow."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import tensorflow as tf

# Of tests of sessions and Estimators: by day with TensorFlow 1.15 only.
OF_VERSION_1: list[Any] = [pytest.mark.nightly] * (tf.__version__ >= "2")


def of_version_1(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test function with OF_VERSION_1."""
    for mark in OF_VERSION_1:
        test = mark(test)
    return test
