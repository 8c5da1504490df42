"""The result of ``npu-shim migrate`` as data. docs/migrate.schema.json has its JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Sequence

from npu_shim._tensorflow.types import JsonObject
from npu_shim.rehearsal.result import Result

SOURCE, FACTS, TAKEN_BACK = "source", "facts", "taken back"


@dataclass(frozen=True)
class _Place:
    """A place of the program.

    Attributes:
        path, line, column: of the original, the path relative to the folder of the program.
        code, message: of the rule.
    """

    path: str
    line: int
    column: int
    code: str
    message: str

    @property
    def place_text(self) -> str:
        """The place as text."""
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Rewrite(_Place):
    """A rewrite of the program.

    Attributes:
        basis: SOURCE if the source proves it, FACTS if the observed runs do, TAKEN_BACK if it was left out again,
            because the program computed something else with it.
        runs: the number of observed runs that it rests on; None for SOURCE.
    """

    basis: str
    runs: int | None


@dataclass(frozen=True)
class UnconvertedPlace(_Place):
    """A place that is left to people.

    Attributes:
        reached: False if no observed run reached it.
    """

    reached: bool


@dataclass(frozen=True)
class Observed:
    """An observed run: the script with its arguments, versions, training steps, and how it ended."""

    command: Sequence[str]
    tensorflow: str
    python: str
    steps: int
    ended: str


@dataclass
class Migration:
    """A migrated program.

    Attributes:
        script: the path of the original.
        arguments: its arguments.
        output: the folder of the migrated program.
        facts: the path of the facts.
        observed: the observed runs.
        files: the number of files of the program, and of those that changed.
        rewrites, left: the places, those of files in the order of the program.
        verified: the result of the verification.
        notes: sentences about what was taken back, and why.
    """

    script: str
    arguments: Sequence[str]
    output: str
    facts: str
    observed: Sequence[Observed]
    files: int
    changed_files: int
    rewrites: list[Rewrite]
    left: list[UnconvertedPlace]
    verified: Result
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> JsonObject:
        """Return what docs/migrate.schema.json describes."""
        content = asdict(self)
        verified = content.pop("verified")
        head = {"schema_version": 1, "tool": "npu-shim migrate", "tool_version": verified["tool_version"]}
        steps = {side: verified[side]["steps"] for side in ("original", "migrated")}
        verdict = {"verdict": self.verified.verdict, "problems": verified["problems"], "steps": steps}
        return {**head, **content, "verified": verdict}
