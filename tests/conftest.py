"""What every test needs, set before TensorFlow is imported."""
from __future__ import annotations

import os
import pathlib

import pytest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')


@pytest.fixture(scope='session')
def repo_root() -> pathlib.Path:
    """The checkout under test."""
    return pathlib.Path(__file__).resolve().parent.parent
