"""Walk the stages until one finds the cause, and go on after those that an interrupted run has finished.

FOLDER/diagnose.json   what the finished stages found; docs/diagnose.schema.json describes it
FOLDER/STAGE/RUN       recording, log and reports of a run, and the dumps that it made
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, replace
from typing import Callable, Sequence

from npu_shim.dumps.diagnosis.stage_results import (
    NONE,
    Cause,
    Diagnosis,
    Facts,
    StageResult,
    ToolFinding,
    read_diagnosis,
)
from npu_shim.dumps.dump_settings import Dumping
from npu_shim.rehearsal import recorded_original, result
from npu_shim.rehearsal.failures import failure_sentences, read_recordings
from npu_shim.rehearsal.portable import Recorded
from npu_shim.rehearsal.reports import WRITERS, to_json, write_reports
from npu_shim.rehearsal.running import Run
from npu_shim.rehearsal.verifying import Settings

RESULT = "diagnose.json"


@dataclass(frozen=True)
class Subject:
    """The subject of a diagnosis.

    Attributes:
        reference: the recording.
        run: of the migrated script.
        folder: receives all artefacts.
        dumps: what TensorFlow computes in these steps, as ``--dump`` writes it; None to compute it here.
        findings: of the migration tool in the script.
        has_loss_scale: True if the script names one.
        key: changes with the script, its arguments, the recording and the version of npu_shim.
        tolerance: of the comparison, for a run on the host or not.
        report: prints a line about the progress.
    """

    reference: Recorded
    run: Run
    folder: str
    dumps: str | None
    findings: Sequence[ToolFinding]
    has_loss_scale: bool
    key: str
    tolerance: Callable[[bool], float]
    report: Callable[[str], None]


@dataclass
class Outcome:
    """The outcome of a stage.

    Attributes:
        text: a sentence.
        verdict: ends the walk; empty to go on.
        cause: None without one.
        facts: for the stages after it.
    """

    text: str
    verdict: str = ""
    cause: Cause | None = None
    facts: Facts | None = None


@dataclass(frozen=True)
class Stage:
    """A stage. ``runs``: the number of runs of the script that it takes at most."""

    name: str
    title: str
    runs: int
    act: Callable[[Ladder], Outcome]


class Ladder:
    """The walk.

    Attributes:
        facts: of the first run.
        stage: the name of the current one.
    """

    def __init__(self, subject: Subject) -> None:
        self.given = subject
        self.facts = Facts()
        self.stage = ""

    def run_stages(self, stages: Sequence[Stage]) -> Diagnosis:
        """Return the diagnosis, which is written after each stage."""
        path = os.path.join(self.given.folder, RESULT)
        diagnosis = read_diagnosis(path)
        if diagnosis is None or diagnosis.key != self.given.key:
            diagnosis = self._remove_leftovers_and_begin_diagnosis(stages, os.path.exists(path))
            _write_diagnosis(path, diagnosis)
        before = {stage.name for stage in diagnosis.stages}
        for row in diagnosis.stages:
            self.facts = row.facts or self.facts
            self.given.report(f"{row.name}: done before. {row.sentence}")
        for number, stage in enumerate(stages):
            if diagnosis.verdict:
                break
            if stage.name not in before:
                self._run_stage(stage, stages[number:], diagnosis)
                _write_diagnosis(path, diagnosis)
        diagnosis.verdict = diagnosis.verdict or NONE
        _write_diagnosis(path, diagnosis)
        return diagnosis

    def _run_stage(self, stage: Stage, remaining: Sequence[Stage], diagnosis: Diagnosis) -> None:
        self.stage = stage.name
        one = self.facts.seconds
        most = sum(later.runs for later in remaining)
        about = f"; {most} runs of {one:.0f} s are left at most, {one * most / 60:.0f} min" if one else ""
        self.given.report(f"{stage.name}: {stage.title}{about}")
        shutil.rmtree(self.stage_path(), ignore_errors=True)  # of a run that was interrupted
        begin = time.monotonic()
        outcome = stage.act(self)
        self.facts = outcome.facts or self.facts
        self.given.report(f"{stage.name}: {outcome.text}")
        diagnosis.verdict, diagnosis.cause = outcome.verdict, outcome.cause
        seconds = round(time.monotonic() - begin, 1)
        row = StageResult(stage.name, stage.title, outcome.text, outcome.facts, seconds, self.stage_path())
        diagnosis.stages.append(row)

    def _remove_leftovers_and_begin_diagnosis(self, stages: Sequence[Stage], has_changed: bool) -> Diagnosis:
        """Remove what another script, recording or release left, and return a diagnosis without stages."""
        given = self.given
        if has_changed:
            given.report("the script, its arguments, the recording or npu_shim changed: all stages run again")
        for stage in stages:
            shutil.rmtree(os.path.join(given.folder, stage.name), ignore_errors=True)
        os.makedirs(given.folder, exist_ok=True)
        arguments = list(given.run.arguments)
        return Diagnosis(given.key, given.run.script, arguments, given.reference.folder, findings=given.findings)

    def stage_path(self, *names: str) -> str:
        """Return a path in the folder of the stage."""
        return os.path.join(self.given.folder, self.stage, *names)

    def run_and_compare(
        self, name: str, dumping: Dumping | None = None, *, on_host: bool = False, as_one_process: bool = False
    ) -> result.Result:
        """Run the script and compare it with the recording.

        Args:
            name: of its folder.
            dumping: dumps and precision; None for those of the script.
            on_host: True to leave the device alone.
            as_one_process: True for one process in place of several ranks.
        """
        run = self._planned_run(name, dumping, on_host, as_one_process)
        settings = Settings(self.given.tolerance(run.on_host))
        verified = recorded_original.verify_against(
            self.given.reference, run, settings, self._report_progress, not run.on_host
        )
        write_reports(verified, run.folder, WRITERS)
        return verified

    def run_script(
        self, name: str, dumping: Dumping | None = None, on_host: bool = False, steps: int | None = None
    ) -> str | None:
        """Run the script, or some steps of it. Return why it did not run to its end, None if it did."""
        run = self._planned_run(name, dumping, on_host)
        run = run if steps is None else replace(run, steps=steps)
        self._report_progress(run.run_text)
        part = result.run_part(run, run.run_script(), read_recordings(run))
        return None if part.completed else failure_sentences(part)

    def _planned_run(self, name: str, dumping: Dumping | None, on_host: bool, as_one_process: bool = False) -> Run:
        dumping = replace(dumping or Dumping(), draws=self.given.reference.seed)
        run = replace(self.given.run, folder=self.stage_path(name), dumping=dumping, on_host=on_host)
        if as_one_process or self.facts.alone:
            run = replace(run, ranks=None, of_ranks=False)
        os.makedirs(run.folder, exist_ok=True)
        return run

    def _report_progress(self, line: str) -> None:
        self.given.report(f"{self.stage}: {line}")


def _write_diagnosis(path: str, diagnosis: Diagnosis) -> None:
    with open(path + ".new", "w", encoding="utf-8") as stream:
        stream.write(to_json(diagnosis.to_json()))
    os.replace(path + ".new", path)  # so that an interruption leaves one of the two
