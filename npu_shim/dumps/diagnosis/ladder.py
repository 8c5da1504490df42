"""Walk the stages until one finds the cause, and go on after those that an interrupted run has finished.

FOLDER/diagnose.json   what the finished stages found; docs/diagnose.schema.json describes it
FOLDER/STAGE/RUN       recording, log and reports of a run, and the dumps that it made
"""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Callable, Sequence

from npu_shim.dumps.dumping import Dumping
from npu_shim.rehearsal import recorded_original, result
from npu_shim.rehearsal.failures import not_completed, recordings
from npu_shim.rehearsal.reports import WRITERS, about, to_json, write_all
from npu_shim.rehearsal.verifying import Settings

if TYPE_CHECKING:
    from npu_shim._tensorflow.types import JsonObject
    from npu_shim.rehearsal.portable import Recorded
    from npu_shim.rehearsal.running import Run

RESULT = "diagnose.json"
CAUSE, AGREES, NONE, NOT_RUN = "cause found", "agrees", "no cause found", "not run"


@dataclass(frozen=True)
class Given:
    """The subject of a diagnosis.

    Attributes:
        reference: the recording.
        run: of the migrated script.
        folder: receives all artefacts.
        dumps: what TensorFlow computes in these steps, as ``--dump`` writes it; None to compute it here.
        findings: of the migration tool in the script: code, place, message.
        has_loss_scale: True if the script names one.
        key: changes with the script, its arguments and the recording.
        tolerance: of the comparison, for a run on the host or not.
        report: prints a line about the progress.
    """

    reference: Recorded
    run: Run
    folder: str
    dumps: str | None
    findings: Sequence[tuple[str, str, str]]
    has_loss_scale: bool
    key: str
    tolerance: Callable[[bool], float]
    report: Callable[[str], None]


@dataclass
class Found:
    """The finding of a stage.

    Attributes:
        text: a sentence.
        verdict: ends the walk; empty to go on.
        cause: title, evidence and fix.
        facts: for the stages after it.
    """

    text: str
    verdict: str = ""
    cause: JsonObject | None = None
    facts: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """A stage. ``runs``: the number of runs of the script that it takes at most."""

    name: str
    title: str
    runs: int
    act: Callable[[Ladder], Found]


class Ladder:
    """The walk.

    Attributes:
        facts: of the stages so far.
        stage: the name of the current one.
    """

    def __init__(self, given: Given) -> None:
        self.given = given
        self.facts: JsonObject = {}
        self.stage = ""

    def walk(self, stages: Sequence[Stage]) -> JsonObject:
        """Return what docs/diagnose.schema.json describes, which is written after each stage."""
        path = os.path.join(self.given.folder, RESULT)
        diagnosis = _read(path)
        if diagnosis.get("key") != self.given.key:
            diagnosis = self._begin(stages, bool(diagnosis))
            _write(path, diagnosis)
        before = {row["name"] for row in diagnosis["stages"]}
        for row in diagnosis["stages"]:
            self.facts.update(row["facts"])
            self.given.report(f"{row['name']}: done before. {row['found']}")
        for number, stage in enumerate(stages):
            if diagnosis["verdict"]:
                break
            if stage.name not in before:
                self._act(stage, stages[number:], diagnosis)
                _write(path, diagnosis)
        diagnosis["verdict"] = diagnosis["verdict"] or NONE
        _write(path, diagnosis)
        return diagnosis

    def _act(self, stage: Stage, left: Sequence[Stage], diagnosis: JsonObject) -> None:
        self.stage = stage.name
        one = self.facts.get("seconds")
        most = sum(later.runs for later in left)
        about = f"; {most} runs of {one:.0f} s are left at most, {one * most / 60:.0f} min" if one else ""
        self.given.report(f"{stage.name}: {stage.title}{about}")
        shutil.rmtree(self.path(), ignore_errors=True)  # of a run that was interrupted
        begin = time.monotonic()
        finding = stage.act(self)
        self.facts.update(finding.facts)
        self.given.report(f"{stage.name}: {finding.text}")
        diagnosis["verdict"], diagnosis["cause"] = finding.verdict, finding.cause
        row = {"name": stage.name, "title": stage.title, "found": finding.text, "facts": finding.facts}
        diagnosis["stages"].append({**row, "seconds": round(time.monotonic() - begin, 1), "folder": self.path()})

    def _begin(self, stages: Sequence[Stage], changed: bool) -> JsonObject:
        """Remove what another script, recording or other arguments left, and return a result without stages."""
        given = self.given
        if changed:
            given.report("the script, its arguments or the recording changed: all stages run again")
        for stage in stages:
            shutil.rmtree(os.path.join(given.folder, stage.name), ignore_errors=True)
        os.makedirs(given.folder, exist_ok=True)
        return {
            **about("diagnose"),
            "key": given.key,
            "script": given.run.script,
            "arguments": list(given.run.arguments),
            "recording": given.reference.folder,
            "verdict": "",
            "cause": None,
            "stages": [],
            "findings": [dict(zip(("code", "place", "message"), finding)) for finding in given.findings],
        }

    def path(self, *names: str) -> str:
        """Return a path in the folder of the stage."""
        return os.path.join(self.given.folder, self.stage, *names)

    def compare(
        self, name: str, given: Dumping | None = None, *, on_host: bool = False, alone: bool = False
    ) -> result.Result:
        """Run the script and compare it with the recording.

        Args:
            name: of its folder.
            given: dumps and precision; None for those of the script.
            on_host: True to leave the device alone.
            alone: True for one process in place of several ranks.
        """
        run = self._run(name, given, on_host, alone)
        settings = Settings(self.given.tolerance(run.on_host))
        verified = recorded_original.against(self.given.reference, run, settings, self._progress, not run.on_host)
        write_all(verified, run.folder, WRITERS)
        return verified

    def start(
        self, name: str, given: Dumping | None = None, on_host: bool = False, steps: int | None = None
    ) -> str | None:
        """Run the script, or some steps of it. Return why it did not run to its end, None if it did."""
        run = self._run(name, given, on_host)
        run = run if steps is None else replace(run, steps=steps)
        self._progress(run.starting)
        part = result.run_part(run, run.start(), recordings(run))
        return None if part.completed else not_completed(part)

    def _run(self, name: str, given: Dumping | None, on_host: bool, alone: bool = False) -> Run:
        dumping = replace(given or Dumping(), draws=self.given.reference.seed)
        run = replace(self.given.run, folder=self.path(name), dumping=dumping, on_host=on_host)
        if alone or self.facts.get("alone"):
            run = replace(run, ranks=None, of_ranks=False)
        os.makedirs(run.folder, exist_ok=True)
        return run

    def _progress(self, line: str) -> None:
        self.given.report(f"{self.stage}: {line}")


def _read(path: str) -> JsonObject:
    try:
        with open(path, encoding="utf-8") as stream:
            content = json.load(stream)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: str, diagnosis: JsonObject) -> None:
    with open(path + ".new", "w", encoding="utf-8") as stream:
        stream.write(to_json(diagnosis))
    os.replace(path + ".new", path)  # so that an interruption leaves one of the two
