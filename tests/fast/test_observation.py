"""The record of an observed run: which lines it reached before it ended."""

from __future__ import annotations

import builtins
import pathlib
import sys

import pytest

from npu_shim.import_hook import tool
from npu_shim.rehearsal.observing.observation import Observation

tool.make_importable()

SCRIPT = """x = 1
def f(last):
    for i in range(3):
        if i == last:
            raise SystemExit(0)
        y = i
    z = 2
f(3)
f(2)
w = 3
"""


def test_statements_after_the_one_that_ended_the_run_did_not_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from convert_tf2npu.api import Diagnostic, FileResult, ObservedRun, sort_edits
    from convert_tf2npu.engine.results import FINDING
    from convert_tf2npu.syntax.source import Source

    path, raw = str((tmp_path / "train.py").resolve()), SCRIPT.encode()
    observation = Observation({})
    finding = Diagnostic(6, 9, "NPU231", FINDING, "a finding")
    edits = observation.watching_edits(raw, path, FileResult(None, (finding,)))
    for name in (observation._watched.ran, observation._watched.seen):
        monkeypatch.setattr(builtins, name, None, raising=False)
    observation.install_builtins_for_watched_code()
    text = Source(raw).bytes_with_edits(sort_edits(edits)).decode()
    try:
        exec(compile(text, path, "exec"), {"__name__": "train"})
    except SystemExit:
        observation.note_end(sys.exc_info()[2])
    run = ObservedRun(("train.py",), "", "", 0, "stopped")
    (facts,) = observation.facts_of_run(str(tmp_path), run).files.values()
    reached = [facts.runs_at(line) for line in range(1, 11)]
    assert reached == [1] * 9 + [0]  # the first call of f made all its statements
