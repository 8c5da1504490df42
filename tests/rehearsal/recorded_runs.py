"""Runs of scripts that are recorded, each in a fork, and once for all tests of a process."""

from __future__ import annotations

import pathlib
from typing import Callable

import pytest
import tensorflow as tf

from npu_shim.rehearsal.comparing.read_recording import Recording, read_recording
from npu_shim.rehearsal.running import DEFAULTS, Run
from samples import training
from tests.distributed import forks

IS_TF2 = tf.__version__ >= "2"
HAS_ESTIMATOR = hasattr(tf.compat.v1, "estimator")
HAS_GRAPH_KERAS = int(getattr(tf.keras, "__version__", "2").split(".")[0]) < 3
Record = Callable[..., Recording]


def environment() -> dict[str, str]:
    return {**training.environment(), **DEFAULTS}


def settings(folder: pathlib.Path, converts: bool, in_ranks: bool) -> str:
    ranks = 2 if in_ranks else None
    return Run("original", "", [], str(folder), [] if converts else None, ranks=ranks, of_ranks=True).settings_text()


def process_of_a_run(repo_root: pathlib.Path) -> pathlib.Path:
    return repo_root / "npu_shim" / "rehearsal" / "recorded_run.py"


@pytest.fixture(scope="session")
def record(repo_root: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """record(script, *flags, converts=False) -> its recording; the same run is made once."""
    known: dict[tuple[object, ...], Recording] = {}

    def run(script: pathlib.Path, *flags: str, converts: bool = False) -> Recording:
        key = (script, converts, *flags)
        if key not in known:
            folder = tmp_path_factory.mktemp("recording")
            arguments = (settings(folder, converts, False), str(script), *flags)
            process = process_of_a_run(repo_root)
            forks.run_script(
                process, *arguments, log=folder / "log", environ={**environment(), "TMPDIR": str(folder)}, cwd=folder
            )
            known[key] = read_recording(str(folder))
        return known[key]

    return run
