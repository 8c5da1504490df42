"""The command verify in this process, whose runs are forked from one process with TensorFlow for all tests."""

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


VerifyCommand = Callable[..., Verified]


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**training.environment(), **variables}.items():
            patch.setenv(name, value)
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)  # a fork whose variables differ starts again as a new Python
        yield patch


@contextlib.contextmanager
def sharing(folder: pathlib.Path) -> Iterator[VerifyCommand]:
    """Yield a function (folder, *arguments, **variables) that runs the command there, with the report in ``report``."""
    (folder / "train.py").write_text("import tensorflow\n")
    with contextlib.ExitStack() as stack:
        with _environment():
            [first] = stack.enter_context(
                preloaded_runs.preloaded([Run("original", str(folder / "train.py"), [], str(folder))])
            )
        assert first.server is not None

        @contextlib.contextmanager
        def preloaded(runs: Sequence[Run]) -> Iterator[Sequence[Run]]:
            yield [run if run.ranks else replace(run, server=first.server) for run in runs]

        def run(folder: pathlib.Path, *arguments: str, **variables: str) -> Verified:
            output = io.StringIO()
            with _environment(**variables) as patch, contextlib.redirect_stdout(output), contextlib.redirect_stderr(
                output
            ):
                patch.chdir(folder)
                patch.setattr(preloaded_runs, "preloaded", preloaded)
                code = main(["verify", "-r", "report", *arguments])
            report = folder / "report" / "verify.json"
            found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
            return Verified(code, output.getvalue(), found)

        yield run
