"""Marks that depend on the version of TensorFlow."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

# Of tests of sessions and Estimators: by day with TensorFlow 1.15 only.
OF_VERSION_1: list[Any] = [pytest.mark.nightly] * (tf.__version__ >= "2")
