"""Runs of the samples, each made once for all tests."""

from __future__ import annotations

import concurrent.futures
import pathlib
from typing import Callable, Iterator

import pytest

from samples import training

# Seconds matter here: half of a text run's steps show the same as all of them.
STEPS = {"digits_estimator": 400, "digits_session": 400, "text_keras": 1500, "digits_fit": 400, "digits_loop": 400}

Train = Callable[..., "concurrent.futures.Future[training.Run]"]


@pytest.fixture(scope="session")
def train(repo_root: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Train]:
    """train('original' | 'expected_npu', sample, *flags) -> the future of its run.

    Two scripts run at a time; the same run is made once.
    """
    logs = tmp_path_factory.mktemp("logs")
    runs: dict[tuple[str, ...], concurrent.futures.Future[training.Run]] = {}

    def start(kind: str, name: str, *flags: str) -> concurrent.futures.Future[training.Run]:
        key = (kind, name) + flags
        if key not in runs:
            script = repo_root / "samples" / name / (kind + ".py")
            log = logs / "_".join(key).replace("--", "")
            all_flags = [f"--steps={STEPS[name]}", *flags]
            runs[key] = pool.submit(lambda: training.Training(script, all_flags, log).result())
        return runs[key]

    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        yield start
