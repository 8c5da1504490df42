"""The command verify in this process. Its runs are forked from one process with TensorFlow for all tests."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
from dataclasses import replace
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import pytest

from npu_shim.cli import main
from npu_shim.rehearsal import preloaded_runs
from npu_shim.rehearsal.running import Run
from samples import training


class Verified(NamedTuple):
    """The end of the command: its exit code, what it printed, and its JSON, empty without one."""

    code: int
    output: str
    found: Any


Command = Callable[..., Verified]
Verify = Callable[..., Any]


@contextlib.contextmanager
def environment() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in training.environment().items():
            patch.setenv(name, value)
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)  # a fork whose variables differ starts again as a new Python
        yield patch


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run with the process that all runs are forked from."""
    folder = tmp_path_factory.mktemp("first_run")
    (folder / "train.py").write_text("import tensorflow\n")
    with contextlib.ExitStack() as stack:
        with environment():
            [run] = stack.enter_context(
                preloaded_runs.preloaded([Run("original", str(folder / "train.py"), [], str(folder))])
            )
        assert run.server is not None
        yield run


@pytest.fixture
def command(first_run: Run) -> Command:
    """command(folder, *arguments) -> the end of npu-shim verify there, with the report in folder/report."""

    @contextlib.contextmanager
    def preloaded(runs: Sequence[Run]) -> Iterator[Sequence[Run]]:
        yield [run if run.ranks else replace(run, server=first_run.server) for run in runs]

    def run(folder: pathlib.Path, *arguments: str) -> Verified:
        output = io.StringIO()
        with environment() as patch, contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            patch.chdir(folder)
            patch.setattr(preloaded_runs, "preloaded", preloaded)
            code = main(["verify", "-r", "report", *arguments])
        report = folder / "report" / "verify.json"
        found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
        return Verified(code, output.getvalue(), found)

    return run


@pytest.fixture
def verify(command: Command, tmp_path: pathlib.Path) -> Verify:
    """verify(original, migrated, *arguments) -> the result for two scripts."""

    def run(original: str, migrated: str, *arguments: str) -> Any:
        for name, text in (("original.py", original), ("migrated.py", migrated)):
            (tmp_path / name).write_text(text, encoding="utf-8")
        code, output, found = command(tmp_path, "--copy", "original.py", "migrated.py", *arguments)
        assert code in (0, 1, 3), output
        return found

    return run
