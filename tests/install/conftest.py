"""Environments with TensorFlow alone, which tests copy."""

from __future__ import annotations

import pathlib
import subprocess

import pytest

ENVIRONMENTS = ("plain_tf115", "plain_tf26", "plain_tf215", "plain_tf216", "plain_tf221")


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def plain(request: pytest.FixtureRequest, repo_root: pathlib.Path) -> pathlib.Path:
    """The folder of an environment with TensorFlow alone."""
    make = 'root="$1"; source "$root/tests/envs/make.sh"; make_env "$2"'
    made = subprocess.run(["bash", "-c", make, "-", str(repo_root), request.param], stdout=subprocess.PIPE, text=True)
    assert made.returncode == 0, made.stdout
    return pathlib.Path(made.stdout.strip())
