"""The result of a diagnosis as data, read again after an interruption. docs/diagnose.schema.json has its JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Mapping, Sequence

from npu_shim._tensorflow.types import JsonObject, OptionValue
from npu_shim.rehearsal.reports import report_head

CAUSE, AGREES, NONE, NOT_RUN = "cause found", "agrees", "no cause found", "not run"


@dataclass(frozen=True)
class Cause:
    """The cause of other numbers on the card."""

    title: str
    evidence: Sequence[str]
    fix: str


@dataclass(frozen=True)
class Facts:
    """Facts from the comparison of the first run, for the stages after it.

    Attributes:
        folder: of the run.
        alone: True if one process differs as several ranks do.
        options: the NPU options of the run.
        step, name: of the first departure, 0 and empty without one.
        seconds: that the run took.
    """

    folder: str = ""
    alone: bool = False
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    step: int = 0
    name: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class StageResult:
    """A finished stage, and the sentence about what it found."""

    name: str
    title: str
    sentence: str
    facts: Facts | None
    seconds: float
    folder: str

    def to_json(self) -> JsonObject:
        """Return the row of the stage."""
        row = {"name": self.name, "title": self.title, "found": self.sentence}
        return {
            **row,
            "facts": asdict(self.facts) if self.facts else {},
            "seconds": self.seconds,
            "folder": self.folder,
        }

    @classmethod
    def from_json(cls, row: JsonObject) -> StageResult:
        """Return the stage of a row."""
        facts = Facts(**row["facts"]) if row["facts"] else None
        return cls(row["name"], row["title"], row["found"], facts, row["seconds"], row["folder"])


@dataclass(frozen=True)
class ToolFinding:
    """A finding of the migration tool in the script."""

    code: str
    place: str
    message: str


@dataclass
class Diagnosis:
    """A diagnosis; its verdict is empty while stages are left, and its key changes with all that it depends on."""

    key: str
    script: str
    arguments: Sequence[str]
    recording: str
    verdict: str = ""
    cause: Cause | None = None
    stages: list[StageResult] = field(default_factory=list)
    findings: Sequence[ToolFinding] = ()

    def to_json(self) -> JsonObject:
        """Return what docs/diagnose.schema.json describes."""
        return {**report_head("diagnose"), **asdict(self), "stages": [stage.to_json() for stage in self.stages]}

    @classmethod
    def from_json(cls, content: JsonObject) -> Diagnosis:
        """Return what to_json wrote."""
        parts = {name: value for name, value in content.items() if name not in report_head("diagnose")}
        parts["cause"] = parts["cause"] and Cause(**parts["cause"])
        parts["stages"] = [StageResult.from_json(row) for row in parts["stages"]]
        parts["findings"] = [ToolFinding(**row) for row in parts["findings"]]
        return cls(**parts)


def read_diagnosis(path: str) -> Diagnosis | None:
    """Return the diagnosis in a file; None without one that this release can read."""
    try:
        with open(path, encoding="utf-8") as stream:
            content = json.load(stream)
        if content["schema_version"] != report_head("diagnose")["schema_version"]:
            return None
        return Diagnosis.from_json(content)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
