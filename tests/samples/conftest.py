"""Runs of the samples, each made once for all tests."""

from __future__ import annotations

import concurrent.futures
import pathlib
from typing import Callable, Iterator

import pytest

from samples import training
from tests.distributed import forks

# Seconds matter here: these steps show the same as all of a run.
STEPS = {"digits_estimator": 200, "digits_session": 200, "text_keras": 400, "digits_fit": 200, "digits_loop": 200}

Train = Callable[..., "concurrent.futures.Future[training.Run]"]


def result_of(script: pathlib.Path, flags: list[str], log: pathlib.Path) -> training.Run:
    """Run a script, in a fork where TensorFlow is safe in one."""
    model = pathlib.Path(f"{log}_model")
    flags = [*flags, f"--model_dir={model}"]
    if forks.is_safe():
        said = forks.run_script(script, *flags, log=log, environ=training.environment(), cwd=log.parent)
        run = training.parse(said)
    else:
        run = training.Training(script, flags, log).result()
    assert list(model.iterdir())
    return run


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
            all_flags = [f"--steps={STEPS[name]}", f"--log_every={STEPS[name] // 10}", *flags]
            runs[key] = pool.submit(result_of, script, all_flags, log)
        return runs[key]

    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        yield start
